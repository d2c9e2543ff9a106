package nn_test

import (
	"math"
	"slices"
	"testing"

	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

func TestNorms(t *testing.T) {
	x := tensor.From([]float64{1, 3, -2, 2, 0, 4}, 3, 2)
	for name, c := range map[string]struct {
		layer  nn.Module
		params int
		want   func(a, b float64) float64 // of a beside b
	}{
		"LayerNorm": {nn.LayerNorm(), 2, func(a, b float64) float64 { return (a - b) / 2 / math.Sqrt((a-b)*(a-b)/4+1e-5) }},
		"RMSNorm":   {nn.RMSNorm(), 1, func(a, b float64) float64 { return a / math.Sqrt((a*a+b*b)/2+1e-5) }},
	} {
		if n := len(c.layer.Params()); n != c.params || c.layer.Params()[0].IsSet() {
			t.Errorf("%s has %d parameters, or they have values before the first input", name, n)
		}
		values := x.Float64s()
		for i, got := range c.layer.Forward(x).Float64s() {
			if want := c.want(values[i], values[i^1]); math.Abs(got-want) > 1e-12 {
				t.Errorf("%s: element %d is %v, want %v", name, i, got, want)
			}
		}
		frozen := nn.Frozen(c.layer)
		before := frozen.Forward(x).Float64s()
		opt := optim.SGD(c.layer.Params(), 0.1)
		opt.Minimize(nn.MSELoss(c.layer.Forward(x), tensor.On(x.Device()).As(tensor.Float64).Zeros(3, 2)))
		if slices.Equal(c.layer.Forward(x).Float64s(), before) {
			t.Errorf("%s learns nothing", name)
		}
		if !slices.Equal(frozen.Forward(x).Float64s(), before) {
			t.Errorf("%s learns when it is frozen", name)
		}
	}
}
