package engine

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asyncgen/asyncgen/device"
)

var bg = context.Background()

// The kinds of device on which tests run.
var kindsOfDevice = []struct {
	name string
	make func(t testing.TB) device.Device
}{
	{"cpu", func(testing.TB) device.Device { return newCPU(2) }},
	{"one worker", func(testing.TB) device.Device { return newCPU(1) }},
	{"hidden", func(testing.TB) device.Device {
		return device.Wrap("dsp", device.KindCPU, &fakeCPU{workers: 1, noHost: true})
	}},
	{"gpu", newGPU},
}

func newCPU(workers int) device.Device {
	return device.Wrap("cpu", device.KindCPU, &fakeCPU{workers: workers})
}

func newGPU(t testing.TB) device.Device {
	g := newFakeGPU()
	t.Cleanup(func() { g.Close() })
	return device.Wrap("gpu:0", device.KindGPU, g)
}

// A setup holds what most tests need.
type setup struct {
	*testing.T
	e    *Engine
	dev  device.Device // under test
	host device.Device // on which values are read
}

// onAll runs f with every kind of device and in all modes.
func onAll(t *testing.T, f func(s *setup)) {
	onDevices(t, f)
	for _, k := range kindsOfDevice {
		t.Run(k.name+", naive", func(t *testing.T) { runOn(t, k.make(t), Options{Mode: Naive}, f) })
		t.Run(k.name+", shuffle", func(t *testing.T) { runOn(t, k.make(t), Options{Mode: Shuffle, Seed: 1}, f) })
	}
}

// onDevices runs f with every kind of device.
func onDevices(t *testing.T, f func(s *setup)) {
	for _, k := range kindsOfDevice {
		t.Run(k.name, func(t *testing.T) { runOn(t, k.make(t), Options{Mode: Async, MaxBytes: -1}, f) })
	}
}

func runOn(t *testing.T, dev device.Device, o Options, f func(s *setup)) {
	s := &setup{T: t, e: newEngine(t, o), dev: dev, host: dev}
	if b := dev.Backend().Caps(); !b.HostMemory {
		s.host = newCPU(1)
	}
	f(s)
}

// newEngine makes an engine that is closed when the test ends. It ignores errors that nobody has asked
// for.
func newEngine(t testing.TB, o Options) *Engine {
	e := New(o)
	t.Cleanup(func() { e.Close() })
	return e
}

// unary enqueues out = k(in).
func unary(e *Engine, k *device.Kernel, out, in *Storage) *Storage {
	e.Enqueue(&Op{
		Cmd:      device.Command{Kernel: k, N: int(out.own.Bytes / 8)},
		Operands: [device.MaxOperands]*Storage{out, in},
		Cost:     20,
	})
	return out
}

// fromFloats makes a storage with the given contents.
func fromFloats(e *Engine, d device.Device, v ...float64) *Storage {
	b := device.HostBuffer(int64(len(v)) * 8)
	copy(device.Slice[float64](b, 0, len(v)), v)
	return e.FromHost(d, b)
}

// new makes a storage of n elements.
func (s *setup) new(n int) *Storage { return s.e.NewStorage(s.dev, int64(n)*8) }

func (s *setup) from(v ...float64) *Storage { return fromFloats(s.e, s.dev, v...) }

// apply returns k of in, in a new storage.
func (s *setup) apply(k *device.Kernel, in *Storage) *Storage {
	return unary(s.e, k, s.new(int(in.own.Bytes/8)), in)
}

// fetch returns x, or a copy of it that the host can read.
func (s *setup) fetch(x *Storage) *Storage {
	if x.Device() == s.host {
		return x
	}
	return s.e.Copy(x, 0, int(x.own.Bytes/8), device.Float64, s.host)
}

// read waits for x and returns its contents.
func (s *setup) read(x *Storage) ([]float64, error) {
	x = s.fetch(x)
	if err := x.Wait(bg, "read"); err != nil {
		return nil, err
	}
	return device.Slice[float64](x.Buffer(), 0, int(x.own.Bytes/8)), nil
}

