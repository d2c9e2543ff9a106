package engine

import (
	"context"
	"errors"
	"testing"

	"github.com/asyncgen/asyncgen/device"
)

// devices makes one fake device of each kind. Tests run on each.
func devices(t *testing.T, f func(t *testing.T, dev device.Device)) {
	t.Run("cpu", func(t *testing.T) { f(t, device.Wrap("cpu", device.KindCPU, &fakeCPU{workers: 2})) })
	t.Run("gpu", func(t *testing.T) {
		g := newFakeGPU()
		t.Cleanup(func() { g.Close() })
		f(t, device.Wrap("gpu:0", device.KindGPU, g))
	})
}

func newEngine(t testing.TB, o Options) *Engine {
	e := New(o)
	t.Cleanup(func() { e.Close() })
	return e
}

var bg = context.Background()

// unary enqueues out = k(in).
func unary(e *Engine, k *device.Kernel, out, in *Storage) *Storage {
	e.Enqueue(&Op{Cmd: device.Command{Kernel: k, N: int(out.bytes / 8)}, Operands: [device.MaxOperands]*Storage{out, in}, Cost: 20})
	return out
}

// fromFloats makes a storage with the given contents.
func fromFloats(e *Engine, d device.Device, v ...float64) *Storage {
	b := device.HostBuffer(int64(len(v)) * 8)
	copy(device.Slice[float64](b, 0, len(v)), v)
	return e.FromHost(d, b)
}

// floats waits for s and returns its contents.
func floats(t testing.TB, e *Engine, cpu device.Device, s *Storage) []float64 {
	t.Helper()
	if s.Device() != cpu {
		s = e.Copy(s, 0, int(s.bytes/8), device.Float64, cpu)
	}
	if err := s.Wait(bg, "floats"); err != nil {
		t.Fatal(err)
	}
	return device.Slice[float64](s.Buffer(), 0, int(s.bytes/8))
}

func TestChain(t *testing.T) {
	host := device.Wrap("host", device.KindCPU, &fakeCPU{workers: 1})
	devices(t, func(t *testing.T, dev device.Device) {
		for _, mode := range []Mode{Async, Naive} {
			e := newEngine(t, Options{Mode: mode, Ring: 64})
			x := fromFloats(e, dev, 1, 2, 3)
			for range 10000 {
				y := e.NewStorage(dev, 24)
				x = unary(e, addOne, y, x)
			}
			if got := floats(t, e, host, x); got[2] != 10003 {
				t.Errorf("mode %d: got %v", mode, got)
			}
			if err := e.WaitAll(bg); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestErrorsOnce(t *testing.T) {
	devices(t, func(t *testing.T, dev device.Device) {
		e := newEngine(t, Options{})
		x := fromFloats(e, dev, 1)
		y := unary(e, failing, e.NewStorage(dev, 8), x)
		z := unary(e, addOne, e.NewStorage(dev, 8), y)
		if err := z.Wait(bg, "t"); !errors.Is(err, errBoom) {
			t.Errorf("got %v", err)
		}
		t.Logf("%+v", z.Err())
		if err := e.WaitAll(bg); !errors.Is(err, errBoom) {
			t.Errorf("got %v", err)
		}
		if err := e.WaitAll(bg); err != nil {
			t.Errorf("got %v", err)
		}
	})
}
