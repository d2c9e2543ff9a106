package tensor

import (
	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/runtime/op"
)

// Exponentials and their sums. The greatest element is subtracted first, so
// that nothing overflows; as that changes no result, gradients do not go through it.

// Softmax returns e to the power of each element, divided by the sum of these
// along axis.
//
//asyncgen:api op batch
//go:noinline
func (t *Tensor) Softmax(axis int) *Tensor {
	t.floats("Softmax")
	return structural(op.Softmax, op.Attr{Axis: t.axis("Softmax", axis)}, operands{t}, true)
}

// LogSoftmax returns the natural logarithm of the Softmax along axis, also where
// that is too small for a number.
//
//asyncgen:api op batch
//go:noinline
func (t *Tensor) LogSoftmax(axis int) *Tensor {
	t.floats("LogSoftmax")
	return structural(op.LogSoftmax, op.Attr{Axis: t.axis("LogSoftmax", axis)}, operands{t}, true)
}

// LogSumExp returns the natural logarithm of the sum of e to the power of the
// elements along the given axes, or of all. Of nothing it is -Inf.
//
//asyncgen:api op batch
//go:noinline
func (t *Tensor) LogSumExp(axes ...int) *Tensor {
	t.floats("LogSumExp")
	list := t.axes("LogSumExp", axes)
	if t.reducesNothing(list) {
		sums := structural(op.Sum, op.Attr{Axes: list}, operands{t}, true)
		defer sums.letGo()
		return elementwise(op.Log, [2]float64{}, operands{sums}, true)
	}
	shift := t.shift(list)
	sums := t.sumPowers(list, shift)
	logs := elementwise(op.Log, [2]float64{}, operands{sums}, true)
	shifts := structural(op.Reshape, op.Attr{Shape: logs.Shape()}, operands{shift}, false)
	defer letGo(shift, sums, logs, shifts)
	return elementwise(op.Add, [2]float64{}, operands{logs, shifts}, true)
}

// sumPowers returns the sums over axes of e to the power of t, less shift.
func (t *Tensor) sumPowers(axes []int, shift *Tensor) *Tensor {
	a := op.Attr{Axes: axes}
	if areLast(t.shape, axes) {
		return structural(op.SumPowers, a, operands{t, shift}, true)
	}
	shifted := elementwise(op.Sub, [2]float64{}, operands{t, shift}, true)
	powers := elementwise(op.Exp, [2]float64{}, operands{shifted}, true)
	defer letGo(shifted, powers)
	return structural(op.Sum, a, operands{powers}, true)
}

// letGo drops handles that the library has for itself.
func letGo(ts ...*Tensor) {
	for _, t := range ts {
		t.letGo()
	}
}

// shift is the greatest element along axes, which it keeps, or 0 where that is infinite or NaN.
func (t *Tensor) shift(axes []int) *Tensor {
	greatest := structural(op.Max, op.Attr{Axes: axes, Keep: true}, operands{t}, false)
	defer greatest.letGo()
	return elementwise(op.Finite, [2]float64{}, operands{greatest}, false)
}

// reducesNothing reports whether there is no element along axes.
func (t *Tensor) reducesNothing(axes []int) bool {
	lengths := make(device.Shape, 0, len(axes))
	for _, axis := range axes {
		lengths = append(lengths, t.shape[axis])
	}
	return lengths.Size() == 0
}

// floats panics, about the operation with the given name, if t's elements are no floating-point numbers or t is dead.
func (t *Tensor) floats(name string) {
	t.isRow(name)
	if !t.dtype.IsFloat() {
		wrong(name, op.Unsupported(op.Floats), t)
	}
}
