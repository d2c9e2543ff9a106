package tensor_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/cpu"
	"github.com/asyncgen/asyncgen/device/devicetest"
	"github.com/asyncgen/asyncgen/device/fault"
	"github.com/asyncgen/asyncgen/device/sim"
	"github.com/asyncgen/asyncgen/runtime/internal/engine"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// A device is lost at its n-th call of each kind, for n from 1 until the program is done before. Everything that
// meets the loss fails with one cause, the same in every mode. What is asked of the device afterwards fails at
// once. Other devices go on, and no memory stays in use.
func TestLostDevice(t *testing.T) {
	for name, open := range map[string]func() device.Backend{
		"cpu": func() device.Backend { return cpu.New() },
		"sim": func() device.Backend { return sim.New(sim.Options{}) },
	} {
		for _, call := range []fault.Call{fault.Alloc, fault.Submit, fault.Wait, fault.Command} {
			t.Run(fmt.Sprint(name, "/", call), func(t *testing.T) {
				var after []func() // of all losses, as each would make the collector look at everything
				defer func() {
					for _, f := range after {
						f()
					}
				}()
				for n := int64(1); n < 500; n++ {
					var ends []string
					fired := false
					modes := []engine.Mode{engine.Naive, engine.Async, engine.Shuffle}
					inOrder := name == "sim" && call == fault.Command
					if !inOrder { // nothing is compared, so they take turns
						modes = modes[n%3 : n%3+1]
					}
					for _, mode := range modes {
						b := fault.New(open())
						end, struck, left := loseDevice(t, name, b, mode, fault.Faults{Call: call, Kind: fault.Lose, N: n})
						after = append(after, left)
						ends = append(ends, end)
						fired = fired || struck
					}
					// The n-th command is always the same operation on devices to which commands are submitted in
					// order.
					if inOrder && (ends[0] != ends[1] || ends[0] != ends[2]) {
						t.Errorf("%v %d: naive, async and shuffled:\n%s\n%s\n%s", call, n, ends[0], ends[1], ends[2])
					}
					if !fired {
						return
					}
				}
				t.Error("the program never got through")
			})
		}
	}
}

// loseDevice runs the program on b with the faults, and checks everything that follows from a loss. It returns how
// the program has ended, whether b was lost, and a check that nothing is left of its memory.
func loseDevice(t *testing.T, name string, b *fault.Backend, mode engine.Mode, f fault.Faults) (end string, struck bool, after func()) {
	where := fmt.Sprintf("mode %v, %v %d", mode, f.Call, f.N)
	on := device.Wrap(name, device.KindSimulated, b)
	e := engine.New(engine.Options{Mode: mode, Workers: 2, Seed: uint64(f.N)})
	defer tensor.SetEngine(e)()
	b.Arm(f)
	_, err := read(step(tensor.On(on), tensor.NewParam(tensor.On(on).Full(0.01, 100, 50))))
	all := e.WaitAll(context.Background())
	struck = b.Fired() > 0
	var first *engine.OpError
	if struck {
		x := tensor.On(on).Ones(3, 700)
		late := x.Exp().Sum()
		later, ok := errors.AsType[*engine.OpError](late.Wait())
		if !ok || !errors.Is(later, device.ErrLost) || !errors.Is(later, fault.ErrInjected) || later.File == "" {
			t.Errorf("%s: afterwards: %+v", where, late.Wait())
		}
		first = later
		for what, err := range map[string]error{"the read": err, "WaitAll": all} {
			got, ok := errors.AsType[*engine.OpError](err)
			if err == nil && (f.Call == fault.Wait || f.Call == fault.Submit) {
				continue // the last wait of the program, or work that the program does not need
			}
			if !ok || got != later {
				t.Errorf("%s: %s gave %+v, and later operations %+v", where, what, err, later)
			}
		}
		if err := tensor.On(on).Ones(2, 2).MatMul(tensor.On(on).Ones(2, 2)).Wait(); err != error(first) {
			t.Errorf("%s: later still: %+v", where, err)
		}
		if err := e.Synchronize(context.Background(), on); err == nil || strings.Contains(err.Error(), "\n") || !errors.Is(err, first) {
			t.Errorf("%s: Synchronize: %v, want the loss, once", where, err)
		}
		if got := tensor.On(device.CPU()).Ones(3).AddScalar(1).Sum().Item(); got != 6 {
			t.Errorf("%s: another device gives %v", where, got)
		}
	} else if err != nil || all != nil {
		t.Errorf("%s: nothing happened: %v, %v", where, err, all)
	}
	if err := e.Close(); err != nil {
		t.Errorf("%s: Close: %v", where, err)
	}
	if m := e.Stats(); m.InFlightBytes != 0 {
		t.Errorf("%s: %d bytes in flight", where, m.InFlightBytes)
	}
	return fmt.Sprintf("%+v", first), struck, func() {
		if left := devicetest.Live(b, 0); left != 0 {
			t.Errorf("%s: %d bytes are lost", where, left)
		}
		if err := b.Close(); err != nil {
			t.Errorf("%s: Close of the backend: %v", where, err)
		}
	}
}

