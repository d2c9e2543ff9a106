package loopread

import (
	"errors"
	"fmt"
	"log"
	"math"
	"os"
	"runtime"
	"strings"

	"batch"

	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// Where tensors come from.

type result struct {
	Loss *tensor.Tensor
	all  []*tensor.Tensor
}

func evaluate(b Batch) result { return result{Loss: step(b), all: []*tensor.Tensor{step(b)}} }

func both(b Batch) (loss, scaled *tensor.Tensor) {
	loss = step(b)
	scaled = loss.MulScalar(2)
	return
}

func pass(b Batch) (*tensor.Tensor, *tensor.Tensor) { return both(b) }

func pick(x, y *tensor.Tensor) *tensor.Tensor {
	if x.Dim(0) > 1 {
		return x
	}
	return y
}

type named struct{ latest *tensor.Tensor }

func (n *named) update(b Batch)       { n.set(step(b)) }
func (n *named) set(t *tensor.Tensor) { n.latest = t }

var latest *tensor.Tensor

func publish(b Batch) { latest = step(b) }

func origins(data []Batch, n *named, any map[string]any) (total float64) {
	for _, b := range data {
		_, scaled := pass(b)
		total += scaled.Item()           // want `only kept`
		total += pick(w, step(b)).Item() // want `only kept`
		total += pick(w, w).Item()
		p := &result{step(b), nil}
		total += p.Loss.Item()                 // want `only kept`
		total += (*p).all[0].Item()            // want `only kept`
		total += evaluate(b).all[1:][0].Item() // want `only kept`
		m := map[string]*tensor.Tensor{"loss": step(b)}
		total += m["loss"].Item() // want `only kept`
		n.update(b)
		total += n.latest.Item() // n.set is given something, who knows what
		publish(b)
		total += latest.Item() // want `only kept`
		t := any["loss"].(*tensor.Tensor)
		total += t.Item() // out of a map of anything
		view := step(b).Reshape(1).Row(0)
		total += (view).At(0) // want `only kept`
		q := new(tensor.Tensor)
		total += q.Item()
		s := append([]*tensor.Tensor(nil), step(b))
		total += s[0].Item() // want `only kept`
	}
	return
}

func cells(data []Batch, p *nn.Param, opt *optim.Optimizer) (total float64) {
	for _, b := range data {
		opt.Minimize(step(b))
		total += p.Value().Item() // want `only kept`
	}
	for _, b := range data {
		step(b)
		total += p.Value().Item() // nothing in the loop assigns it
	}
	return
}

// What becomes of the values.

func uses(data []Batch, c chan float64, out []float64, at *int) (n int, err error) {
	for i, b := range data {
		c <- step(b).Item()      // want `read after the loop, or only`
		fs := step(b).Float32s() // want `read after the loop, or only`
		for _, f := range fs {
			out = append(out, float64(f))
		}
		out[int(step(b).ItemInt())]++  // want `read after the loop, or only`
		first := step(b).Float32s()[0] // want `only kept`
		out[i] = math.Max(float64(first), 0)
		most := max(step(b).Item(), 1) // want `only kept`
		out[i] += most
		var v, u = step(b).Item(), i // want `only kept`
		out[u] = -v
		p := &[]float64{step(b).Item()} // want `only kept`
		out = append(out, *p...)
		_ = step(b).Item() // dropped
		step(b).Item()
		defer fmt.Println(step(b).Item())    // AT004 reports it
		x := tensor.From(step(b).Float32s()) // AT003
		x.AddScalar(1)
		switch v := step(b).ItemInt(); v { // want `only kept`
		case 1:
			n++
		}
		q := step(b).Item() // want `read after the loop`
		r := &q
		out = append(out, *r)
	}
	return
}

// How loops end, and don't.

func ends(data []Batch, done func() bool) (total float64) {
	for i := 10; i > 8; i-- {
		total += step(data[i]).Item()
	}
	for i := 0; i <= 3; i++ {
		total += step(data[i]).Item()
	}
	for i := 0; i <= 4; i++ {
		total += step(data[i]).Item() // want `only kept`
	}
	for i := 0; i != 1000; i++ {
		total += step(data[0]).Item() // want `only kept`
	}
	for range "four" {
		total += step(data[0]).Item()
	}
	for _, b := range map[int]Batch{1: {}, 2: {}} {
		total += step(b).Item()
	}
	for _, b := range &[3]Batch{} {
		total += step(b).Item()
	}
	for {
		loss := step(data[0])
		if done() {
			log.Fatal(loss.Item())
		}
		if done() {
			fmt.Println(loss.Item())
			os.Exit(1)
		}
		if done() {
			fmt.Println(loss.Item())
			runtime.Goexit()
		}
		if done() {
			panic(loss.Item())
		}
	}
}

func unreachable(data []Batch) (total float64) {
	for _, b := range data {
		loss := step(b)
		continue
		total += loss.Item()
	}
	return
}

// Functions that functions call.

func visit(data []Batch, f func(Batch) error) error {
	for _, b := range data {
		if err := f(b); err != nil {
			return err
		}
	}
	return nil
}

func callbacks(data []Batch) (total float64, err error) {
	err = visit(data, func(b Batch) error {
		total += step(b).Item() // AT012
		return nil
	})
	err = errors.Join(err, visit(data[:1], (func(b Batch) error {
		total += step(b).Item() // AT012
		return nil
	})))
	strings.Map(func(r rune) rune {
		total += step(data[r]).Item() // AT012
		return r
	}, "some text")
	batch.Each(len(data), func(i int) {
		if i%10 == 0 {
			total += step(data[i]).Item()
		}
	})
	var walk func(b Batch, depth int)
	walk = func(b Batch, depth int) {
		total += step(b).Item() // want `only kept`
		if depth > 0 {
			walk(b, depth-1)
		}
	}
	walk(data[0], 10)
	handlers := []func(){func() { total += step(data[0]).Item() }}
	for _, h := range handlers {
		step(data[0])
		h()
	}
	return
}

func even(b Batch, n int) float64 {
	if n == 0 {
		return 0
	}
	return step(b).Item() + odd(b, n-1) // want `read after the loop`
}

func odd(b Batch, n int) float64 {
	if n == 0 {
		return 1
	}
	return even(b, n-1)
}
