package growth

import (
	"batch"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

type step struct {
	x    *tensor.Tensor
	loss float64
}

type recorder struct {
	all     []*tensor.Tensor
	steps   []step
	window  []*tensor.Tensor
	shown   []*tensor.Tensor
	Public  []*tensor.Tensor
	copied  []*tensor.Tensor
	numbers []float64
}

func newRecorder(given []*tensor.Tensor) *recorder {
	return &recorder{all: nil, steps: make([]step, 0, 100), copied: given}
}

func (r *recorder) Forward(x *tensor.Tensor) *tensor.Tensor {
	y := x.Mul(w)
	r.all = append(r.all, y)              // want `r.all keeps tensors, and nothing ever looks at them; count them, or drop the list \[AT022\]`
	r.steps = append(r.steps, step{y, 1}) // want `r.steps keeps tensors, and nothing ever looks at them`
	r.window = append(r.window, y)
	r.shown = append(r.shown, y)
	r.Public = append(r.Public, y)
	r.copied = append(r.copied, y)
	r.numbers = append(r.numbers, 1)
	if len(r.window) > 10 {
		r.window = r.window[1:]
	}
	return y
}

func (r *recorder) len() int { return len(r.all) + cap(r.steps) }

func (r *recorder) last() *tensor.Tensor { return r.shown[len(r.shown)-1] }

var history []*tensor.Tensor

func note(x *tensor.Tensor) {
	history = append(history, x) // want `history keeps tensors, and nothing ever looks at them`
}

func average(data []batch.Batch) *tensor.Tensor {
	var losses []*tensor.Tensor
	sum := tensor.Zeros()
	for _, b := range data {
		l := batch.Loss(w, b)
		losses = append(losses, l) // want `losses keeps tensors, and nothing ever looks at them`
		sum = sum.Add(l)
	}
	return sum.MulScalar(1 / float64(len(losses)))
}

// Silent from here on.

func used(data []batch.Batch) *tensor.Tensor {
	var losses, once, held []*tensor.Tensor
	once = append(once, w)
	for _, b := range data {
		losses = append(losses, batch.Loss(w, b))
		held = append(held, b.X)
	}
	_ = held
	return tensor.Stack(len(once), losses...)
}
