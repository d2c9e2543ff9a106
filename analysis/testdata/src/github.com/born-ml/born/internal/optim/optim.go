// Package optim has some signatures of the package of this name.
package optim

import "github.com/born-ml/born/internal/tensor"

type SGD[B tensor.Backend] struct{ _ int }

func (s *SGD[B]) Step(grads map[*tensor.RawTensor]*tensor.RawTensor) {}
