package extrawait

import (
	"batch"

	asyncrt "github.com/asyncgen/asyncgen/runtime"
	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// Training on a few batches is more than warming up.
func warmStart(data []Batch, opt *optim.Optimizer) float64 {
	var loss *tensor.Tensor
	for _, b := range data {
		loss = batch.Loss(w, b)
		opt.Minimize(loss)
		asyncrt.WaitIdle() // want `asyncrt.WaitIdle\(\) waits for the device in each iteration`
	}
	return loss.Item()
}

// To warm up a device takes time on purpose: an info.
func warmLoop(x *tensor.Tensor, n int) {
	for range n {
		x.MatMul(x).Wait() // want `x.MatMul\(x\).Wait\(\) waits for the device in each iteration`
	}
}
