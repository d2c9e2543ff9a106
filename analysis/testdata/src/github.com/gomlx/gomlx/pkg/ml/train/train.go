// Package train has some signatures of the package of this name.
package train

import "github.com/gomlx/gomlx/pkg/core/tensors"

type Trainer struct{ _ int }

func (r *Trainer) TrainStep(spec any, inputs, labels []*tensors.Tensor) (metrics []*tensors.Tensor, err error) {
	return nil, nil
}

func (r *Trainer) EvalStep(spec any, inputs, labels []*tensors.Tensor) (metrics []*tensors.Tensor, err error) {
	return nil, nil
}
