//go:build linux && (amd64 || arm64)

package engine

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"
)

// A thread that sleeps in the kernel and has nothing else to do: the least time that a wake takes on the
// machine.
var systemWakers = []waker{{"thread", func(b *testing.B, f func()) (wake, stop func()) {
	var word atomic.Uint32
	const asleep, called, over = 0, 1, 2
	done := make(chan struct{})
	go func() {
		runtime.LockOSThread() // and end with it
		defer close(done)
		for {
			for word.Load() == asleep {
				futexWait(&word, asleep, time.Hour)
			}
			if word.Load() == over {
				return
			}
			word.Store(asleep)
			f()
		}
	}()
	set := func(v uint32) {
		word.Store(v)
		futexWake(&word)
	}
	return func() { set(called) }, func() { set(over); <-done }
}}}
