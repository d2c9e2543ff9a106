package tensor_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/devicetest"
	"github.com/asyncgen/asyncgen/device/fault"
	"github.com/asyncgen/asyncgen/device/sim"
	"github.com/asyncgen/asyncgen/internal/turns"
	"github.com/asyncgen/asyncgen/runtime/internal/engine"
	"github.com/asyncgen/asyncgen/runtime/op"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

func ExampleAllReduce() {
	a, b := tensor.From([]float32{1, 2}), tensor.From([]float32{10, 20})
	sums := tensor.AllReduce(a, b) // each of them may be on a device of its own
	fmt.Println(sums[0], sums[1])
	// Output: [11. 22.] [11. 22.]
}

// simulated returns n devices without latencies.
func simulated(n int) []device.Device {
	devs := make([]device.Device, n)
	for i := range devs {
		devs[i] = device.Wrap(fmt.Sprintf("sim:%d", i), device.KindSimulated, sim.New(sim.Options{Queue: 64}))
	}
	return devs
}

// summed is AllReduce in plain Go, step by step in the type of the terms, in the order of the element's half.
func summed(terms []array) array {
	sum := array{terms[0].dtype, terms[0].shape, make([]float64, terms[0].size())}
	n := len(sum.data)
	isHalved := n*terms[0].dtype.Size() >= 32<<10
	for i := range sum.data {
		first := 0
		if isHalved && i >= n-n/2 {
			first = len(terms) / 2
		}
		acc := terms[first].data[i]
		for k := 1; k < len(terms); k++ {
			acc += terms[(first+k)%len(terms)].data[i]
			if sum.dtype == tensor.Float32 {
				acc = float64(float32(acc))
			}
		}
		sum.data[i] = acc
	}
	return sum
}

