package loopcall

import (
	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// gradNorm goes through the parameters of a model, which is one computation and
// no epoch.
func gradNorm(params []*tensor.Param) float64 {
	sum := tensor.Zeros()
	for _, p := range params {
		g := p.Value().Detach()
		sum = sum.Add(g.Dot(g))
	}
	return sum.Item()
}

// total goes through data.
func total(data []Batch) float64 {
	sum := tensor.Zeros()
	for _, b := range data {
		sum = sum.Add(b.X.MatMul(w).Sum())
	}
	return sum.Item()
}

func clipped(data []Batch, params []*tensor.Param, opt *optim.Optimizer) {
	for _, b := range data {
		loss := b.X.MatMul(params[0].Value()).Sum()
		if gradNorm(params) > 10 { // want `blocking call in loop: gradNorm waits for the device in each iteration \(sum.Item\(\) at parts.go:16\)`
			opt.SetRate(opt.Rate() / 2)
		}
		opt.Minimize(loss)
	}
	for range data {
		println(total(data))
	}
}
