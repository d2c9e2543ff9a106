package engine

import (
	"runtime"
	"sync/atomic"
	"time"

	"github.com/asyncgen/asyncgen/internal/bubble"
)

// How a goroutine looks for work, or for room, before it parks: a number of times, each after a
// number of PAUSE instructions; about 20 µs together.
const (
	pauses   = 20
	maxLooks = 50
)

// looksOf is how often goroutines look before they park. With a single processor that would only keep others from working.
func looksOf(processors int) int {
	if processors == 1 {
		return 0
	}
	return maxLooks
}

// backoff is called for the i-th time in a row when something that takes nanoseconds has not yet happened.
func backoff(i int) {
	switch {
	case i < 100:
		pause(4)
	case i < 200, i < 2000 && bubble.In(): // there, to sleep is to have time pass
		runtime.Gosched()
	default: // whoever is to do it has no processor: leave it ours
		time.Sleep(20 * time.Microsecond)
	}
}

// A spinLock guards sections of nanoseconds. It is unfair.
type spinLock struct{ held atomic.Bool }

func (l *spinLock) lock() {
	for i := 0; !l.held.CompareAndSwap(false, true); i++ {
		backoff(i)
	}
}

func (l *spinLock) unlock() { l.held.Store(false) }

var epoch = time.Now()

// now is the time since the program started.
func now() time.Duration { return time.Since(epoch) }