func (s *setup) want(x *Storage, v ...float64) {
	s.Helper()
	if got, err := s.read(x); err != nil || !reflect.DeepEqual(got, v) {
		s.Errorf("got %v, %v, want %v", got, err, v)
	}
}

// blocking returns a kernel that adds one when open is called. It closes started when it runs.
func blocking() (k *device.Kernel, started chan struct{}, open func()) {
	started, gate := make(chan struct{}), make(chan struct{})
	var once sync.Once
	k = fakeKernel("blocking", 1, func(c *device.Command) error {
		once.Do(func() { close(started) })
		<-gate
		return runCommand(&device.Command{Kernel: addOne, N: c.N, Buf: c.Buf})
	})
	return k, started, sync.OnceFunc(func() { close(gate) })
}

func TestChain(t *testing.T) {
	onAll(t, func(s *setup) {
		x := s.from(1, 2, 3)
		for range 10_000 {
			x = s.apply(addOne, x)
		}
		s.want(x, 10_001, 10_002, 10_003)
		if err := s.e.WaitAll(bg); err != nil {
			s.Error(err)
		}
	})
}

func TestNaiveRunsAtTheCall(t *testing.T) {
	for _, k := range kindsOfDevice {
		runOn(t, k.make(t), Options{Mode: Naive}, func(s *setup) {
			ran := false
			k := fakeKernel("note", 1, func(*device.Command) error { ran = true; return nil })
			if x := s.apply(k, s.from(1)); !ran || !x.Ready() {
				t.Errorf("on %v: ran %v, ready %v", s.dev, ran, x.Ready())
			}
		})
	}
}

// A bug: in mode Naive, operations were counted in the ring, where Stats, a timer or the feeder of a
// queue took them for work. They ran empty records, or took executed operations for unfinished ones, so
// that WaitAll never returned.
func TestNaiveLeavesTheRingEmpty(t *testing.T) {
	for _, k := range kindsOfDevice {
		runOn(t, k.make(t), Options{Mode: Naive}, func(s *setup) {
			x := s.from(0)
			for i := range 100 {
				x = s.apply(addOne, x)
				s.e.Stats() // settles
				if i%10 == 0 {
					if err := s.e.WaitAll(bg); err != nil {
						s.Error(err)
					}
				}
			}
			s.want(x, 100)
			st := s.e.stream(s.dev)
			if st.enqueued() != 0 || st.done.Load() != 0 {
				t.Errorf("on %v: %d operations in the ring, %d retired", s.dev, st.enqueued(), st.done.Load())
			}
			if n := s.e.Stats(); n.Enqueued != n.Executed || n.Executed < 100 {
				t.Errorf("on %v: %d enqueued, %d executed", s.dev, n.Enqueued, n.Executed)
			}
		})
	}
}

// While one operation is blocked, a thousand more calls return. If the device runs operations out of
// order, results that do not depend on the blocked one can be read.
func TestBlockedOperationBlocksNobodyElse(t *testing.T) {
	onDevices(t, func(s *setup) {
		k, started, open := blocking()
		defer open()
		before := s.fetch(s.apply(addOne, s.from(1))) // a device with a queue runs nothing past the blocked operation
		blocked := s.apply(k, s.from(1))
		for i := range 1000 {
			blocked = s.apply(addOne, blocked)
			if s.e.stream(s.dev).onHost {
				s.want(s.apply(addOne, s.from(float64(i))), float64(i+1))
			}
		}
		s.want(before, 2)
		if blocked.Ready() {
			s.Error("a dependent of the blocked operation is ready")
		}
		<-started // a worker runs it, though nobody waits for it
		other := runtimeDevice{s.e, newCPU(1)}
		other.want(s.T, 5)
		open()
		s.want(blocked, 1002)
	})
}

// runtimeDevice is another device of the same engine.
type runtimeDevice struct {
	e   *Engine
	dev device.Device
}

