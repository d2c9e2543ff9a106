package roundtrip

import (
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// Loops over the gradients of a model's parameters are a part of each iteration, and no passes over data.
func sharpness(net nn.Module, loss *tensor.Tensor, rounds int) (lambda float64) {
	var ws []*tensor.Tensor
	for _, p := range net.Params() {
		ws = append(ws, p.Value())
	}
	g := tensor.Grad(loss, ws...)
	v := make([]*tensor.Tensor, len(g))
	for range rounds {
		dot := tensor.Zeros()
		for i := range g {
			dot = dot.Add(g[i].Mul(v[i]).Sum())
		}
		v = tensor.Grad(dot, ws...)
		lambda = dot.Norm().Item() // want `round trip in loop: dot.Norm\(\).Item\(\)`
		for i := range v {
			v[i] = v[i].DivScalar(lambda)
		}
	}
	return lambda
}
