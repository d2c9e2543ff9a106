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

// slowNorm reads in its loop over the parameters, and is part of a step all the same.
func slowNorm(params []*tensor.Param) (sum float64) {
	for _, p := range params {
		sum += p.Value().Norm().Item()
	}
	return sum
}

// validate reads after a loop over data: a loop over epochs may call it, but not one
// that takes the steps.
func validate(held []Batch) float64 { return total(held) }

func beside(data, held []Batch, params []*tensor.Param, opt *optim.Optimizer) {
	for _, b := range data {
		if norm := slowNorm(params); norm > 10 { // want `slowNorm waits for the device in each iteration`
			opt.SetRate(opt.Rate() / norm)
		}
		opt.Minimize(b.X.MatMul(params[0].Value()).Sum())
		if v := validate(held); v < 1 { // want `validate waits for the device in each iteration`
			println(v)
		}
	}
	for i, b := range data {
		opt.Minimize(b.X.MatMul(params[0].Value()).Sum())
		if i%100 == 0 {
			println(validate(held))
		}
	}
	for range 100 {
		for _, b := range data {
			opt.Minimize(b.X.MatMul(params[0].Value()).Sum())
		}
		println(slowNorm(params), validate(held))
	}
	for range 100 {
		opt.Minimize(data[0].X.MatMul(params[0].Value()).Sum()) // all data, a step an epoch
		println(validate(held))
	}
}

// normsAmong looks for parameters among other things.
func normsAmong(things []any) (norms []float64) {
	for _, p := range params(things) {
		norms = append(norms, p.Value().Norm().Item())
	}
	return norms
}

func params(things []any) (list []*tensor.Param) {
	for _, t := range things {
		if p, ok := t.(*tensor.Param); ok {
			list = append(list, p)
		}
	}
	return list
}

// firstNorm asks the first thing only, if it is a parameter. Whether it is, callers know; whether it is noted, they don't.
func firstNorm(things []any) float64 {
	if p, ok := things[0].(*tensor.Param); ok {
		return p.Value().Norm().Item()
	}
	return 0
}

func notedNorm(p *tensor.Param, noted map[string]bool) float64 {
	if _, ok := noted["norm"]; ok {
		return p.Value().Norm().Item()
	}
	return 0
}

func among(data []Batch, things []any, noted map[string]bool, p *tensor.Param, opt *optim.Optimizer) {
	for _, b := range data {
		opt.Minimize(b.X.MatMul(p.Value()).Sum())
		println(firstNorm(things))       // want `firstNorm waits for the device in each iteration`
		println(len(normsAmong(things))) // want `normsAmong waits for the device in each iteration`
		println(notedNorm(p, noted))
	}
}
