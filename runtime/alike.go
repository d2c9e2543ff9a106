package asyncrt

import (
	"slices"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// A form is what operations ask of a tensor before they are enqueued.
type form struct {
	shape device.Shape
	dtype device.DType
	on    device.Device
}

// Alike reports whether ts have the shapes, element types and devices of those that
// it was called with before. It is for a loop that runs past its end, see BreakIf, and gets other tensors in
// each iteration: if they are not like those before, operations on them could be mistakes, and the loop has
// to find out first whether it comes to this iteration:
//
//	for _, x := range xs {
//		if !later.Alike(x) {
//			if end, ok := later.Flush(); ok {
//				return end
//			}
//		}
//
// A nil tensor is like no other. The first call in a loop reports false. From a call that does until one that does not, BreakIf
// waits: what has not been tried with such tensors is not tried past an end.
//
//asyncgen:api meta none
//go:noinline
func (l *Later[S]) Alike(ts ...*tensor.Tensor) bool {
	alike := len(ts) == len(l.forms) && l.compared
	l.compared = true
	l.forms = slices.Grow(l.forms[:min(len(ts), len(l.forms))], len(ts))[:len(ts)]
	for i, t := range ts {
		if t == nil {
			alike, l.forms[i] = false, form{}
			continue
		}
		f := form{t.Shape(), t.DType(), t.Device()}
		old := l.forms[i]
		if !alike || f.dtype != old.dtype || f.on != old.on || !slices.Equal(f.shape, old.shape) {
			alike, l.forms[i] = false, f
		}
	}
	l.unlike, l.asked = !alike, !alike
	return alike
}

// Floats reports whether the elements of all ts are floating-point numbers. It
// is for a loop that runs past its end, too: an operation with a number that is not whole is
// a mistake if the elements are integers, and the loop has to find out first
// whether it comes to that. As after Alike, BreakIf waits from a call that reports false until one that does not.
//
//asyncgen:api meta none
//go:noinline
func (l *Later[S]) Floats(ts ...*tensor.Tensor) bool {
	not := slices.ContainsFunc(ts, func(t *tensor.Tensor) bool { return t == nil || !t.DType().IsFloat() })
	l.unlike, l.asked = not, not
	return !not
}
