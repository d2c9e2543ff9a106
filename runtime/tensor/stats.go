package tensor

import (
	"fmt"
	"math"
	"slices"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/kernel"
	"github.com/asyncgen/asyncgen/runtime/op"
)

// Statistics, and operations along an axis that are made of others.

// Var returns the variance over the given axes, or over all if there are none: the sum of the squared
// distances from the mean, divided by n-ddof, where n is the number of elements. ddof is 0 for the
// variance of the elements themselves. It is 1 if they are a sample, for an unbiased estimate of the
// variance of what was sampled. Without elements the result is NaN; if n is not greater than ddof, it
// is NaN or Inf. The mean is computed first, so that nothing cancels.
//
//asyncgen:api op batch
//go:noinline
func (t *Tensor) Var(ddof int, axes ...int) *Tensor { return t.variance("Var", ddof, axes, false) }

// VarKeep is Var that keeps the reduced axes, with length 1.
//
//asyncgen:api op batch
//go:noinline
func (t *Tensor) VarKeep(ddof int, axes ...int) *Tensor {
	return t.variance("VarKeep", ddof, axes, true)
}

// Std returns the square root of [Tensor.Var]. Its gradient is 0 where it is 0.
//
//asyncgen:api op batch
//go:noinline
func (t *Tensor) Std(ddof int, axes ...int) *Tensor {
	return t.deviation("Std", ddof, axes, false)
}

// StdKeep is Std that keeps the reduced axes, with length 1.
//
//asyncgen:api op batch
//go:noinline
func (t *Tensor) StdKeep(ddof int, axes ...int) *Tensor {
	return t.deviation("StdKeep", ddof, axes, true)
}

func (t *Tensor) variance(name string, ddof int, axes []int, keep bool) *Tensor {
	t.floats(name)
	list := t.axes(name, axes)
	return t.inWide(func(t *Tensor) *Tensor { return t.squaredDistance(ddof, list, keep) })
}

func (t *Tensor) deviation(name string, ddof int, axes []int, keep bool) *Tensor {
	t.floats(name)
	list := t.axes(name, axes)
	return t.inWide(func(t *Tensor) *Tensor {
		v := t.squaredDistance(ddof, list, keep)
		defer v.letGo()
		return elementwise(op.Root, [2]float64{}, operands{v}, true)
	})
}

// squaredDistance is the variance over axes that are sorted and in range.
func (t *Tensor) squaredDistance(ddof int, list []int, keep bool) *Tensor {
	n := 1
	for _, axis := range list {
		n *= t.shape[axis]
	}
	mean := structural(op.Sum, op.Attr{Axes: list, Keep: true}, operands{t}, true).over(t.shape, list)
	distance := elementwise(op.Sub, [2]float64{}, operands{t, mean}, true)
	sum := structural(op.SumSquares, op.Attr{Axes: list, Keep: keep}, operands{distance}, true)
	defer letGo(mean, distance, sum)
	return elementwise(op.DivScalar, [2]float64{float64(max(n-ddof, 0))}, operands{sum}, true)
}

// VectorNorm returns the p-norm over the given axes, or over all if there are none: the p-th root of the sum of the
// p-th powers of the absolute values. With p = Inf it is the greatest absolute value. The norm of no elements is 0.
// Where a norm is 0, so is its gradient, and so is that of an element that is 0. VectorNorm panics unless p > 0.
//
//asyncgen:api op batch
//go:noinline
func (t *Tensor) VectorNorm(p float64, axes ...int) *Tensor {
	return t.vectorNorm("VectorNorm", p, axes, false)
}

// VectorNormKeep is VectorNorm that keeps the reduced axes, with length 1.
//
//asyncgen:api op batch
//go:noinline
func (t *Tensor) VectorNormKeep(p float64, axes ...int) *Tensor {
	return t.vectorNorm("VectorNormKeep", p, axes, true)
}

