package tensor

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/runtime/op"
)

// An Index says which elements of an axis [Tensor.Index] and [Tensor.SetIndex] mean. It is made by [All], [Range],
// [At], [Ellipsis] or [NewAxis].
type Index struct {
	kind     indexKind
	from, to int // the index of At is from
	step     int // 0 means 1
}

type indexKind uint8

const (
	indexRange indexKind = iota
	indexAt
	indexEllipsis
	indexNewAxis
)

// The bounds of a [Range] that are open: from the first element on, and to the last one, whatever the length of the
// axis is.
const (
	Start = math.MinInt
	End   = math.MaxInt
)

// All means all elements of an axis: NumPy's `:`.
//
//asyncgen:api pure
func All() Index { return Range(Start, End) }

// Range means the elements of an axis from one index on and before another: NumPy's `from:to`. Negative indices count
// from the end; [Start] and [End] leave a bound open. As with [Tensor.Slice], and other than in NumPy, a bound
// that the axis does not have is a mistake: it is not moved to where the axis ends.
//
//asyncgen:api pure
func Range(from, to int) Index { return Index{kind: indexRange, from: from, to: to} }

// At means the element of an axis at index i. The result does not have that axis. A negative i counts from the end.
//
//asyncgen:api pure
func At(i int) Index { return Index{kind: indexAt, from: i} }

// Ellipsis means all elements of as many axes as the other indices leave: NumPy's `...`.
//
//asyncgen:api pure
func Ellipsis() Index { return Index{kind: indexEllipsis} }

// NewAxis means no axis of the tensor, and one of length 1 in the result.
//
//asyncgen:api pure
func NewAxis() Index { return Index{kind: indexNewAxis} }

// Step returns x with only every n-th of its elements, from the first one on. If n is negative, x goes backwards: from
// the element at its first bound, or from the last one, down to the one behind its second bound, or to the first one.
// So All().Step(-1) is all elements in reverse order, and Range(End, 2).Step(-1) those behind index 2. Step panics if n
// is 0, or if x is neither All nor a Range.
//
//asyncgen:api pure
func (x Index) Step(n int) Index {
	if n == 0 || x.kind != indexRange {
		wrong("Step", fmt.Sprintf("%s: %v by %d", op.MistakeStep, x, n))
	}
	if x.step = n; n < 0 && x.from == Start && x.to == End {
		x.from, x.to = End, Start
	}
	return x
}

// String is x in the notation of NumPy: "1:-1:2".
//
//asyncgen:api meta
func (x Index) String() string {
	switch x.kind {
	case indexAt:
		return fmt.Sprint(x.from)
	case indexEllipsis:
		return "..."
	case indexNewAxis:
		return "newaxis"
	}
	text := boundText(x.from) + ":" + boundText(x.to)
	if x.step != 0 && x.step != 1 {
		text += fmt.Sprint(":", x.step)
	}
	return text
}

func boundText(i int) string {
	if i == Start || i == End {
		return ""
	}
	return fmt.Sprint(i)
}

// Index returns a part of t: NumPy's t[at...]. There is one index for each axis, beginning with the first; if there
// are fewer, all elements of the other axes are meant.
//
//	x.Index(tensor.All(), tensor.Range(1, tensor.End), tensor.All().Step(2)) // x[:, 1:, ::2]
//	x.Index(tensor.Ellipsis(), tensor.At(-1))                               // x[..., -1]
//
// The result is a view, unless an index has a negative step: then elements are copied. Index panics if t has fewer
// axes than there are indices, if an index or a bound is out of range, if a bound lies before the one that it
// follows, or if there is more than one Ellipsis.
//
//asyncgen:api view batch
//go:noinline
func (t *Tensor) Index(at ...Index) *Tensor {
	parts, shape := t.partsAt("Index", at)
	part := t.same("Index")
	for _, p := range parts {
		whole := part
		part = whole.part(p)
		whole.letGo()
	}
	if slices.Equal(part.shape, shape) {
		return part
	}
	defer part.letGo()
	return part.reshape(shape)
}

