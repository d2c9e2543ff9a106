package batch

import "github.com/asyncgen/asyncgen/runtime/tensor"

// An Observer is told of each loss.
type Observer interface{ Observe(loss *tensor.Tensor) }

// EachStep calls all of the hooks in each step.
func EachStep(w *tensor.Tensor, data []Batch, hooks ...func(int, *tensor.Tensor)) { // want EachStep:`^loops\(2 with host, pending\) enqueues$`
	for i, b := range data {
		loss := Loss(w, b)
		for _, h := range hooks {
			h(i, loss)
		}
	}
}

// Last calls them once.
func Last(w *tensor.Tensor, data []Batch, hooks ...func(int, *tensor.Tensor)) { // want Last:`^calls\(2 with host, pending\) enqueues$`
	var last *tensor.Tensor
	for _, b := range data {
		last = Loss(w, b)
	}
	for _, h := range hooks {
		h(0, last)
	}
}
