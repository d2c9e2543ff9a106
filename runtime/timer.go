package asyncrt

import (
	"context"
	"fmt"
	"time"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/runtime/internal/engine"
)

// A Timer measures how long a span of a program keeps devices busy. A clock
// read before and after the span would measure how long it takes to enqueue
// its operations, unless the span waits for them.
//
//	timer := asyncrt.StartTimer()
//	for range 100 {
//		y = y.MatMul(x)
//	}
//	timer.Stop()
//	fmt.Println(timer)        // 31µs, enqueueing alone: not finished
//	fmt.Println(timer.Wait()) // 1.52s
//
// The span begins when everything enqueued before StartTimer has finished, which may be later than the call. It
// ends when everything enqueued before Stop has finished. What other goroutines enqueue on the same devices
// meanwhile is part of it. If nobody waits for a device with a queue of its own, the runtime may notice somewhat
// late that it has finished.
//
// If the program has used a simulated device in virtual time before (package device/sim), the times are virtual.
//
// A Timer is for one goroutine at a time.
type Timer struct {
	devices     []device.Device
	start, stop time.Duration // when StartTimer and Stop were called
	from, to    *engine.Mark  // to is nil before Stop
}

// StartTimer starts a Timer of the given devices, or of all. It does not wait.
//
//asyncgen:api poll
//go:noinline
func StartTimer(devices ...device.Device) *Timer {
	t := &Timer{}
	for _, d := range devices {
		t.devices = append(t.devices, d.Or())
	}
	t.start = engine.Default().Now()
	t.from = engine.Default().Mark(t.devices...)
	return t
}

// Stop ends the span. It does not wait. Stopping again moves the end.
//
//asyncgen:api poll
//go:noinline
func (t *Timer) Stop() {
	t.stop = engine.Default().Now()
	t.to = engine.Default().Mark(t.devices...)
}

// Enqueued returns the time from StartTimer to Stop, or until now if the Timer was not stopped: how long the
// program took to enqueue the span, and for everything else that it did meanwhile. It never waits.
//
//asyncgen:api poll
func (t *Timer) Enqueued() time.Duration {
	if t.to == nil {
		return engine.Default().Now() - t.start
	}
	return t.stop - t.start
}

// Elapsed returns how long the devices took, and true. If they have not finished, or the Timer was not stopped, it
// returns 0 and false. It never waits.
//
//asyncgen:api poll
func (t *Timer) Elapsed() (d time.Duration, finished bool) {
	if t.to == nil {
		return 0, false
	}
	end, ok := t.to.Reached()
	if !ok {
		return 0, false
	}
	begin, ok := t.from.Reached()
	if !ok {
		return 0, false
	}
	return end - begin, true
}

// Wait waits until the devices have finished what was enqueued before Stop, and returns how
// long they took. It panics if the Timer was not stopped. Failures of operations
// are left to WaitAll; with [SyncMode] Error it may panic with a [*SyncError].
//
//asyncgen:api waitall
//go:noinline
func (t *Timer) Wait() time.Duration {
	if t.to == nil {
		panic("asyncrt: Wait of a Timer that was not stopped")
	}
	for _, m := range []*engine.Mark{t.from, t.to} {
		if err := m.Wait(context.Background(), "Timer.Wait"); err != nil {
			panic(err)
		}
	}
	d, _ := t.Elapsed()
	return d
}

// String returns the time of Elapsed if the devices have finished. Otherwise it returns that of Enqueued, and says
// so. It never waits.
//
//asyncgen:api poll
func (t *Timer) String() string {
	if d, ok := t.Elapsed(); ok {
		return d.String()
	}
	if t.to == nil {
		return fmt.Sprintf("%v, not stopped", t.Enqueued())
	}
	return fmt.Sprintf("%v, enqueueing alone: not finished", t.Enqueued())
}

// WaitIdle waits until everything enqueued so far has finished, on all devices. Call it before you read a clock.
// Unlike WaitAll, it leaves failures of operations to reads and to WaitAll. With [SyncMode] Error it may panic with
// a [*SyncError].
//
//	start := time.Now()
//	y := x.MatMul(w)
//	asyncrt.WaitIdle()
//	fmt.Println(time.Since(start)) // how long it took to compute y, not to ask for it
//
//asyncgen:api waitall
//go:noinline
func WaitIdle() {
	if err := engine.Default().Mark().Wait(context.Background(), "WaitIdle"); err != nil {
		panic(err)
	}
}
