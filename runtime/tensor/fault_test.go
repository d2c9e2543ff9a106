package tensor_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"runtime/debug"
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

// step is a program with operations of all kinds. Its intermediate results are too large for the Go heap. It
// returns a value that depends on all of them.
func step(on tensor.Maker, w *tensor.Param) *tensor.Tensor {
	x := on.Arange(0, 1000, 1).Reshape(10, 100)
	h := x.MulScalar(0.001).MatMul(w.Value()).Tanh()
	loss := h.T().Sum(0).Square().Mean()
	loss.Backward()
	return loss.Detach().Add(w.Grad().Slice(0, 1, 5).Sum())
}

// eachBackend runs f on wrapped backends, with an engine for each. Afterwards no memory is in use.
func eachBackend(t *testing.T, f func(t *testing.T, b *fault.Backend, on device.Device, e *engine.Engine)) {
	for name, open := range map[string]func() device.Backend{
		"cpu": func() device.Backend { return cpu.New() },
		"sim": func() device.Backend { return sim.New(sim.Options{}) },
	} {
		for _, o := range []engine.Options{{Mode: engine.Async}, {Mode: engine.Async, Workers: 4, Ring: 4}, {Mode: engine.Naive}} {
			t.Run(fmt.Sprintf("%s/%+v", name, o), func(t *testing.T) {
				b := fault.New(open())
				on := device.Wrap(name, device.KindSimulated, b)
				e := engine.New(o)
				restore := tensor.SetEngine(e)
				f(t, b, on, e)
				restore()
				if err := e.Close(); err != nil {
					t.Errorf("Close: %v", err)
				}
				if err := b.Close(); err != nil {
					t.Errorf("Close of the backend: %v", err)
				}
			})
		}
	}
}

// TestFaults lets the n-th call of each kind fail, for n from 1 until the whole program succeeds.
func TestFaults(t *testing.T) {
	eachBackend(t, func(t *testing.T, b *fault.Backend, on device.Device, e *engine.Engine) {
		goroutines := runtime.NumGoroutine()
		want := step(tensor.On(on), tensor.NewParam(tensor.On(on).Full(0.01, 100, 50))).Item()
		base := devicetest.Live(b, 0)
		for _, call := range []fault.Call{fault.Alloc, fault.Submit, fault.Wait, fault.Command} {
			for _, kind := range []fault.Kind{fault.Fail, fault.Panic, fault.Delay} {
				faults := 0
				for n := int64(1); ; n++ {
					b.Arm(fault.Faults{Call: call, Kind: kind, N: n})
					name := fmt.Sprintf("%v %d, %v", call, n, kind)
					got, err := read(step(tensor.On(on), tensor.NewParam(tensor.On(on).Full(0.01, 100, 50))))
					all := e.WaitAll(context.Background())
					switch {
					case err == nil && got != want:
						t.Errorf("%s: got %v, want %v", name, got, want)
					case err != nil:
						faults++
						checkFault(t, name, err)
					}
					certain := kind != fault.Delay && (call == fault.Alloc || call == fault.Command)
					if certain && b.Fired() > 0 && err == nil && all == nil {
						t.Errorf("%s: nobody has noticed", name)
					}
					// A wait that fails says nothing about the operation.
					if call != fault.Wait && (all == nil) != (err == nil) {
						t.Errorf("%s: the read gave %v, WaitAll %v", name, err, all)
					}
					if all != nil {
						checkFault(t, name, all.(interface{ Unwrap() []error }).Unwrap()[0])
					}
					if b.Fired() == 0 {
						break
					}
					b.Arm(fault.Faults{})
					if got := step(tensor.On(on), tensor.NewParam(tensor.On(on).Full(0.01, 100, 50))).Item(); got != want {
						t.Errorf("%s: afterwards the program gives %v, want %v", name, got, want)
					}
				}
				b.Arm(fault.Faults{})
				if kind == fault.Delay && faults > 0 {
					t.Errorf("%v: %d delays were failures", call, faults)
				}
				if after := devicetest.Live(b, base); after > base {
					t.Errorf("%v, %v: %d bytes are lost", call, kind, after-base)
				}
			}
		}
		// beside workers of the device and of the collector
		for i := 0; runtime.NumGoroutine() > goroutines+8 && i < 1000; i++ {
			runtime.Gosched()
		}
		if n := runtime.NumGoroutine(); n > goroutines+8 {
			t.Errorf("%d goroutines, %d before", n, goroutines)
		}
	})
}

func read(x *tensor.Tensor) (v float64, err error) {
	return x.ItemContext(context.Background())
}

// checkFault checks that an error names the operation, its operands and the line of the program.
func checkFault(t *testing.T, name string, err error) {
	t.Helper()
	var op *engine.OpError
	if !errors.As(err, &op) || !errors.Is(err, fault.ErrInjected) {
		t.Errorf("%s: %+v", name, err)
		return
	}
	if op.Op == "" || len(op.DTypes) == 0 || !strings.HasSuffix(op.File, "fault_test.go") || op.Line == 0 || op.Device.Kind() != device.KindSimulated && op.Device.Kind() != device.KindCPU {
		t.Errorf("%s: %+v", name, err)
	}
	if op.Op != "download" && len(op.Shapes) == 0 {
		t.Errorf("%s: no shapes: %+v", name, err)
	}
}