func (r runtimeDevice) want(t *testing.T, v float64) {
	t.Helper()
	x := unary(r.e, addOne, r.e.NewStorage(r.dev, 8), fromFloats(r.e, r.dev, v-1))
	if err := x.Wait(bg, "read"); err != nil || device.Slice[float64](x.Buffer(), 0, 1)[0] != v {
		t.Errorf("on another device: %v, %v", device.Slice[float64](x.Buffer(), 0, 1), err)
	}
}

// A waiter gets what it needs even if the only worker turns to something that blocks in the middle of it.
func TestWaiterIsNotStuckBehindAWorker(t *testing.T) {
	runOn(t, newCPU(1), Options{Mode: Async}, func(s *setup) {
		first, firstStarted, openFirst := blocking()
		other, otherStarted, openOther := blocking()
		defer openOther()
		x := s.apply(first, s.from(1)) // the worker is in here
		s.e.stream(s.dev).exec.nudge()
		<-firstStarted
		s.apply(other, s.from(1)) // and will turn to this
		y := x
		for range 100 {
			y = s.apply(addOne, y)
		}
		waiting := make(chan struct{})
		var got []float64
		var err error
		go func() {
			defer close(waiting)
			got, err = s.read(y)
		}()
		f := s.e.stream(s.dev).exec.(*flow)
		for parked := 0; parked == 0; runtime.Gosched() {
			f.lock.lock()
			parked = len(f.waiters)
			f.unlock()
		}
		openFirst()
		<-waiting
		if err != nil || got[0] != 102 {
			t.Errorf("got %v, %v", got, err)
		}
		s.e.stream(s.dev).exec.nudge()
		<-otherStarted
	})
}

// A waiter runs the operations that it waits for, and nothing else.
func TestWaiterRunsNothingElse(t *testing.T) {
	e := newEngine(t, Options{Mode: Async})
	dev := newCPU(1)
	hold, held, open := blocking()
	unary(e, hold, e.NewStorage(dev, 8), fromFloats(e, dev, 1))
	e.stream(dev).exec.nudge()
	<-held // the only worker is busy from now on
	defer open()
	var ran []int
	note := func(i int) *device.Kernel {
		return fakeKernel("note", 1, func(*device.Command) error { ran = append(ran, i); return nil })
	}
	x, y, z := fromFloats(e, dev, 1), fromFloats(e, dev, 1), fromFloats(e, dev, 1)
	unary(e, note(1), x, y) // overwritten later, but needed all the same: the program might have read it
	unary(e, note(2), z, z)
	unary(e, note(3), y, x) // x is read before it is overwritten
	unary(e, note(4), x, z)
	unary(e, note(5), z, z)
	x.Wait(bg, "read")
	if want := []int{1, 2, 3, 4}; !reflect.DeepEqual(ran, want) {
		t.Errorf("ran %v, want %v", ran, want)
	}
}

func TestWaitContext(t *testing.T) {
	onDevices(t, func(s *setup) {
		k, started, open := blocking()
		defer open()
		x := s.apply(k, s.from(1))
		s.e.stream(s.dev).exec.nudge()
		<-started
		y := s.apply(addOne, x)
		for i := range 2 {
			ctx, cancel := context.WithCancelCause(bg)
			errs := make(chan error)
			go func() { errs <- y.Wait(ctx, "read") }()
			go func() { errs <- s.e.WaitAll(ctx) }()
			go func() { errs <- s.e.Synchronize(ctx, s.dev) }()
			if f, ok := s.e.stream(s.dev).exec.(*flow); ok && i > 0 { // the second time, all are asleep when it comes
				for parked := 0; parked < 3; runtime.Gosched() {
					f.lock.lock()
					parked = len(f.waiters)
					f.unlock()
				}
			}
			cancel(errBoom)
			for range 3 {
				if err := <-errs; !errors.Is(err, context.Canceled) {
					s.Errorf("got %v", err)
				}
			}
		}
		open()
		s.want(y, 3)
	})
}

