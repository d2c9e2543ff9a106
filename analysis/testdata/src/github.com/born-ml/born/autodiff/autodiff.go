// Package autodiff has some signatures of the package of this name.
package autodiff

import "github.com/born-ml/born/internal/tensor"

func Backward[T any, B tensor.Backend](t *tensor.Tensor[T, B], backend B) map[*tensor.RawTensor]*tensor.RawTensor {
	return nil
}
