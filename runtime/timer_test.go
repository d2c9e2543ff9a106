package asyncrt_test

import (
	"strings"
	"testing"
	"time"

	"github.com/asyncgen/asyncgen/device"
	asyncrt "github.com/asyncgen/asyncgen/runtime"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// A Timer that knows only the time of enqueueing says so. It knows the rest when the device has finished.
func TestTimer(t *testing.T) {
	on, g := gated()
	other, _ := gated()
	x := tensor.On(on).Ones(1)
	if err := x.Wait(); err != nil {
		t.Fatal(err)
	}
	timer, idle := asyncrt.StartTimer(on), asyncrt.StartTimer(other)
	if text := timer.String(); !strings.HasSuffix(text, ", not stopped") {
		t.Errorf("before Stop: %q", text)
	}
	start := time.Now()
	y := x.Tanh()
	timer.Stop()
	idle.Stop()
	if text := timer.String(); !strings.HasSuffix(text, ", enqueueing alone: not finished") {
		t.Errorf("with an operation pending: %q", text)
	}
	if d, ok := timer.Elapsed(); ok || d != 0 {
		t.Errorf("with an operation pending: %v, %v", d, ok)
	}
	if d, ok := idle.Elapsed(); !ok || d < 0 {
		t.Errorf("of a device that has nothing to do: %v, %v", d, ok)
	}
	enqueued, pending := timer.Enqueued(), time.Since(start)
	g.let(1)
	d := timer.Wait()
	if !y.Ready() || d < pending || timer.Enqueued() != enqueued {
		t.Errorf("ready %v, %v, %v of it enqueueing, want at least %v", y.Ready(), d, timer.Enqueued(), pending)
	}
	if again, ok := timer.Elapsed(); !ok || again != d || timer.String() != d.String() {
		t.Errorf("%v, %v and %q, want %v", again, ok, timer, d)
	}
}

// Operations enqueued before a span are not part of it.
func TestTimerBeginsWhenWhatWasBeforeIsDone(t *testing.T) {
	on, g := gated()
	x := tensor.On(on).Ones(1)
	x.Tanh()
	timer := asyncrt.StartTimer(on)
	start := time.Now()
	y := x.AddScalar(1)
	timer.Stop()
	y.Item() // runs ahead of the blocked operation
	if d, ok := timer.Elapsed(); ok {
		t.Errorf("finished after %v, before what comes before", d)
	}
	before := time.Since(start)
	g.let(1)
	if d := timer.Wait(); d < 0 || d > time.Since(start)-before {
		t.Errorf("%v in a span of less than %v", d, time.Since(start)-before)
	}
}

// A Timer works on every device. Wait panics if it was not stopped.
func TestTimerOfAllDevices(t *testing.T) {
	devices(t, func(t *testing.T, on device.Device) {
		start := time.Now()
		timer := asyncrt.StartTimer()
		x := tensor.On(on).Ones(64, 64)
		for range 20 {
			x = x.MatMul(x).MulScalar(1. / 64)
		}
		timer.Stop()
		d := timer.Wait()
		if limit := time.Since(start); d <= 0 || d > limit {
			t.Errorf("%v, want more than nothing and at most %v", d, limit)
		}
		if !x.Ready() {
			t.Error("Wait returned early")
		}
	})
	defer func() {
		if recover() == nil {
			t.Error("Wait of a running Timer returned")
		}
	}()
	asyncrt.StartTimer().Wait()
}

// WaitIdle waits for all devices. Failures are still returned to later calls.
func TestWaitIdle(t *testing.T) {
	on, g := gated()
	x := tensor.On(on).Ones(1)
	if err := x.Wait(); err != nil {
		t.Fatal(err)
	}
	y := x.Tanh()
	failed := tensor.Ones(3).Take(0, tensor.From([]int64{7}))
	idle := make(chan bool)
	go func() {
		asyncrt.WaitIdle()
		idle <- y.Ready() && failed.Ready()
	}()
	g.let(1)
	if !<-idle {
		t.Error("not all is finished")
	}
	if err := asyncrt.WaitAll(); err == nil || !strings.Contains(err.Error(), "index 7") {
		t.Errorf("WaitAll returns %v", err)
	}
	asyncrt.WaitIdle() // nothing is left
	if err := asyncrt.Try(func() { failed.Item() }); err == nil {
		t.Error("a failed tensor is read")
	}
}