// Work that is too cheap to wake anyone for is done all the same, even if nobody waits.
func TestCheapWorkIsFlushed(t *testing.T) {
	for _, gpu := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			dev := newCPU(1)
			if gpu {
				dev = newGPU(t)
			}
			e := New(Options{Mode: Async, Channels: true})
			for range 3 {
				x := unary(e, addOne, e.NewStorage(dev, 8), fromFloats(e, dev, 1))
				time.Sleep(10 * flushTick)
				if !x.Ready() {
					t.Errorf("gpu %v: not ready", gpu)
				}
				time.Sleep(2 * idleTicks * flushTick)
				synctest.Wait()
				if e.stream(dev).flush.armed.Load() {
					t.Errorf("gpu %v: the timer still runs", gpu)
				}
			}
			if s := e.Stats(); s.Waits != 0 || s.InFlightBytes != 0 {
				t.Errorf("gpu %v: %+v", gpu, s)
			}
			e.Close() // otherwise the bubble reports goroutines that are left
		})
	}
}

// Cheap work is also done while another worker is in an operation that blocks.
func TestCheapWorkIsFlushedBesideABlockedOperation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dev := newCPU(2)
		e := New(Options{Mode: Async, Channels: true})
		k, started, open := blocking()
		unary(e, k, e.NewStorage(dev, 8), fromFloats(e, dev, 1))
		e.stream(dev).exec.nudge()
		<-started
		x := unary(e, addOne, e.NewStorage(dev, 8), fromFloats(e, dev, 1))
		time.Sleep(10 * flushTick)
		if !x.Ready() {
			t.Error("not ready")
		}
		open()
		e.Close()
	})
}

func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cpu, gpu := newCPU(3), newGPU(t)
		e := New(Options{Mode: Async, Channels: true})
		x := fromFloats(e, cpu, 1, 2)
		y := e.Copy(x, 0, 2, device.Float64, gpu)
		z := e.Copy(unary(e, addOne, e.NewStorage(gpu, 16), y), 1, 1, device.Float64, cpu)
		unary(e, failing, e.NewStorage(cpu, 8), z)
		if err := e.Close(); !errors.Is(err, errBoom) {
			t.Errorf("got %v", err)
		}
		if got := device.Slice[float64](z.Buffer(), 0, 1)[0]; !z.Ready() || got != 3 {
			t.Errorf("got %v", got)
		}
		if err := e.Close(); err != nil {
			t.Errorf("second Close: %v", err)
		}
		defer func() {
			if v := recover(); v != usedAfterClose {
				t.Errorf("a new device after Close: got %v", v)
			}
		}()
		e.NewStorage(newCPU(1), 8)
	})
}

func TestEnqueueAllocatesNothing(t *testing.T) {
	onDevices(t, func(s *setup) {
		x, y := s.from(1), s.from(2)
		s.read(unary(s.e, addOne, y, x))
		_, isFlow := s.e.stream(s.dev).exec.(*flow)
		const ops = 20
		n := testing.AllocsPerRun(100, func() {
			for range ops {
				unary(s.e, nop, y, x)
			}
			if isFlow {
				y.Wait(bg, "read")
			}
		})
		if isFlow && n > 0 || n >= ops { // the fake queue allocates a little itself, more on a busy machine
			s.Errorf("%v allocations for %d operations", n, ops)
		}
	})
}

func TestDifferentDevicesPanic(t *testing.T) {
	e := newEngine(t, Options{})
	defer func() {
		if v := recover(); v != mixedDevices {
			t.Errorf("got %v", v)
		}
	}()
	unary(e, addOne, e.NewStorage(newCPU(1), 8), fromFloats(e, newCPU(1), 1))
}

