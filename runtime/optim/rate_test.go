package optim_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/internal/turns"
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// Rates that have not been computed yet give the bits of those that the host sets, for every optimiser, and nothing
// waits for them. One of them is 0, and one is set on one side of a choice. A gradient that is not finite is left out.
func TestRatesOfTheDevice(t *testing.T) {
	turns.Take(t)
	f := load(t)
	rates := []float64{0.03, 0.1 / 3, 0, 0.007}
	for name, make := range trainings {
		for _, d := range devicesFor(t, name) {
			on, err := device.Open(d)
			if err != nil {
				t.Fatal(err)
			}
			for i, with := range []string{"nothing", "a guard and a plateau"} {
				dt := []tensor.DType{tensor.Float32, tensor.Float64}[i]
				train := func(set, choose func(o *optim.Optimizer, rate float64)) []tensor.Cell {
					n := newNetwork(f, on, dt)
					r := make(n.ps)
					if i > 0 {
						r.opt.Guard = true
						r.opt.Plateau = &optim.Plateau{Patience: optim.None, Factor: 0.3}
					}
					for k, rate := range rates {
						set(r.opt, rate)
						n.step(r)
						if r.opt.Guard && k == 1 {
							n.ps[2].SetGrad(n.ps[2].Grad().Add(tensor.On(on).As(dt).Full(math.NaN(), 1, 1)))
							r.opt.Step()
						}
						if r.opt.Plateau != nil {
							r.opt.Plateau.Observe(tensor.On(on).As(dt).Scalar(1))
						}
						choose(r.opt, rate-0.01)
						n.step(r)
					}
					return r.opt.Cells()
				}
				number := func(v float64) tensor.F64 { return tensor.FromOn(on, []float64{v}).F64() }
				want := train((*optim.Optimizer).SetRate, func(o *optim.Optimizer, rate float64) {
					if rate > 0 {
						o.SetRate(rate)
					}
				})
				var got []tensor.Cell
				run := withoutWaits
				if on.Kind() != device.KindCPU {
					// Either reads a condition that is there, and waits for its copy
					run = func(_ *testing.T, f func()) { f() }
				}
				run(t, func() {
					got = train(func(o *optim.Optimizer, rate float64) { o.SetRateF64(number(rate)) }, func(o *optim.Optimizer, rate float64) {
						tensor.Either(number(rate).Gt(tensor.Const(0)), func() { o.SetRateF64(number(rate)) }, nil, o)
					})
				})
				same(t, fmt.Sprintf("%s on %s, %v, with %s", name, d, dt, with), bits(got), bits(want))
			}
		}
	}
}

// Rate returns a rate that the device computes. States keep it, and give it back.
func TestRateOfTheDeviceIsKept(t *testing.T) {
	w := nn.NewParam(tensor.Ones(2))
	opt := optim.Group(optim.SGD([]*nn.Param{w}, 1), optim.SGD([]*nn.Param{nn.NewParam(tensor.Ones(2))}, 3))
	number := func(v float64) tensor.F64 { return tensor.From([]float64{v}).F64() }
	no := number(1).Lt(tensor.Const(0))
	rates := func() (all []float64) {
		for _, r := range opt.Rates() {
			all = append(all, r.Item())
		}
		return all
	}
	check := func(want ...float64) {
		t.Helper()
		if got := rates(); fmt.Sprint(got) != fmt.Sprint(want) || opt.Rate() != want[0] || opt.RateF64().Item() != want[0] {
			t.Errorf("rates %v, and first %v, want %v", got, opt.Rate(), want)
		}
	}
	tensor.Either(no, func() { opt.SetRateF64(number(2)) }, nil, opt)
	check(1, 3) // each part has its own, which no choice has touched
	before := tensor.Snapshot(opt.Cells()...)
	tensor.Either(no.Not(), func() { opt.SetRateF64(opt.RateF64().Mul(number(0.5))) }, nil, opt)
	check(0.5, 0.5)
	at := tensor.Snapshot(opt.Cells()...)
	before.Restore()
	check(1, 3)
	at.Restore()
	check(0.5, 0.5)
	opt.SetRates([]tensor.F64{tensor.Const(4), number(5)})
	check(4, 5)

	for name, f := range map[string]func(){
		"optim: SetRate: the learning rate is -1, want a number from 0 on":  func() { opt.SetRateF64(tensor.Const(-1)) },
		"optim: SetRate: the learning rate is NaN, want a number from 0 on": func() { opt.CheckRate(math.NaN()) },
		"optim: SetRates: 1 rates, want 2":                                  func() { opt.SetRates(opt.Rates()[:1]) },
	} {
		func() {
			defer func() {
				if m, ok := recover().(*tensor.Mistake); !ok || m.Error() != name {
					t.Errorf("got  %v\nwant %s", m, name)
				}
			}()
			f()
		}()
	}
	check(4, 5)
}