// AllReduce has the bits of adding in its order in plain Go, on any number of devices, however the terms are spread
// over them.
func TestAllReduce(t *testing.T) {
	r := newRand(t)
	devs := append(simulated(7), device.CPU())
	for _, mode := range []engine.Mode{engine.Async, engine.Naive, engine.Shuffle} {
		e := engine.New(engine.Options{Mode: mode, Workers: 2, Seed: *seed})
		restore := tensor.SetEngine(e)
		for _, shape := range [][]int{{}, {0}, {3}, {2, 3, 1}, {4095, 2}, {8193}, {70, 130}, {600, 500}, {36, 1000, 100}} {
			for _, dt := range []device.DType{tensor.Float32, tensor.Float64, tensor.Int64} {
				for _, terms := range []int{1, 2, 3, 4, 7, 8, 12} {
					isLarge := device.Shape(shape).Size() > 1e6 // it travels in more than one piece
					if (dt != tensor.Float32 || isLarge) && testing.Short() {
						continue // the concurrency is the same, and other tests have several pieces
					}
					if device.Shape(shape).Size() > 1e5 && !isLarge && (dt != tensor.Float32 || terms < 4 || terms == 8 || mode != engine.Async) {
						continue // large tensors only in some cases
					}
					if (isLarge || mode != engine.Async) && (dt != tensor.Float32 || terms != 8) || isLarge && mode != engine.Async {
						continue
					}
					if !turns.Has(t, fmt.Sprint(mode, shape, dt, terms)) {
						continue
					}
					list := make([]array, terms)
					for i := range list {
						list[i] = random(r, dt, shape, op.Interval{Lo: -100, Hi: 100})
					}
					want := summed(list)
					for _, n := range []int{1, 2, 3, 4, 7, 8} {
						of := func(i int) device.Device { return devs[i*n/terms] }
						if n == 8 {
							of = func(i int) device.Device { return devs[r.IntN(len(devs))] }
						}
						if n < 8 && terms%n != 0 || isLarge && n != 4 {
							continue
						}
						var ts []*tensor.Tensor
						for i, a := range list {
							ts = append(ts, a.tensor(of(i)))
						}
						sums := tensor.AllReduce(ts...)
						for i, sum := range sums {
							if isLarge && i%2 != 0 {
								continue // another handle of the result before
							}
							what := fmt.Sprintf("mode %v, %v%v, %d terms on %d devices, result %d", mode, dt, shape, terms, n, i)
							check(t, what, sum, want, 0)
							if sum.Device() != ts[i].Device() {
								t.Errorf("%s: on %v, want %v", what, sum.Device(), ts[i].Device())
							}
							if t.Failed() {
								t.FailNow()
							}
						}
					}
				}
			}
		}
		restore()
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
}

// The devices do not wait for the host: by the simulator's model, links are busy for most of the time that an
// all-reduce takes.
func TestAllReduceKeepsLinksBusy(t *testing.T) {
	for _, test := range []struct {
		devices int
		copies  int     // copies that each device sends
		most    float64 // how long the all-reduce may take, relative to the time that a link is busy
	}{
		{2, 4, 1.2},
		// A device has nothing to send until it gets a piece of another one. At the end, six copies follow each
		// other.
		{4, 6, 1.35},
	} {
		e := engine.New(engine.Options{Workers: 2})
		restore := tensor.SetEngine(e)
		var terms []*tensor.Tensor
		var devs []device.Device
		for i := range test.devices {
			d := device.Wrap(fmt.Sprintf("sim:%d", i), device.KindSimulated, sim.New(sim.VirtualDefaults()))
			devs, terms = append(devs, d), append(terms, tensor.On(d).Ones(4<<20))
		}
		if err := e.WaitAll(t.Context()); err != nil {
			t.Error(err)
		}
		begin := sim.Now()
		sums := tensor.AllReduce(terms...)
		if err := e.WaitAll(t.Context()); err != nil {
			t.Error(err)
		}
		took := sim.Now() - begin
		o := sim.VirtualDefaults()
		bytes := 2 * float64(test.devices-1) / float64(test.devices) * (16 << 20)
		want := time.Duration(test.copies)*o.Copy + time.Duration(bytes/o.Link*1e9)
		for i, d := range devs {
			busy, _ := sim.BusyOf(d)
			if (busy.Link - want).Abs() > time.Microsecond {
				t.Errorf("%d devices: link %d was busy for %v, want %v", test.devices, i, busy.Link, want)
			}
			if took.Seconds() > test.most*busy.Link.Seconds() {
				t.Errorf("%d devices: it took %v, and link %d was busy for %v", test.devices, took, i, busy.Link)
			}
		}
		tensor.Dead(append(terms, sums...)...)
		e.Close()
		restore()
		for _, d := range devs {
			d.Backend().Close()
		}
	}
}

// Terms may be views. They are neither changed nor let go of.
func TestAllReduceOfViews(t *testing.T) {
	devs := simulated(2)
	x := tensor.On(devs[0]).Arange(0, 20000, 1).Reshape(100, 200)
	y := tensor.On(devs[1]).Ones(200, 100)
	sums := tensor.AllReduce(x.T(), y, x.T())
	want := x.T().MulScalar(2).AddScalar(1).Float32s()
	for i, sum := range sums {
		if !slices.Equal(sum.Float32s(), want) {
			t.Errorf("result %d is %v", i, sum)
		}
	}
	alone := tensor.AllReduce(x)
	tensor.Dead(alone...)
	if x.Float32s()[19999] != 19999 {
		t.Error("the term has gone with the result")
	}
}

// The gradient of each term is the sum of the gradients of the results, even if they travel in pieces.
func TestAllReduceGradient(t *testing.T) {
	devs := simulated(2)
	for _, rows := range []int{90, 1 << 15} {
		var xs []*tensor.Tensor
		for i := range 4 {
			xs = append(xs, tensor.On(devs[i/2]).Full(float64(i), rows, 128).Track())
		}
		sums := tensor.AllReduce(xs...)
		loss := sums[0].MulScalar(2).Sum().Add(sums[3].MulScalar(5).Sum().To(devs[0]))
		for i, g := range tensor.Grad(loss, xs...) {
			if v := g.Float32s(); g.Device() != devs[i/2] || slices.Min(v) != 7 || slices.Max(v) != 7 {
				t.Errorf("gradient %d is %v on %v", i, g, g.Device())
			}
		}
	}
}

// If a copy of one of many pieces fails, so does each result that needs it.
func TestAllReduceOfPiecesFails(t *testing.T) {
	for n := int64(1); n <= 4; n++ {
		if !turns.Has(t, fmt.Sprint(n)) {
			continue
		}
		b := fault.New(sim.New(sim.Options{}))
		devs := []device.Device{device.Wrap("sim:0", device.KindSimulated, b), simulated(1)[0]}
		e := engine.New(engine.Options{Workers: 2})
		restore := tensor.SetEngine(e)
		terms := []*tensor.Tensor{tensor.On(devs[0]).Full(1, 4<<20), tensor.On(devs[1]).Full(2, 4<<20)}
		if err := e.WaitAll(t.Context()); err != nil {
			t.Error(err)
		}
		b.Arm(fault.Faults{Call: fault.Command, Kernel: "copy", N: n})
		sums := tensor.AllReduce(terms...)
		fails := 0
		for i, sum := range sums {
			if err := sum.Wait(); errors.Is(err, fault.ErrInjected) {
				fails++
			} else if err != nil {
				t.Errorf("copy %d: result %d: %v", n, i, err)
			} else if v := sum.Float32s(); slices.Min(v) != 3 || slices.Max(v) != 3 {
				t.Errorf("copy %d: result %d is %v", n, i, sum)
			}
		}
		if fails == 0 || b.Fired() != 1 {
			t.Errorf("copy %d: %d faults, and %d results have failed", n, b.Fired(), fails)
		}
		tensor.Dead(append(terms, sums...)...)
		e.Close()
		restore()
	}
}

func TestAllReduceMistakes(t *testing.T) {
	x := tensor.Ones(2, 3)
	dead := tensor.Ones(2, 3)
	tensor.Dead(dead)
	for want, ts := range map[string][]*tensor.Tensor{
		op.MistakeNothing:             {},
		op.MistakeNil:                 {x, nil},
		op.MistakeDTypes:              {x, tensor.Ones(2, 3).As(tensor.Float64)},
		op.MistakeShapes:              {x, tensor.Ones(3, 2)},
		op.MistakeType + " (it takes": {tensor.From([]bool{true}), tensor.From([]bool{true})},
		op.MistakeDead:                {x, dead},
	} {
		m := mistake(func() { tensor.AllReduce(ts...) })
		if m == nil || m.Op != "AllReduce" || !strings.HasPrefix(m.Text, want) {
			t.Errorf("got %v, want AllReduce: %s", m, want)
		}
	}
}

// A device is lost at its n-th command, for n from 1 until the all-reduce is done before. Every result has its
// value or fails with that cause. The other devices go on, and no memory stays in use.
func TestAllReduceLostDevice(t *testing.T) {
	var used [][]*fault.Backend // one collection for all
	defer func() {
		for n, backends := range used {
			for i, b := range backends {
				if left := devicetest.Live(b, 0); left != 0 {
					t.Errorf("command %d: %d bytes are lost on device %d", n+1, left, i)
				}
			}
		}
	}()
	for n := int64(1); ; n++ {
		backends := make([]*fault.Backend, 4)
		devs := make([]device.Device, 4)
		for i := range devs {
			backends[i] = fault.New(sim.New(sim.Options{}))
			devs[i] = device.Wrap(fmt.Sprintf("sim:%d", i), device.KindSimulated, backends[i])
		}
		e := engine.New(engine.Options{Workers: 2})
		restore := tensor.SetEngine(e)
		backends[2].Arm(fault.Faults{Call: fault.Command, Kind: fault.Lose, N: n})
		var ts []*tensor.Tensor
		for i := range 8 {
			ts = append(ts, tensor.On(devs[i/2]).Full(float64(i), 100, 100))
		}
		sums := tensor.AllReduce(ts...)
		fails := 0
		for i, sum := range sums {
			if err := sum.Wait(); err != nil {
				fails++
				if !errors.Is(err, device.ErrLost) || !errors.Is(err, fault.ErrInjected) {
					t.Errorf("command %d: result %d: %+v", n, i, err)
				}
			}
		}
		fired := backends[2].Fired() > 0 // before any read, which may have commands too
		if fired != (fails > 0) {
			t.Errorf("command %d: the device was lost: %v, results that failed: %d", n, fired, fails)
		}
		for i, sum := range sums {
			if i/2 != 2 && sum.Wait() == nil && (slices.Min(sum.Float32s()) != 28 || slices.Max(sum.Float32s()) != 28) {
				t.Errorf("command %d: result %d is %v", n, i, sum)
			}
		}
		for i, dev := range devs {
			if i != 2 && tensor.On(dev).Ones(3).Sum().Item() != 3 {
				t.Errorf("command %d: %v does not go on", n, dev)
			}
		}
		tensor.Dead(append(ts, sums...)...)
		e.Close()
		restore()
		used = append(used, backends)
		if !fired {
			return
		}
		if t.Failed() {
			t.FailNow()
		}
	}
}