// SetIndex returns t with the part that Index(at...) returns replaced by value, which is broadcast to the shape of
// that part: NumPy's t[at...] = value, but as a new tensor. t stays as it is. Each element of the result passes its
// gradient to where it comes from. SetIndex panics as Index does, if value can't be broadcast to the part, or if it
// has another element type or device than t.
//
//asyncgen:api op batch
//go:noinline
func (t *Tensor) SetIndex(value *Tensor, at ...Index) *Tensor {
	t.mustFit("SetIndex", value)
	parts, shape := t.partsAt("SetIndex", at)
	if both, ok := op.Broadcast(value.shape, shape); !ok || !slices.Equal(both, shape) {
		wrong("SetIndex", fmt.Sprintf("%s: the part has the shape %v", op.MistakeBroadcast, shape), t, value)
	}
	full := t.Shape() // of the part, with the axes of t
	for _, p := range parts {
		full[p.axis] = p.n
	}
	wide := structural(op.BroadcastTo, op.Attr{Shape: shape}, operands{value}, true)
	part := wide.reshape(full)
	wide.letGo()
	for i, p := range parts {
		if p.step < 0 {
			back := part.flip(p.axis)
			part.letGo()
			part = back
			parts[i] = axisPart{p.axis, p.from + (p.n-1)*p.step, p.n, -p.step}
		}
	}
	wholes := []*Tensor{t.same("SetIndex")} // each is what the next one is a part of
	for _, p := range parts[:max(len(parts)-1, 0)] {
		wholes = append(wholes, wholes[len(wholes)-1].part(p))
	}
	defer letGo(wholes...)
	for i, p := range slices.Backward(parts) {
		whole := structural(op.Put, op.Attr{Axis: p.axis, From: p.from, Step: p.step}, operands{wholes[i], part}, true)
		part.letGo()
		part = whole
	}
	return part
}

// mustFit panics, about the operation with the given name, unless value has the element type and the device of t.
func (t *Tensor) mustFit(name string, value *Tensor) {
	if value == nil {
		wrong(name, op.MistakeNil, t)
	}
	t.isRow(name)
	value.isRow(name)
	if t.dtype != value.dtype {
		wrong(name, op.MistakeDTypes, t, value)
	}
	if _, same := device.Join(t.storage.Device(), value.storage.Device()); !same {
		wrong(name, op.MistakeDevices, t, value)
	}
}

// An axisPart is the n elements of an axis from one on, step apart. The step may be negative.
type axisPart struct{ axis, from, n, step int }

// part returns the elements of t in p.
func (t *Tensor) part(p axisPart) *Tensor {
	if p.step < 0 {
		return t.along(p.axis, counting(p.from, p.step, p.n, t.storage.Device()))
	}
	to := p.from
	if p.n > 0 {
		to += (p.n-1)*p.step + 1
	}
	return structural(op.Slice, op.Attr{Axis: p.axis, From: p.from, To: to, Step: p.step}, operands{t}, true)
}

// partsAt returns the part of each axis of t that the indices select, for the axes of which they don't
// select all elements. It also returns the shape of the result.
func (t *Tensor) partsAt(name string, at []Index) (parts []axisPart, shape device.Shape) {
	named, ellipses := 0, 0
	for _, x := range at {
		switch x.kind {
		case indexEllipsis:
			ellipses++
		case indexNewAxis:
		default:
			named++
		}
	}
	if named > len(t.shape) || ellipses > 1 {
		wrong(name, fmt.Sprintf("%s: for the indices %v", op.MistakeRank, at), t)
	}
	if ellipses == 0 {
		at = append(slices.Clip(at), Ellipsis())
	}
	shape = device.Shape{}
	axis := 0
	for _, x := range at {
		switch x.kind {
		case indexNewAxis:
			shape = append(shape, 1)
			continue
		case indexEllipsis:
			rest := len(t.shape) - named
			shape = append(shape, t.shape[axis:axis+rest]...)
			axis += rest
			continue
		}
		n := t.shape[axis]
		p := t.partAt(name, axis, x)
		if x.kind != indexAt {
			shape = append(shape, p.n)
		}
		if p != (axisPart{axis, 0, n, 1}) {
			parts = append(parts, p)
		}
		axis++
	}
	return parts, shape
}

// partAt returns what x, which stands for an axis, selects from it.
func (t *Tensor) partAt(name string, axis int, x Index) axisPart {
	n := t.shape[axis]
	if x.kind == indexAt {
		return axisPart{axis, t.index(name, x.from, n, n), 1, 1}
	}
	step := cmp.Or(x.step, 1)
	first, end := t.bound(name, x.from, n), t.bound(name, x.to, n)
	if step < 0 {
		if x.from == End {
			first = n - 1
		}
		if x.to == Start {
			end = -1
		}
	}
	far := end - first // how many elements there are from the first one on
	if step < 0 {
		far = -far
	}
	if far < 0 || step < 0 && n > 0 && first == n {
		wrong(name, fmt.Sprintf("%s: %v of axis %d", op.MistakeRange, x, axis), t)
	}
	switch {
	case far == 0:
		return axisPart{axis, 0, 0, 1}
	case (far-1)/step == 0:
		return axisPart{axis, first, 1, 1}
	case step < 0:
		return axisPart{axis, first, (far-1)/-step + 1, step}
	}
	return axisPart{axis, first, (far-1)/step + 1, step}
}

// bound returns i, a bound of a range, as a number from 0 to n.
func (t *Tensor) bound(name string, i, n int) int {
	switch i {
	case Start:
		return 0
	case End:
		return n
	}
	return t.index(name, i, n, n+1)
}
