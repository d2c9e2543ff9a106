package engine

import (
	"runtime"
	"sync/atomic"
	"time"

	"github.com/asyncgen/asyncgen/internal/bubble"
)

// Before a goroutine parks, it looks for work, or for room, maxLooks times, each after so many PAUSE
// instructions; about 50 µs together on an AMD EPYC (Zen 4). A worker that looks helps with the next
// loop at once, and one that sleeps comes 25 µs late: loops of 40 to 120 µs, one after the other, took
// 1.1 to 1.7 times as long on two cores with a look of 20 µs.
const (
	pauses   = 20
	maxLooks = 120
)

// looksOf returns how often goroutines look before they park. With a single processor it is 0:
// looking would only keep others from working.
func looksOf(processors int) int {
	if processors == 1 {
		return 0
	}
	return maxLooks
}

// How many calls in a row backoff and doze make before they do more than pause.
const (
	looksToYield = 100  // before backoff yields
	looksToSleep = 200  // before backoff sleeps
	looksToDoze  = 2000 // before doze sleeps in a bubble, where a sleep moves the bubble's clock
)

const backoffSleep = 20 * time.Microsecond

// backoff passes some time, while the caller waits for something that usually takes nanoseconds. i
// counts the calls in a row. The caller may hold locks, so the sleep is outside of any bubble: a
// bubble's time must not pass meanwhile.
func backoff(i int) {
	switch {
	case i < looksToYield:
		pause(4)
	case i < looksToSleep:
		runtime.Gosched()
	default: // the other goroutine has no processor: give it ours
		bubble.Sleep(backoffSleep)
	}
}

// doze is backoff while the caller waits for a goroutine that may itself be asleep. The caller may
// hold turns, but no other lock. If the engine lives in a bubble, the bubble's time passes meanwhile.
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

// A spinLock guards critical sections that take nanoseconds. It is not fair.
type spinLock struct{ held atomic.Bool }

// lock waits until nobody has the lock, see backoff, and takes it. Whoever has it must wait for
// nothing meanwhile.
func (l *spinLock) lock() {
	for i := 0; !l.held.CompareAndSwap(false, true); i++ {
		backoff(i)
	}
}

// unlock lets go of the lock. Nobody has to be woken.
func (l *spinLock) unlock() { l.held.Store(false) }

// epoch is when the program started, nearly.
var epoch = time.Now()

// now returns the time since the program started.
func now() time.Duration { return time.Since(epoch) }
