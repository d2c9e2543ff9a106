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
		total += n.latest.Item() // want `only kept`
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
		fs := step(b).Float32s() // want `its value is only kept`
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

// Values that pick what the host does next, which does not hold up the device.

func picks(data []Batch) {
	for _, b := range data {
		if step(b).Item() > 0.5 { // want `in each iteration; read after the loop, or only`
			fmt.Println("spam")
		} else {
			fmt.Println("ham")
		}
		switch step(b).ItemInt() { // want `in each iteration; read after the loop, or only`
		case 1:
			fmt.Println("one")
		}
		low := 1.0
		if v := step(b).Item(); v < low { // want `only kept`
			low = math.Min(v, 0.5)
		}
	}
}

// Verdicts.

func above(v float64) bool { return v > 1 }

func verdicts(data []Batch) (ok, bad bool) {
	ok = true
	for _, b := range data {
		ok = ok && above(step(b).Item())      // want `read after the loop, or only`
		bad = bad || step(b).Item() > 3       // want `only kept`
		bad = (step(b).Item() > 4) || bad     // want `only kept`
		bad = bad && ok && step(b).Item() > 5 // want `only kept`
	}
	for _, b := range data {
		if ok {
			ok = above(step(b).Item()) // want `read after the loop, or only`
		}
		if !bad {
			bad = !above(step(b).Item()) // want `read after the loop, or only`
		}
	}
	return ok, bad
}

// A search is part of a step, and no loop beside which the step is a slow one.

func descend(x *tensor.Tensor, data []Batch) (losses []float64, all []*tensor.Tensor) {
	for _, b := range data {
		before := step(b)
		f0 := before.Item() // want `only kept`
		t := 1.0
		for t > 1e-9 {
			moved := x.Sub(b.X.MulScalar(t))
			if moved.Norm().Item() < 0.9 { // AT005
				break
			}
			t *= 0.5
		}
		x = x.Sub(b.X.MulScalar(t))
		losses = append(losses, f0)
		losses = append(losses, x.Norm().Item()) // want `only kept`
	}
	for _, b := range data {
		var moved *tensor.Tensor
		for try := 1; ; try++ {
			moved = x.Sub(b.X.MulScalar(1 / float64(try)))
			if moved.Norm().Item() < 0.9 || try > 20 { // AT005
				break
			}
		}
		x = moved
		losses = append(losses, x.Norm().Item()) // want `only kept`
	}
	return
}

// One that carries tensors, or what it learns from outside, is no search: what
// stands beside it is done once for many of its iterations.

func solves(xs []*tensor.Tensor, play func(float64) (float64, bool)) (results []float64) {
	for _, x := range xs {
		first := x.Norm().Item()
		for {
			x = x.MulScalar(0.5).AddScalar(first)
			if x.Norm().Item() < 0.1 { // AT005
				break
			}
		}
		results = append(results, x.Norm().Item())
	}
	for _, x := range xs {
		position, over := 1.0, false
		for !over {
			position, over = play(x.MulScalar(position).Norm().Item()) // want `read after the loop, or only`
		}
		results = append(results, x.AddScalar(position).Item())
	}
	for _, x := range xs {
		root := 1.0
		for x.MulScalar(root).Norm().Item() > 0.1 { // AT005
			root -= 0.1
			root = root - x.MulScalar(root).Norm().Item() // AT003
		}
		results = append(results, x.AddScalar(root).Item())
	}
	return
}

// A function that calls itself twice comes to the end of its recursion many times.

func fib(n int, x *tensor.Tensor) float64 {
	if n < 2 {
		return x.AddScalar(float64(n)).Item() // want `read after the loop, or only`
	}
	return fib(n-1, x) + fib(n-2, x)
}

type node struct {
	children []*node
	x        *tensor.Tensor
}

func (n *node) total() (sum float64) {
	if len(n.children) == 0 {
		return n.x.Mean().Item() // want `read after the loop, or only`
	}
	for _, c := range n.children {
		sum += c.total()
	}
	return sum
}

func power(n int, x *tensor.Tensor) float64 {
	if n == 0 {
		return x.Norm().Item() // once
	}
	return power(n-1, x.MatMul(x))
}

func either(n int, x *tensor.Tensor) float64 {
	switch {
	case n == 0:
		return x.Norm().Item() // once
	case n%2 == 0:
		return either(n/2, x.MatMul(x))
	}
	return either(n-1, x)
}

func byExpression(data []Batch) (sum float64) {
	for _, b := range data {
		sum += (*tensor.Tensor).Item(step(b)) // want `only kept`
	}
	return sum
}

// A value that was read decides whether another one is.

func detected(xs []*tensor.Tensor, threshold float64) (bins []int64) {
	for _, x := range xs {
		p := x.Square()
		if p.Max().Item() > threshold {
			bins = append(bins, p.ArgMax(0).ItemInt()) // want `only kept`
		}
	}
	return bins
}

func binned(conf, right *tensor.Tensor, out []float64) {
	for b := range out {
		in := conf.MulScalar(float64(b))
		n := in.Sum().Item()
		if n > 0 {
			out[b] = in.Mul(right).Sum().Item() / n // want `AT001`
		}
	}
}
