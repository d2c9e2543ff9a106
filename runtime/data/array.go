package data

import (
	"fmt"
	"iter"
	"math"
	"slices"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// An Array is elements in the memory of the host, in row-major order. Its first axis counts rows.
type Array[T device.Element] struct {
	Data  []T
	Shape []int
}

// A Sample is an input and a target, each in row-major order.
type Sample[X, Y device.Element] struct {
	X []X
	Y []Y
}

// Collect returns the [Dataset] of a sequence of samples, whose inputs and targets have the given shapes. It copies
// them. It returns the first error of the sequence, or one about the first sample of another length.
//
//asyncgen:api call 0 once
func Collect[X, Y device.Element](samples iter.Seq2[Sample[X, Y], error], shapeX, shapeY []int) (*Pairs[X, Y], error) {
	x := Array[X]{Shape: append([]int{0}, shapeX...)}
	y := Array[Y]{Shape: append([]int{0}, shapeY...)}
	for s, err := range samples {
		n := x.Len()
		if err != nil {
			return nil, fmt.Errorf("data: collect: sample %d: %w", n, err)
		}
		if len(s.X) != size(shapeX) || len(s.Y) != size(shapeY) {
			return nil, fmt.Errorf("data: collect: sample %d has %d and %d elements, want shapes %v and %v", n, len(s.X), len(s.Y), shapeX, shapeY)
		}
		x.Data, y.Data = append(x.Data, s.X...), append(y.Data, s.Y...)
		x.Shape[0], y.Shape[0] = n+1, n+1
	}
	return Pair(x, y), nil
}

// ArrayOf returns the elements of t as an Array. It waits for t, and panics with a [tensor.Mistake] if t has elements
// of another type, or no axis.
//
//asyncgen:api read 0
//go:noinline
func ArrayOf[T device.Element](t *tensor.Tensor) Array[T] {
	if t.Rank() == 0 {
		wrong("ArrayOf", "a tensor without axes has no rows")
	}
	return Array[T]{Data: tensor.SliceOf[T](t), Shape: t.Shape()}
}

// Len returns the number of rows.
//
//asyncgen:api pure
func (a Array[T]) Len() int {
	if len(a.Shape) == 0 {
		return 0
	}
	return a.Shape[0]
}

// Row returns row i, which shares the memory of a.
//
//asyncgen:api control
func (a Array[T]) Row(i int) []T {
	n := size(a.Shape[1:])
	return a.Data[i*n : (i+1)*n : (i+1)*n]
}

// row is the shape of one row.
func (a Array[T]) row() []int { return a.Shape[1:] }

// must panics, about the function with the given name, unless a has rows, and as many elements as its shape says.
func (a Array[T]) must(name string) {
	if n := size(a.Shape); len(a.Shape) == 0 || n != len(a.Data) {
		wrong(name, "an array of shape %v has %d elements", a.Shape, len(a.Data))
	}
}

// size is the number of elements of a shape, or -1 if no tensor has it.
func size(shape []int) int {
	n, isEmpty := 1, false
	for _, d := range shape {
		if d < 0 || n > math.MaxInt/16/max(d, 1) { // also if there are no elements: strides are products, too
			return -1
		}
		n *= max(d, 1)
		isEmpty = isEmpty || d == 0
	}
	if isEmpty {
		return 0
	}
	return n
}

// A Pairs is a [Dataset] in memory; see [Pair].
type Pairs[X, Y device.Element] struct {
	x Array[X]
	y Array[Y]
}

// Pair returns the [Dataset] whose sample i is row i of x and row i of y. It keeps both, and the caller must not change
// them afterwards. The zero Array as y says that there are no targets. Pair panics with a [tensor.Mistake] if there are
// not as many rows in x as in y, or if an array doesn't have as many elements as its shape says.
//
//	data.Pair(data.Array[float32]{inputs, []int{n, 28, 28}}, data.Array[int64]{labels, []int{n}})
//
//asyncgen:api pure
func Pair[X, Y device.Element](x Array[X], y Array[Y]) *Pairs[X, Y] {
	x.must("Pair")
	if y.Shape == nil && y.Data == nil {
		y.Shape = []int{x.Len(), 0}
	}
	y.must("Pair")
	if x.Len() != y.Len() {
		wrong("Pair", "%d inputs and %d targets", x.Len(), y.Len())
	}
	x.Shape, y.Shape = slices.Clone(x.Shape), slices.Clone(y.Shape)
	return &Pairs[X, Y]{x, y}
}

// Len returns the number of samples.
//
//asyncgen:api pure
func (p *Pairs[X, Y]) Len() int { return p.x.Len() }

// Shapes returns the shapes of one input and of one target.
//
//asyncgen:api pure
func (p *Pairs[X, Y]) Shapes() (x, y []int) { return p.x.row(), p.y.row() }

// At writes sample i to x and y.
//
//asyncgen:api control
func (p *Pairs[X, Y]) At(i int, x []X, y []Y) error {
	copy(x, p.x.Row(i))
	copy(y, p.y.Row(i))
	return nil
}
