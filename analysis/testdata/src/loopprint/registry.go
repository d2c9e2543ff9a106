package loopprint

import (
	"fmt"
	"gauges"

	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// What formats itself, by tensors that the loop has put into generic values of another package.
func registered(xs []*tensor.Tensor, w *tensor.Tensor, opt *optim.Optimizer, r, other *gauges.Registry) {
	for i, x := range xs {
		loss := x.MatMul(w).Mean()
		opt.Minimize(loss)
		r.Box("loss").Put(loss)
		fmt.Println(i, r) // want `AT004`
	}
	for i, x := range xs {
		loss := x.MatMul(w).Mean()
		opt.Minimize(loss)
		r.Box("loss").Put(loss)
		if i%100 == 0 {
			fmt.Println(i, r)
		}
	}
	for i, x := range xs {
		opt.Minimize(x.MatMul(w).Mean())
		fmt.Println(i, other)
	}
}
