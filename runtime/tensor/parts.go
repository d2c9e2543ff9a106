package tensor

import (
	"fmt"
	"slices"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/kernel"
	"github.com/asyncgen/asyncgen/runtime/op"
)

// Parts of a tensor along an axis: taken apart, repeated, in another order, and with something around them.

// Split returns views of the parts of t along axis that have the given lengths, one after the other. It panics if
// the lengths do not add up to that of the axis.
//
//asyncgen:api op
//go:noinline
func (t *Tensor) Split(axis int, lengths ...int) []*Tensor {
	return t.split("Split", t.axis("Split", axis), lengths)
}

// Chunk returns views of n parts of t along axis, one after the other, as NumPy's array_split: their lengths differ by
// 1 at most, and the longer ones come first. There are n parts even if the axis is shorter. Chunk panics if n is less
// than 1.
//
//asyncgen:api op
//go:noinline
func (t *Tensor) Chunk(axis, n int) []*Tensor {
	axis = t.axis("Chunk", axis)
	if n < 1 {
		wrong("Chunk", fmt.Sprintf("%s: %d parts", op.MistakeRange, n), t)
	}
	lengths := make([]int, n)
	for i := range lengths {
		lengths[i] = (t.shape[axis] + n - 1 - i) / n
	}
	return t.split("Chunk", axis, lengths)
}

func (t *Tensor) split(name string, axis int, lengths []int) []*Tensor {
	from := 0
	for _, n := range lengths {
		if n < 0 || n > t.shape[axis]-from {
			wrong(name, fmt.Sprintf("%s: lengths %v", op.MistakeReshape, lengths), t)
		}
		from += n
	}
	if from != t.shape[axis] {
		wrong(name, fmt.Sprintf("%s: lengths %v", op.MistakeReshape, lengths), t)
	}
	parts := make([]*Tensor, len(lengths))
	from = 0
	for i, n := range lengths {
		parts[i] = t.part(axisPart{axis, from, n, 1})
		from += n
	}
	return parts
}

// Unbind returns views of the parts of t along axis, which they don't have: the rows of a matrix for axis 0, and its
// columns for axis 1. [Stack] joins them again.
//
//asyncgen:api op
//go:noinline
func (t *Tensor) Unbind(axis int) []*Tensor {
	axis = t.axis("Unbind", axis)
	parts := make([]*Tensor, t.shape[axis])
	for i := range parts {
		part := t.part(axisPart{axis, i, 1, 1})
		parts[i] = part.reshape(slices.Delete(part.Shape(), axis, axis+1))
		part.letGo()
	}
	return parts
}

// Pad returns t with elements added along axis, before and after those of t, all of the given value. It panics if
// before or after is negative; for an int64 tensor also if value is not an integer.
//
//asyncgen:api op batch
//go:noinline
func (t *Tensor) Pad(axis, before, after int, value float64) *Tensor {
	axis = t.axis("Pad", axis)
	n := t.padded("Pad", axis, before, after)
	a := op.Attr{Axis: axis, From: before, To: n, Key: kernel.BitsOf(t.constant("Pad", value), t.dtype)}
	return structural(op.Scatter, a, operands{t}, true)
}

// padded returns the length of t's axis with elements before and after.
func (t *Tensor) padded(name string, axis, before, after int) int {
	if min(before, after) < 0 || max(before, after) > maxSize {
		wrong(name, fmt.Sprintf("%s: %d elements before and %d after", op.MistakeShape, before, after), t)
	}
	shape := t.Shape()
	shape[axis] += before + after
	return checked(name, shape)[axis]
}

// constant returns c. It panics, naming the operation, if t has integers and c is not an int64.
func (t *Tensor) constant(name string, c float64) float64 {
	if !t.dtype.IsFloat() && t.dtype != Bool {
		if text := notInt(c); text != "" {
			wrong(name, text, t)
		}
	}
	return c
}

// A Border says how the elements of an axis a b c d go on beyond its ends, see [Tensor.PadWith].
type Border int

