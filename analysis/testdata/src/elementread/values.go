package elementread

import (
	"fmt"

	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

type vectors struct{ of *nn.Param }

func (v *vectors) export(words []string) {
	for i, w := range words {
		fmt.Println(w, v.of.Value().Row(i).Float32s()) // want `reads one part of v.of.Value\(\) in each iteration`
	}
}

func (v *vectors) train(opt *optim.Optimizer, xs []*tensor.Tensor) {
	for i, x := range xs {
		opt.Minimize(v.of.Value().MatMul(x))
		fmt.Println(v.of.Value().Row(i).Float32s())
	}
}
