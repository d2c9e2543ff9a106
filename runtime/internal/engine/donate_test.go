package engine

import (
	"errors"
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/cpu"
	"github.com/asyncgen/asyncgen/device/devicetest"
	"github.com/asyncgen/asyncgen/device/kernel"
	"github.com/asyncgen/asyncgen/device/sim"
)

var (
	numberOf  = kernel.Arg(0, device.Float64)
	doubled   = device.NewKernel("double", device.Map, kernel.Add(numberOf, numberOf), device.Float64, device.Float64)
	summed    = device.NewKernel("add", device.Map, kernel.Add(numberOf, kernel.Arg(1, device.Float64)), device.Float64, device.Float64, device.Float64)
	truth     = device.NewKernel("truth", device.Map, kernel.Cast(kernel.Arg(0, device.Bool), device.Float32), device.Float32, device.Bool)
	quotients = device.NewKernel("div", device.Map, kernel.Div(kernel.Const(60, device.Int64), kernel.Arg(0, device.Int64)), device.Int64, device.Int64)
)

// A donation is an engine and a device for a test of which result takes whose memory. Nothing that it
// enqueues runs until open is called, so the outcome is determined.
type donation struct {
	*testing.T
	e    *Engine
	d    device.Device
	host device.Device
	open func()
}

func donations(t *testing.T, test func(s *donation)) {
	for name, open := range map[string]func() device.Backend{
		"cpu": func() device.Backend { return cpu.New() },
		"sim": func() device.Backend { return sim.New(sim.Options{}) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("ASYNCGEN_MEMORY", "16777216")
			b := open()
			s := &donation{T: t, e: newEngine(t, Options{Mode: Async, Workers: 2, MaxBytes: -1})}
			s.d, s.host = device.Wrap(name, device.KindSimulated, b), device.Wrap("host", device.KindCPU, &fakeCPU{workers: 1})
			test(s)
			if err := s.e.Close(); err != nil {
				t.Error(err)
			}
			if live := devicetest.Live(b, 0); live != 0 {
				t.Errorf("%d bytes are lost", live)
			}
			b.Close()
		})
	}
}

// from returns a storage of n elements, v and zeros, which come when the gate opens.
func (s *donation) from(n int, v ...float64) *Storage {
	s.Helper()
	held := fromFloats(s.e, s.host, append(v, make([]float64, n-len(v))...)...)
	if s.open == nil {
		var k *device.Kernel
		k, _, s.open = blocking()
		for i := range n {
			device.Slice[float64](held.Buffer(), i, 1)[0]-- // as that adds one
		}
		held = unary(s.e, k, s.e.NewStorage(s.host, int64(n)*8), held)
	}
	return s.e.Copy(held, 0, n, device.Float64, s.d)
}

// apply returns k of inputs, in a new storage.
func (s *donation) apply(k *device.Kernel, n int, in ...*Storage) *Storage {
	out := s.e.NewStorage(s.d, int64(n*k.Out.Size()))
	op := Op{Cmd: device.Command{Kernel: k, N: n}, Cost: int64(n)}
	op.Operands[0] = out
	copy(op.Operands[1:], in)
	s.e.Enqueue(&op)
	return out
}

// want is same, and also checks how many operations have taken over the memory of an input.
func (s *donation) want(x *Storage, inPlace uint64, v ...float64) {
	s.Helper()
	s.same(x, v...)
	if got := s.e.Stats().InPlace; got != inPlace {
		s.Errorf("%d operations have taken the memory of an input, want %d", got, inPlace)
	}
}

// same opens the gate, and compares the first elements of x with v.
func (s *donation) same(x *Storage, v ...float64) {
	s.Helper()
	s.open()
	y := s.e.Copy(x, 0, len(v), device.Float64, s.host)
	if err := y.Wait(bg, "read"); err != nil {
		s.Fatalf("%+v", err)
	}
	for i, got := range device.Slice[float64](y.Buffer(), 0, len(v)) {
		if got != v[i] {
			s.Errorf("element %d is %v, want %v", i, got, v[i])
		}
	}
}

// A chain of results, each larger than half of the memory.
func TestChainInPlace(t *testing.T) {
	donations(t, func(s *donation) {
		const n = 10 << 20 / 8
		x := s.from(n, 1, 2, 3)
		for range 6 {
			y := s.apply(doubled, n, x)
			s.e.Release(x)
			x = y
		}
		s.want(x, 6, 64, 128, 192)
		if m := s.e.Stats().Memory[0]; m.Device == s.d && m.Peak >= 16<<20 {
			s.Errorf("%+v", m)
		}
		s.e.Release(x)
	})
}

