package droppedresult

import (
	"fmt"
	"time"

	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// A loop that trains has its work, also where its time is taken.
func trained(net nn.Module, scale *nn.Param, opt *optim.Optimizer, xs []*tensor.Tensor) {
	start := time.Now()
	for _, x := range xs {
		opt.Minimize(net.Forward(x.Mul(scale.Value())))
		scale.Value().Clamp(0.1, 20) // want `result of scale.Value\(\).Clamp is thrown away`
	}
	for _, x := range xs {
		x.MatMul(x) // its time is taken
	}
	fmt.Println(time.Since(start))
}
