package tensor

import (
	"fmt"
	"slices"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/runtime/op"
)

// Planes with other numbers of rows and columns. The last two axes are the plane.

// AdaptiveAvgPool2D returns the means of windows that divide each plane into the given numbers of rows
// and columns. The last two axes of t are the planes. With n rows, row i of the result is the mean of
// rows from i*H/n, rounded down, up to but not including (i+1)*H/n, rounded up; columns likewise. With
// 1 row and 1 column it is the mean of each plane. AdaptiveAvgPool2D panics if t has fewer than two
// axes, if its planes have no elements, or if rows or columns is less than 1.
//
//asyncgen:api op batch
//go:noinline
func (t *Tensor) AdaptiveAvgPool2D(rows, columns int) *Tensor {
	t.floats("AdaptiveAvgPool2D")
	h, w := t.matrix("AdaptiveAvgPool2D")
	if min(rows, columns) < 1 || min(h, w) == 0 {
		wrong("AdaptiveAvgPool2D", fmt.Sprintf("%s: %d rows and %d columns", op.MistakeWindow, rows, columns), t)
	}
	at := len(t.shape) - 2
	checked("AdaptiveAvgPool2D", append(t.Shape()[:at], rows, columns))
	if h%rows == 0 && w%columns == 0 {
		blocks := t.reshape(append(t.Shape()[:at], rows, h/rows, columns, w/columns))
		defer blocks.letGo()
		return blocks.mean("AdaptiveAvgPool2D", []int{at + 1, at + 3}, false)
	}
	return t.inWide(func(t *Tensor) *Tensor {
		means := t.meansAlong(at, rows)
		defer means.letGo()
		return means.meansAlong(at+1, columns)
	})
}

// meansAlong returns the means of n parts of t along axis, as long as those of AdaptiveAvgPool2D.
func (t *Tensor) meansAlong(axis, n int) *Tensor {
	length := t.shape[axis]
	if length%n == 0 {
		blocks := t.reshape(slices.Replace(t.Shape(), axis, axis+1, n, length/n))
		defer blocks.letGo()
		return blocks.mean("AdaptiveAvgPool2D", []int{axis + 1}, false)
	}
	means := make([]*Tensor, n)
	for i := range means {
		from, to := i*length/n, ((i+1)*length+n-1)/n
		part := t.part(axisPart{axis, from, to - from, 1})
		means[i] = part.mean("AdaptiveAvgPool2D", []int{axis}, true)
		part.letGo()
	}
	defer letGo(means...)
	return concat("AdaptiveAvgPool2D", axis, means)
}

// An Interpolation says how [Tensor.Interpolate] finds elements between those that there are.
type Interpolation int

// The interpolations.
const (
	Nearest  Interpolation = iota // element i of n is element i*H/n, rounded down
	Bilinear                      // element i of n is at (i+0.5)*H/n - 0.5, in between its two neighbours
)

var interpolations = [...]string{"nearest", "bilinear"}

// String is the interpolation's name in PyTorch: "nearest".
//
//asyncgen:api meta
func (p Interpolation) String() string {
	if p < 0 || int(p) >= len(interpolations) {
		return fmt.Sprintf("Interpolation(%d)", int(p))
	}
	return interpolations[p]
}

// Interpolate returns planes with other numbers of rows and columns, as PyTorch's interpolate with align_corners false.
// The last two axes of t are the planes. Along each of them, the interpolation says where among the H elements of t the
// n elements of the result lie. An element before the first one of t, or behind the last, equals that. Nothing is
// smoothed: of planes that get much smaller, most elements don't count. Interpolate panics if t has fewer than two
// axes, if its planes have no elements, or if rows or columns is less than 1.
//
//asyncgen:api op batch
//go:noinline
func (t *Tensor) Interpolate(p Interpolation, rows, columns int) *Tensor {
	t.floats("Interpolate")
	h, w := t.matrix("Interpolate")
	if p < Nearest || p > Bilinear || min(rows, columns) < 1 || min(h, w) == 0 {
		wrong("Interpolate", fmt.Sprintf("%s: %v to %d rows and %d columns", op.MistakeShape, p, rows, columns), t)
	}
	shape := t.Shape()
	at := len(shape) - 2
	shape[at], shape[at+1] = rows, columns
	checked("Interpolate", shape)
	return t.inWide(func(t *Tensor) *Tensor {
		x := t.resampled(p, at, rows)
		defer x.letGo()
		return x.resampled(p, at+1, columns)
	})
}

// resampled is Interpolate along one axis.
func (t *Tensor) resampled(p Interpolation, axis, n int) *Tensor {
	length, dev := t.shape[axis], t.storage.Device()
	below, above, weights := make([]int64, n), make([]int64, n), make([]float64, n)
	for i := range below {
		if p == Nearest {
			below[i] = int64(i * length / n)
			continue
		}
		at := max((float64(i)+0.5)*float64(length)/float64(n)-0.5, 0)
		below[i] = min(int64(at), int64(length-1))
		above[i] = min(below[i]+1, int64(length-1))
		weights[i] = at - float64(below[i])
	}
	low := t.along(axis, upload(dev, below, device.Shape{n}))
	if p == Nearest {
		return low
	}
	high := t.along(axis, upload(dev, above, device.Shape{n}))
	w := t.factors(axis, weights)
	for i, v := range weights {
		weights[i] = 1 - v
	}
	v := t.factors(axis, weights)
	x := elementwise(op.Mul, [2]float64{}, operands{low, v}, true)
	y := elementwise(op.Mul, [2]float64{}, operands{high, w}, true)
	defer letGo(low, high, w, v, x, y)
	return elementwise(op.Add, [2]float64{}, operands{x, y}, true)
}

// factors returns list in the element type of t, float32 or float64, along axis.
func (t *Tensor) factors(axis int, list []float64) *Tensor {
	shape := slices.Repeat(device.Shape{1}, len(t.shape))
	shape[axis] = len(list)
	if t.dtype == Float64 {
		return upload(t.storage.Device(), slices.Clone(list), shape)
	}
	singles := make([]float32, len(list))
	for i, v := range list {
		singles[i] = float32(v)
	}
	return upload(t.storage.Device(), singles, shape)
}