// The borders.
const (
	Reflect   Border = iota // d c b | a b c d | c b a: the elements at the ends are not repeated
	Replicate               // a a a | a b c d | d d d
	Circular                // b c d | a b c d | a b c
)

var borders = [...]string{"reflect", "replicate", "circular"}

// String is the border's name in PyTorch: "reflect".
//
//asyncgen:api meta
func (b Border) String() string {
	if b < 0 || int(b) >= len(borders) {
		return fmt.Sprintf("Border(%d)", int(b))
	}
	return borders[b]
}

// PadWith is [Tensor.Pad] with elements of t: the border says which. The gradient of each of them is added to that of
// the element it repeats. PadWith panics if before or after is negative or if the axis is too short: Reflect adds at
// most one element less than the axis has at each end, Circular at most as many as it has, and no border adds any to
// an axis of length 0.
//
//asyncgen:api op batch
//go:noinline
func (t *Tensor) PadWith(border Border, axis, before, after int) *Tensor {
	t.isRow("PadWith")
	axis = t.axis("PadWith", axis)
	longer, n := t.padded("PadWith", axis, before, after), t.shape[axis]
	most := n // at each end
	switch {
	case border == Reflect:
		most = max(n-1, 0)
	case border == Replicate && n > 0:
		most = longer
	}
	if border < Reflect || border > Circular || max(before, after) > most {
		wrong("PadWith", fmt.Sprintf("%s: %v with %d elements before and %d after axis %d", op.MistakeShape, border, before, after, axis), t)
	}
	places := make([]int64, longer)
	for i := range places {
		at := i - before
		switch border {
		case Reflect:
			at = max(at, -at)
			at = min(at, 2*(n-1)-at)
		case Replicate:
			at = min(max(at, 0), n-1)
		case Circular:
			at = (at + n) % n
		}
		places[i] = int64(at)
	}
	return t.along(axis, upload(t.storage.Device(), places, device.Shape{longer}))
}

// along returns the elements of t at the given indices of an axis. index is a vector, and all are in range. along lets
// go of it.
func (t *Tensor) along(axis int, index *Tensor) *Tensor {
	defer index.letGo()
	shape := t.Shape()
	shape[axis] = index.size
	each := alongAxis(index, axis, len(shape))
	defer each.letGo()
	all := structural(op.BroadcastTo, op.Attr{Shape: shape}, operands{each}, false)
	defer all.letGo()
	return structural(op.Along, op.Attr{Axis: axis}, operands{t, all}, true)
}

// alongAxis returns a view of x, a vector, as a tensor of the given rank that has more than one element along axis
// only.
func alongAxis(x *Tensor, axis, rank int) *Tensor {
	shape := slices.Repeat(device.Shape{1}, rank)
	shape[axis] = x.size
	return x.reshape(shape)
}

// counting returns the n int64 numbers from the given one on, step apart.
func counting(from, step, n int, dev device.Device) *Tensor {
	a := op.Attr{Shape: device.Shape{n}, DType: Int64, Key: kernel.Bits(int64(from)), Pos: kernel.Bits(int64(step))}
	return create(op.Iota, a, dev)
}

// Flip returns t with the elements along the given axes in reverse order, or along all axes if none is given.
//
//asyncgen:api op batch
//go:noinline
func (t *Tensor) Flip(axes ...int) *Tensor {
	out := t.same("Flip")
	for _, axis := range t.axes("Flip", axes) {
		before := out
		out = before.flip(axis)
		before.letGo()
	}
	return out
}

func (t *Tensor) flip(axis int) *Tensor {
	n := t.shape[axis]
	return t.along(axis, counting(n-1, -1, n, t.storage.Device()))
}