// A closed backend keeps what was computed, which can be read in every way. Later operations fail, each by itself
// with its line. Close waits for what was submitted, and may be called again.
func TestClosedDevice(t *testing.T) {
	for name, open := range map[string]func() device.Backend{
		"cpu":          func() device.Backend { return cpu.New() },
		"sim":          func() device.Backend { return sim.New(sim.Options{}) },
		"sim, wrapped": func() device.Backend { return fault.New(sim.New(sim.Options{Queue: 2})) },
	} {
		for _, mode := range []engine.Mode{engine.Naive, engine.Async, engine.Shuffle} {
			t.Run(fmt.Sprint(name, "/", mode), func(t *testing.T) {
				b := open()
				on := device.Wrap(name, device.KindSimulated, b)
				e := engine.New(engine.Options{Mode: mode, Seed: 1})
				defer tensor.SetEngine(e)()
				x := tensor.On(on).Ones(3).AddScalar(1)
				large := tensor.On(on).Arange(0, 5000, 1).Reshape(50, 100)
				host := x.To(device.CPU())
				if err := tensor.Wait(host, large); err != nil {
					t.Fatal(err)
				}
				before := readings(large)
				pending := x
				for range 100 {
					pending = pending.AddScalar(1)
				}
				for range 2 {
					if err := b.Close(); err != nil {
						t.Errorf("Close: %v", err)
					}
				}
				// How much was computed before Close depends on time, but each result has its value or the error.
				if err := pending.Wait(); err != nil && !errors.Is(err, device.ErrClosed) {
					t.Errorf("what was pending: %+v", err)
				}
				if host.Sum().Item() != 6 {
					t.Error("what was computed is lost")
				}
				if after := readings(large); after != before {
					t.Errorf("read before Close:\n%s\nand after it:\n%s", before, after)
				}
				if err := e.WaitAll(context.Background()); err != nil && !errors.Is(err, device.ErrClosed) {
					t.Errorf("WaitAll: %v", err)
				}
				y := x.MulScalar(2)
				at := line() - 1
				z := x.AddScalar(5)
				for i, r := range []*tensor.Tensor{y, z, y.Exp()} {
					op, ok := errors.AsType[*engine.OpError](r.Wait())
					if !ok || !errors.Is(op, device.ErrClosed) || op.Line != at+2*(i%2) || op.Op != []string{"MulScalar", "AddScalar", "MulScalar"}[i] {
						t.Errorf("used after Close: %+v", r.Wait())
					}
				}
				if err := e.WaitAll(context.Background()); strings.Count(fmt.Sprint(err), "device closed") != 2 {
					t.Errorf("WaitAll: %v, want two failures", err)
				}
				if err := e.Close(); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// readings returns as text all reads of x, which has two axes, and of views of it.
func readings(x *tensor.Tensor) string {
	rows, columns := x.Dim(0), x.Dim(1)
	json, err := x.Transpose().MarshalJSON()
	there := x.Slice(1, 1, columns-1).To(device.CPU())
	return fmt.Sprintln(x, x.At(rows-1, columns-1), x.Slice(0, 3, 4).Slice(1, 7, 8).Item(), x.Transpose().Float32s(), x.Slice(1, 2, 5).Float32s(),
		x.Row(1).Float32s(), x.Slice(0, 1, 2).Unsqueeze(0).Float32s(), string(json), err, there.Transpose().AddScalar(1).Float32s(), there.Device())
}
