package asyncrt

import (
	"slices"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// A form is what operations check of a tensor before they are enqueued. The zero form is that of nil.
type form struct {
	isTensor  bool
	isTracked bool
	shape     device.Shape
	dtype     device.DType
	on        device.Device
}

// isOf reports whether t has the form.
func (f form) isOf(t *tensor.Tensor) bool {
	if t == nil || !f.isTensor {
		return t == nil && !f.isTensor
	}
	if f.dtype != t.DType() || f.isTracked != t.IsTracked() || f.on != t.Device() || len(f.shape) != t.Rank() {
		return false
	}
	for axis, n := range f.shape {
		if t.Dim(axis) != n {
			return false
		}
	}
	return true
}

// Alike reports whether ts have the shapes, element types and devices of the tensors in the call before, and are
// tracked if these were. It is for a loop that runs past its end (see BreakIf) and gets other tensors in each
// iteration. If they differ from those before, operations on them could be mistakes, so the loop first has to find out
// whether it comes to this iteration:
//
//	for _, x := range xs {
//		if !later.Alike(x) {
//			if end, ok := later.Flush(); ok {
//				return end
//			}
//		}
//
// Nil is like nil alone. The first call in a loop reports false. From a call that reports false until one
// that reports true, BreakIf waits: a loop does not run past its end with tensors of a form that it has not tried
// before.
//
//asyncgen:api meta none
//go:noinline
func (l *Later[S]) Alike(ts ...*tensor.Tensor) bool {
	alike := len(ts) == len(l.forms) && l.compared
	l.compared = true
	l.forms = slices.Grow(l.forms[:min(len(ts), len(l.forms))], len(ts))[:len(ts)]
	for i, t := range ts {
		if alike && l.forms[i].isOf(t) {
			continue
		}
		alike, l.forms[i] = false, form{}
		if t != nil {
			l.forms[i] = form{true, t.IsTracked(), t.Shape(), t.DType(), t.Device()}
		}
	}
	l.unlike, l.asked = !alike, !alike
	return alike
}

// Floats reports whether the elements of all ts are floating-point numbers. Like Alike it is for a loop
// that runs past its end. An operation with a constant that is not an integer is a mistake on int64
// tensors, so the loop first has to find out whether it comes to that operation. From a call that
// reports false until one that reports true, BreakIf waits, as after Alike.
//
//asyncgen:api meta none
//go:noinline
func (l *Later[S]) Floats(ts ...*tensor.Tensor) bool {
	not := slices.ContainsFunc(ts, func(t *tensor.Tensor) bool { return t == nil || !t.DType().IsFloat() })
	l.unlike, l.asked = not, not
	return !not
}
