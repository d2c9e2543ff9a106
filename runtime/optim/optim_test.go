package optim_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/devicetest"
	_ "github.com/asyncgen/asyncgen/device/opencl"
	asyncrt "github.com/asyncgen/asyncgen/runtime"
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

func ExampleSGD() {
	w := nn.NewParam(tensor.Scalar(0))
	opt := optim.SGD([]*nn.Param{w}, 0.25)
	for range 10 {
		opt.Minimize(w.Value().SubScalar(3).Square())
	}
	fmt.Printf("%.3f\n", w.Value())
	// Output: 2.997
}

// Training a small network gives the same as the same computation in plain Go, step by step.
func TestAgainstPlainGo(t *testing.T) {
	for _, name := range devicetest.Names(t) {
		t.Run(name, func(t *testing.T) {
			on, err := device.Open(name)
			if err != nil {
				t.Fatal(err)
			}
			const n, in, hidden, rate = 6, 3, 4, 0.05
			tensor.Seed(3)
			x, y := tensor.On(on).As(tensor.Float64).Randn(n, in), tensor.On(on).As(tensor.Float64).Randn(n, 1)
			net := nn.Sequential(nn.Dense(hidden), nn.ReLU(), nn.Dense(1))
			net.Forward(x)
			ps := net.Params()
			m := plain{n, in, hidden, x.Float64s(), y.Float64s(),
				ps[0].Value().Float64s(), ps[1].Value().Float64s(), ps[2].Value().Float64s(), ps[3].Value().Float64s()}
			opt := optim.SGD(ps, rate)
			for step := range 50 {
				loss := nn.MSELoss(net.Forward(x), y)
				opt.Minimize(loss)
				if got, want := loss.Item(), m.step(rate); math.Abs(got-want) > 1e-12 {
					t.Fatalf("step %d: the loss is %v, want %v", step, got, want)
				}
			}
			for i, want := range [][]float64{m.w1, m.b1, m.w2, m.b2} {
				for k, got := range ps[i].Value().Float64s() {
					if math.Abs(got-want[k]) > 1e-12 {
						t.Errorf("parameter %d is %v, want %v", i, got, want[k])
					}
				}
			}
		})
	}
}

// plain is a network with one hidden layer.
type plain struct {
	n, in, hidden  int
	x, y           []float64
	w1, b1, w2, b2 []float64
}

// step returns the loss and descends along its gradient.
func (m *plain) step(rate float64) float64 {
	gw1, gb1, gw2, gb2 := make([]float64, len(m.w1)), make([]float64, len(m.b1)), make([]float64, len(m.w2)), 0.0
	loss := 0.0
	for s := range m.n {
		pre, h, out := make([]float64, m.hidden), make([]float64, m.hidden), m.b2[0]
		for j := range pre {
			pre[j] = m.b1[j]
			for i := range m.in {
				pre[j] += m.x[s*m.in+i] * m.w1[i*m.hidden+j]
			}
			h[j] = max(pre[j], 0)
			out += h[j] * m.w2[j]
		}
		d := out - m.y[s]
		loss += d * d / float64(m.n)
		g := 2 * d / float64(m.n)
		gb2 += g
		for j := range pre {
			gw2[j] += g * h[j]
			if pre[j] > 0 {
				gb1[j] += g * m.w2[j]
				for i := range m.in {
					gw1[i*m.hidden+j] += g * m.w2[j] * m.x[s*m.in+i]
				}
			}
		}
	}
	for i := range gw1 {
		m.w1[i] -= rate * gw1[i]
	}
	for j := range gw2 {
		m.b1[j] -= rate * gb1[j]
		m.w2[j] -= rate * gw2[j]
	}
	m.b2[0] -= rate * gb2
	return loss
}

