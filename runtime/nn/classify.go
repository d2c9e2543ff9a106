package nn

import (
	"fmt"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// Embedding returns a layer that gives each of n classes a vector with out
// elements: it takes an int64 tensor of classes, and returns their vectors along
// one more axis. A class that is out of range is an error that travels with the
// result. The vectors, in float32, are drawn from the default generator at the first
// Forward, on the device of its input, normally distributed with mean 0 and variance 1.
//
//asyncgen:api pure
func Embedding(n, out int) Module {
	if n < 0 || out < 0 {
		panic(fmt.Sprintf("nn: Embedding: %d classes, %d outputs", n, out))
	}
	return &embedding{n: n, out: out, weight: NewParam(nil)}
}

type embedding struct {
	n, out int
	weight *Param
}

// Forward implements Module.
//
//go:noinline
func (e *embedding) Forward(x *tensor.Tensor) *tensor.Tensor {
	if !e.weight.IsSet() {
		w := tensor.On(x.Device().Unscoped()).Randn(e.n, e.out)
		e.weight.Set(w)
		tensor.Dead(w)
	}
	w := e.weight.Value()
	y := w.Take(0, x)
	tensor.Dead(w)
	return y
}

func (e *embedding) isDiscreet() bool { return true }

// Params implements Module.
func (e *embedding) Params() []*Param { return []*Param{e.weight} }

// Freeze implements [Freezer].
func (e *embedding) Freeze() Module {
	return &embedding{n: e.n, out: e.out, weight: e.weight.Frozen()}
}

// Clone implements [Cloner].
func (e *embedding) Clone(c *Cloning) Module {
	return &embedding{n: e.n, out: e.out, weight: c.Param(e.weight)}
}

// CrossEntropy returns the mean of the negative logarithms of the probabilities
// that scores give the right classes, as a tensor without axes: the
// probabilities of a sample are the Softmax of its scores, a vector along the last
// axis; labels are int64, one for each sample. A label that is out of range is
// an error that travels with the result. It panics if labels have other axes
// than the scores have before the last.
//
//asyncgen:api op batch fails
//go:noinline
func CrossEntropy(scores, labels *tensor.Tensor) *tensor.Tensor {
	logs := scores.LogSoftmax(-1)
	right := logs.Pick(labels)
	mean := right.Mean()
	loss := mean.Neg()
	tensor.Dead(logs, right, mean)
	return loss
}
