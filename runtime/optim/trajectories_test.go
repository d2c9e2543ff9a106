package optim_test

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/devicetest"
	"github.com/asyncgen/asyncgen/internal/turns"
	asyncrt "github.com/asyncgen/asyncgen/runtime"
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// What PyTorch computes; testdata/trajectories.py wrote it.
//
//go:embed testdata/trajectories.json
var fixtures []byte

type trajectories struct {
	X, Y, Start      []float64
	Kept             []int // the steps after which Float64 and Float32 have the parameters, for each case
	Float64, Float32 map[string][][]float64
	Schedules        map[string][]float64
	Losses           []*float64
	Plateaus         map[string][]float64
}

func load(t *testing.T) (f trajectories) {
	t.Helper()
	if err := json.Unmarshal(fixtures, &f); err != nil {
		t.Fatal(err)
	}
	return f
}

// A training is one of the cases of trajectories.py: how to train its network.
type training struct {
	opt  *optim.Optimizer
	clip func(params []*nn.Param)
	avg  *optim.Average
}

type maker = func(ps []*nn.Param) training

func sgd(rate float64, o ...optim.SGDOptions) maker {
	return func(ps []*nn.Param) training { return training{opt: optim.SGD(ps, rate, o...)} }
}

func adam(rate float64, o ...optim.AdamOptions) maker {
	return func(ps []*nn.Param) training { return training{opt: optim.Adam(ps, rate, o...)} }
}

func adamW(rate float64, o ...optim.AdamOptions) maker {
	return func(ps []*nn.Param) training { return training{opt: optim.AdamW(ps, rate, o...)} }
}

func rmsProp(rate float64, o ...optim.RMSPropOptions) maker {
	return func(ps []*nn.Param) training { return training{opt: optim.RMSProp(ps, rate, o...)} }
}

func adaDelta(rate float64, o ...optim.AdaDeltaOptions) maker {
	return func(ps []*nn.Param) training { return training{opt: optim.AdaDelta(ps, rate, o...)} }
}

// trainings are the cases of trajectories.py, by name.
var trainings = map[string]maker{
	"SGD":                          sgd(0.1),
	"SGD decay":                    sgd(0.1, optim.SGDOptions{Decay: 0.1}),
	"SGD momentum":                 sgd(0.05, optim.SGDOptions{Momentum: 0.9}),
	"SGD momentum decay":           sgd(0.05, optim.SGDOptions{Momentum: 0.9, Decay: 0.1}),
	"SGD momentum dampening":       sgd(0.05, optim.SGDOptions{Momentum: 0.9, Dampening: 0.5}),
	"SGD momentum dampening decay": sgd(0.05, optim.SGDOptions{Momentum: 0.9, Dampening: 0.5, Decay: 0.1}),
	"SGD Nesterov":                 sgd(0.05, optim.SGDOptions{Momentum: 0.9, Nesterov: true}),
	"SGD Nesterov decay":           sgd(0.05, optim.SGDOptions{Momentum: 0.9, Nesterov: true, Decay: 0.1}),
	"Adam":                         adam(0.05),
	"Adam options":                 adam(0.05, optim.AdamOptions{Beta1: 0.8, Beta2: 0.95, Eps: 1e-3}),
	"Adam no betas":                adam(0.05, optim.AdamOptions{Beta1: optim.None, Beta2: optim.None}),
	"Adam decay":                   adam(0.05, optim.AdamOptions{Decay: 0.1}),
	"AdamW":                        adamW(0.05),
	"AdamW options":                adamW(0.05, optim.AdamOptions{Beta1: 0.8, Beta2: 0.95, Eps: 1e-3, Decay: 0.3}),
	"AdamW no decay":               adamW(0.05, optim.AdamOptions{Decay: optim.None}),
	"RMSProp":                      rmsProp(0.01),
	"RMSProp options":              rmsProp(0.01, optim.RMSPropOptions{Alpha: 0.9, Eps: 1e-3}),
	"RMSProp decay":                rmsProp(0.01, optim.RMSPropOptions{Decay: 0.1}),
	"RMSProp momentum":             rmsProp(0.01, optim.RMSPropOptions{Momentum: 0.8}),
	"RMSProp centered":             rmsProp(0.01, optim.RMSPropOptions{Alpha: 0.9, Centered: true}),
	"RMSProp all":                  rmsProp(0.01, optim.RMSPropOptions{Alpha: 0.9, Centered: true, Momentum: 0.8, Decay: 0.1}),
	"AdaDelta":                     adaDelta(1),
	"AdaDelta options":             adaDelta(0.5, optim.AdaDeltaOptions{Rho: 0.8, Eps: 1e-3, Decay: 0.1}),
	"groups": func(ps []*nn.Param) training {
		return training{opt: optim.Group(
			optim.AdamW([]*nn.Param{ps[0], ps[2]}, 0.05, optim.AdamOptions{Decay: 0.2}),
			optim.AdamW([]*nn.Param{ps[1], ps[3]}, 0.1, optim.AdamOptions{Decay: optim.None}),
		)}
	},
	"ClipNorm": func(ps []*nn.Param) training {
		clip := func(ps []*nn.Param) { tensor.Dead(optim.ClipNorm(ps, 0.5)) }
		return training{opt: optim.SGD(ps, 0.05, optim.SGDOptions{Momentum: 0.9}), clip: clip}
	},
	"ClipValue": func(ps []*nn.Param) training {
		clip := func(ps []*nn.Param) { optim.ClipValue(ps, 0.1) }
		return training{opt: optim.SGD(ps, 0.05, optim.SGDOptions{Momentum: 0.9}), clip: clip}
	},
	"schedule": func(ps []*nn.Param) training {
		opt := optim.AdamW(ps, 0.05)
		opt.Schedule = optim.Cosine(25, 0.1)
		return training{opt: opt}
	},
	"EMA": func(ps []*nn.Param) training { return training{opt: optim.Adam(ps, 0.05), avg: optim.EMA(ps, 0.9)} },
	"SWA": func(ps []*nn.Param) training { return training{opt: optim.Adam(ps, 0.05), avg: optim.SWA(ps)} },
}

