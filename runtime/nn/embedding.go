package nn

import (
	"fmt"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// Embedding returns a layer that gives each of n classes a vector with out elements: it takes an int64
// tensor of classes, and returns their vectors along one more axis. A class that is negative, or n or
// more, is an error that travels with the result. The vectors, in float32, are drawn from the default
// generator at the first Forward, on the device of its input, normally distributed with mean 0 and
// variance 1. They are a parameter called weight, of shape (n, out). An [Init] may draw them otherwise.
//
//asyncgen:api pure
func Embedding(n, out int, how ...Init) Module {
	return newEmbedding("Embedding", n, out, -1, how)
}

// PaddedEmbedding is [Embedding] with a class for padding. Its vector is 0, and it learns nothing.
//
//asyncgen:api pure
func PaddedEmbedding(n, out, padding int, how ...Init) Module {
	if padding < 0 || padding >= n {
		wrong("PaddedEmbedding", "class %d of %d for padding", padding, n)
	}
	return newEmbedding("PaddedEmbedding", n, out, padding, how)
}

func newEmbedding(name string, n, out, padding int, how []Init) Module {
	if n < 0 || out < 0 {
		wrong(name, "%d classes, %d outputs", n, out)
	}
	return &embedding{n: n, out: out, padding: padding, init: optional(name, how), weight: tensor.LazyParam(n, out)}
}

type embedding struct {
	place
	n, out  int
	padding int // -1: none
	init    Init
	weight  *Param
}

// Forward implements Module.
//
//go:noinline
func (e *embedding) Forward(x *tensor.Tensor) *tensor.Tensor {
	defer inLayer(e)
	if x.DType() != tensor.Int64 {
		wrong("Embedding", "the input is %v%v, want the numbers of classes, int64: convert with As", x.DType(), x.Shape())
	}
	if !e.weight.IsSet() {
		e.begin(x)
	}
	w := e.weight.Value()
	y := w.TakeClasses(0, x)
	tensor.Dead(w)
	if e.padding < 0 {
		return y
	}
	column := x.Unsqueeze(-1)
	isPadding := column.EqScalar(float64(e.padding))
	zero := tensor.On(y.Device()).As(y.DType()).Scalar(0)
	defer tensor.Dead(y, column, isPadding, zero)
	return tensor.Where(isPadding, zero, y) // no gradient goes to what is not chosen
}

// begin draws the vectors, on the device of x.
func (e *embedding) begin(x *tensor.Tensor) {
	on := tensor.On(x.Device().Unscoped())
	set(e.weight, e.init.Weight, Normal(0, 1), on, e.n, e.out, e.n, e.out)
	if e.padding < 0 {
		return
	}
	classes := on.Arange(0, float64(e.n), 1)
	others := classes.NeScalar(float64(e.padding))
	column := others.Unsqueeze(1)
	zero, w := on.Scalar(0), e.weight.Value()
	weights := tensor.Where(column, w, zero)
	e.weight.Set(weights)
	tensor.Dead(classes, others, column, zero, w, weights)
}

// String is the call that makes such a layer.
func (e *embedding) String() string {
	if e.padding < 0 {
		return fmt.Sprintf("Embedding(%d, %d)", e.n, e.out)
	}
	return fmt.Sprintf("PaddedEmbedding(%d, %d, %d)", e.n, e.out, e.padding)
}

func (e *embedding) isDiscreet() bool { return true }

// Params implements Module.
func (e *embedding) Params() []*Param { return Params(e) }
