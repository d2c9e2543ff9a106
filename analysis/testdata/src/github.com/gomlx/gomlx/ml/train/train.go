// Package train has some signatures of the package of this name.
package train

import "github.com/gomlx/gomlx/core/tensors"

type (
	Trainer struct{ _ int }
	Batch   struct{ Inputs, Labels []*tensors.Tensor }
)

func (r *Trainer) TrainStep(batch Batch) (metrics []*tensors.Tensor, err error) { return nil, nil }
