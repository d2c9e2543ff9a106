package tensor

import (
	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/kernel"
	"github.com/asyncgen/asyncgen/runtime/op"
)

// Operations written by hand. Elementwise operations and reductions without special cases are generated from
// package op, in zops.go.

// MatMul returns the product of two matrices, of a matrix and a vector, or of a vector and a matrix. If an operand
// has more than two axes, the last two are the matrix, and the others are batch axes: these are broadcast, and
// there is a product for each index. Each element is accumulated over the inner length in increasing order. int64
// products and sums wrap around. MatMul panics if the inner lengths differ.
//
//asyncgen:api op batch
//go:noinline
func (t *Tensor) MatMul(y *Tensor) *Tensor {
	if y == nil {
		wrong("MatMul", op.MistakeNil, t)
	}
	return structural(op.MatMul, op.Attr{}, operands{t, y}, true)
}

// Dot returns the inner product of two vectors. It has the bits of t.Mul(y).Sum(). Those of MatMul, which
// accumulates in increasing order, may differ. Dot panics if t and y are not vectors of one length.
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
	return t.inWide(func(t *Tensor) *Tensor {
		sum := structural(op.SumSquares, op.Attr{Axes: t.axes("Norm", nil)}, operands{t}, true)
		defer sum.letGo()
		return elementwise(op.Root, [2]float64{}, operands{sum}, true)
	})
}

// Mean returns the mean over the given axes, or over all if there are none. The mean of no elements is NaN.
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
	return t.inWide(func(t *Tensor) *Tensor {
		return structural(op.Sum, op.Attr{Axes: list, Keep: keep}, operands{t}, true).over(t.shape, list)
	})
}

// over returns t divided by the number of elements in each of its sums: t is a sum over the given axes of a tensor
// with the given shape. over lets go of t.
func (t *Tensor) over(shape device.Shape, axes []int) *Tensor {
	n := 1
	for _, axis := range axes {
		n *= shape[axis]
	}
	defer t.letGo()
	return elementwise(op.DivScalar, [2]float64{float64(n)}, operands{t}, true)
}

// As returns t's elements converted to dtype. Floating-point results are rounded to the nearest, once, ties to even;
// what is too large for a float16 becomes infinite. To integers, floating-point elements are truncated; those out of
// range become the nearest integer, and NaN becomes 0. An int64 that is out of range of an int32 or uint8 wraps around,
// as in Go, and so does an int32. To bool, everything but 0 becomes true; from bool, true becomes 1. If t has that type
// already, the result is a view of it.
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
// If the devices reach each other's memory, the copy is one command of t's device. Operations on dev that need the
// copy wait for it; other work of dev goes on meanwhile. Other copies between devices with queues pass through the
// host's memory: operations enqueued on dev after such a copy begin only when the copy is on its way there.
//
//asyncgen:api op batch
//go:noinline
func (t *Tensor) To(dev device.Device) *Tensor {
	if dev = dev.Within(t.storage.Device()); dev == t.storage.Device() {
		return t.same("To")
	}
	return structural(op.To, op.Attr{Device: dev, Origin: t.storage.Device()}, operands{t}, true)
}

// reduce enqueues the reduction d over the given axes of t, or over all if there are none.
func (t *Tensor) reduce(d *op.Def, name string, axes []int, keep bool) *Tensor {
	return structural(d, op.Attr{Axes: t.axes(name, axes), Keep: keep}, operands{t}, true)
}

// AddInt returns t + c for an int64 tensor t. c may be any int64; AddScalar takes only numbers below 2^53 in size.
// AddInt panics with a *Mistake if t has another element type.
//
//asyncgen:api op batch
//go:noinline
func (t *Tensor) AddInt(c int64) *Tensor { return t.withInt("AddInt", op.Add, c) }

// SubInt returns t - c for an int64 tensor t. c may be any int64; SubScalar takes only numbers below 2^53 in size.
// SubInt panics with a *Mistake if t has another element type.
//
//asyncgen:api op batch
//go:noinline
func (t *Tensor) SubInt(c int64) *Tensor { return t.withInt("SubInt", op.Sub, c) }

// MulInt returns t * c for an int64 tensor t. c may be any int64; MulScalar takes only numbers below 2^53 in size.
// MulInt panics with a *Mistake if t has another element type.
//
//asyncgen:api op batch
//go:noinline
func (t *Tensor) MulInt(c int64) *Tensor { return t.withInt("MulInt", op.Mul, c) }

// DivInt returns t / c, rounded towards zero, for an int64 tensor t. c may be any int64; DivScalar takes only
// numbers below 2^53 in size. If c is 0, the result fails. DivInt panics with a *Mistake if t has another element
// type.
//
//asyncgen:api op batch fails
//go:noinline
func (t *Tensor) DivInt(c int64) *Tensor { return t.withInt("DivInt", op.Div, c) }

// withInt enqueues d on t and the constant c. It panics, naming the method, if t is not int64.
func (t *Tensor) withInt(name string, d *op.Def, c int64) *Tensor {
	if t.dtype != Int64 {
		wrong(name, op.Unsupported(1<<device.Int64), t)
	}
	y := create(op.Fill, op.Attr{DType: Int64, Key: kernel.Bits(c)}, t.storage.Device())
	defer y.letGo()
	return elementwise(d, [2]float64{}, operands{t, y}, true)
}
