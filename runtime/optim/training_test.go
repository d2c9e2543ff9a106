package optim_test

import (
	"fmt"
	"maps"
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

func Example() {
	tensor.Seed(1)
	x := tensor.Uniform(-1, 1, 64, 2)
	y := x.Square().SumKeep(1)
	net := nn.Sequential(nn.Dense(16), nn.ReLU(), nn.Dense(1))
	opt := optim.AdamW(net.Params(), 0.02, optim.AdamOptions{Decay: 0.001})
	opt.Schedule = optim.Warmup(10, optim.Cosine(190, 0.1)) // multiplies the rate
	opt.Guard = true                                        // a gradient that is NaN or infinite changes nothing
	avg := optim.EMA(net.Params(), 0.95)
	for range 200 {
		opt.ZeroGrad()
		nn.MSELoss(net.Forward(x), y).Backward()
		optim.ClipNorm(net.Params(), 1) // returns the norm, as a tensor
		opt.Step()
		avg.Update()
	}
	avg.Swap() // net has the averages; the next Swap takes them out again
	fmt.Println(nn.MSELoss(net.Forward(x), y).Item() < 0.01)
	// Output: true
}

// bits returns the bits of all cells, or nil where a cell has no value.
func bits(cells []tensor.Cell) (all [][]float64) {
	for _, c := range cells {
		if b, ok := c.(*tensor.Buffer); ok && !b.IsSet() {
			all = append(all, nil)
			continue
		}
		all = append(all, c.Value().Detach().As(tensor.Float64).Float64s())
	}
	return all
}

// From a snapshot on, and from a state that was copied by name into a new optimiser, training has the same bits.
func TestResume(t *testing.T) {
	f := load(t)
	on, err := device.Open("sim:0")
	if err != nil {
		t.Fatal(err)
	}
	for name, start := range trainings {
		for _, more := range []bool{false, true} { // with a guard, and a plateau that is about to lower the rate
			n := newNetwork(f, on, tensor.Float32)
			begin := func(n *network) training {
				r := start(n.ps)
				if more {
					r.opt.Guard = true
					r.opt.Plateau = &optim.Plateau{Patience: 1, Factor: 0.5}
				}
				return r
			}
			goOn := func(n *network, r training, steps int) {
				for range steps {
					n.step(r)
					if more {
						r.opt.Plateau.Observe(tensor.On(on).Scalar(1))
					}
				}
			}
			r := begin(n)
			cells := r.opt.Cells
			names := func(r training) map[string]tensor.Cell {
				all := maps.Collect(r.opt.State())
				if r.avg != nil {
					maps.Insert(all, r.avg.State())
				}
				return all
			}
			if r.avg != nil {
				cells = func() []tensor.Cell { return append(r.opt.Cells(), r.avg.Cells()...) }
			}
			before := tensor.Snapshot(cells()...)
			goOn(n, r, 4)
			middle, saved := tensor.Snapshot(cells()...), bits(cells())

			other := newNetwork(f, on, tensor.Float32)
			for i, p := range n.ps {
				other.ps[i].Set(p.Value())
			}
			second := begin(other)
			to := names(second)
			for key, c := range names(r) {
				if b, ok := c.(*tensor.Buffer); !ok || b.IsSet() {
					to[key].Set(c.Value())
				}
			}

			goOn(n, r, 5)
			want := bits(cells())
			if slices.EqualFunc(saved, want, slices.Equal[[]float64]) {
				t.Fatalf("%s: nothing changes: the test compares nothing", name)
			}
			middle.Restore()
			goOn(n, r, 5)
			same(t, name+": from the snapshot on", bits(cells()), want)
			before.Restore()
			goOn(n, r, 9)
			same(t, name+": from the beginning", bits(cells()), want)
			goOn(other, second, 5)
			same(t, name+": in a new optimiser", bits(second.opt.Cells()), bits(r.opt.Cells()))
		}
	}
}

// The names of states, and their order.
func TestStateNames(t *testing.T) {
	p := func() []*nn.Param { return []*nn.Param{nn.NewParam(tensor.Ones(2)), nn.NewParam(tensor.Ones(1))} }
	names := func(o *optim.Optimizer) string {
		var all []string
		for name := range o.State() {
			all = append(all, name)
		}
		for name := range o.State() { // ends when it is told to
			if name != all[0] {
				t.Errorf("begins with %s", name)
			}
			break
		}
		return strings.Join(all, " ")
	}
	watched := optim.SGD(p(), 1)
	watched.Plateau = new(optim.Plateau)
	for _, c := range []struct {
		o    *optim.Optimizer
		want string
	}{
		{optim.SGD(p(), 1), "rate steps"},
		{optim.SGD(p(), 1, optim.SGDOptions{Momentum: 0.5}), "rate steps momentum.0 momentum.1"},
		{optim.Adam(p(), 1), "rate steps mean.0 mean.1 square.0 square.1"},
		{optim.RMSProp(p(), 1), "rate steps square.0 square.1"},
		{optim.AdaDelta(p(), 1), "rate steps square.0 square.1 change.0 change.1"},
		{watched, "rate steps plateau.scale plateau.best plateau.bad"},
		{optim.Group(optim.SGD(p(), 1), optim.RMSProp(p()[:1], 1)), "steps 0.rate 0.steps 1.rate 1.steps 1.square.0"},
	} {
		if got := names(c.o); got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
}

// A step makes one command for each tensor that it computes.
func TestOneCommandForEachTensor(t *testing.T) {
	for name, want := range map[string]uint64{
		"SGD": 1, "SGD decay": 1, "SGD momentum": 2, "SGD momentum decay": 2, "SGD Nesterov": 2,
		"Adam": 3, "AdamW": 3, "AdamW options": 3, "RMSProp": 2, "AdaDelta": 4,
	} {
		n := newNetwork(load(t), device.CPU(), tensor.Float32)
		r := trainings[name](n.ps)
		n.step(r)
		n.loss().Backward()
		before := asyncrt.Stats().Enqueued
		r.opt.Step()
		if got := uint64(asyncrt.Stats().Enqueued - before); got != want*4 {
			t.Errorf("%s: %d commands for 4 parameters, want %d", name, got, want*4)
		}
	}
}

// A loop with everything in it never waits, on any device.
func TestNothingWaits(t *testing.T) {
	f := load(t)
	for _, name := range devicetest.Names(t) {
		on, err := device.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		n := newNetwork(f, on, tensor.Float32)
		opt := optim.Group(optim.AdamW(n.ps[:2], 0.01), optim.SGD(n.ps[2:], 0.1, optim.SGDOptions{Momentum: 0.9, Nesterov: true}))
		opt.Guard = true
		opt.Plateau = &optim.Plateau{Patience: 2}
		opt.Schedule = optim.Warmup(5, optim.Cosine(100, 0))
		avg := optim.SWA(n.ps)
		var norms []*tensor.Tensor
		withoutWaits(t, func() {
			for range 20 {
				opt.ZeroGrad()
				loss := n.loss()
				loss.Backward()
				norms = append(norms, optim.ClipNorm(n.ps, 1))
				optim.ClipValue(n.ps, 0.5)
				opt.Step()
				opt.Plateau.Observe(loss)
				avg.Update()
			}
			avg.Swap()
			avg.Swap()
		})
		for i, norm := range norms {
			if v := norm.Item(); !(v > 0) || math.IsInf(v, 1) {
				t.Errorf("%s: norm %d is %v", name, i, v)
			}
		}
	}
}

// A guarded step whose gradients are not finite changes no bit of parameters and buffers, and then training goes on as
// if it had not been. Adam's corrections count the step.
func TestGuard(t *testing.T) {
	f := load(t)
	for _, d := range devicetest.Names(t) {
		on, err := device.Open(d)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"SGD", "SGD decay", "SGD momentum decay", "SGD Nesterov decay", "Adam decay", "AdamW options", "RMSProp all", "AdaDelta options", "groups", "EMA"} {
			for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
				what := fmt.Sprintf("%s on %s with %v", name, d, bad)
				if !turns.Has(t, what) {
					continue
				}
				buffers := func(r training) (cells []tensor.Cell) {
					for _, c := range r.opt.Cells() {
						switch c.(type) {
						case *tensor.Param, *tensor.Buffer:
							cells = append(cells, c)
						}
					}
					return cells
				}
				spoiled := func(n *network, r training) {
					r.opt.ZeroGrad()
					n.loss().Backward()
					g := n.ps[2].Grad()
					n.ps[2].SetGrad(g.Add(tensor.On(on).Full(bad, 1, 1)))
					r.opt.Step()
				}
				n := newNetwork(f, on, tensor.Float32)
				r := trainings[name](n.ps)
				r.opt.Guard = true
				n.step(r)
				n.step(r)
				want := bits(buffers(r))
				spoiled(n, r)
				same(t, what, bits(buffers(r)), want)

				if strings.HasPrefix(name, "SGD") || strings.HasPrefix(name, "RMSProp") || strings.HasPrefix(name, "AdaDelta") {
					other := newNetwork(f, on, tensor.Float32)
					second := trainings[name](other.ps)
					other.step(second)
					other.step(second)
					other.step(second)
					n.step(r)
					same(t, what+", the step after", bits(buffers(r)), bits(buffers(second)))
				}

				n = newNetwork(f, on, tensor.Float32)
				r = trainings[name](n.ps)
				r.opt.Guard = true
				start := bits([]tensor.Cell{n.ps[0], n.ps[1], n.ps[2], n.ps[3]})
				spoiled(n, r) // the first step
				same(t, what+", at first", bits([]tensor.Cell{n.ps[0], n.ps[1], n.ps[2], n.ps[3]}), start)
				for _, b := range buffers(r)[4:] {
					for _, v := range b.Value().Float32s() {
						if v != 0 {
							t.Errorf("%s: a buffer begins with %v", what, v)
						}
					}
				}
				n.step(r)
				n.step(r)
				for _, values := range bits(buffers(r)) {
					for _, v := range values {
						if math.IsNaN(v) || math.IsInf(v, 0) {
							t.Fatalf("%s: %v afterwards", what, v)
						}
					}
				}
			}
		}
	}
	// Without the guard, the same step does spoil the parameters.
	w := nn.NewParam(tensor.Ones(2))
	opt := optim.SGD([]*nn.Param{w}, 0.1)
	opt.Minimize(w.Value().Sum().MulScalar(math.NaN()))
	if v := w.Value().Float32s()[0]; v == v {
		t.Errorf("NaN is a gradient that does nothing: %v", v)
	}
}