func (t *Tensor) vectorNorm(name string, p float64, axes []int, keep bool) *Tensor {
	t.floats(name)
	a := op.Attr{Axes: t.axes(name, axes), Keep: keep}
	if !(p > 0) {
		wrong(name, fmt.Sprintf("%s: norm %v", op.MistakeRange, p), t)
	}
	return t.inWide(func(t *Tensor) *Tensor { return t.normOf(name, p, a) })
}

// normOf is the p-norm over axes that are sorted and in range.
func (t *Tensor) normOf(name string, p float64, a op.Attr) *Tensor {
	if p == 2 {
		sum := structural(op.SumSquares, a, operands{t}, true)
		defer sum.letGo()
		return elementwise(op.Root, [2]float64{}, operands{sum}, true)
	}
	sizes := elementwise(op.Abs, [2]float64{}, operands{t}, true)
	defer sizes.letGo()
	switch {
	case p == 1 || math.IsInf(p, 1) && t.reducesNothing(a.Axes):
		return structural(op.Sum, a, operands{sizes}, true)
	case math.IsInf(p, 1):
		return structural(op.Max, a, operands{sizes}, true)
	}
	powers := normPower.With(p).Of(sizes)
	sum := structural(op.Sum, a, operands{powers}, true)
	defer letGo(powers, sum)
	return normPower.With(1 / p).Of(sum)
}

// normPower is x to the power of c, for x from 0 on. Its gradient at 0 is 0, where that of Pow may be infinite.
var normPower = FuseScalars("VectorNorm", 1, 1, func(x ...*kernel.Expr) *kernel.Expr {
	zero := kernel.Const(0, x[0].DType())
	return kernel.Where(kernel.Eq(x[0], zero), zero, kernel.Pow(x[0], x[1]))
})

// CumProd returns the running products of t along axis: element i is the product of t's elements 0 to i, multiplied in
// this order.
//
//asyncgen:api op batch
//go:noinline
func (t *Tensor) CumProd(axis int) *Tensor {
	return structural(op.CumProd, op.Attr{Axis: t.axis("CumProd", axis)}, operands{t}, true)
}

// CumMax returns the running maxima of t along axis: element i is the greatest of t's elements 0 to i, NaN if one of
// these is. The gradient goes to the latest of the elements that are equal to it.
//
//asyncgen:api op batch
//go:noinline
func (t *Tensor) CumMax(axis int) *Tensor {
	return structural(op.CumMax, op.Attr{Axis: t.axis("CumMax", axis)}, operands{t}, true)
}

// CumMin returns the running minima of t along axis: element i is the least of t's elements 0 to i, NaN if one of
// these is. The gradient goes to the latest of the elements that are equal to it.
//
//asyncgen:api op batch
//go:noinline
func (t *Tensor) CumMin(axis int) *Tensor {
	return structural(op.CumMin, op.Attr{Axis: t.axis("CumMin", axis)}, operands{t}, true)
}

// Median returns the middle element of t sorted along axis, or the mean of the two middle ones. It is Quantile(0.5).
//
//asyncgen:api op batch
//go:noinline
func (t *Tensor) Median(axis int) *Tensor { return t.quantile("Median", 0.5, axis) }

// Quantile sorts t along axis, of length n, and returns the element at place q*(n-1); the axis
// disappears. Between two places it interpolates, as NumPy's quantile does by default. If one of the n
// elements is NaN, the result is NaN. Quantile panics unless 0 <= q <= 1, and if the axis is empty.
//
//asyncgen:api op batch
//go:noinline
func (t *Tensor) Quantile(q float64, axis int) *Tensor { return t.quantile("Quantile", q, axis) }

func (t *Tensor) quantile(name string, q float64, axis int) *Tensor {
	t.floats(name)
	axis = t.axis(name, axis)
	probability(name, q)
	if t.shape[axis] == 0 {
		wrong(name, op.MistakeEmpty, t)
	}
	return t.inWide(func(t *Tensor) *Tensor { return t.between(q, axis) })
}

