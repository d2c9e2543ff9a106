package tensor

import (
	"fmt"
	"slices"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/runtime/op"
)

// axis returns an axis of t as a number from 0.
func (t *Tensor) axis(name string, axis int) int {
	i := axis
	if i < 0 {
		i += len(t.shape)
	}
	if i < 0 || i >= len(t.shape) {
		wrong(name, fmt.Sprintf("%s: %d", op.MistakeAxis, axis), t)
	}
	return i
}

// axes returns axes of t as increasing numbers from 0: all if none are given.
func (t *Tensor) axes(name string, axes []int) []int {
	list := make([]int, 0, len(t.shape))
	if len(axes) == 0 {
		for i := range t.shape {
			list = append(list, i)
		}
		return list
	}
	for _, axis := range axes {
		list = append(list, t.axis(name, axis))
	}
	slices.Sort(list)
	if len(slices.Compact(slices.Clone(list))) != len(list) {
		wrong(name, fmt.Sprintf("%s: %v", op.MistakeTwice, axes), t)
	}
	return list
}

// index returns i, an index of an axis of length n, as a number from 0 to below end.
func (t *Tensor) index(name string, i, n, end int) int {
	at := i
	if at < 0 {
		at += n
	}
	if at < 0 || at >= end {
		wrong(name, fmt.Sprintf("%s: %d", op.MistakeRange, i), t)
	}
	return at
}

// Reshape returns t's elements, in row-major order, in another shape of the same size. One length may be -1; it is then
// computed from the others. The result is a view of t. Only if t is itself a view that skips or reorders elements, they
// may have to be copied.
//
//asyncgen:api view batch
//go:noinline
func (t *Tensor) Reshape(shape ...int) *Tensor {
	s := slices.Clone(shape)
	if open := slices.Index(s, -1); open >= 0 {
		s[open] = 1
		if rest, ok := sizeOf(s); ok && rest > 0 && t.size%rest == 0 {
			s[open] = t.size / rest
		} else {
			s[open] = -1
		}
	}
	size, ok := sizeOf(s)
	if !ok || size != t.size {
		wrong("Reshape", fmt.Sprintf("%s: to %v", op.MistakeReshape, shape), t)
	}
	return t.reshape(s)
}

func (t *Tensor) reshape(shape device.Shape) *Tensor {
	return structural(op.Reshape, op.Attr{Shape: shape}, operands{t}, true)
}

// Flatten returns t's elements, in row-major order, along one axis. See Reshape.
//
//asyncgen:api view batch
//go:noinline
func (t *Tensor) Flatten() *Tensor { return t.reshape(device.Shape{t.size}) }

// Transpose returns a view of t with its axes in the given order, or in
// reverse order if none is given.
//
//asyncgen:api view batch
//go:noinline
func (t *Tensor) Transpose(axes ...int) *Tensor {
	order := make([]int, len(t.shape))
	for i := range order {
		order[i] = len(order) - 1 - i
	}
	if len(axes) > 0 {
		if len(t.axes("Transpose", axes)) != len(t.shape) {
			wrong("Transpose", fmt.Sprintf("%s: %v is no order of all axes", op.MistakeRank, axes), t)
		}
		for i, axis := range axes {
			order[i] = t.axis("Transpose", axis)
		}
	}
	return structural(op.Transpose, op.Attr{Axes: order}, operands{t}, true)
}

// T returns a view of a matrix with rows and columns exchanged. It panics if t is not a matrix.
//
//asyncgen:api view batch
//go:noinline
func (t *Tensor) T() *Tensor {
	if len(t.shape) != 2 {
		wrong("T", op.MistakeRank+" (other orders of axes: Transpose)", t)
	}
	return structural(op.Transpose, op.Attr{Axes: []int{1, 0}}, operands{t}, true)
}

// Slice returns a view of t with the indices [from, to) along axis. Negative axes and indices count from the end, and
// [End] is the end. It panics if an index is out of range or if from > to.
//
//asyncgen:api view batch index=SliceI64
//go:noinline
func (t *Tensor) Slice(axis, from, to int) *Tensor {
	axis = t.axis("Slice", axis)
	n := t.shape[axis]
	if to == End {
		to = n
	}
	a := op.Attr{Axis: axis, From: t.index("Slice", from, n, n+1), To: t.index("Slice", to, n, n+1)}
	if a.From > a.To {
		wrong("Slice", fmt.Sprintf("%s: from %d to %d", op.MistakeRange, from, to), t)
	}
	return structural(op.Slice, a, operands{t}, true)
}