// Roll returns t with the elements along axis moved towards the end by shift places; those that would be beyond the
// end come first. A negative shift moves them towards the beginning.
//
//asyncgen:api op batch
//go:noinline
func (t *Tensor) Roll(axis, shift int) *Tensor {
	axis = t.axis("Roll", axis)
	n := t.shape[axis]
	if n == 0 || shift%n == 0 {
		return t.same("Roll")
	}
	at := n - (shift%n+n)%n // which element becomes the first
	last, first := t.part(axisPart{axis, at, n - at, 1}), t.part(axisPart{axis, 0, at, 1})
	defer letGo(last, first)
	return concat("Roll", axis, []*Tensor{last, first})
}

// Tile returns t repeated as a whole: counts says how often along each axis, beginning with the first, as NumPy's
// tile. If there are fewer counts than axes, they are those of the last axes. If there are more, the result has so
// many axes. Tile panics if a count is negative.
//
//asyncgen:api op batch
//go:noinline
func (t *Tensor) Tile(counts ...int) *Tensor {
	lead, rank := len(counts)-len(t.shape), max(len(counts), len(t.shape))
	apart, wide, shape := make(device.Shape, 2*rank), make(device.Shape, 2*rank), make(device.Shape, rank)
	for i := range rank {
		length, count := 1, 1
		if at := i - max(lead, 0); at >= 0 {
			length = t.shape[at]
		}
		if at := i + min(lead, 0); at >= 0 {
			count = counts[at]
		}
		apart[2*i], apart[2*i+1] = 1, length
		wide[2*i], wide[2*i+1] = count, length
		shape[i] = length * count
	}
	return t.repeated("Tile", apart, wide, shape)
}

// Unfold returns the windows of t along axis: size elements each, beginning step elements after the window before. They
// lie along a new last axis, and axis numbers the windows, as in PyTorch. Elements behind the last whole window are
// left out. Unfold of both axes of images, followed by Transpose and Reshape, gives the patches that a convolution
// sees. It panics with a [*Mistake] if size or step is less than 1, or if the axis is shorter than size.
//
//asyncgen:api op batch fails
//go:noinline
func (t *Tensor) Unfold(axis, size, step int) *Tensor {
	t.isRow("Unfold")
	axis = t.axis("Unfold", axis)
	n := t.shape[axis]
	if size < 1 || step < 1 || size > n {
		wrong("Unfold", fmt.Sprintf("%s: %d elements, %d apart, of %d", op.MistakeWindow, size, step, n), t)
	}
	dev := t.storage.Device()
	count := (n-size)/step + 1
	first, within := counting(0, step, count, dev), counting(0, 1, size, dev)
	column := first.reshape(device.Shape{count, 1})
	index := elementwise(op.Add, [2]float64{}, operands{column, within}, false)
	windows := structural(op.Gather, op.Attr{Axis: axis}, operands{t, index}, true)
	defer letGo(first, within, column, index, windows)
	var order []int
	for i := range len(t.shape) + 1 {
		if i != axis+1 {
			order = append(order, i)
		}
	}
	return structural(op.Transpose, op.Attr{Axes: append(order, axis+1)}, operands{windows}, true)
}

// RepeatInterleave returns t with each element along axis repeated n times, one after the other, as NumPy's repeat. It
// panics if n is negative.
//
//asyncgen:api op batch
//go:noinline
func (t *Tensor) RepeatInterleave(axis, n int) *Tensor {
	axis = t.axis("RepeatInterleave", axis)
	apart := slices.Insert(t.Shape(), axis+1, 1)
	wide := slices.Insert(t.Shape(), axis+1, n)
	shape := t.Shape()
	shape[axis] *= n
	return t.repeated("RepeatInterleave", apart, wide, shape)
}

// repeated returns t in the shape apart, broadcast to wide, in the given shape of as many elements.
func (t *Tensor) repeated(name string, apart, wide, shape device.Shape) *Tensor {
	checked(name, wide)
	x := t.reshape(apart)
	defer x.letGo()
	y := structural(op.BroadcastTo, op.Attr{Shape: wide}, operands{x}, true)
	defer y.letGo()
	return y.reshape(shape)
}
