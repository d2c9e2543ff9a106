package loopdata

import "github.com/asyncgen/asyncgen/runtime/tensor"

// Variables that are set to each other.

func cycles(xs []*tensor.Tensor, weights []float32, n int) (ys []*tensor.Tensor) {
	var a, b []float32
	for i := range xs {
		xs[i] = xs[i].MulScalar(2)
		weights = append(weights[:0], weights...)
		a = append(b[:0:0], b...)
		b = append(a[:0:0], a...)
		ys = append(ys, xs[i].Add(tensor.From(weights)), xs[0].MatMul(xs[1]), tensor.From(a), tensor.From(b[:len(a)]))
	}
	for range n {
		var c, d []float32
		c = d[:len(d)]
		d = c[:len(c)]
		ys = append(ys, tensor.From(c), tensor.From(d))
	}
	return ys
}
