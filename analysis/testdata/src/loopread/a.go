package loopread

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"slices"
	"sync"
	"time"

	"batch"

	asyncrt "github.com/asyncgen/asyncgen/runtime"
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

type Batch = batch.Batch

var w *tensor.Tensor

func step(b Batch) *tensor.Tensor { return b.X.MatMul(w).Sub(b.Y).Mean() }

func accumulate(data []Batch) (total float64) {
	for _, b := range data {
		total += step(b).Item() // want `blocking read in loop: step\(b\).Item\(\) waits for the device in each iteration \(its value is only kept\); keep the tensors and read them after the loop \[AT001\]`
	}
	return total
}

func collect(data []Batch) (all []float64, last float64, byName map[int]float64) {
	for i, b := range data {
		loss := step(b)
		all = append(all, loss.Item()) // want `only kept`
		other := step(b)
		byName[i] = other.Item() // want `only kept`
		third := step(b)
		last = third.Item() // AT002
	}
	return
}

func viaVariable(data []Batch) (total, most float64) {
	for _, b := range data {
		loss := step(b)
		v := loss.Item() // want `only kept`
		total += v / 2
		if v > most {
			most = v
		}
	}
	return
}

func roundTrip(data []Batch) *tensor.Tensor {
	x := tensor.Ones(4)
	for range data {
		n := x.Norm().Item() // AT003
		x = x.MulScalar(1 / n)
	}
	return x
}

func passedOn(data []Batch, record func(float64)) {
	for _, b := range data {
		record(step(b).Item()) // want `read after the loop, or only every so many`
	}
}

func kinds(ctx context.Context, data []Batch) (out []float32, n int64, err error) {
	for _, b := range data {
		y := step(b)
		out = append(out, y.Float32s()...) // want `only kept`
		z := step(b)
		n += tensor.ItemOf[int64](z) // want `only kept`
		u := step(b)
		v, err := u.ItemContext(ctx) // want `only kept`
		if err != nil {
			return nil, 0, err
		}
		out[0] += float32(v)
	}
	return
}

func statements(data []Batch, more func() bool) (total float64) {
	for i := 0; i < len(data); i++ {
		total += step(data[i]).Item() // want `only kept`
	}
	for more() {
		total += step(data[0]).Item() // want `only kept`
	}
again:
	total += step(data[0]).Item() // want `only kept`
	if more() {
		goto again
	}
	for range 10 {
		total += step(data[0]).Item() // want `only kept`
	}
	return
}

func seq(yield func(Batch) bool) {}

func rangeOverFunc() (total float64) {
	for b := range seq {
		total += step(b).Item() // AT012
	}
	return
}

func closures(data []Batch) (total float64) {
	batch.Each(len(data), func(i int) {
		total += step(data[i]).Item() // AT012
	})
	for _, b := range data {
		asyncrt.Try(func() {
			total += step(b).Item() // want `only kept`
		})
		func() {
			total += step(b).Item() // want `only kept`
		}()
	}
	slices.SortFunc(data, func(a, b Batch) int {
		return int(step(a).Item() - step(b).Item()) // AT012
	})
	return
}

func recursive(b Batch, depth int) float64 {
	if depth == 0 {
		return step(b).Item() // the base case is not repeated
	}
	v := step(b).Item() // want `read after the loop`
	return v + recursive(b, depth-1)
}

type trainer struct {
	loss *tensor.Tensor
	data *tensor.Tensor
	net  nn.Module
	opt  *optim.Optimizer
}

func (t *trainer) step(b Batch) {
	t.loss = nn.MSELoss(t.net.Forward(b.X), b.Y)
	t.opt.Minimize(t.loss)
}

func (t *trainer) run(data []Batch) (total float64) {
	for _, b := range data {
		t.step(b)
		total += t.loss.Item() // want `only kept`
		total += t.data.Item() // nobody enqueues it
	}
	return
}

func innerLoop(data []Batch) (total float64) {
	for _, b := range data {
		y := step(b)
		for i := range 3 {
			total += y.At(i) // want `only kept`
		}
	}
	return
}

func elements(data []Batch) (total float64) {
	for _, b := range data {
		for _, y := range []*tensor.Tensor{step(b), step(b)} {
			total += y.Item() // want `only kept`
		}
	}
	return
}