// A network is that of trajectories.py.
type network struct {
	x, y *tensor.Tensor
	ps   []*nn.Param
}

func newNetwork(f trajectories, on device.Device, dt tensor.DType) *network {
	from := func(data []float64, shape ...int) *tensor.Tensor { return tensor.FromOn(on, data, shape...).As(dt) }
	n := &network{x: from(f.X, 5, 2), y: from(f.Y, 5, 1)}
	at := 0
	for _, shape := range [][]int{{2, 3}, {3}, {3, 1}, {1}} {
		size := device.Shape(shape).Size()
		n.ps = append(n.ps, nn.NewParam(from(f.Start[at:at+size], shape...)))
		at += size
	}
	return n
}

func (n *network) loss() *tensor.Tensor {
	hidden := n.x.MatMul(n.ps[0].Value()).Add(n.ps[1].Value()).Tanh()
	return nn.MSELoss(hidden.MatMul(n.ps[2].Value()).Add(n.ps[3].Value()), n.y)
}

// step takes a step of a training.
func (n *network) step(r training) {
	r.opt.ZeroGrad()
	n.loss().Backward()
	if r.clip != nil {
		r.clip(n.ps)
	}
	r.opt.Step()
	if r.avg != nil {
		r.avg.Update()
	}
}

// flat returns the elements of the parameters, or of their averages if there are any, as one tensor.
func (n *network) flat(avg *optim.Average) *tensor.Tensor {
	if avg != nil {
		avg.Swap()
		defer avg.Swap()
	}
	var all []*tensor.Tensor
	for _, p := range n.ps {
		all = append(all, p.Value().Detach().Flatten())
	}
	return tensor.Concat(0, all...)
}

// run trains and returns the parameters after the steps that are kept. It reads at the end only.
func run(f trajectories, on device.Device, dt tensor.DType, make maker, guard bool) (kept [][]float64) {
	n := newNetwork(f, on, dt)
	r := make(n.ps)
	r.opt.Guard = guard
	var at []*tensor.Tensor
	for step := 1; step <= 20; step++ {
		n.step(r)
		if slices.Contains(f.Kept, step) {
			at = append(at, n.flat(r.avg))
		}
	}
	for _, x := range at {
		kept = append(kept, x.As(tensor.Float64).Float64s())
	}
	return kept
}

// Every optimiser takes the steps that PyTorch takes. In float64 the parameters differ by less than 1e-13 after 20
// steps; in float32 by less than 5e-6, some ten roundings of the greatest parameter, 3.6. All devices give the same
// bits, and a guard that finds nothing changes none.
func TestTrajectories(t *testing.T) {
	turns.Take(t)
	f := load(t)
	if len(trainings) != len(f.Float64) {
		t.Errorf("%d cases, and %d in the file", len(trainings), len(f.Float64))
	}
	for name, make := range trainings {
		for _, c := range []struct {
			dt        tensor.DType
			want      [][]float64
			tolerance float64
		}{{tensor.Float64, f.Float64[name], 1e-13}, {tensor.Float32, f.Float32[name], 5e-6}} {
			what := fmt.Sprintf("%s, %v", name, c.dt)
			var first [][]float64
			for _, d := range devicesFor(t, name) {
				on, err := device.Open(d)
				if err != nil {
					t.Fatal(err)
				}
				got := run(f, on, c.dt, make, false)
				if first == nil {
					first = got
				}
				same(t, what+" on "+d, got, first)
				same(t, what+" with a guard on "+d, run(f, on, c.dt, make, true), first)
			}
			worst := 0.0
			for i, want := range c.want {
				for k, w := range want {
					worst = max(worst, math.Abs(first[i][k]-w))
					if !(math.Abs(first[i][k]-w) < c.tolerance) {
						t.Errorf("%s: after step %d, element %d is %v, want %v", what, f.Kept[i], k, first[i][k], w)
					}
				}
			}
			t.Logf("%s: the greatest difference is %.2g", what, worst)
		}
	}
}

