package asyncrt

import (
	"reflect"
	"slices"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// A Place is a variable, or the elements of a slice, for [Later.Undo].
type Place struct{ of changeable }

// A changeable is a Place of some type.
type changeable interface {
	is(o changeable) bool
	hold() held
}

// A held is what a place held at some time.
type held interface {
	restore()
	each(f func(*tensor.Tensor)) // the tensors in it
}

// Var returns the Place of the variable that p points to, such as a field.
//
//asyncgen:api pure
func Var[T any](p *T) Place { return Place{variable[T]{p}} }

type variable[T any] struct{ p *T }

func (v variable[T]) is(o changeable) bool { return changeable(v) == o }
func (v variable[T]) hold() held           { return &heldVariable[T]{v.p, *v.p} }

type heldVariable[T any] struct {
	p     *T
	value T
}

func (h *heldVariable[T]) restore()                    { *h.p = h.value }
func (h *heldVariable[T]) each(f func(*tensor.Tensor)) { tensorsIn(&h.value, f) }

// Elems returns the Place of the elements of s.
//
//asyncgen:api pure
func Elems[T any](s []T) Place { return Place{elements[T]{s}} }

type elements[T any] struct{ s []T }

func (e elements[T]) is(o changeable) bool {
	p, ok := o.(elements[T])
	return ok && len(p.s) == len(e.s) && (len(e.s) == 0 || &p.s[0] == &e.s[0])
}

func (e elements[T]) hold() held { return &heldElements[T]{e.s, slices.Clone(e.s)} }

type heldElements[T any] struct{ s, values []T }

func (h *heldElements[T]) restore() { copy(h.s, h.values) }

func (h *heldElements[T]) each(f func(*tensor.Tensor)) {
	for i := range h.values {
		tensorsIn(&h.values[i], f)
	}
}

// tensorsIn calls f with the tensors in *p, except those behind further pointers.
func tensorsIn[T any](p *T, f func(*tensor.Tensor)) {
	switch p := any(p).(type) {
	case **tensor.Tensor:
		if *p != nil {
			f(*p)
		}
	case *int, *int64, *float64, *bool, *string:
	default:
		eachTensor(reflect.ValueOf(p).Elem(), f)
	}
}

// Undo names places that the loop changes before it knows whether the original program would have changed them: a
// value that has not arrived may end that program's loop earlier. Other code can see these places.
//
//	later.Undo(asyncrt.Var(&t.w), asyncrt.Var(&t.steps))
//	for _, b := range batches {
//		loss := t.step(b) // changes t.w and t.steps
//		lossAt := later.Read(loss)
//		later.Do(func() { total += lossAt.Item() })
//	}
//	later.Flush()
//
// Do and BreakIf note what the places hold. If a function of the backlog panics or ends the goroutine, or if an
// exit is taken, the places are restored before anything else of the program runs: they hold again what they held
// when that function was queued. So functions of the backlog must not change them.
//
// Further calls add places; a call without places forgets all. Undo panics in a function of the backlog.
//
//asyncgen:api control
func (l *Later[S]) Undo(places ...Place) {
	if l.inside {
		panic("asyncrt: Undo in a function of the backlog")
	}
	if len(places) == 0 {
		l.places = nil
	}
	for _, p := range places {
		if !slices.ContainsFunc(l.places, p.of.is) {
			l.places = append(l.places, p.of)
		}
	}
}

// holds returns what the places hold now or, in a function of the backlog, what they held when it was queued.
func (l *Later[S]) holds() []held {
	if l.inside {
		return l.holding
	}
	if len(l.places) == 0 {
		return nil
	}
	all := make([]held, len(l.places))
	for i, p := range l.places {
		all[i] = p.hold()
	}
	return all
}

// restorePlaces restores all of these places, see held.restore.
func restorePlaces(all []held) {
	for _, h := range all {
		h.restore()
	}
}