func TestEnvironment(t *testing.T) {
	panics := func(name, value string) {
		t.Helper()
		t.Setenv(name, value)
		defer func() {
			if v := fmt.Sprint(recover()); !strings.Contains(v, fmt.Sprintf("%s=%q", name, value)) {
				t.Errorf("%s=%s: got %q", name, value, v)
			}
		}()
		New(Options{})
	}
	panics("ASYNCGEN_ENGINE", "sync")
	panics("ASYNCGEN_ENGINE", "shuffle")
	panics("ASYNCGEN_ENGINE", "shuffle:-1")
	t.Setenv("ASYNCGEN_ENGINE", "shuffle:7")
	if e := newEngine(t, Options{Seed: 8}); e.mode != Shuffle || e.shuffler.rng.Uint64() != newShuffler(e, 7).rng.Uint64() {
		t.Errorf("mode %v, or another seed than 7", e.mode)
	}
	t.Setenv("ASYNCGEN_ENGINE", "naive")
	panics("ASYNCGEN_LIMIT", "2GB")
	panics("ASYNCGEN_LIMIT", "-1")
	t.Setenv("ASYNCGEN_LIMIT", "12345")
	e := newEngine(t, Options{})
	if e.mode != Naive || e.limit.Load() != 12345 {
		t.Errorf("mode %v, limit %v", e.mode, e.limit.Load())
	}
	t.Setenv("ASYNCGEN_LIMIT", "")
	if n := newEngine(t, Options{}).limit.Load(); n < 1<<20 || n > 2<<30 {
		t.Errorf("default limit %d", n)
	}
	if n := newEngine(t, Options{MaxBytes: -1}).limit.Load(); n != 0 {
		t.Errorf("unbounded limit %d", n)
	}
}

func TestDefaultIsOne(t *testing.T) {
	if Default() != Default() {
		t.Error("two default engines")
	}
}

// Several goroutines enqueue on storages of their own and wait, on the same engine.
func TestManyProducers(t *testing.T) {
	onAll(t, func(s *setup) {
		var wg sync.WaitGroup
		for g := range 4 {
			wg.Go(func() {
				x := s.from(float64(g))
				for i := range 500 {
					x = s.apply(addOne, x)
					if i%50 == 0 {
						s.want(x, float64(g+i+1))
					}
				}
				s.want(x, float64(g+500))
			})
		}
		wg.Wait()
	})
}

// Two goroutines wait for the same operation. The one that executes it must wake the other.
func TestTwoWaiters(t *testing.T) {
	e := newEngine(t, Options{Mode: Async})
	dev := newCPU(1)
	hold, held, openHold := blocking()
	defer openHold()
	unary(e, hold, e.NewStorage(dev, 8), fromFloats(e, dev, 1))
	e.stream(dev).exec.nudge()
	<-held // the only worker is busy from now on
	k, started, open := blocking()
	x := unary(e, k, e.NewStorage(dev, 8), fromFloats(e, dev, 1))
	var wg sync.WaitGroup
	wait := func() {
		if err := x.Wait(bg, "read"); err != nil {
			t.Error(err)
		}
	}
	wg.Go(wait)
	<-started
	wg.Go(wait)
	for parked := 0; parked == 0; runtime.Gosched() {
		f := e.stream(dev).exec.(*flow)
		f.lock.lock()
		parked = len(f.waiters)
		f.unlock()
	}
	open()
	wg.Wait()
}

// WaitAll does not run what was enqueued after it was called.
func TestWaitAllRunsNothingLater(t *testing.T) {
	e := newEngine(t, Options{Mode: Async})
	dev := newCPU(1)
	k, started, open := blocking()
	defer open()
	unary(e, k, e.NewStorage(dev, 8), fromFloats(e, dev, 1))
	e.stream(dev).exec.nudge()
	<-started // the only worker is busy from now on
	all := make(chan error)
	go func() { all <- e.WaitAll(bg) }()
	f := e.stream(dev).exec.(*flow)
	for parked := 0; parked == 0; runtime.Gosched() {
		f.lock.lock()
		parked = len(f.waiters)
		f.unlock()
	}
	later, _, openLater := blocking()
	defer openLater()
	x := unary(e, later, e.NewStorage(dev, 8), fromFloats(e, dev, 1))
	e.stream(dev).exec.flush() // it is ready, and nobody else is there to run it
	f.lock.lock()
	f.notify()
	f.unlock()
	for range 100 {
		runtime.Gosched() // an eager waiter gets its chance
	}
	open()
	if err := <-all; err != nil {
		t.Error(err)
	}
	if x.Ready() {
		t.Error("the later operation has run")
	}
}
