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
	powers := t.powers(list)
	sums := structural(op.Sum, op.Attr{Axes: list}, operands{powers}, true)
	logs := elementwise(op.Log, [2]float64{}, operands{sums}, true)
	defer letGo(powers, sums)
	if t.reducesNothing(list) {
		return logs
	}
	kept := t.shift(list)
	shift := structural(op.Reshape, op.Attr{Shape: logs.Shape()}, operands{kept}, false)
	defer letGo(logs, kept, shift)
	return elementwise(op.Add, [2]float64{}, operands{logs, shift}, true)
}

// powers returns e to the power of t, less the greatest element along axes.
func (t *Tensor) powers(axes []int) *Tensor {
	shifted := t
	if !t.reducesNothing(axes) {
		shift := t.shift(axes)
		shifted = elementwise(op.Sub, [2]float64{}, operands{t, shift}, true)
		defer letGo(shift, shifted)
	}
	return elementwise(op.Exp, [2]float64{}, operands{shifted}, true)
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
		wrong(name, op.MistakeType+" (it takes "+op.Floats.String()+")", t)
	}
}
