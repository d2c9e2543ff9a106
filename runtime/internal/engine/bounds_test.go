package engine

import (
	"runtime"
	"testing"
	"testing/synctest"

	"github.com/asyncgen/asyncgen/device"
)

// untilStalled returns when a producer waits at a bound of e.
func untilStalled(e *Engine) {
	for e.stalled.n.Load() == 0 {
		runtime.Gosched()
	}
}

// onBusyDevice runs f with devices whose only executor is busy with an operation on x, which has one
// element. The operation ends when open is called.
func onBusyDevice(t *testing.T, o Options, f func(s *setup, x *Storage, open func())) {
	for _, k := range kindsOfDevice[1:] {
		t.Run(k.name, func(t *testing.T) {
			runOn(t, k.make(t), o, func(s *setup) {
				k, started, open := blocking()
				defer open()
				x := s.from(1)
				unary(s.e, k, x, x)
				s.e.stream(s.dev).exec.nudge()
				<-started
				f(s, x, open)
			})
		})
	}
}

// returned reports whether done is closed.
func returned(done chan bool) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// A ring with room for n operations takes exactly n while the first of them is blocked.
func TestRingBound(t *testing.T) {
	onBusyDevice(t, Options{Mode: Async, Ring: 32, MaxBytes: -1}, func(s *setup, x *Storage, open func()) {
		st := s.e.stream(s.dev)
		st.exec.settle()
		for st.enqueued()-st.done.Load() < 32 {
			unary(s.e, addOne, x, x)
		}
		if st := s.e.Stats(); st.Stalls != 0 {
			s.Errorf("stalls before the ring is full: %+v", st)
		}
		done := make(chan bool)
		go func() {
			unary(s.e, addOne, x, x)
			close(done)
		}()
		untilStalled(s.e)
		if returned(done) {
			s.Error("enqueued into a full ring")
		}
		open()
		<-done
		if st := s.e.Stats(); st.Stalls != 1 {
			s.Errorf("want 1 stall: %+v", st)
		}
		s.want(x, float64(1+st.enqueued()-s.uploads()))
	})
}

// uploads returns how many of the operations on the device were uploads of x.
func (s *setup) uploads() uint64 {
	if s.e.stream(s.dev).onHost {
		return 0
	}
	return 1
}

// Operations fill the bound on bytes in flight exactly, and one that writes more than the bound runs alone.
func TestByteBound(t *testing.T) {
	onBusyDevice(t, Options{Mode: Async, MaxBytes: 80}, func(s *setup, x *Storage, open func()) {
		for range 9 {
			unary(s.e, addOne, x, x)
		}
		if st := s.e.Stats(); st.Stalls != 0 || st.InFlightBytes != 80 || st.PeakBytes != 80 {
			s.Errorf("at the bound: %+v", st)
		}
		done := make(chan bool)
		large := s.new(100)
		go func() {
			unary(s.e, addOne, x, x)
			unary(s.e, nop, large, x)
			unary(s.e, addOne, x, x)
			close(done)
		}()
		untilStalled(s.e)
		if st := s.e.Stats(); returned(done) || st.PeakBytes != 80 {
			s.Errorf("beyond the bound: %+v", st)
		}
		open()
		<-done
		if st := s.e.Stats(); st.PeakBytes != 800 || st.Stalls < 2 {
			s.Errorf("beyond the bound, alone: %+v", st)
		}
		s.want(x, 13)
	})
}

// Raising the bound lets a stalled producer go on.
func TestSetLimit(t *testing.T) {
	onBusyDevice(t, Options{Mode: Async, MaxBytes: -1}, func(s *setup, x *Storage, open func()) {
		s.e.SetLimit(12)
		done := make(chan bool)
		go func() {
			unary(s.e, addOne, x, x)
			close(done)
		}()
		untilStalled(s.e)
		s.e.SetLimit(16)
		<-done
		if st := s.e.Stats(); st.InFlightBytes != 16 || st.Stalls != 1 {
			s.Errorf("%+v", st)
		}
		s.e.SetLimit(0)
		for range 10 {
			unary(s.e, addOne, x, x)
		}
		if st := s.e.Stats(); st.InFlightBytes != 96 || st.Stalls != 1 {
			s.Errorf("without a bound: %+v", st)
		}
	})
}

// A producer at the bound executes what is ready, so a loop makes progress without workers.
func TestStalledProducerHelps(t *testing.T) {
	onBusyDevice(t, Options{Mode: Async, MaxBytes: 80}, func(s *setup, x *Storage, open func()) {
		_, isFlow := s.e.stream(s.dev).exec.(*flow)
		if !isFlow {
			open()
		}
		y := s.new(1)
		for range 1000 {
			unary(s.e, nop, y, y)
		}
		st := s.e.Stats()
		if st.PeakBytes != 80 || st.Stalls == 0 || isFlow && st.Helped < 900 {
			s.Errorf("%+v", st)
		}
	})
}