func validated(data, more []Batch, opt *optim.Optimizer) (total, val float64) {
	for i, b := range data {
		loss := step(b)
		opt.Minimize(loss)
		if i%1000 == 0 {
			sum := tensor.Zeros()
			for _, b := range more {
				sum = sum.Add(step(b))
			}
			val = sum.Item()
			epoch(more, opt)
		}
		total += loss.Item() // want `only kept`
	}
	return
}

func interactive(data []Batch) (total float64) {
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		total += step(data[0]).Item() // info: the loop waits for its user anyway // want `only kept`
	}
	return
}

func secondReadIsFree(data []Batch) (total, squares float64) {
	for _, b := range data {
		loss := step(b)
		total += loss.Item() // want `only kept`
		squares += loss.Item() * loss.Item()
		loss = loss.AddScalar(1)
		total += loss.Item() // want `only kept`
	}
	return
}

func errorsAreRare(data []Batch) (sum float64) {
	for _, b := range data {
		loss := step(b)
		if err := loss.Wait(); err != nil {
			log.Printf("failed at %v", loss.Item())
		}
		if err := check(b); err != nil {
			sum += step(b).Item()
			continue
		}
	}
	return
}

func check(Batch) error { return errors.New("no") }

// Everything below is silent.

func afterLoop(data []Batch) (total float64) {
	var losses []*tensor.Tensor
	for _, b := range data {
		losses = append(losses, step(b))
	}
	for _, l := range losses {
		total += l.Item()
	}
	return
}

func hostMade(data [][]float32) (total float64) {
	for _, d := range data {
		x := tensor.From(d)
		total += x.Item()
		step(Batch{X: x})
	}
	return
}

func invariant(data []Batch) (total float64) {
	scale := w.Sum()
	for _, b := range data {
		step(b)
		total += scale.Item()
	}
	return
}

func rare(data []Batch, every int) (total float64) {
	start := time.Now()
	var once sync.Once
	verbose := os.Getenv("V") != ""
	ticker := time.NewTicker(time.Second)
	for i, b := range data {
		loss := step(b)
		if i%100 == 0 {
			total += loss.Item()
		}
		if i%every != 0 {
			continue
		}
		total += loss.Item()
		if due := i%10 == 9; due {
			total += loss.Item()
		}
		if i == len(data)-1 || i+1 == every {
			total += loss.Item()
		}
		if i < 3 && verbose {
			total += loss.Item()
		}
	}
	for i, b := range data {
		loss := step(b)
		if i == len(data)-1 || i+1 == every || len(data)-1 == i {
			total += loss.Item()
		}
		if i < 3 && total > 1 {
			total += loss.Item()
		}
		if i >= len(data)-3 {
			total += loss.Item()
		}
		if 3 > i {
			total += loss.Item()
		}
		if !(i != 0) {
			total += loss.Item()
		}
	}
	for i, b := range data {
		loss := step(b)
		if i%100 != 0 || verbose {
			continue
		}
		total += loss.Item()
	}
	n := 0
	for more := true; more; {
		loss := step(data[0])
		n++
		if n == every {
			total += loss.Item()
			n = 0
		}
		more = total < 100
	}
	for i := range data {
		loss := step(data[i])
		if time.Since(start) > time.Second {
			total += loss.Item()
		}
		once.Do(func() { total += loss.Item() })
		select {
		case <-ticker.C:
			total += loss.Item()
		default:
		}
		switch {
		case i&127 == 0:
			total += loss.Item()
		}
		if verbose {
			total += loss.Item()
		}
	}
	return
}

func notRare(data []Batch, warm int, scale bool) (total float64) {
	for i, b := range data {
		loss := step(b)
		if i%100 == 0 || scale {
			total += loss.Item() // want `only kept`
		}
	}
	for i, b := range data {
		loss := step(b)
		if i%100 != 0 && scale {
			continue
		}
		total += loss.Item() // want `only kept`
	}
	n := 0
	for i, b := range data {
		loss := step(b)
		n++
		n = b.X.Dim(i)
		if n == warm {
			total += loss.Item() // want `only kept`
		}
	}
	for i, b := range data {
		loss := step(b)
		if i%1 == 0 {
			total += loss.Item() // want `only kept`
		}
	}
	for i, b := range data {
		loss := step(b)
		if i == 0 {
			continue
		} else {
			total += loss.Item() // want `only kept`
		}
	}
	for i, b := range data {
		loss := step(b)
		if i > warm {
			total += loss.Item() // want `only kept`
		}
	}
	for _, b := range data {
		loss := step(b)
		if scale {
			total += loss.Item() // want `only kept`
		}
	}
	return
}