// Row returns a view of the part of t at index i of the first axis: a row of a matrix, or an element of a vector. A
// negative i counts from the end. Row panics if i is out of range or if t has no axes.
//
//asyncgen:api view batch index=RowI64
//go:noinline
func (t *Tensor) Row(i int) *Tensor {
	if len(t.shape) == 0 {
		wrong("Row", op.MistakeRank, t)
	}
	return structural(op.Row, op.Attr{From: t.index("Row", i, t.shape[0], t.shape[0])}, operands{t}, true)
}

// BroadcastTo returns a view of t with the given shape, as NumPy's broadcast_to: axes of length 1 are repeated, and new
// axes come first. It panics if t can't be broadcast to shape.
//
//asyncgen:api view batch
//go:noinline
func (t *Tensor) BroadcastTo(shape ...int) *Tensor {
	s := checked("BroadcastTo", shape)
	if both, ok := op.Broadcast(t.shape, s); !ok || !slices.Equal(both, s) {
		wrong("BroadcastTo", fmt.Sprintf("%s: to %v", op.MistakeBroadcast, shape), t)
	}
	return structural(op.BroadcastTo, op.Attr{Shape: s}, operands{t}, true)
}

// Unsqueeze returns a view of t with a new axis of length 1, which is number axis of the result. Negative axes count
// from the end of the result.
//
//asyncgen:api view batch
//go:noinline
func (t *Tensor) Unsqueeze(axis int) *Tensor { return t.unsqueeze("Unsqueeze", axis) }

func (t *Tensor) unsqueeze(name string, axis int) *Tensor {
	i := axis
	if i < 0 {
		i += len(t.shape) + 1
	}
	if i < 0 || i > len(t.shape) {
		wrong(name, fmt.Sprintf("%s: %d", op.MistakeAxis, axis), t)
	}
	return t.reshape(slices.Insert(slices.Clone(t.shape), i, 1))
}

// Squeeze returns a view of t without the given axes, which must have length 1. If no axis is given, all axes of length
// 1 are removed.
//
//asyncgen:api view batch
//go:noinline
func (t *Tensor) Squeeze(axes ...int) *Tensor {
	list := t.axes("Squeeze", axes)
	shape := device.Shape{}
	for i, n := range t.shape {
		switch named := slices.Contains(list, i); {
		case !named || n != 1 && len(axes) == 0:
			shape = append(shape, n)
		case n != 1:
			wrong("Squeeze", fmt.Sprintf("%s: axis %d has length %d, not 1", op.MistakeReshape, i, n), t)
		}
	}
	return t.reshape(shape)
}

// SharesMemory reports whether t and u are in the same memory: whether one is a view of the other, or both are views of
// a third tensor. It never waits.
//
//asyncgen:api meta
func (t *Tensor) SharesMemory(u *Tensor) bool {
	if u == nil {
		wrong("SharesMemory", op.MistakeNil, t)
	}
	return t.storage == u.storage
}

// StorageBytes returns how many bytes the memory has that t is in: those of t, or of the larger tensor of which t is a
// view. It never waits.
//
//asyncgen:api meta
func (t *Tensor) StorageBytes() int64 { return t.storage.Bytes() }

// IsTracked reports whether gradients flow through t: it comes from Track or a parameter, or was computed from what
// does.
//
//asyncgen:api meta
func (t *Tensor) IsTracked() bool { return t.node != nil }

// Detach returns a tensor with t's elements that is not tracked: no gradient flows through it.
//
//asyncgen:api view batch
func (t *Tensor) Detach() *Tensor {
	if r, ok := t.find(); ok {
		return r.v.row(r.full.Detach())
	}
	t.mustLive("Detach")
	return t.detached()
}

func (t *Tensor) detached() *Tensor {
	d := t.another()
	d.node = nil
	return d
}
