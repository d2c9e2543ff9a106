// Package tensor has some signatures of the package of this name.
package tensor

import "github.com/born-ml/born/internal/tensor"

type (
	Shape     = tensor.Shape
	Backend   = tensor.Backend
	RawTensor = tensor.RawTensor

	Tensor[T any, B Backend] = tensor.Tensor[T, B]
)

func FromSlice[T any, B Backend](data []T, shape Shape, b B) (*Tensor[T, B], error) {
	return tensor.FromSlice(data, shape, b)
}
