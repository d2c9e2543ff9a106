package device

import (
	"sync/atomic"
	"time"
)

// A VirtualClock is the time of a program by a model: it moves when the program does something, by
// as much as the model says, and never by itself. All devices of a process whose times come from a
// model share one. The zero clock is at 0. It never goes back.
//
// What is a program's time when several goroutines use such devices is theirs to know: each of them
// moves the one clock.
type VirtualClock struct{ now atomic.Int64 }

// Now is the time of the program.
func (c *VirtualClock) Now() time.Duration { return time.Duration(c.now.Load()) }

// Spend moves the clock: the program has been busy for d. It returns the time after that.
func (c *VirtualClock) Spend(d time.Duration) time.Duration {
	return time.Duration(c.now.Add(int64(d)))
}

// Reach moves the clock to t, unless it is there: the program has waited until then. It returns for how long.
func (c *VirtualClock) Reach(t time.Duration) (waited time.Duration) {
	for {
		now := c.now.Load()
		if int64(t) <= now {
			return 0
		}
		if c.now.CompareAndSwap(now, int64(t)) {
			return t - time.Duration(now)
		}
	}
}

// A Stamp is the times of a command by a VirtualClock.
type Stamp struct {
	// when the program wanted it, and what the device can't know of is there; written before Submit
	Issued   time.Duration
	finished atomic.Int64
}

// Finish notes when the command is seen to be finished. A backend does so before it is Done.
func (s *Stamp) Finish(t time.Duration) { s.finished.Store(int64(t)) }

// Finished is what Finish has noted, or 0.
func (s *Stamp) Finished() time.Duration { return time.Duration(s.finished.Load()) }

// VirtualOf returns the clock that b's times are by, and what it costs a program to enqueue a
// command. It is nil if they are real: it is optional for a Backend to have a method
//
//	Virtual() (clock *VirtualClock, host time.Duration)
//
// Then what Done says has nothing to do with the clock: results are there as soon as they are, and
// whoever waits for one in the name of the program moves the clock to the time that the backend
// notes in Command.Stamp.
func VirtualOf(b Backend) (clock *VirtualClock, host time.Duration) {
	if b, ok := b.(interface {
		Virtual() (*VirtualClock, time.Duration)
	}); ok {
		return b.Virtual()
	}
	return nil, 0
}