// Of two inputs either can be the donor, and both can be the same.
func TestEitherInPlace(t *testing.T) {
	donations(t, func(s *donation) {
		x, y := s.from(1024, 1, 2), s.from(1024, 10, 20)
		z := s.apply(summed, 1024, x, y)
		s.e.Release(y)
		z2 := s.apply(summed, 1024, z, x)
		s.e.Release(z, x)
		z3 := s.apply(summed, 1024, z2, z2)
		s.e.Release(z2)
		s.want(z3, 3, 24, 48)
		s.e.Release(z3)
	})
}

// A value that somebody may still read is not overwritten.
func TestNotInPlace(t *testing.T) {
	for name, test := range map[string]func(s *donation, x *Storage){
		"a reader before": func(s *donation, x *Storage) {
			y := s.apply(doubled, 512, x)
			z := s.apply(doubled, 512, x)
			s.e.Release(x)
			s.same(y, 2, 4)
			s.same(z, 2, 4)
		},
		"a reader behind": func(s *donation, x *Storage) {
			y := s.apply(doubled, 512, x)
			z := s.e.Copy(x, 0, 2, device.Float64, s.d)
			s.e.Release(x)
			s.want(y, 0, 2, 4)
			s.want(z, 0, 1, 2)
		},
		"a writer behind": func(s *donation, x *Storage) {
			y := s.apply(doubled, 512, x)
			s.e.Enqueue(&Op{Cmd: device.Command{Kernel: fillOnes, N: 512}, Operands: [device.MaxOperands]*Storage{x}})
			s.e.Release(x)
			s.want(y, 0, 2, 4)
		},
		"another holder": func(s *donation, x *Storage) {
			x.Hold()
			y := s.apply(doubled, 512, x)
			x.LetGo()
			s.want(y, 0, 2, 4)
			s.want(x, 0, 1, 2)
		},
		"a guess": func(s *donation, x *Storage) {
			sp := s.e.Speculate()
			g := sp.Guess()
			y := s.apply(doubled, 512, x)
			x.LetGo()
			s.want(y, 0, 2, 4)
			g.Discard()
			sp.End()
			s.want(x, 0, 1, 2)
		},
		// x holds 4096 bools, of which the first 1024 become a float32 each
		"narrower elements": func(s *donation, x *Storage) {
			s.apply(truth, 1024, x)
			s.e.Release(x)
			s.want(s.from(512, 7), 0, 7)
		},
	} {
		t.Run(name, func(t *testing.T) {
			donations(t, func(s *donation) { test(s, s.from(512, 1, 2)) })
		})
	}
}

// An operation that fails after it has taken over the memory of an input fails like any other.
func TestFailureInPlace(t *testing.T) {
	donations(t, func(s *donation) {
		x := s.from(1024, 1) // the others are 0
		y := s.apply(quotients, 1024, x)
		z := s.apply(doubled, 1024, y)
		s.e.Release(x, y)
		s.open()
		err := z.Wait(bg, "read")
		if e, ok := errors.AsType[*OpError](err); !ok || e.Op != "div" || e.Device != s.d {
			s.Errorf("%+v", err)
		}
		if err := s.e.WaitAll(bg); !sameErrors(err, z.Err()) {
			s.Errorf("%+v", err)
		}
		if n := s.e.Stats().InPlace; n == 0 {
			s.Error("it has not taken the memory")
		}
	})
}

// Memory that passes from one result to the next without the allocator still counts when the allocator
// decides to call the collector: there may be garbage beside it.
func TestCollectorIsCalledInPlace(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	donations(t, func(s *donation) {
		const n = 4 << 20 / 8
		var before, after runtime.MemStats
		x := s.from(n, 1)
		runtime.ReadMemStats(&before)
		for range 30 {
			y := s.apply(doubled, n, x)
			s.e.Release(x)
			x = y
		}
		s.want(x, 30, 1<<30)
		if runtime.ReadMemStats(&after); before.NumGC == after.NumGC {
			s.Error("it was not called")
		}
		s.e.Release(x)
	})
}

// A bug: an operation on a released storage, which is a mistake, looked at the record of the Release,
// while another operation was being written into that record.
func TestReleaseIsForgotten(t *testing.T) {
	donations(t, func(s *donation) {
		x := s.from(512, 1)
		s.apply(doubled, 512, x)
		s.e.Release(x)
		s.open()
		if err := s.e.WaitAll(bg); err != nil {
			s.Fatal(err)
		}
		if x.heir != 0 {
			s.Errorf("the Release is still to come, as record %d", x.heir)
		}
		y := s.apply(doubled, 512, x)
		if err := y.Wait(bg, "read"); !errors.Is(err, errReleased) {
			s.Errorf("used after Release: %v", err)
		}
	})
}
