package optim_test

import (
	"math"
	"slices"
	"testing"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// Steps of parameters of half types are steps in float32, rounded once: nothing is lost in averages, and gradients that
// are small or 0 make nothing NaN.
func TestHalfTypes(t *testing.T) {
	for name, make := range map[string]func(params []*nn.Param) *optim.Optimizer{
		"SGD": func(params []*nn.Param) *optim.Optimizer { return optim.SGD(params, 0.1) },
		"SGD with all": func(params []*nn.Param) *optim.Optimizer {
			return optim.SGD(params, 0.1, optim.SGDOptions{Momentum: 0.9, Nesterov: true, Decay: 0.1})
		},
		"Adam":     func(params []*nn.Param) *optim.Optimizer { return optim.Adam(params, 0.1) },
		"AdamW":    func(params []*nn.Param) *optim.Optimizer { return optim.AdamW(params, 0.1) },
		"RMSProp":  func(params []*nn.Param) *optim.Optimizer { return optim.RMSProp(params, 0.1) },
		"AdaDelta": func(params []*nn.Param) *optim.Optimizer { return optim.AdaDelta(params, 1) },
	} {
		for _, dt := range []device.DType{tensor.Float16, tensor.BFloat16} {
			for _, guard := range []bool{false, true} {
				g := tensor.NewGenerator(3)
				half, single := nn.NewParam(g.Randn(50).As(dt)), nn.NewParam(tensor.Zeros(50))
				ours, theirs := make([]*nn.Param{half}), make([]*nn.Param{single})
				ours.Guard, theirs.Guard = guard, guard
				scales := tensor.From([]float32{0, 1e-6, 1e-3, 1, 60}).BroadcastTo(10, 5).Flatten()
				for step := range 4 {
					gradient := g.Randn(50).Mul(scales).As(dt)
					half.SetGrad(gradient)
					single.Set(half.Value().Detach().As(tensor.Float32))
					single.SetGrad(gradient.As(tensor.Float32))
					ours.Step()
					theirs.Step()
					got, want := half.Value(), single.Value().As(dt)
					if got.DType() != dt || !slices.Equal(got.As(tensor.Float64).Float64s(), want.As(tensor.Float64).Float64s()) {
						t.Fatalf("%s of %v, guard %v, step %d: %v, want %v", name, dt, guard, step, got, want)
					}
				}
			}
		}
	}
}

// The norm of gradients of float16 may be greater than a float16 is.
func TestClipNormOfHalfTypes(t *testing.T) {
	p := nn.NewParam(tensor.On(device.CPU()).As(tensor.Float16).Ones(4))
	p.SetGrad(tensor.From([]float32{60000, 60000, 0, -60000}).As(tensor.Float16))
	if norm := optim.ClipNorm([]*nn.Param{p}, 3).Item(); math.Abs(norm-60000*math.Sqrt(3)) > 60 {
		t.Errorf("the norm is %v", norm)
	}
	side := math.Sqrt(3)
	for i, want := range []float64{side, side, 0, -side} {
		if got := p.Grad().At(i); math.Abs(got-want) > 0x1p-8 {
			t.Errorf("element %d is %v, want %v", i, got, want)
		}
	}
}
