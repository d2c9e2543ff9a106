package engine

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/cpu"
	"github.com/asyncgen/asyncgen/device/devicetest"
	"github.com/asyncgen/asyncgen/device/sim"
)

var fillOnes = device.NewKernel("ones", device.Fill, nil, device.Int64)

// ones enqueues an operation that fills a new storage.
func ones(e *Engine, d device.Device, bytes int64) *Storage {
	s := e.NewStorage(d, bytes)
	e.Enqueue(&Op{Cmd: device.Command{Kernel: fillOnes, N: int(bytes / 8), Imm: [2]uint64{1}},
		Operands: [device.MaxOperands]*Storage{s}, Cost: bytes / 8})
	return s
}

// withMemory runs a test on real backends that have 16 MiB.
func withMemory(t *testing.T, f func(t *testing.T, e *Engine, d device.Device)) {
	const limit = 16 << 20
	for _, mode := range []Mode{Async, Naive} {
		for name, open := range map[string]func() device.Backend{
			"cpu": func() device.Backend { return cpu.New() },
			"sim": func() device.Backend { return sim.New(sim.Options{}) },
		} {
			t.Run(fmt.Sprintf("%s/%v", name, map[Mode]string{Async: "async", Naive: "naive"}[mode]), func(t *testing.T) {
				t.Setenv("ASYNCGEN_MEMORY", fmt.Sprint(limit))
				b := open()
				d := device.Wrap(name, device.KindSimulated, b)
				e := New(Options{Mode: mode, Workers: 2, MaxBytes: -1})
				f(t, e, d)
				if err := e.Close(); err != nil {
					t.Error(err)
				}
				if live := devicetest.Live(b, 0); live != 0 {
					t.Errorf("%d bytes are lost", live)
				}
				if err := b.Close(); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// TestDroppedMemoryIsUsedAgain runs far ahead with results that nobody keeps: 40 times the memory.
func TestDroppedMemoryIsUsedAgain(t *testing.T) {
	withMemory(t, func(t *testing.T, e *Engine, d device.Device) {
		for range 640 {
			ones(e, d, 1<<20)
		}
		last := ones(e, d, 1<<20)
		if err := last.Wait(context.Background(), "Wait"); err != nil {
			t.Fatalf("%+v", err)
		}
		m := e.Stats().Memory[0]
		if m.Device != d || m.Live+m.Cached > m.Limit || m.Peak > m.Limit || m.InFlight < 0 {
			t.Errorf("%+v", m)
		}
		runtime.KeepAlive(last)
	})
}

func TestMemoryRunsOut(t *testing.T) {
	withMemory(t, func(t *testing.T, e *Engine, d device.Device) {
		var held []*Storage
		for range 4 {
			held = append(held, ones(e, d, 2<<20))
		}
		other := ones(e, d, 1<<20)
		// else it could have been too much for another one
		if err := e.Synchronize(context.Background(), d); err != nil {
			t.Fatal(err)
		}
		tooMuch := ones(e, d, 12<<20)
		dependent := e.Copy(tooMuch, 0, 1, device.Int64, device.CPU())
		var failed *OpError
		for _, s := range []*Storage{tooMuch, dependent} {
			err := s.Wait(context.Background(), "Wait")
			if !errors.As(err, &failed) || !errors.Is(err, device.ErrOutOfMemory) || failed.Op != "ones" || !strings.HasSuffix(failed.File, "memory_test.go") {
				t.Fatalf("%+v", err)
			}
		}
		text := failed.Error()
		if strings.Count(text, "results made at") != 1 || !strings.Contains(text, fmt.Sprintf(" MiB in     5 results made at %s:%d", failed.File, failed.Line)) {
			t.Errorf("got %s", text)
		}
		if err := e.WaitAll(context.Background()); !errors.Is(err, device.ErrOutOfMemory) {
			t.Errorf("WaitAll: %v", err)
		}
		runtime.KeepAlive(held)
		runtime.KeepAlive(other)
		held, other = nil, nil
		if err := ones(e, d, 12<<20).Wait(context.Background(), "Wait"); err != nil {
			t.Errorf("when there is memory again: %v", err)
		}
		if err := ones(e, d, 1<<40).Wait(context.Background(), "Wait"); !errors.Is(err, device.ErrOutOfMemory) {
			t.Errorf("what can never be there: %v", err)
		}
		e.WaitAll(context.Background()) // takes the error
	})
}

func TestMemoryInFlight(t *testing.T) {
	e := New(Options{Workers: 1, MaxBytes: -1})
	d := device.Wrap("cpu", device.KindSimulated, cpu.New())
	for range 100 {
		ones(e, d, 8000)
	}
	if m := e.Stats().Memory[0]; m.InFlight < 0 || m.InFlight > 100*8000 {
		t.Errorf("%+v", m)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	if m := e.Stats().Memory[0]; m.InFlight != 0 {
		t.Errorf("after Close: %+v", m)
	}
}

// TestRelease checks that memory comes back without the collector, after the operations that use it, and
// that later uses get an error.
func TestRelease(t *testing.T) {
	withMemory(t, func(t *testing.T, e *Engine, d device.Device) {
		for range 64 { // four times the memory
			x := ones(e, d, 1<<20)
			y := e.Copy(x, 0, 1, device.Int64, device.CPU())
			e.Release(x)
			if err := y.Wait(context.Background(), "Wait"); err != nil || device.Slice[int64](y.Buffer(), 0, 1)[0] != 1 {
				t.Fatalf("%+v", err)
			}
		}
		if err := e.WaitAll(context.Background()); err != nil {
			t.Errorf("%+v", err)
		}
		if m := e.Stats().Memory[0]; m.Live != 0 {
			t.Errorf("%d bytes are live", m.Live)
		}
		s := e.Stats()
		if s.Enqueued != s.Executed || s.Skipped != 0 {
			t.Errorf("a release was counted: %+v", s)
		}
		x := ones(e, d, 1<<20)
		e.Release(x)
		y := e.Copy(x, 0, 1, device.Int64, device.CPU())
		if err := y.Wait(context.Background(), "Wait"); !errors.Is(err, errReleased) {
			t.Errorf("used after Release: %v", err)
		}
	})
}

// A bug: a worker gave memory back after waiters for everything had been told that all was done, so for a
// moment more memory seemed to be in use than was.
func TestReleaseBeforeDone(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // it gives memory back too
	var taken, back atomic.Int32
	cpu := &fakeCPU{workers: 2}
	cpu.onFree = func() {
		taken.Add(1)
		for range 1000 {
			runtime.Gosched()
		}
		back.Add(1)
	}
	e := newEngine(t, Options{})
	dev := device.Wrap("cpu", device.KindCPU, cpu)
	for range 20 {
		hold, started, open := blocking()
		x := unary(e, addOne, e.NewStorage(dev, 24), fromFloats(e, dev, 1, 2, 3))
		unary(e, hold, e.NewStorage(dev, 16), x) // it can't have the memory of x
		e.Release(x)
		e.stream(dev).exec.flush() // so a worker runs it
		<-started
		open()
		if err := e.WaitAll(bg); err != nil {
			t.Fatal(err)
		}
		if taken, back := taken.Load(), back.Load(); taken == 0 || taken != back {
			t.Fatalf("WaitAll returned when %d of %d buffers had been given back", back, taken)
		}
	}
}

// A bug: operations enqueued behind a Release, which are mistakes, went to a device with a queue with the
// released memory, and ran after it had been given back. Nobody may read or write released memory.
func TestUsedAfterRelease(t *testing.T) {
	onAll(t, func(s *setup) {
		hold, started, open := blocking()
		defer open()
		if s.e.mode == Async {
			s.apply(hold, s.from(1, 2, 3))
			s.e.stream(s.dev).exec.flush()
			<-started
		}
		x := s.apply(addOne, s.from(1, 2, 3))
		ran := false
		note := fakeKernel("note", 1, func(*device.Command) error { ran = true; return nil })
		y := s.apply(addOne, x)
		s.e.Release(x)
		read := s.apply(note, x)
		unary(s.e, note, x, y)
		s.e.stream(s.dev).exec.flush()
		open()
		s.want(y, 3, 4, 5)
		err := x.Wait(bg, "read")
		if e, ok := errors.AsType[*OpError](err); !ok || e.Op != "note" || !errors.Is(err, errUsed) {
			s.Errorf("written: %+v", err)
		}
		if read.Wait(bg, "read"); read.Err() != error(errReleased) || ran {
			s.Errorf("read: %+v; something ran: %v", read.Err(), ran)
		}
		if err := s.e.WaitAll(bg); !sameErrors(err, x.Err()) {
			s.Errorf("the failures are %v", err)
		}
	})
}
