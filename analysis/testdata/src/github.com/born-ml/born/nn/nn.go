// Package nn has some signatures of the package of this name.
package nn

import "github.com/born-ml/born/internal/tensor"

func Accuracy[B tensor.Backend](logits *tensor.Tensor[float32, B], targets *tensor.Tensor[int32, B]) float32 {
	return 0
}