// between is the q-quantile along an axis that has elements.
func (t *Tensor) between(q float64, axis int) *Tensor {
	n := t.shape[axis]
	places := t.first(n, axis, Ascending)
	sorted := structural(op.Along, op.Attr{Axis: axis}, operands{t, places}, true)
	at := func(i int) *Tensor {
		part := structural(op.Slice, op.Attr{Axis: axis, From: i, To: i + 1}, operands{sorted}, true)
		defer part.letGo()
		return part.reshape(slices.Delete(part.Shape(), axis, axis+1))
	}
	low, rest := math.Modf(q * float64(n-1))
	below, above, last := at(int(low)), at(min(int(low)+1, n-1)), at(n-1)
	v := elementwise(op.Between, [2]float64{rest}, operands{below, above}, true)
	isNaN := elementwise(op.IsNaN, [2]float64{}, operands{last}, false)
	defer letGo(places, sorted, below, above, last, v, isNaN)
	return elementwise(op.Where, [2]float64{}, operands{isNaN, last, v}, true)
}

// Outer returns the outer product of two vectors: a matrix with element i of t times element j of y.
//
//asyncgen:api op batch
//go:noinline
func (t *Tensor) Outer(y *Tensor) *Tensor {
	if y == nil {
		wrong("Outer", op.MistakeNil, t)
	}
	if len(t.shape) != 1 || len(y.shape) != 1 {
		wrong("Outer", op.MistakeRank, t, y)
	}
	column := t.reshape(device.Shape{t.shape[0], 1})
	defer column.letGo()
	return elementwise(op.Mul, [2]float64{}, operands{column, y}, true)
}

// Trace returns the sum of the diagonal of a matrix, or of each of the matrices in t's last two axes.
//
//asyncgen:api op batch
//go:noinline
func (t *Tensor) Trace() *Tensor {
	t.matrix("Trace")
	if !op.Numbers.Has(t.dtype) {
		wrong("Trace", op.Unsupported(op.Numbers), t)
	}
	diagonals := t.Diagonal(0)
	defer diagonals.letGo()
	return structural(op.Sum, op.Attr{Axes: []int{len(t.shape) - 2}}, operands{diagonals}, true)
}

// Meshgrid returns, for vectors of lengths n, m, ..., as many tensors of shape [n, m, ...]: result k has element i_k of
// vector k at [i_0, i_1, ...]. They are views of the vectors.
//
//asyncgen:api op
//go:noinline
func Meshgrid(ts ...*Tensor) []*Tensor {
	shape := make(device.Shape, len(ts))
	for i, t := range ts {
		if t == nil {
			wrong("Meshgrid", op.MistakeNil)
		}
		if len(t.shape) != 1 {
			wrong("Meshgrid", op.MistakeRank, t)
		}
		shape[i] = t.shape[0]
	}
	checked("Meshgrid", shape)
	grids := make([]*Tensor, len(ts))
	for i, t := range ts {
		one := slices.Repeat(device.Shape{1}, len(ts))
		one[i] = shape[i]
		line := t.reshape(one)
		grids[i] = structural(op.BroadcastTo, op.Attr{Shape: shape}, operands{line}, true)
		line.letGo()
	}
	return grids
}

// IsClose reports where t and y are close, with broadcasting: equal, or at most atol + rtol*|y| apart. NaN is close to
// nothing, and an infinity to itself alone.
//
//asyncgen:api op batch
//go:noinline
func (t *Tensor) IsClose(y *Tensor, rtol, atol float64) *Tensor {
	return t.close(y, rtol, atol)
}

// close is IsClose. Tolerances are not rounded to a type for storage: 1e-8 would be 0.
func (t *Tensor) close(y *Tensor, rtol, atol float64) *Tensor {
	if y != nil && t.dtype.IsStorage() && t.dtype.IsFloat() {
		match(op.Close, []*Tensor{t, y})
		x, wide := t.widened(), y.widened()
		defer letGo(x, wide)
		t, y = x, wide
	}
	return elementwise(op.Close, [2]float64{rtol, atol}, operands{t, y}, false)
}