// Copies don't wait either, and operations that don't depend on them go on.
func TestBlockedCopies(t *testing.T) {
	e := newEngine(t, Options{Mode: Async})
	cpu, gpu, gpu2 := newCPU(1), newGPU(t), newGPU(t)
	k, started, open := blocking()
	defer open()
	x := unary(e, k, e.NewStorage(gpu, 8), fromFloats(e, gpu, 1)) // 2
	down := e.Copy(x, 0, 1, device.Float64, cpu)
	y := unary(e, addOne, e.NewStorage(cpu, 8), down) // 3
	up := e.Copy(y, 0, 1, device.Float64, gpu2)
	z := unary(e, addOne, e.NewStorage(gpu2, 8), up) // 4
	across := e.Copy(z, 0, 1, device.Float64, gpu)   // through host memory
	last := e.Copy(across, 0, 1, device.Float64, cpu)
	e.stream(gpu).exec.nudge()
	<-started
	other := unary(e, addOne, e.NewStorage(cpu, 8), fromFloats(e, cpu, 6))
	if err := other.Wait(bg, "read"); err != nil || device.Slice[float64](other.Buffer(), 0, 1)[0] != 7 {
		t.Errorf("unrelated operation: %v", err)
	}
	for _, s := range []*Storage{x, down, y, up, z, across, last} {
		if s.Ready() {
			t.Error("ready too early")
		}
	}
	if err := last.Wait(canceled(), "read"); err == nil {
		t.Error("no error from a wait with an ended context")
	}
	open()
	if err := last.Wait(bg, "read"); err != nil || device.Slice[float64](last.Buffer(), 0, 1)[0] != 4 {
		t.Errorf("got %v, %v", device.Slice[float64](last.Buffer(), 0, 1), err)
	}
	for _, s := range []*Storage{x, down, y, up, z, across} {
		if !s.Ready() {
			t.Error("not ready")
		}
	}
}

// The notice that a gate has opened may come so late that another operation uses the record of the one
// that it is for.
func TestLateNotice(t *testing.T) {
	e := newEngine(t, Options{Mode: Async, Ring: 2})
	from, to := newCPU(1), newCPU(1)
	copyOfBlocked := func() (copied *Storage, l *link, open func()) {
		k, started, open := blocking()
		x := fromFloats(e, from, 1)
		unary(e, k, x, x)
		e.stream(from).exec.flush()
		<-started
		copied = e.Copy(x, 0, 1, device.Float64, to)
		return copied, e.stream(to).seq(e.stream(to).enqueued() - 1).link, open
	}
	first, late, open := copyOfBlocked()
	open()
	first.Wait(bg, "read")
	unary(e, addOne, first, first).Wait(bg, "read")
	second, _, open := copyOfBlocked() // uses the record of the first
	defer open()
	e.stream(to).exec.flush()
	e.stream(to).exec.granted(late)
	if r := e.stream(to).seq(2); !r.linked || second.Ready() {
		t.Error("released by a notice for another operation")
	}
}

// A copy from a device is Ready as soon as the device has made it, even if nobody waits and no timer fires.
func TestCopyIsReadyAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // where timers fire only when everybody sleeps
		e := New(Options{Mode: Async, Channels: true})
		cpu, gpu := newCPU(1), newGPU(t)
		x := e.Copy(unary(e, addOne, e.NewStorage(gpu, 8), fromFloats(e, gpu, 1)), 0, 1, device.Float64, cpu)
		e.stream(gpu).exec.flush()
		for !x.Ready() {
			runtime.Gosched()
		}
		if got := device.Slice[float64](x.Buffer(), 0, 1)[0]; got != 2 {
			t.Errorf("got %v", got)
		}
		e.Close()
	})
}

// An upload reads its source before a later operation overwrites it.
func TestUploadBeforeOverwrite(t *testing.T) {
	e := newEngine(t, Options{Mode: Async})
	cpu, gpu := newCPU(1), newGPU(t)
	k, started, open := blocking()
	defer open()
	unary(e, k, e.NewStorage(gpu, 8), fromFloats(e, gpu, 1)) // holds up the upload
	e.stream(gpu).exec.nudge()
	<-started
	x := fromFloats(e, cpu, 1)
	up := e.Copy(x, 0, 1, device.Float64, gpu)
	unary(e, addOne, x, x)
	if x.Ready() {
		t.Error("overwritten before it was read")
	}
	open()
	back := e.Copy(up, 0, 1, device.Float64, cpu)
	if err := e.WaitAll(bg); err != nil {
		t.Fatal(err)
	}
	if got := device.Slice[float64](back.Buffer(), 0, 1)[0]; got != 1 {
		t.Errorf("uploaded %v, want 1", got)
	}
	if got := device.Slice[float64](x.Buffer(), 0, 1)[0]; got != 2 {
		t.Errorf("overwritten with %v, want 2", got)
	}
}

// Buffers with a backend's handle are given back to the backend when nothing refers to them.
func TestBuffersAreFreed(t *testing.T) {
	e := newEngine(t, Options{Mode: Async})
	gpu := newGPU(t)
	b := &gpu.Backend().(*fakeGPU).fakeCPU
	x := fromFloats(e, gpu, 1, 2, 3)
	for range 50 {
		x = unary(e, addOne, e.NewStorage(gpu, 24), x)
	}
	x.Wait(bg, "read")
	// all but what x holds, and what the device remembers of its last command
	for freed := 0; freed < 49; runtime.Gosched() {
		runtime.GC()
		b.mu.Lock()
		freed = b.freed
		b.mu.Unlock()
	}
	runtime.KeepAlive(x)
}
