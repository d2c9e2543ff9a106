package rowwise

import (
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

func unbound(net nn.Module, x *tensor.Tensor) *tensor.Tensor {
	var ys []*tensor.Tensor
	for _, row := range x.Unbind(0) {
		ys = append(ys, net.Forward(row.Unsqueeze(0))) // want `net.Forward takes one row of x in each iteration`
	}
	return tensor.Concat(0, ys...)
}

func inverses(a, b *tensor.Tensor) *tensor.Tensor {
	ys := make([]*tensor.Tensor, a.Dim(0))
	for i := range ys {
		ys[i] = a.Index(tensor.At(i)).Inverse().MatMul(b) // want `Inverse takes one row of a`
	}
	return tensor.Stack(0, ys...)
}

// chained needs each result for the next.
func chained(net nn.Module, x, h *tensor.Tensor) *tensor.Tensor {
	for _, row := range x.Unbind(0) {
		h = net.Forward(row.Add(h))
	}
	return h
}
