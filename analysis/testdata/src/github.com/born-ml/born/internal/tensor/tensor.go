// Package tensor has some signatures of the package of this name.
package tensor

type (
	Shape     []int
	Backend   interface{ Name() string }
	RawTensor struct{ _ int }

	Tensor[T any, B Backend] struct{ _ T }
)

func FromSlice[T any, B Backend](data []T, shape Shape, b B) (*Tensor[T, B], error) { return nil, nil }

func (r *RawTensor) AsFloat32() []float32 { return nil }
func (r *RawTensor) NumElements() int     { return 0 }

func (t *Tensor[T, B]) Raw() *RawTensor                          { return nil }
func (t *Tensor[T, B]) Item() T                                  { var zero T; return zero }
func (t *Tensor[T, B]) Data() []T                                { return nil }
func (t *Tensor[T, B]) String() string                           { return "" }
func (t *Tensor[T, B]) Shape() Shape                             { return nil }
func (t *Tensor[T, B]) MatMul(other *Tensor[T, B]) *Tensor[T, B] { return nil }
func (t *Tensor[T, B]) Sub(other *Tensor[T, B]) *Tensor[T, B]    { return nil }
