package roundtrip

import (
	"host"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// Tensors whose elements a library on the host computes with.

func refine(xs []*tensor.Tensor) []*tensor.Tensor {
	ys := make([]*tensor.Tensor, len(xs))
	for i, x := range xs {
		var y host.Vector
		if err := y.Solve(&y, x.Float32s()); err != nil { // want `round trip in loop: the value of x.Float32s\(\) goes back into a tensor operation`
			continue
		}
		ys[i] = tensor.From(y.Elements)
	}
	for i, x := range xs {
		var y []float32
		if err := host.Solve(&y, x.Float32s()); err != nil { // want `AT003`
			continue
		}
		ys[i] = tensor.From(y)
	}
	return ys
}

// total keeps the result on the host.
func total(xs []*tensor.Tensor) (sum float32) {
	for _, x := range xs {
		var y []float32
		if err := host.Solve(&y, x.Float32s()); err == nil {
			sum += y[0]
		}
	}
	return sum
}
