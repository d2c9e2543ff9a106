package nn

import (
	"fmt"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// Embedding returns a layer that gives each of n classes a vector with out
// elements: it takes an int64 tensor of classes, and returns their vectors along
// one more axis. A class that is negative, or n or more, is an error that travels with the
// result. The vectors, in float32, are drawn from the default generator at the first
// Forward, on the device of its input, normally distributed with mean 0 and variance 1.
//
//asyncgen:api pure
func Embedding(n, out int) Module {
	if n < 0 || out < 0 {
		wrong("Embedding", "%d classes, %d outputs", n, out)
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
	if x.DType() != tensor.Int64 {
		wrong("Embedding", "the input is %v%v, want the numbers of classes, int64: convert with As", x.DType(), x.Shape())
	}
	if !e.weight.IsSet() {
		w := tensor.On(x.Device().Unscoped()).Randn(e.n, e.out)
		e.weight.Set(w)
		tensor.Dead(w)
	}
	w := e.weight.Value()
	y := w.TakeClasses(0, x)
	tensor.Dead(w)
	return y
}

// String is the call that makes such a layer.
func (e *embedding) String() string { return fmt.Sprintf("Embedding(%d, %d)", e.n, e.out) }

func (e *embedding) isDiscreet() bool { return true }

// Params implements Module.
func (e *embedding) Params() []*Param { return Params(e) }

// CrossEntropy returns the mean of the negative logarithms of the probabilities that scores give
// the right classes, as a tensor without axes: the probabilities of a sample are the Softmax of its
// scores, a vector along the last axis; labels are int64, one for each sample. A label that is
// negative, or not below the number of scores, is an error that travels with the result. It panics
// with a [tensor.Mistake] if labels are not int64, or have other axes than the scores have before
// the last.
//
//asyncgen:api op batch fails
//go:noinline
func CrossEntropy(scores, labels *tensor.Tensor) *tensor.Tensor {
	mustLabel(scores, labels)
	logs := scores.LogSoftmax(-1)
	right := logs.PickClasses(labels)
	mean := right.Mean()
	loss := mean.Neg()
	tensor.Dead(logs, right, mean)
	return loss
}

// mustLabel panics unless there is a label for each sample.
func mustLabel(scores, labels *tensor.Tensor) {
	s, l := scores.Shape(), labels.Shape()
	switch {
	case len(s) > 0 && l.Equal(s[:len(s)-1]) && labels.DType() == tensor.Int64:
	case len(s) > 0 && l.Equal(s):
		wrong("CrossEntropy", "the labels are %v%v, as the scores, want the number of a class for each sample, int64%v: of one-hot rows that is ArgMax(-1)",
			labels.DType(), l, s[:len(s)-1])
	case len(s) > 0 && l.Equal(s[:len(s)-1]):
		wrong("CrossEntropy", "the labels are %v, want int64: convert with As", labels.DType())
	default:
		wrong("CrossEntropy", "the scores have shape %v and the labels %v, want a label for each vector of scores along the last axis", s, l)
	}
}