// An average that keeps nothing is its latest element, also if that is tiny beside the one before.
func TestAveragesThatKeepNothing(t *testing.T) {
	const rate, eps = 0.5, 1e-6
	gradients := []float64{300, 0.01, -0.02, 4}
	ratio := func(_, g float64) float64 { return g / (math.Abs(g) + eps) }
	for name, c := range map[string]struct {
		opt  func(ps []*nn.Param) *optim.Optimizer
		step func(before, g float64) float64 // from the step before and the gradient
	}{
		"Adam": {func(ps []*nn.Param) *optim.Optimizer {
			return optim.Adam(ps, rate, optim.AdamOptions{Beta1: optim.None, Beta2: optim.None, Eps: eps})
		}, ratio},
		"AdamW": {func(ps []*nn.Param) *optim.Optimizer {
			return optim.AdamW(ps, rate, optim.AdamOptions{Beta1: optim.None, Beta2: optim.None, Eps: eps, Decay: optim.None})
		}, ratio},
		"RMSProp": {func(ps []*nn.Param) *optim.Optimizer {
			return optim.RMSProp(ps, rate, optim.RMSPropOptions{Alpha: optim.None, Eps: eps})
		}, ratio},
		"AdaDelta": {func(ps []*nn.Param) *optim.Optimizer {
			return optim.AdaDelta(ps, rate, optim.AdaDeltaOptions{Rho: optim.None, Eps: eps})
		}, func(before, g float64) float64 { return math.Sqrt(before*before+eps) / math.Sqrt(g*g+eps) * g }},
	} {
		for _, guard := range []bool{false, true} {
			p := nn.NewParam(tensor.Zeros(1))
			opt := c.opt([]*nn.Param{p})
			opt.Guard = guard
			at, step := 0.0, 0.0
			for i, g := range gradients {
				p.SetGrad(tensor.Full(g, 1))
				opt.Step()
				step = c.step(step, g)
				at -= rate * step
				if got := p.Value().Item(); math.Abs(got-at) > 1e-5 {
					t.Errorf("%s, guard %v: after step %d the parameter is %v, want %v", name, guard, i, got, at)
				}
			}
		}
	}
	p := nn.NewParam(tensor.Full(300, 1))
	average := optim.EMA([]*nn.Param{p}, 0)
	for _, v := range []float64{300, 1e-6} {
		p.Set(tensor.Full(v, 1))
		average.Update()
	}
	average.Swap()
	if got := float32(p.Value().Item()); got != 1e-6 {
		t.Errorf("the average is %v, want 1e-6", got)
	}
}

// Step, ZeroGrad and Minimize, one by one; a parameter without a gradient stays as it is.
func TestSteps(t *testing.T) {
	w, idle := nn.NewParam(tensor.From([]float64{1, 2})), nn.NewParam(tensor.From([]float64{7}))
	opt := optim.SGD([]*nn.Param{w, idle}, 0.5)
	w.Value().Sum().Backward()
	w.Value().Sum().Backward() // adds up
	opt.Step()
	if got := w.Value().Float64s(); !slices.Equal(got, []float64{0, 1}) {
		t.Errorf("after Step: %v", got)
	}
	opt.Minimize(w.Value().Sum()) // forgets the gradients before
	if got := w.Value().Float64s(); !slices.Equal(got, []float64{-0.5, 0.5}) {
		t.Errorf("after Minimize: %v", got)
	}
	opt.ZeroGrad()
	opt.Step()
	if got := w.Value().Float64s(); !slices.Equal(got, []float64{-0.5, 0.5}) || idle.Value().Item() != 7 {
		t.Errorf("a step without gradients changed something: %v", got)
	}
}

// A loop of training enqueues and never waits.
func TestNoWaits(t *testing.T) {
	on, err := device.Open("sim:0")
	if err != nil {
		t.Fatal(err)
	}
	net := nn.Sequential(nn.Dense(4), nn.ReLU(), nn.Dense(1))
	opt := optim.SGD(net.Params(), 0.1)
	x, y := tensor.On(on).Randn(8, 3), tensor.On(on).Randn(8, 1)
	before := asyncrt.Stats()
	for range 20 {
		opt.Minimize(nn.MSELoss(net.Forward(x), y))
	}
	if after := asyncrt.Stats(); after.Waits != before.Waits || after.Enqueued-before.Enqueued < 20*15 {
		t.Errorf("%d waits, %d operations", after.Waits-before.Waits, after.Enqueued-before.Enqueued)
	}
	if err := asyncrt.WaitAll(); err != nil {
		t.Error(err)
	}
}

// Parameters move against their gradients, or not at all.
func TestRates(t *testing.T) {
	some := []*nn.Param{nn.NewParam(nil)}
	opt := optim.SGD(some, 0)
	for _, rate := range []float64{-0.1, math.NaN(), math.Inf(1), math.Inf(-1)} {
		for name, f := range map[string]func(){"SGD": func() { optim.SGD(some, rate) }, "SetRate": func() { opt.SetRate(rate) }} {
			func() {
				defer func() {
					want := fmt.Sprintf("optim: %s: the learning rate is %v, want a number from 0 on", name, rate)
					if m, ok := recover().(*tensor.Mistake); !ok || m.Error() != want {
						t.Errorf("got  %v\nwant %s", m, want)
					}
				}()
				f()
			}()
		}
	}
	if opt.Rate() != 0 {
		t.Errorf("a rate that was refused is set: %v", opt.Rate())
	}
}
