package optim_test

import (
	"fmt"
	"math"
	"testing"

	asyncrt "github.com/asyncgen/asyncgen/runtime"
	"github.com/asyncgen/asyncgen/runtime/internal/engine"
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// A course is a model with an optimiser, and what else a step does.
type course struct {
	net nn.Module
	opt *optim.Optimizer
	// before is called before each step, and after in each step, behind its Step.
	before func(i int)
	after  func(loss *tensor.Tensor)
	cells  []tensor.Cell
}

func (tr *course) step(in ...*tensor.Tensor) []*tensor.Tensor {
	loss := nn.MSELoss(tr.net.Forward(in[0]), in[1])
	tr.opt.ZeroGrad()
	loss.Backward()
	optim.ClipNorm(nn.Params(tr.net), 1)
	tr.opt.Step()
	if tr.after != nil {
		tr.after(loss)
	}
	return []*tensor.Tensor{loss}
}

// A step of training that is captured gives the bits of the step itself, with the rate and the number of steps of the
// day, and what the optimiser remembers is the same in the end.
func TestCapturedTraining(t *testing.T) {
	type maker = func(p []*nn.Param) *optim.Optimizer
	plain := func(make maker) func(net nn.Module) *course {
		return func(net nn.Module) *course { return &course{net: net, opt: make(nn.Params(net))} }
	}
	for name, test := range map[string]struct {
		plans int
		make  func(net nn.Module) *course
	}{
		"sgd":   {2, plain(func(p []*nn.Param) *optim.Optimizer { return optim.SGD(p, 0.1) })},
		"decay": {2, plain(func(p []*nn.Param) *optim.Optimizer { return optim.SGD(p, 0.1, optim.SGDOptions{Decay: 0.1}) })},
		"momentum": {2, plain(func(p []*nn.Param) *optim.Optimizer {
			return optim.SGD(p, 0.1, optim.SGDOptions{Momentum: 0.9, Dampening: 0.5, Decay: 0.1})
		})},
		"nesterov": {2, plain(func(p []*nn.Param) *optim.Optimizer {
			return optim.SGD(p, 0.1, optim.SGDOptions{Momentum: 0.9, Nesterov: true})
		})},
		"adam":  {2, plain(func(p []*nn.Param) *optim.Optimizer { return optim.Adam(p, 0.01) })},
		"adamw": {2, plain(func(p []*nn.Param) *optim.Optimizer { return optim.AdamW(p, 0.01) })},
		"rmsprop": {2, plain(func(p []*nn.Param) *optim.Optimizer {
			return optim.RMSProp(p, 0.01, optim.RMSPropOptions{Centered: true})
		})},
		"adadelta": {2, plain(func(p []*nn.Param) *optim.Optimizer { return optim.AdaDelta(p, 1) })},
		"schedule and rate": {2, func(net nn.Module) *course {
			tr := &course{net: net, opt: optim.Adam(nn.Params(net), 0.01)}
			tr.opt.Schedule = optim.Warmup(3, optim.Cosine(9, 0.1))
			tr.before = func(i int) {
				if i == 5 {
					tr.opt.SetRate(0.05)
				}
			}
			return tr
		}},
		"group, guard and plateau": {3, func(net nn.Module) *course {
			p := nn.Params(net)
			tr := &course{net: net, opt: optim.Group(optim.SGD(p[:1], 0.1), optim.AdamW(p[1:], 0.01))}
			tr.opt.Schedule = func(step int) float64 { return 1 / float64(1+step) }
			plateau := &optim.Plateau{Patience: 1}
			tr.before = func(i int) { tr.opt.Guard, tr.opt.Plateau = i >= 4, plateau }
			tr.after = plateau.Observe
			tr.cells = plateau.Cells()
			return tr
		}},
		"averages": {3, func(net nn.Module) *course {
			tr := &course{net: net, opt: optim.SGD(nn.Params(net), 0.1)}
			ema, swa := optim.EMA(nn.Params(net), 0.9), optim.SWA(nn.Params(net))
			tr.after = func(*tensor.Tensor) { ema.Update(); swa.Update() }
			tr.cells = append(ema.Cells(), swa.Cells()...)
			return tr
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var all [2][]string
			plans := 0
			for k := range all {
				tensor.Seed(1)
				net := nn.Sequential(nn.Dense(5), nn.Tanh(), nn.Dropout(0.3), nn.BatchNorm(), nn.Dense(2))
				net.Forward(tensor.Ones(4, 3))
				tr := test.make(net)
				step := tr.step
				c := tensor.Capture(tr.step)
				if k == 1 {
					step = c.Run
				}
				var losses []*tensor.Tensor
				for i := range 10 {
					if tr.before != nil {
						tr.before(i)
					}
					losses = append(losses, step(tensor.Randn(4, 3), tensor.Randn(4, 2))...)
				}
				plans = c.Plans()
				for i, l := range losses {
					all[k] = append(all[k], fmt.Sprintf("loss %d: %x", i, math.Float32bits(l.Float32s()[0])))
				}
				for i, c := range append(append(tr.opt.Cells(), tr.cells...), tensor.DefaultGenerator()) {
					if v := c.Value(); v.DType() == tensor.Float32 {
						all[k] = append(all[k], fmt.Sprintf("cell %d: %x", i, v.Float32s()))
					} else {
						all[k] = append(all[k], fmt.Sprintf("cell %d: %v", i, v))
					}
				}
			}
			for i, want := range all[0] {
				if got := all[1][i]; got != want {
					t.Errorf("captured: %s\nwant %s", got, want)
				}
			}
			if plans != test.plans && engine.Default().Captures() {
				t.Errorf("%d plans, want %d", plans, test.plans)
			}
		})
	}
}

// The same of models with layers of other kinds, whose parameters the first step makes, and of batches of two sizes.
func TestCapturedModels(t *testing.T) {
	by2 := tensor.Conv{Stride: tensor.Both(2)}
	for name, model := range map[string]struct {
		make func() nn.Module
		x    func(n int) *tensor.Tensor
		y    func(n int) *tensor.Tensor
	}{
		"convolutions": {
			func() nn.Module {
				return nn.Sequential(nn.Conv2D(4, tensor.Both(3), by2), nn.BatchNorm(), nn.ReLU(), nn.MaxPool2D(tensor.Pool{Window: tensor.Both(2)}), nn.Flatten(), nn.Dense(5))
			},
			func(n int) *tensor.Tensor { return tensor.Randn(n, 2, 12, 12) },
			func(n int) *tensor.Tensor { return tensor.RandInt(0, 5, n) },
		},
		"attention": {
			func() nn.Module {
				return nn.Sequential(
					nn.Embedding(9, 16),
					nn.Residual(nn.LayerNorm(), nn.MultiHeadAttention(16, 2, nn.Heads{Causal: true, Dropout: 0.1})),
					nn.Residual(nn.LayerNorm(), nn.Dense(32), nn.GELU(), nn.Dense(16)), nn.Dense(9))
			},
			func(n int) *tensor.Tensor { return tensor.RandInt(0, 9, n, 6) },
			func(n int) *tensor.Tensor { return tensor.RandInt(0, 9, n, 6) },
		},
		"bfloat16": {
			func() nn.Module { return nn.Sequential(nn.Dense(8), nn.Tanh(), nn.Dense(4)) },
			func(n int) *tensor.Tensor { return tensor.Randn(n, 3).As(tensor.BFloat16) },
			func(n int) *tensor.Tensor { return tensor.RandInt(0, 4, n) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			var all [2][]string
			for k := range all {
				tensor.Seed(1)
				net := model.make()
				var opt *optim.Optimizer
				step := func(in ...*tensor.Tensor) []*tensor.Tensor {
					loss := nn.CrossEntropy(net.Forward(in[0]), in[1])
					if opt == nil {
						opt = optim.AdamW(nn.Params(net), 0.01)
					}
					opt.Minimize(loss)
					return []*tensor.Tensor{loss}
				}
				c := tensor.Capture(step)
				if k == 1 {
					step = c.Run
				}
				var losses []*tensor.Tensor
				for i := range 9 {
					n := 4 - i%3/2
					losses = append(losses, step(model.x(n), model.y(n))...)
				}
				for i, l := range losses {
					all[k] = append(all[k], fmt.Sprintf("loss %d: %x", i, l.As(tensor.Float64).Float64s()))
				}
				for i, p := range nn.Params(net) {
					all[k] = append(all[k], fmt.Sprintf("parameter %d: %x", i, p.Value().As(tensor.Float64).Float64s()))
				}
				if n := c.Plans(); k == 1 && engine.Default().Captures() && n != 3 {
					t.Errorf("%d plans, want 3: %q", n, c.Remarks())
				}
			}
			for i, want := range all[0] {
				if got := all[1][i]; got != want {
					t.Fatalf("captured: %s\nwant %s", got, want)
				}
			}
		})
	}
}

func Example_captured() {
	tensor.Seed(1)
	net := nn.Sequential(nn.Dense(16), nn.Tanh(), nn.Dense(1))
	opt := optim.Adam(net.Params(), 0.02)
	x := tensor.Linspace(-1, 1, 64).Reshape(64, 1)
	y := x.Square()
	var losses []*tensor.Tensor

	step := asyncrt.Capture(func(in ...*tensor.Tensor) []*tensor.Tensor {
		loss := nn.MSELoss(net.Forward(in[0]), in[1])
		opt.Minimize(loss)
		return []*tensor.Tensor{loss}
	})
	for range 200 {
		losses = append(losses, step.Run(x, y)[0])
	}

	fmt.Println(losses[0].Item() > 0.1, losses[199].Item() < 0.001)
	// Output: true true
}