// AllClose reports whether all elements of t and y are close, see [Tensor.IsClose]. The result is a bool tensor without
// axes.
//
//asyncgen:api op batch
//go:noinline
func (t *Tensor) AllClose(y *Tensor, rtol, atol float64) *Tensor {
	are := t.close(y, rtol, atol)
	defer are.letGo()
	return structural(op.Every, op.Attr{Axes: are.axes("AllClose", nil)}, operands{are}, false)
}

// BinCount returns how often each of the integers from 0 to n-1 is in t, an int64 tensor, as an int64 vector. If t has
// other integers, the result fails.
//
//asyncgen:api op batch fails
//go:noinline
func (t *Tensor) BinCount(n int) *Tensor {
	checked("BinCount", []int{n})
	if t.dtype != Int64 {
		wrong("BinCount", op.MistakeIndices, t)
	}
	one := create(op.Fill, op.Attr{DType: Int64, Key: kernel.Bits[int64](1)}, t.storage.Device())
	flat := t.reshape(device.Shape{t.size})
	ones := structural(op.BroadcastTo, op.Attr{Shape: flat.Shape()}, operands{one}, false)
	defer letGo(one, flat, ones)
	return structural(op.ScatterAdd, op.Attr{Classes: op.BinCount, Shape: device.Shape{n}}, operands{ones, flat}, false)
}

// NonZero returns the indices of the elements of t that are not 0, in row-major order: an int64 tensor with a row for
// each and a column for each axis of t. Its size depends on values, so NonZero waits for t. NaN is not 0.
//
//asyncgen:api read
//go:noinline
func (t *Tensor) NonZero() *Tensor {
	t.mustLive("NonZero")
	is := t.another()
	if t.dtype != Bool {
		is = structural(op.As, op.Attr{DType: Bool}, operands{t}, false)
	}
	defer is.letGo()
	places := []int64{}
	for i, b := range is.Bools() {
		if !b {
			continue
		}
		at := len(places)
		places = append(places, make([]int64, len(t.shape))...)
		for axis := len(t.shape) - 1; axis >= 0; axis-- {
			places[at+axis] = int64(i % t.shape[axis])
			i /= t.shape[axis]
		}
	}
	rows := 0
	if rank := len(t.shape); rank > 0 {
		rows = len(places) / rank
	} else if is.Bools()[0] {
		rows = 1
	}
	return upload(t.storage.Device(), places, device.Shape{rows, len(t.shape)})
}

// Unique returns the elements of t without repetitions, as a vector in ascending order. Its size depends on values, so
// Unique waits for t. Every NaN is an element of its own, and they come last; 0 and -0 are one element.
//
//asyncgen:api read
//go:noinline
func (t *Tensor) Unique() *Tensor {
	t.mustLive("Unique")
	t.ordered("Unique")
	flat := t.reshape(device.Shape{t.size})
	defer flat.letGo()
	if t.size == 0 {
		return flat.detached()
	}
	places := flat.first(t.size, 0, Ascending)
	sorted := structural(op.Along, op.Attr{}, operands{flat, places}, false)
	next := structural(op.Slice, op.Attr{From: 1, To: t.size}, operands{sorted}, false)
	before := structural(op.Slice, op.Attr{To: t.size - 1}, operands{sorted}, false)
	differs := elementwise(op.Ne, [2]float64{}, operands{next, before}, false)
	defer letGo(places, sorted, next, before, differs)
	at := []int64{0}
	for i, is := range differs.Bools() {
		if is {
			at = append(at, int64(i+1))
		}
	}
	index := upload(t.storage.Device(), at, device.Shape{len(at)})
	defer index.letGo()
	return structural(op.Along, op.Attr{}, operands{sorted, index}, false)
}
