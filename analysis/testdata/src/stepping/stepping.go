// Package stepping has loops that call what other packages implement.
package stepping

import (
	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// A Hook is called by Train.
type Hook interface {
	OnStep(step int, loss *tensor.Tensor)
	OnEpoch(epoch int, loss *tensor.Tensor)
}

// Train calls its hooks after each step, and at the end of each epoch.
func Train(w *tensor.Tensor, opt *optim.Optimizer, batches []*tensor.Tensor, epochs int, hooks []Hook) {
	for epoch := range epochs {
		var loss *tensor.Tensor
		for i, b := range batches {
			loss = b.MatMul(w).Mean()
			opt.Minimize(loss)
			for _, h := range hooks {
				h.OnStep(i, loss)
			}
		}
		for _, h := range hooks {
			h.OnEpoch(epoch, loss)
		}
	}
}

// OnBatch has f called in each step.
func OnBatch(f func(loss *tensor.Tensor)) { hooks = append(hooks, f) }

// OnStart has f called before the first step.
func OnStart(f func(loss *tensor.Tensor)) { hooks = append(hooks, f) }

var hooks []func(loss *tensor.Tensor)