// If a device fails to wait, an operation fails, in each mode in which the engine waits for devices.
func TestFailedWait(t *testing.T) {
	for _, o := range []engine.Options{{Mode: engine.Async}, {Mode: engine.Shuffle, Seed: 1}, {Mode: engine.Shuffle, Seed: 2}, {Mode: engine.Shuffle, Seed: 3}} {
		t.Run(fmt.Sprintf("%+v", o), func(t *testing.T) {
			b := fault.New(sim.New(sim.Options{}))
			on := tensor.On(device.Wrap("sim", device.KindSimulated, b))
			e := engine.New(o)
			defer tensor.SetEngine(e)()
			for n := int64(1); ; n++ {
				b.Arm(fault.Faults{Call: fault.Wait, N: n})
				x := on.Full(1, 64, 64)
				for range 5 {
					y := x.AddScalar(1)
					tensor.Dead(x)
					x = y
				}
				if _, err := read(x.Sum()); err != nil {
					checkFault(t, fmt.Sprintf("wait %d", n), err)
				} else if b.Fired() == 0 {
					break
				}
			}
			b.Arm(fault.Faults{})
			if err := errors.Join(e.Close(), b.Close()); err != nil {
				t.Error(err)
			}
		})
	}
}

// An allocation that fails because memory is short is tried again.
func TestScarceMemory(t *testing.T) {
	eachBackend(t, func(t *testing.T, b *fault.Backend, on device.Device, e *engine.Engine) {
		w := tensor.NewParam(tensor.On(on).Full(0.01, 100, 50))
		want := step(tensor.On(on), w).Item()
		for n := int64(1); n == 1 || b.Fired() > 0; n++ {
			w.ZeroGrad()
			b.Arm(fault.Faults{Call: fault.Alloc, N: n, Err: device.ErrOutOfMemory})
			if got, err := read(step(tensor.On(on), w)); got != want || err != nil {
				t.Errorf("allocation %d: got %v, %v, want %v", n, got, err, want)
			}
		}
	})
}

// TestFlatMemory trains for a while without a read. At the end no more memory is in use than near the beginning.
func TestFlatMemory(t *testing.T) {
	t.Setenv("ASYNCGEN_MEMORY", fmt.Sprint(8<<20))
	eachBackend(t, func(t *testing.T, b *fault.Backend, on device.Device, e *engine.Engine) {
		w := tensor.NewParam(tensor.On(on).Full(0.01, 100, 50))
		train := func(steps int, base int64) int64 {
			for range steps {
				w.ZeroGrad()
				step(tensor.On(on), w)
				w.Set(w.Value().Detach().Sub(w.Grad().MulScalar(0.001)))
			}
			if err := e.WaitAll(context.Background()); err != nil {
				t.Fatalf("%+v", err)
			}
			return devicetest.Live(b, base)
		}
		begin := train(3, 0)
		if end := train(100, begin); end > begin {
			t.Errorf("%d bytes in use at the beginning, %d at the end", begin, end)
		}
		runtime.KeepAlive(w)
	})
}

// TestBackwardReleases checks that Backward gives back everything that it has made, except gradients, without the
// garbage collector.
func TestBackwardReleases(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	eachBackend(t, func(t *testing.T, b *fault.Backend, on device.Device, e *engine.Engine) {
		w, v := tensor.NewParam(tensor.On(on).Full(0.01, 100, 50)), tensor.NewParam(tensor.On(on).Full(0.01, 50, 50))
		x := tensor.On(on).Ones(200, 100).MatMul(w.Value()).Tanh().MatMul(v.Value())
		loss := x.Mul(x).Add(x).Sum()
		if err := e.WaitAll(context.Background()); err != nil {
			t.Fatal(err)
		}
		inUse := func(like ...*tensor.Tensor) int64 { // more than the elements in checked builds
			start := b.Memory().Stats().Live
			for _, x := range like {
				tensor.On(on).Zeros(x.Shape()...)
			}
			if err := e.WaitAll(context.Background()); err != nil {
				t.Fatal(err)
			}
			return b.Memory().Stats().Live - start
		}
		grads, small := inUse(w.Value(), v.Value()), inUse(loss)
		before := b.Memory().Stats()
		loss.Backward()
		if err := e.WaitAll(context.Background()); err != nil {
			t.Fatal(err)
		}
		after := b.Memory().Stats()
		if more := after.Live - before.Live; more < grads || more > grads+grads/4+small {
			t.Errorf("Backward has left %d bytes, and gradients are %d", more, grads)
		}
		if after.Peak-before.Live < 4*200*50 {
			t.Error("Backward needed no memory for temporary results: what is tested here?")
		}
		// The gradients can still be used.
		if got := w.Grad().Add(w.Grad()).Sum().Item(); math.IsNaN(got) || got == 0 {
			t.Errorf("the gradients' sum is %v", got)
		}
		runtime.KeepAlive([]any{x, loss, w, v})
	})
}
