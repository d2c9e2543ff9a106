// Package gomlxnext uses GoMLX from version 0.27 on.
package gomlxnext

import (
	"fmt"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/train"
)

func loss(trainer *train.Trainer, batch train.Batch) (last float32) {
	for range 1000 {
		metrics, _ := trainer.TrainStep(batch)
		last += tensors.ToScalar[float32](metrics[0]) // want `AT001`
	}
	return last
}

func all(exec *graph.Exec, x *tensors.Tensor) {
	for range 1000 {
		x = exec.MustCall(x)[0]
		fmt.Println(x) // want `AT004`
	}
}
