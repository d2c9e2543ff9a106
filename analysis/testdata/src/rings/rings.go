// Package rings knows nothing of tensors.
package rings

import "iter"

type Ring[T any] struct{ buf []T }

func (r *Ring[T]) Push(v T) (old T) {
	r.buf = append(r.buf, v)
	return r.buf[0]
}

func (r *Ring[T]) Len() int { return len(r.buf) }

func (r *Ring[T]) All() iter.Seq[T] {
	return func(yield func(T) bool) {
		for _, v := range r.buf {
			if !yield(v) {
				return
			}
		}
	}
}
