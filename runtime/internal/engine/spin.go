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

// looksOf is how often goroutines look before they park. With a single processor that would only
// keep others from working.
func looksOf(processors int) int {
	if processors == 1 {
		return 0
	}
	return maxLooks
}

// How often backoff is called in a row before it yields, and before it sleeps, and doze before it sleeps in a bubble.
const (
	looksToYield = 100
	looksToSleep = 200
	looksToDoze  = 2000 // there, to sleep is to have time pass
)

const backoffSleep = 20 * time.Microsecond

// backoff is called for the i-th time in a row when something that takes nanoseconds has not yet happened.
// The caller may hold locks, so no bubble's time passes meanwhile.
func backoff(i int) {
	switch {
	case i < looksToYield:
		pause(4)
	case i < looksToSleep:
		runtime.Gosched()
	default: // whoever is to do it has no processor: leave it ours
		bubble.Sleep(backoffSleep)
	}
}

// doze is backoff for what somebody has to do who may be asleep himself. The caller holds no lock but turns.
// If the engine has a bubble of its own, its time passes meanwhile.
func (e *Engine) doze(i int) {
	switch {
	case i < looksToSleep || !e.onChannels():
		backoff(i)
	case i < looksToDoze:
		runtime.Gosched()
	default:
		time.Sleep(backoffSleep)
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
