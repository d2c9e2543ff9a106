package loopcall

import (
	"batch"

	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// Functions that read once, before a loop of their own.

func iterate(x *tensor.Tensor) *tensor.Tensor {
	n := int(x.Sum().Item())
	for range n {
		x = x.MulScalar(0.5)
	}
	return x
}

func scaled(x *tensor.Tensor, data []Batch, opt *optim.Optimizer) {
	scale := norm(x)
	for _, b := range data {
		opt.Minimize(batch.Loss(w, b).MulScalar(scale))
	}
}

func norm(x *tensor.Tensor) float64 { return x.Norm().Item() }

func branched(x *tensor.Tensor) *tensor.Tensor {
	if x.Sum().Item() < 0 {
		return x
	}
	for range 100 {
		x = x.MulScalar(0.5)
	}
	return x
}

func before(xs []*tensor.Tensor, data []Batch, opt *optim.Optimizer) (ys []*tensor.Tensor) {
	for _, x := range xs {
		ys = append(ys, iterate(x), branched(x))
	}
	for _, x := range xs {
		scaled(x, data, opt)
	}
	for _, x := range xs {
		x = x.AddScalar(1)
		ys = append(ys, iterate(x))
	}
	return ys
}

// Reported: a loop of three iterations, and one that updates parameters.

func few(x *tensor.Tensor) *tensor.Tensor {
	n := x.Sum().Item()
	for range 3 {
		x = x.MulScalar(n)
	}
	return x
}

func updated(b Batch, params []*tensor.Param) float64 {
	loss := batch.Loss(w, b)
	v := loss.Item()
	for _, p := range params {
		p.Set(p.Value().MulScalar(0.9))
	}
	return v
}

func steps(data []Batch, params []*tensor.Param) (total float64) {
	for _, b := range data {
		total += updated(b, params) // want `updated waits`
	}
	return total
}

func waits(xs []*tensor.Tensor) (ys []*tensor.Tensor) {
	for _, x := range xs {
		ys = append(ys, few(x)) // want `few waits`
	}
	return ys
}
