package tensor

import (
	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/runtime/op"
)

// Exponentials and their sums. The greatest element is subtracted first, so that nothing overflows. Mathematically
// this changes no result, so no gradient goes through it.

// Softmax returns exp(t) divided by its sum along axis: exp(x_i) / Σ exp(x_j).
//
//asyncgen:api op batch
//go:noinline
func (t *Tensor) Softmax(axis int) *Tensor {
	t.floats("Softmax")
	return structural(op.Softmax, op.Attr{Axis: t.axis("Softmax", axis)}, operands{t}, true)
}

// LogSoftmax returns the natural logarithm of the Softmax along axis. It stays finite where the Softmax itself would
// round to 0.
//
//asyncgen:api op batch
//go:noinline
func (t *Tensor) LogSoftmax(axis int) *Tensor {
	t.floats("LogSoftmax")
	return structural(op.LogSoftmax, op.Attr{Axis: t.axis("LogSoftmax", axis)}, operands{t}, true)
}

// LogSumExp returns log(Σ exp(x)) over the given axes, or over all axes if none is given. Over no elements it is
// -Inf.
//
//asyncgen:api op batch
//go:noinline
func (t *Tensor) LogSumExp(axes ...int) *Tensor {
	t.floats("LogSumExp")
	list := t.axes("LogSumExp", axes)
	return t.inWide(func(t *Tensor) *Tensor { return t.logSumExp(list) })
}

// logSumExp is LogSumExp over axes that are sorted and in range.
func (t *Tensor) logSumExp(list []int) *Tensor {
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

// sumPowers returns the sums of exp(t - shift) over axes.
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

// letGo drops handles that no user has seen.
func letGo(ts ...*Tensor) {
	for _, t := range ts {
		t.letGo()
	}
}

// shift returns the greatest element along axes, which stay as axes of length 1. Where that is infinite or NaN, it
// is 0.
func (t *Tensor) shift(axes []int) *Tensor {
	greatest := structural(op.Max, op.Attr{Axes: axes, Keep: true}, operands{t}, false)
	defer greatest.letGo()
	return elementwise(op.Finite, [2]float64{}, operands{greatest}, false)
}

// reducesNothing reports whether the product of the lengths of axes is 0.
func (t *Tensor) reducesNothing(axes []int) bool {
	lengths := make(device.Shape, 0, len(axes))
	for _, axis := range axes {
		lengths = append(lengths, t.shape[axis])
	}
	return lengths.Size() == 0
}

// floats panics unless t is alive and has floating-point elements. The panic names the given operation.
func (t *Tensor) floats(name string) {
	t.isRow(name)
	if !t.dtype.IsFloat() {
		wrong(name, op.Unsupported(op.Floats), t)
	}
}
