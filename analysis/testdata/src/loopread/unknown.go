package loopread

import (
	"errors"

	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// What is called by a value of function type, or through an interface of others,
// enqueues what it returns, unless the package shows what it is.

type stepper interface{ Step(i int) *tensor.Tensor }

// host has one implementation, which makes its tensor of numbers.
type host interface{ Row(i int) *tensor.Tensor }

type rows [][]float32

func (r rows) Row(i int) *tensor.Tensor { return tensor.From(r[i]) }

type job struct {
	step   func(i int) *tensor.Tensor
	row    func(i int) *tensor.Tensor
	inner  stepper
	report func(loss *tensor.Tensor)
	count  func(loss *tensor.Tensor)
}

func newJob(step func(i int) *tensor.Tensor, r rows) *job {
	j := &job{step: step, row: func(i int) *tensor.Tensor { return tensor.From(r[i]) }}
	j.report = func(loss *tensor.Tensor) { r[0][0] += float32(loss.Item()) }
	j.count = func(loss *tensor.Tensor) { r[0][0]++ }
	return j
}

func (j *job) run(n int, step func(i int) *tensor.Tensor, h host, d interface{ LoadRow(i int) *tensor.Tensor }) (total float64) {
	for i := range n {
		total += step(i).Item() // want `only kept`
	}
	for i := range n {
		total += j.step(i).Item() // want `only kept`
	}
	for i := range n {
		total += j.inner.Step(i).Item() // want `only kept`
		total += j.row(i).Item()
		total += h.Row(i).Item()
		total += d.LoadRow(i).Item()
	}
	for i := range n {
		j.count(j.step(i))
		j.report(j.step(i)) // AT010
	}
	return total
}

func several(net *nn.Replicas, opt *optim.Optimizer, data []Batch) (total float64) {
	for _, b := range data {
		loss := net.Loss(nn.MSELoss, b.X, b.Y)
		opt.Minimize(loss)
		total += loss.Item() // want `only kept`
	}
	for _, b := range data {
		total += tensor.VMap(func(rows ...*tensor.Tensor) *tensor.Tensor { return rows[0].Norm() }, b.X).Sum().Item() // want `only kept`
	}
	return total
}

type made struct{ loss *tensor.Tensor }

// What holds tensors is made of those that are given.
func holders(run func(*tensor.Tensor) made, at func(int) Batch, all interface {
	Run(x *tensor.Tensor) map[string]*tensor.Tensor
}, data []Batch) (total float64) {
	for i, b := range data {
		total += run(b.X).loss.Item()     // want `only kept`
		total += all.Run(b.X)["a"].Item() // want `only kept`
		total += at(i).Y.Item()
	}
	return total
}

// A wait is no excuse for the read after it, unless it is a finding itself.

func waitsFirst(net nn.Module, opt *optim.Optimizer, data []Batch) (total float64, err error) {
	for _, b := range data {
		loss := nn.MSELoss(net.Forward(b.X), b.Y)
		opt.Minimize(loss)
		if err := loss.Wait(); err != nil {
			return 0, errors.New("failed")
		}
		total += loss.Item() // want `only kept`
		total += loss.Item()
	}
	for _, b := range data {
		loss := step(b)
		if err := loss.Wait(); err != nil { // AT009
			return 0, errors.New("failed")
		}
		total += loss.Item()
	}
	return total, nil
}
