package nn_test

import (
	"fmt"
	"maps"
	"math"
	"testing"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// halves are the types of 16 bits, with the distance between 1 and the next number.
var halves = map[device.DType]float64{tensor.Float16: 0x1p-10, tensor.BFloat16: 0x1p-7}

// inHalf runs f for both types of 16 bits.
func inHalf(t *testing.T, f func(t *testing.T, dt device.DType, unit float64)) {
	for dt, unit := range halves {
		t.Run(dt.String(), func(t *testing.T) { f(t, dt, unit) })
	}
}

// rounded returns x with elements that are numbers of the type dt, as float32. What is no float is returned as it is.
func rounded(x *tensor.Tensor, dt device.DType) *tensor.Tensor {
	if !x.DType().IsFloat() {
		return x
	}
	return x.As(dt).As(tensor.Float32)
}

// as returns x in the type dt, if it is a float.
func as(x *tensor.Tensor, dt device.DType) *tensor.Tensor {
	if !x.DType().IsFloat() {
		return x
	}
	return x.As(dt)
}

// near checks that got, of the type dt, is want within so many units of its greatest element, or of 1.
func near(t *testing.T, what string, got, want *tensor.Tensor, dt device.DType, units float64) {
	t.Helper()
	if got == nil || want == nil {
		if got != want {
			t.Errorf("%s is %v, want %v", what, got, want)
		}
		return
	}
	if want.DType().IsFloat() && got.DType() != dt || !got.Shape().Equal(want.Shape()) {
		t.Fatalf("%s is %v%v, want %v%v", what, got.DType(), got.Shape(), dt, want.Shape())
	}
	g, w := got.As(tensor.Float64).Flatten().Float64s(), want.As(tensor.Float64).Flatten().Float64s()
	most := 0.0
	for _, v := range w {
		most = max(most, math.Abs(v))
	}
	for i, v := range w {
		if limit := units * halves[dt] * max(most, 1); !(math.Abs(g[i]-v) <= limit) {
			t.Errorf("%s: element %d is %v, want %v within %v", what, i, g[i], v, limit)
			return
		}
	}
}

// pairInHalf returns m with cells that are numbers of the type dt, and a clone with cells of that type.
func pairInHalf(m nn.Module, dt device.DType) (single, half nn.Module) {
	for _, c := range nn.Named(m) {
		c.Set(rounded(c.Value().Detach(), dt))
	}
	half = nn.Clone(m)
	for _, c := range nn.Named(half) {
		c.Set(as(c.Value().Detach(), dt))
	}
	return m, half
}

// Layers of half types give, of the same numbers, what layers of float32 give: results, gradients, running
// statistics. So do their frozen forms.
func TestLayersInHalf(t *testing.T) {
	inHalf(t, func(t *testing.T, dt device.DType, _ float64) {
		each(t, func(t *testing.T, k kind, _ nn.Module, _ *tensor.Tensor) {
			tensor.Seed(3)
			m, g := k.make(), tensor.NewGenerator(4)
			x := rounded(k.input(g), dt)
			m.Forward(x)
			for _, p := range m.Params() { // not at 0, where biases begin
				p.Set(p.Value().Add(g.Randn(p.Value().Shape()...).MulScalar(0.3)))
			}
			single, half := pairInHalf(m, dt)
			run := func(m nn.Module, x *tensor.Tensor) (y, gradient *tensor.Tensor) {
				again(func() *tensor.Tensor {
					if x.DType().IsFloat() {
						x = x.Track()
					}
					y = m.Forward(x)
					loss := y.As(tensor.Float32).AddScalar(0.3).Square().Sum()
					if x.DType().IsFloat() {
						gradient = tensor.Grad(loss, x)[0]
					}
					if len(m.Params()) > 0 {
						loss.Backward()
					}
					return loss
				})
				return y, gradient
			}
			y, gradient := run(single, x)
			yHalf, gradientHalf := run(half, as(x, dt))
			near(t, "the result", yHalf, y, dt, 2)
			near(t, "the gradient of the input", gradientHalf, gradient, dt, 4)
			wants := maps.Collect(nn.Named(single))
			for name, c := range nn.Named(half) {
				if p, ok := c.(*nn.Param); ok {
					near(t, "the gradient of "+name, p.Grad(), wants[name].(*nn.Param).Grad(), dt, 4)
				} else {
					near(t, name, as(c.Value(), dt), wants[name].Value(), dt, 2)
				}
			}
			near(t, "the result in use", nn.Frozen(half).Forward(as(x, dt)), nn.Frozen(single).Forward(x), dt, 2)
		})
	})
}

// Losses of half types, and their gradients, are those of float32 rounded.
func TestLossesInHalf(t *testing.T) {
	inHalf(t, func(t *testing.T, dt device.DType, _ float64) {
		g := tensor.NewGenerator(6)
		scores, others, probabilities := g.Randn(6, 5), g.Randn(6, 5), g.Rand(6, 5).MulScalar(0.9).AddScalar(0.05)
		labels, signs := tensor.From([]int64{0, 4, 2, 2, 1, 3}), tensor.From([]float32{1, -1, 1, 1, -1, -1})
		weights := g.Rand(5).AddScalar(0.5)
		cast := func(x *tensor.Tensor, as device.DType) *tensor.Tensor { return x.As(dt).As(as) }
		for _, reduction := range []nn.Reduction{nn.Mean, nn.Sum, nn.None} {
			for name, loss := range map[string]func(x *tensor.Tensor, dt device.DType) *tensor.Tensor{
				"MSE": func(x *tensor.Tensor, dt device.DType) *tensor.Tensor {
					return nn.Loss{Reduction: reduction}.MSE(x, cast(others, dt))
				},
				"L1": func(x *tensor.Tensor, dt device.DType) *tensor.Tensor {
					return nn.Loss{Reduction: reduction}.L1(x, cast(others, dt))
				},
				"Huber": func(x *tensor.Tensor, dt device.DType) *tensor.Tensor {
					return nn.Loss{Reduction: reduction, Delta: 0.75}.Huber(x, cast(others, dt))
				},
				"BCEWithLogits": func(x *tensor.Tensor, dt device.DType) *tensor.Tensor {
					return nn.Loss{Reduction: reduction, Positive: cast(weights, dt)}.BCEWithLogits(x, cast(probabilities, dt))
				},
				"BCE": func(x *tensor.Tensor, dt device.DType) *tensor.Tensor {
					return nn.Loss{Reduction: reduction}.BCE(x.Sigmoid(), cast(probabilities, dt))
				},
				"CosineEmbedding": func(x *tensor.Tensor, dt device.DType) *tensor.Tensor {
					return nn.Loss{Reduction: reduction, Margin: 0.25}.CosineEmbedding(x, cast(others, dt), cast(signs, dt))
				},
				"KLDiv": func(x *tensor.Tensor, dt device.DType) *tensor.Tensor {
					return nn.Loss{Reduction: reduction}.KLDiv(x.LogSoftmax(-1), cast(others, dt).Softmax(-1))
				},
				"CrossEntropy": func(x *tensor.Tensor, dt device.DType) *tensor.Tensor {
					return nn.Loss{Reduction: reduction}.CrossEntropy(x, labels)
				},
				"CrossEntropy with settings": func(x *tensor.Tensor, dt device.DType) *tensor.Tensor {
					return nn.Loss{Reduction: reduction, Smoothing: 0.125, Weights: cast(weights, dt), Ignore: []int64{2}}.CrossEntropy(x, labels)
				},
				"NLL": func(x *tensor.Tensor, dt device.DType) *tensor.Tensor {
					return nn.Loss{Reduction: reduction}.NLL(x.LogSoftmax(-1), labels)
				},
			} {
				run := func(as device.DType) (y, gradient *tensor.Tensor) {
					x := cast(scores, as).Track()
					y = loss(x, as)
					return y, tensor.Grad(y.Sum(), x)[0]
				}
				want, wantGradient := run(tensor.Float32)
				got, gradient := run(dt)
				near(t, fmt.Sprintf("%s, reduction %d", name, reduction), got, want, dt, 2)
				near(t, fmt.Sprintf("the gradient of %s, reduction %d", name, reduction), gradient, wantGradient, dt, 2)
			}
		}
	})
}

// A new layer has parameters in the half type of its first input, and running statistics in float32. A step of training
// changes them as a step in float32 does.
func TestStepInHalf(t *testing.T) {
	inHalf(t, func(t *testing.T, dt device.DType, _ float64) {
		tensor.Seed(2)
		g := tensor.NewGenerator(8)
		x, labels := g.Randn(8, 3, 6, 6).As(dt), g.RandInt(0, 4, 8)
		half := nn.Sequential(nn.Conv2D(4, tensor.Both(3), tensor.Conv{}), nn.BatchNorm(), nn.ReLU(), nn.Flatten(), nn.Dense(16), nn.LayerNorm(), nn.Dense(4))
		half.Forward(x)
		for name, c := range nn.Named(half) {
			want := dt
			if _, ok := c.(*nn.Buffer); ok {
				want = tensor.Float32
			}
			if got := c.Value().DType(); got != want {
				t.Errorf("%s begins as %v", name, got)
			}
		}
		single := nn.Clone(half)
		for _, c := range nn.Named(single) {
			c.Set(c.Value().Detach().As(tensor.Float32))
		}
		step := func(m nn.Module, x *tensor.Tensor) *tensor.Tensor {
			opt := optim.SGD(m.Params(), 0.125, optim.SGDOptions{Momentum: 0.875, Decay: 0.125})
			loss := nn.CrossEntropy(m.Forward(x), labels)
			loss.Backward()
			norm := optim.ClipNorm(m.Params(), 2)
			opt.Step()
			return tensor.Stack(0, loss, norm.As(loss.DType()))
		}
		near(t, "loss and norm", step(half, x), step(single, x.As(tensor.Float32)), dt, 4)
		wants := maps.Collect(nn.Named(single))
		for name, c := range nn.Named(half) {
			near(t, name, c.Value().As(dt), wants[name].Value(), dt, 1)
		}
	})
}
