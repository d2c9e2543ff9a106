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

// isOf reports whether t has the form.
func (f form) isOf(t *tensor.Tensor) bool {
	if f.dtype != t.DType() || f.on != t.Device() || len(f.shape) != t.Rank() {
		return false
	}
	for axis, n := range f.shape {
		if t.Dim(axis) != n {
			return false
		}
	}
	return true
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
// A nil tensor is like no other. The first call in a loop reports false. From a call that does
// until one that does not, BreakIf waits: what has not been tried with such tensors is not tried
// past an end.
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
		if !alike || !l.forms[i].isOf(t) {
			alike, l.forms[i] = false, form{t.Shape(), t.DType(), t.Device()}
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
