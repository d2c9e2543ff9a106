package elementread

import "github.com/asyncgen/asyncgen/runtime/tensor"

// Fields of structs that functions get as copies: nobody else can assign them.

type Ratings struct{ Users, Stars *tensor.Tensor }

func (r Ratings) Pairs(yield func(user int64, stars float64) bool) {
	for i := range r.Users.Dim(0) {
		if !yield(r.Users.AtInt(i), r.Stars.At(i)) { // want `r.Users.AtInt\(i\) reads one part of r.Users` `r.Stars.At\(i\) reads one part of r.Stars`
			return
		}
	}
}

func (r Ratings) Each(f func(float64)) func() {
	return func() {
		for i := range r.Users.Dim(0) {
			f(r.Stars.At(i)) // want `r.Stars.At\(i\) reads one part of r.Stars`
		}
	}
}

// Others may assign them by a pointer, or the loop does.
func (r *Ratings) Shared(f func(float64)) {
	for i := range r.Users.Dim(0) {
		f(r.Stars.At(i))
	}
}

func (r Ratings) Lent(f func(*Ratings, float64)) {
	for i := range r.Users.Dim(0) {
		f(&r, r.Stars.At(i))
	}
}

type Steps struct{ x *tensor.Tensor }

func (s Steps) Next(f func(float64)) {
	for i := range s.x.Dim(0) {
		f(s.x.At(i))
		s.x = s.x.MulScalar(2)
	}
}
