package tensor

import (
	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/kernel"
	"github.com/asyncgen/asyncgen/runtime/op"
)

// Operations that take more than tensors and numbers. Elementwise operations
// and reductions are in zops.go.

// MatMul returns the product of two matrices, of a matrix and a vector, or of
// a vector and a matrix. Each element is accumulated over the inner length in
// increasing order; int64 products and sums wrap around. Axes before the last two number matrices, and are broadcast:
// there is a product for each. It panics if the inner lengths differ.
//
//asyncgen:api op batch
//go:noinline
func (t *Tensor) MatMul(y *Tensor) *Tensor {
	if y == nil {
		wrong("MatMul", op.MistakeNil, t)
	}
	return structural(op.MatMul, op.Attr{}, operands{t, y}, true)
}

// Dot returns the inner product of two vectors: the Sum of their Mul, not an
// accumulation in order as in MatMul. It panics if they are not vectors of one
// length.
//
//asyncgen:api op batch
//go:noinline
func (t *Tensor) Dot(y *Tensor) *Tensor {
	if y == nil {
		wrong("Dot", op.MistakeNil, t)
	}
	if len(t.shape) != 1 || len(y.shape) != 1 {
		wrong("Dot", op.MistakeRank, t, y)
	}
	if t.size != y.size {
		wrong("Dot", op.MistakeMatMul, t, y)
	}
	return structural(op.Dot, op.Attr{Axes: []int{0}}, operands{t, y}, true)
}

// Norm returns the 2-norm of all elements: the square root of the sum of their
// squares. Its gradient at 0 is 0.
//
//asyncgen:api op batch
//go:noinline
func (t *Tensor) Norm() *Tensor {
	t.floats("Norm")
	sum := structural(op.SumSquares, op.Attr{Axes: t.axes("Norm", nil)}, operands{t}, true)
	defer sum.letGo()
	return elementwise(op.Root, [2]float64{}, operands{sum}, true)
}

// Mean returns the mean over the given axes, or over all of them. The mean of
// nothing is NaN.
//
//asyncgen:api op batch
//go:noinline
func (t *Tensor) Mean(axes ...int) *Tensor { return t.mean("Mean", axes, false) }

// MeanKeep is Mean that keeps the reduced axes, with length 1.
//
//asyncgen:api op batch
//go:noinline
func (t *Tensor) MeanKeep(axes ...int) *Tensor { return t.mean("MeanKeep", axes, true) }

func (t *Tensor) mean(name string, axes []int, keep bool) *Tensor {
	t.floats(name)
	list := t.axes(name, axes)
	return structural(op.Sum, op.Attr{Axes: list, Keep: keep}, operands{t}, true).over(t.shape, list)
}

// over returns t, a sum over the axes of shape, divided by how many elements each sum is made of. T
// is the library's own.
func (t *Tensor) over(shape device.Shape, axes []int) *Tensor {
	n := 1
	for _, axis := range axes {
		n *= shape[axis]
	}
	defer t.letGo()
	return elementwise(op.DivScalar, [2]float64{float64(n)}, operands{t}, true)
}

// As returns t's elements converted to dtype: rounded to the nearest, ties to
// even; to int64 truncated, what is out of range to the nearest int64 and NaN
// to 0; to bool what is not 0. True is 1. The result is a view if t has that type.
//
//asyncgen:api op batch
//go:noinline
func (t *Tensor) As(dtype DType) *Tensor {
	if !op.All.Has(dtype) {
		wrong("As", op.MistakeType, t)
	}
	if dtype == t.dtype {
		return t.same("As")
	}
	return structural(op.As, op.Attr{DType: dtype}, operands{t}, true)
}

// To returns t's elements on another device, or a view of t if they are there already. The copy is enqueued like any
// operation, and To does not wait. It belongs to the scopes of t and of dev.
//
// Devices that reach each other's memory copy with one command of t's device. What needs the copy on dev waits for it,
// and other work of dev goes on meanwhile. Other copies between devices with queues pass through the host's memory;
// what is enqueued on dev after such a copy begins when the copy is on its way there.
//
//asyncgen:api op batch
//go:noinline
func (t *Tensor) To(dev device.Device) *Tensor {
	if dev = dev.Within(t.storage.Device()); dev == t.storage.Device() {
		return t.same("To")
	}
	return structural(op.To, op.Attr{Device: dev, Origin: t.storage.Device()}, operands{t}, true)
}

// reduce enqueues the reduction d over axes of t.
func (t *Tensor) reduce(d *op.Def, name string, axes []int, keep bool) *Tensor {
	return structural(d, op.Attr{Axes: t.axes(name, axes), Keep: keep}, operands{t}, true)
}

// AddInt returns t + c, for an int64 tensor t and any int64 c, where AddScalar takes numbers below
// 2^53. It panics with a *Mistake if t has another element type.
//
//asyncgen:api op batch
//go:noinline
func (t *Tensor) AddInt(c int64) *Tensor { return t.withInt("AddInt", op.Add, c) }

// SubInt returns t - c, for an int64 tensor t and any int64 c, where SubScalar takes numbers below
// 2^53. It panics with a *Mistake if t has another element type.
//
//asyncgen:api op batch
//go:noinline
func (t *Tensor) SubInt(c int64) *Tensor { return t.withInt("SubInt", op.Sub, c) }

// MulInt returns t * c, for an int64 tensor t and any int64 c, where MulScalar takes numbers below
// 2^53. It panics with a *Mistake if t has another element type.
//
//asyncgen:api op batch
//go:noinline
func (t *Tensor) MulInt(c int64) *Tensor { return t.withInt("MulInt", op.Mul, c) }

// DivInt returns t / c, rounded towards zero; an integer divided by zero is an error that travels
// with the result, for an int64 tensor t and any int64 c, where DivScalar takes numbers below 2^53.
// It panics with a *Mistake if t has another element type.
//
//asyncgen:api op batch fails
//go:noinline
func (t *Tensor) DivInt(c int64) *Tensor { return t.withInt("DivInt", op.Div, c) }

// withInt is d of t and c.
func (t *Tensor) withInt(name string, d *op.Def, c int64) *Tensor {
	if t.dtype != Int64 {
		wrong(name, op.Unsupported(1<<device.Int64), t)
	}
	y := create(op.Fill, op.Attr{DType: Int64, Key: kernel.Bits(c)}, t.storage.Device())
	defer y.letGo()
	return elementwise(d, [2]float64{}, operands{t, y}, true)
}
