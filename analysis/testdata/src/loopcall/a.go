package loopcall

import (
	"bufio"
	"fmt"
	"os"

	"batch"

	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

type Batch = batch.Batch

var w *tensor.Tensor

// In another package.
func imported(data []Batch) (total float64) {
	for _, b := range data {
		loss := batch.Loss(w, b)
		total += batch.Value(loss) // want `blocking call in loop: batch.Value waits for the device in each iteration \(t.Item\(\) at batch.go:19\); return the tensor and read it after the loop \[AT010\]`
	}
	for _, b := range data {
		loss := batch.Loss(w, b)
		total += batch.Deeper(loss) // want `\(batch.Deep|Deep at batch.go:25, then Value at batch.go:23, then t.Item\(\) at batch.go:19\)`
		total += batch.Deepest(loss)
	}
	for _, b := range data {
		total += batch.Second(batch.Loss(w, b), w) // w is older than the loop
		total += batch.Second(w, batch.Loss(w, b)) // want `batch.Second waits`
	}
	return total
}

func step(b Batch, opt *optim.Optimizer) float64 {
	loss := batch.Loss(w, b)
	opt.Minimize(loss)
	return loss.Item()
}

func show(t *tensor.Tensor) { fmt.Println("loss:", t) }

func local(data []Batch, opt *optim.Optimizer) (total float64) {
	for _, b := range data {
		total += step(b, opt) // want `step waits for the device in each iteration \(loss.Item\(\) at a.go:39\)`
		total += step(b, opt) // want `step waits`
	}
	for _, b := range data {
		show(batch.Loss(w, b)) // want `show waits .*\(fmt.Println at a.go:42\)`
	}
	return total
}

type model struct {
	mean batch.Mean
	loss *tensor.Tensor
}

func (m *model) run(b Batch) { m.loss = batch.Loss(w, b) }

func (m *model) last() float64 { return m.loss.Item() }

func methods(m *model, data []Batch) (total float64) {
	for _, b := range data {
		m.run(b)
		total += m.last() // want `m.last waits`
	}
	for _, b := range data {
		m.mean.Add(batch.Loss(w, b))
		fmt.Println(m.mean.Value()) // want `m.mean.Value waits`
	}
	return total
}

func literals(data []Batch) (total float64) {
	value := func(b Batch) float64 { return batch.Loss(w, b).Item() }
	for _, b := range data {
		total += value(b) // want `value waits`
	}
	batch.Twice(func(i int) {
		total += value(data[i]) // want `value waits`
	})
	batch.Once(func() { total += value(data[0]) })
	return total
}

type box[T any] struct{ t *tensor.Tensor }

func (b box[T]) item() float64 { return b.t.Item() }

func get[T any](t *tensor.Tensor, _ T) float64 { return t.Item() }

func generic(data []Batch) (total float64) {
	for i, b := range data {
		total += get(batch.Loss(w, b), i) // want `get waits`
	}
	return
}

func newton(x *tensor.Tensor) *tensor.Tensor {
	for residual(x) > 1e-6 { // want `residual waits`
		x = x.MulScalar(0.5)
	}
	return x
}

func residual(x *tensor.Tensor) float64 { return x.Norm().Item() }

func chat(data []Batch, opt *optim.Optimizer) {
	in := bufio.NewReader(os.Stdin)
	for {
		if _, err := in.ReadString('\n'); err != nil {
			return
		}
		fmt.Println(step(data[0], opt)) // want `step waits`
	}
}

// Silent from here on.

func maybe(i int, t *tensor.Tensor, quiet bool, err error) {
	if i%10 == 0 {
		fmt.Println(t)
	}
	if !quiet {
		fmt.Println(t)
	}
	if err != nil {
		fmt.Println(t)
	}
	if false {
		return
	}
}

func train(data []Batch, opt *optim.Optimizer) float64 {
	var loss *tensor.Tensor
	for _, b := range data {
		loss = batch.Loss(w, b)
		opt.Minimize(loss)
	}
	return loss.Item()
}

func fit(data []Batch, opt *optim.Optimizer) float64 {
	before := batch.Loss(w, data[0]).Item()
	for _, b := range data {
		opt.Minimize(batch.Loss(w, b))
	}
	return before
}

func evaluate(data []Batch) float64 {
	sum := tensor.Zeros()
	for _, b := range data {
		sum = sum.Add(batch.Loss(w, b))
	}
	return sum.Item()
}

func rare(data []Batch, opt *optim.Optimizer, quiet bool) (total float64) {
	for i, b := range data {
		loss := batch.Loss(w, b)
		maybe(i, loss, quiet, nil)
		batch.Report(i, loss)
		if i%100 == 0 {
			show(loss)
		}
		batch.Async(loss)
		go show(loss)
		defer show(loss)
	}
	for range 100 {
		total += train(data, opt)
		total += evaluate(data)
	}
	for range 100 {
		total += fit(data, opt)
	}
	for range 100 {
		total += evaluate(data)
	}
	var losses []*tensor.Tensor
	for _, b := range data {
		losses = append(losses, batch.Loss(w, b))
	}
	for _, l := range losses {
		total += batch.Value(l)
	}
	for range data {
		total += batch.Value(batch.Origin().AddScalar(1)) // want `batch.Value waits`
		total += batch.Value(batch.Origin())
		total += batch.Sum(losses)
	}
	return total
}

func eachCall(xs []*tensor.Tensor) (total float64) {
	for _, x := range xs {
		y := x.MatMul(w)
		total += batch.Value(y)           // want `batch.Value waits`
		total += batch.Value(y.MatMul(y)) // want `batch.Value waits`
	}
	return total
}

// rewritten is the business of the generator.
//
//asyncgen:kernel
func rewritten(xs []*tensor.Tensor) (total float64) {
	for _, x := range xs {
		total += batch.Value(x.MatMul(w))
	}
	return total
}