func leaves(data []Batch, found func(Batch) bool) float64 {
	for _, b := range data {
		loss := step(b)
		if found(b) {
			return loss.Item()
		}
	}
	for {
		loss := step(data[0])
		if found(data[0]) {
			v := loss.Item()
			fmt.Println(v)
			break
		}
	}
	return 0
}

func few(data []Batch) (total float64) {
	for i := 0; i < 4; i++ {
		total += step(data[i]).Item()
	}
	for range 3 {
		total += step(data[0]).Item()
	}
	for _, i := range []int{1, 5} {
		total += step(data[i]).Item()
	}
	for _, b := range [2]Batch{} {
		total += step(b).Item()
	}
	times, some := 3, []Batch{data[0], data[1]}
	for range times {
		for _, b := range some {
			total += step(b).Item()
		}
	}
	return
}

func epochs(n int, data []Batch, opt *optim.Optimizer) (all []float64) {
	for range n {
		var loss *tensor.Tensor
		for _, b := range data {
			loss = step(b)
			opt.Minimize(loss)
		}
		all = append(all, loss.Item())
	}
	for range n {
		epoch(data, opt)
		all = append(all, accuracy(data).Item())
	}
	return
}

func epoch(data []Batch, opt *optim.Optimizer) {
	for _, b := range data {
		opt.Minimize(step(b))
	}
}

func accuracy(data []Batch) *tensor.Tensor {
	sum := tensor.Zeros()
	for _, b := range data {
		sum = sum.Add(step(b))
	}
	return sum
}

type source interface{ Next() *tensor.Tensor }

func unknown(s source, f func() *tensor.Tensor, data []Batch) (total float64) {
	for _, b := range data {
		step(b)
		total += s.Next().Item()
		total += f().Item() // want `only kept`
	}
	return
}

func elsewhere(data []Batch, c chan float64) {
	for _, b := range data {
		loss := step(b)
		go func() { c <- loss.Item() }()
	}
}

func defined(data []Batch, due func() bool) (total float64) {
	for _, b := range data {
		loss := step(b)
		defer func() { total += loss.Item() }()
		read := func() { total += loss.Item() }
		if due() {
			read()
			break
		}
	}
	for _, b := range data {
		_ = func() *tensor.Tensor { return step(b) } // called by nobody here
		total += w.AddScalar(1).Item()               // want `only kept`
	}
	for _, b := range data {
		_ = func() *tensor.Tensor { return step(b) }
		total += w.Item()
	}
	return
}

func suppressed(data []Batch) (total float64) {
	for _, b := range data {
		total += step(b).Item() //asyncgen:ignore AT001 the benchmark measures this
		//asyncgen:ignore AT004,AT001 also so
		total += step(b).Item()
		total += step(b).Item() //nolint:asyncgen // so
		//asyncgen:ignore AT001 covers a statement of several lines
		total +=
			step(b).Item()
		//asyncgen:ignore AT001
		total += step(b).Item() // want `\(an ignore directive needs a reason\) \[AT001\]`
		//asyncgen:ignore AT004 another rule
		total += step(b).Item() // want `AT001`
		_ = b.Y                 //asyncgen:ignore AT001 of this line alone
		total += step(b).Item() // want `AT001`
	}
	return
}

// leftToTheGenerator has a version beside it that waits less.
//
//asyncgen:kernel window=8
func leftToTheGenerator(data []Batch) (total float64) {
	for _, b := range data {
		total += step(b).Item()
	}
	return
}

// likeIt only speaks of //asyncgen:kernel.
//
//asyncgen:kernels
func likeIt(data []Batch) (total float64) {
	for _, b := range data {
		total += step(b).Item() // want `AT001`
	}
	return
}