// devicesFor is devicetest.Names for one of trainings. Devices of OpenCL, whose compilers take long for each kernel,
// only train without options.
func devicesFor(t *testing.T, name string) []string {
	all := devicetest.Names(t)
	if strings.Contains(name, " ") {
		all = slices.DeleteFunc(all, func(d string) bool { return strings.HasPrefix(d, "opencl") })
	}
	return all
}

// same fails unless the bits are equal.
func same(t *testing.T, what string, got, want [][]float64) {
	t.Helper()
	if !slices.EqualFunc(got, want, slices.Equal[[]float64]) {
		t.Errorf("%s: got\n%v\nwant\n%v", what, got, want)
	}
}

// Schedules have the rates of PyTorch, and then stay where they are.
func TestSchedules(t *testing.T) {
	f := load(t)
	schedules := map[string]optim.Schedule{
		"StepDecay":            optim.StepDecay(7, 0.5),
		"Milestones":           optim.Milestones(0.5, 10, 3, 11, 30),
		"Exponential":          optim.Exponential(0.9),
		"Linear":               optim.Linear(0.25, 0.75, 20),
		"Cosine":               optim.Cosine(40, 0.1),
		"CosineRestarts":       optim.CosineRestarts(5, 2, 0.1),
		"CosineRestarts equal": optim.CosineRestarts(7, 1, 0.1),
		"OneCycle":             optim.OneCycle(41),
		"Warmup":               optim.Warmup(8, optim.Exponential(0.9)),
	}
	if len(schedules) != len(f.Schedules) {
		t.Errorf("%d schedules, and %d in the file", len(schedules), len(f.Schedules))
	}
	for name, s := range schedules {
		for step, want := range f.Schedules[name] {
			if got := s(step); math.Abs(got-want) > 1e-12 {
				t.Errorf("%s: %v at step %d, want %v", name, got, step, want)
			}
		}
	}
	for name, c := range map[string]struct {
		s    optim.Schedule
		step int
		want float64
	}{
		"Linear, end":     {optim.Linear(1, 0.5, 4), 100, 0.5},
		"Cosine, end":     {optim.Cosine(4, 0.25), 100, 0.25},
		"OneCycle, end":   {optim.OneCycle(10), 100, 1.0 / 250000},
		"OneCycle, 1":     {optim.OneCycle(1), 0, 1.0 / 250000},
		"OneCycle, 2":     {optim.OneCycle(2), 1, 1.0 / 250000},
		"Warmup, no more": {optim.Warmup(3, nil), 7, 1},
		// the third one is too long for an int
		"Restarts, far": {optim.CosineRestarts(1, 1<<40, 0), 1 + 1<<62, (1 + math.Cos(math.Pi/(1<<18))) / 2},
		"Every":         {optim.Exponential(0.5).Every(10), 29, 0.25},
		"Milestones, 0": {optim.Milestones(0.5), 29, 1},
	} {
		if got := c.s(c.step); math.Abs(got-c.want) > 1e-15 {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// A Plateau has the rates of PyTorch after every loss, and nothing waits for the losses.
func TestPlateau(t *testing.T) {
	f := load(t)
	plateaus := map[string]optim.Plateau{
		"default":   {},
		"patience":  {Patience: 2, Factor: 0.5},
		"none":      {Patience: optim.None, Factor: 0.5},
		"cooldown":  {Patience: 1, Factor: 0.5, Cooldown: 3},
		"threshold": {Patience: 2, Factor: 0.5, Threshold: 0.2, Min: 0.2},
		"greater":   {Patience: 1, Factor: 0.5, Greater: true},
	}
	if len(plateaus) != len(f.Plateaus) {
		t.Errorf("%d cases, and %d in the file", len(plateaus), len(f.Plateaus))
	}
	on, err := device.Open("sim:0")
	if err != nil {
		t.Fatal(err)
	}
	for name, p := range plateaus {
		var scales []*tensor.Tensor
		withoutWaits(t, func() {
			for _, loss := range f.Losses {
				v := math.NaN()
				if loss != nil {
					v = *loss
				}
				p.Observe(tensor.On(on).As(tensor.Float64).Full(v, 1, 1))
				scales = append(scales, p.Scale())
			}
		})
		for i, want := range f.Plateaus[name] {
			if got := scales[i].Item(); math.Abs(got-want) > 1e-15 {
				t.Errorf("%s: the scale is %v after loss %d, want %v", name, got, i, want)
			}
		}
	}
}

// withoutWaits fails if f waits, or would have to wait.
func withoutWaits(t *testing.T, f func()) {
	t.Helper()
	defer asyncrt.SyncMode(asyncrt.SyncMode(asyncrt.Error))
	before := asyncrt.Stats().Waits
	f()
	if n := asyncrt.Stats().Waits - before; n != 0 {
		t.Errorf("%d waits", n)
	}
}