// A guard and a plateau hold for parameters of several element types and devices; a group's hold for all parts.
func TestScalesTravel(t *testing.T) {
	far, err := device.Open("sim:0")
	if err != nil {
		t.Fatal(err)
	}
	a := nn.NewParam(tensor.From([]float32{1, 2}))
	b := nn.NewParam(tensor.From([]float64{3}))
	c := nn.NewParam(tensor.FromOn(far, []float64{4}))
	opt := optim.Group(optim.SGD([]*nn.Param{a}, 1), optim.Group(optim.SGD([]*nn.Param{b}, 1), optim.SGD([]*nn.Param{c}, 2)))
	opt.Guard = true
	opt.Plateau = &optim.Plateau{Patience: optim.None, Factor: 0.25}
	opt.Plateau.Observe(tensor.Scalar(1))
	opt.Plateau.Observe(tensor.Scalar(1))
	give := func(ga, gb, gc float64) {
		a.SetGrad(tensor.Full(ga, 2))
		b.SetGrad(tensor.From([]float64{gb}))
		c.SetGrad(tensor.FromOn(far, []float64{gc}))
		opt.Step()
	}
	check := func(want string) {
		t.Helper()
		if got := fmt.Sprint(a.Value().Float32s(), b.Value().Float64s(), c.Value().Float64s()); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	give(1, 1, 1)
	check("[0.75 1.75] [2.75] [3.5]")
	give(1, 1, math.NaN())
	give(math.Inf(-1), 1, 1)
	check("[0.75 1.75] [2.75] [3.5]")
	opt.SetRate(4)
	if opt.Rate() != 4 {
		t.Errorf("the rate is %v", opt.Rate())
	}
	give(1, 1, 1)
	check("[-0.25 0.75] [1.75] [2.5]")
	opt.Schedule = func(step int) float64 { return float64(step) } // 4 steps before
	give(1, 1, 1)
	check("[-4.25 -3.25] [-2.25] [-1.5]")
}

// Gradients of parts of a batch add up to that of the batch.
func TestAccumulation(t *testing.T) {
	f := load(t)
	whole, parts := newNetwork(f, device.CPU(), tensor.Float64), newNetwork(f, device.CPU(), tensor.Float64)
	a, b := optim.Adam(whole.ps, 0.05), optim.Adam(parts.ps, 0.05)
	x, y := parts.x, parts.y
	for range 10 {
		a.Minimize(whole.loss())
		b.ZeroGrad()
		for _, cut := range [][2]int{{0, 2}, {2, 5}} {
			parts.x, parts.y = x.Slice(0, cut[0], cut[1]), y.Slice(0, cut[0], cut[1])
			parts.loss().MulScalar(float64(cut[1]-cut[0]) / 5).Backward()
		}
		b.Step()
	}
	want := whole.flat(nil).Float64s()
	for i, got := range parts.flat(nil).Float64s() {
		if math.Abs(got-want[i]) > 1e-13 {
			t.Errorf("element %d is %v, want %v", i, got, want[i])
		}
	}
}

// A frozen part of a model stays as it is, as does a parameter that is listed but has no gradient. One that is listed
// twice takes one step.
func TestPartsThatStay(t *testing.T) {
	body, head := nn.Dense(3), nn.Dense(1)
	x, y := tensor.Ones(2, 2), tensor.Ones(2, 1)
	head.Forward(body.Forward(x))
	net := nn.Sequential(nn.Frozen(body), head)
	opt := optim.AdamW(net.Params(), 0.1)
	was := bits([]tensor.Cell{body.Params()[0], head.Params()[0]})
	opt.Minimize(nn.MSELoss(net.Forward(x), y))
	now := bits([]tensor.Cell{net.Params()[0], head.Params()[0]})
	if !slices.Equal(was[0], now[0]) || slices.Equal(was[1], now[1]) {
		t.Errorf("from %v to %v", was, now)
	}
	late := nn.NewParam(tensor.From([]float64{1}))
	twice := nn.NewParam(tensor.From([]float64{1}))
	opt = optim.Adam([]*nn.Param{twice, late, twice}, 0.5)
	opt.Minimize(twice.Value().Sum())
	opt.Minimize(twice.Value().Sum())
	opt.Minimize(late.Value().MulScalar(7).Sum()) // its first step: all of the rate
	if a, b := twice.Value().Item(), late.Value().Item(); math.Abs(a) > 1e-7 || math.Abs(b-0.5) > 1e-7 {
		t.Errorf("%v and %v, want 0 and 0.5", a, b)
	}
}

// Norms, also of what is not finite or not there.
func TestClip(t *testing.T) {
	p := func(g ...float64) *nn.Param {
		p := nn.NewParam(tensor.From(make([]float64, len(g))))
		p.SetGrad(tensor.From(g))
		return p
	}
	a, b, none := p(3, 0), p(-4), nn.NewParam(tensor.Ones(2))
	ps := []*nn.Param{a, none, b, a}
	if norm := optim.ClipNorm(ps, 10).Item(); norm != 5 || a.Grad().Float64s()[0] != 3 {
		t.Errorf("norm %v, %v", norm, a.Grad())
	}
	if norm := optim.ClipNorm(ps, 1).Item(); norm != 5 || math.Abs(a.Grad().Float64s()[0]-0.6) > 1e-6 || math.Abs(b.Grad().Item()+0.8) > 1e-6 {
		t.Errorf("norm %v, %v, %v", norm, a.Grad(), b.Grad())
	}
	if got := optim.ClipNorm([]*nn.Param{p(0, 0)}, 0).Item(); got != 0 {
		t.Errorf("the norm of zeros is %v", got)
	}
	if got := optim.ClipNorm([]*nn.Param{none}, 1).Item(); got != 0 || none.Grad() != nil {
		t.Errorf("the norm of nothing is %v", got)
	}
	bad, other := p(math.NaN()), p(1)
	if norm := optim.ClipNorm([]*nn.Param{other, bad}, 1).Item(); !math.IsNaN(norm) || !math.IsNaN(other.Grad().Item()) {
		t.Errorf("norm %v", norm)
	}
	c := p(-3, -0.5, 0, 2, math.Inf(1), math.NaN())
	optim.ClipValue([]*nn.Param{c, none}, 1)
	if got := fmt.Sprint(c.Grad().Float64s()); got != "[-1 -0.5 0 1 1 NaN]" {
		t.Errorf("got %s", got)
	}
	mixed := nn.NewParam(tensor.Ones(1))
	mixed.SetGrad(tensor.Full(4, 1))
	three := p(3)
	if norm := optim.ClipNorm([]*nn.Param{three, mixed}, 2.5); norm.Item() != 5 || math.Abs(mixed.Grad().Item()-2) > 1e-6 {
		t.Errorf("norm %v of two element types, %v", norm, mixed.Grad())
	}
}

// An average is exchanged with the weights and back, as are the gradients of training.
func TestSwap(t *testing.T) {
	w := nn.NewParam(tensor.From([]float64{2}))
	avg := optim.SWA([]*nn.Param{w})
	avg.Update()
	w.Set(tensor.From([]float64{4}))
	avg.Update()
	before := tensor.Snapshot(avg.Cells()...)
	avg.Swap()
	served := w.Frozen()
	avg.Swap()
	if served.Value().Item() != 3 || w.Value().Item() != 4 {
		t.Errorf("%v and %v, want 3 and 4", served.Value(), w.Value())
	}
	w.Set(tensor.From([]float64{9}))
	avg.Update()
	before.Restore()
	w.Set(tensor.From([]float64{6}))
	avg.Update()
	avg.Swap()
	if got := w.Value().Item(); got != 4 {
		t.Errorf("the average is %v after going back, want 4", got)
	}
}

// A loop that runs past its end leaves the optimiser, and an average, as a loop that waits does.
func TestPastTheEnd(t *testing.T) {
	f := load(t)
	on, err := device.Open("sim:0")
	if err != nil {
		t.Fatal(err)
	}
	train := func(ahead bool) [][]float64 {
		n := newNetwork(f, on, tensor.Float32)
		opt, avg := optim.Adam(n.ps, 0.05), optim.EMA(n.ps, 0.5)
		opt.Guard = true
		opt.Plateau = &optim.Plateau{Patience: optim.None}
		loop := func() {
			later := asyncrt.NewLater[struct{}](8)
			defer later.Close()
			for range 30 {
				loss := n.loss()
				lossAt := later.Read(loss)
				if _, ok := later.BreakIf(func() bool { return lossAt.Item() < 0.4 }, struct{}{}); ok {
					return
				}
				opt.Minimize(loss)
				opt.Plateau.Observe(loss)
				avg.Update()
				opt.SetRate(opt.Rate() * 0.99)
			}
			later.Flush()
		}
		if ahead {
			loop()
		} else {
			for range 30 {
				loss := n.loss()
				if loss.Item() < 0.4 {
					break
				}
				opt.Minimize(loss)
				opt.Plateau.Observe(loss)
				avg.Update()
				opt.SetRate(opt.Rate() * 0.99)
			}
		}
		steps := opt.Cells()[5].Value().Int64s()[0]
		if steps == 0 || steps == 30 {
			t.Errorf("%d steps: the loop has no exit in the middle", steps)
		}
		return bits(append(opt.Cells(), avg.Cells()...))
	}
	same(t, "ahead", train(true), train(false))
}

// What is out of range is refused at the call.
func TestMistakes(t *testing.T) {
	w := nn.NewParam(tensor.Ones(2))
	one := optim.SGD([]*nn.Param{w}, 1)
	nan := math.NaN()
	for want, f := range map[string]func(){
		"Adam: Beta1 is 1, want a number from 0 to less than 1":                                                        func() { optim.Adam(nil, 1, optim.AdamOptions{Beta1: 1}) },
		"AdamW: Beta2 is -0.5, want a number from 0 to less than 1":                                                    func() { optim.AdamW(nil, 1, optim.AdamOptions{Beta2: -0.5}) },
		"AdamW: Decay is NaN, want a number from 0 to less than +Inf":                                                  func() { optim.AdamW(nil, 1, optim.AdamOptions{Decay: nan}) },
		"RMSProp: Alpha is 2, want a number from 0 to less than 1":                                                     func() { optim.RMSProp(nil, 1, optim.RMSPropOptions{Alpha: 2}) },
		"AdaDelta: Rho is 1, want a number from 0 to less than 1":                                                      func() { optim.AdaDelta(nil, 1, optim.AdaDeltaOptions{Rho: 1}) },
		"RMSProp: the learning rate is -1, want a number from 0 on":                                                    func() { optim.RMSProp(nil, -1) },
		"SGD: Momentum is +Inf, want a number from 0 to less than +Inf":                                                func() { optim.SGD(nil, 1, optim.SGDOptions{Momentum: math.Inf(1)}) },
		"SGD: Nesterov with Momentum 0 and Dampening 0, want a Momentum above 0":                                       func() { optim.SGD(nil, 1, optim.SGDOptions{Nesterov: true}) },
		"SGD: there are no parameters to optimise: a module of one's own has those that nn.Params finds in its fields": func() { optim.SGD(nil, 1) },
		"SGD: 2 structs of options, want one":                                                                          func() { optim.SGD(nil, 1, optim.SGDOptions{}, optim.SGDOptions{}) },
		"Group: two parts have a parameter in common":                                                                  func() { optim.Group(one, optim.Adam([]*nn.Param{w}, 1)) },
		"Step: the factor is NaN, want a number from 0 on": func() {
			o := optim.SGD([]*nn.Param{w}, 1)
			o.Schedule = func(int) float64 { return nan }
			o.Step()
		},
		"SGD: parameter 1 is nil":       func() { optim.SGD([]*nn.Param{w, nil}, 1) },
		"SWA: parameter 0 is nil":       func() { optim.SWA([]*nn.Param{nil}) },
		"ClipNorm: parameter 0 is nil":  func() { optim.ClipNorm([]*nn.Param{nil}, 1) },
		"ClipValue: parameter 0 is nil": func() { optim.ClipValue([]*nn.Param{nil}, 1) },
		"Group: part 1 is nil":          func() { optim.Group(one, nil) },
		"Step: parameter 0 has the shape [1], and had [2] before": func() {
			p := nn.NewParam(tensor.Ones(2))
			o := optim.SGD([]*nn.Param{p}, 1, optim.SGDOptions{Momentum: 0.5})
			o.Minimize(p.Value().Sum())
			p.Set(tensor.Ones(1))
			o.Minimize(p.Value().Sum())
		},
		"Step: parameter 0 has the shape [1], and had [3] before": func() {
			p := nn.NewParam(tensor.Ones(3))
			p.Value().Sum().Backward()
			p.Set(tensor.Ones(1))
			optim.SGD([]*nn.Param{p}, 1).Step()
		},
		"Update: parameter 0 has the shape [1], and had [2] before": func() {
			p := nn.NewParam(tensor.Ones(2))
			a := optim.EMA([]*nn.Param{p}, 0.5)
			a.Update()
			p.Set(tensor.Ones(1))
			a.Update()
		},
		"Cosine: the number of steps is 0, want 1 or more":          func() { optim.Cosine(0, 0) },
		"Linear: the factor is -1, want a number from 0 on":         func() { optim.Linear(-1, 1, 3) },
		"CosineRestarts: the number of steps is 0, want 1 or more":  func() { optim.CosineRestarts(3, 0, 0) },
		"ClipNorm: the limit is -1, want a number from 0 on":        func() { optim.ClipNorm(nil, -1) },
		"ClipValue: the limit is NaN, want a number from 0 on":      func() { optim.ClipValue(nil, nan) },
		"Observe: want one floating-point number":                   func() { new(optim.Plateau).Observe(tensor.Ones(2)) },
		"Observe: Factor is 1, want a number from 0 to less than 1": func() { (&optim.Plateau{Factor: 1}).Observe(tensor.Ones()) },
		"EMA: the share to keep is 1.5, want a number from 0 to 1":  func() { optim.EMA(nil, 1.5) },
		"Swap: there is no average before the first Update":         func() { optim.SWA(nil).Swap() },
		"Set: 1 counts of steps for an optimiser that has 2":        func() { one.Cells()[2].Set(tensor.From([]int64{1})) },
	} {
		func() {
			defer func() {
				if m, ok := recover().(*tensor.Mistake); !ok || !strings.HasPrefix(m.Error(), "optim: "+want) {
					t.Errorf("got  %v\nwant %s", m, want)
				}
			}()
			f()
		}()
	}
	if steps := one.Cells()[2].Value().Int64s(); !slices.Equal(steps, []int64{0, 0}) {
		t.Errorf("steps that were refused are set: %v", steps)
	}
}
