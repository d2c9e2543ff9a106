package device

import (
	"sync/atomic"
	"time"
)

// A VirtualClock is the time of a program according to a model. It moves when the program does
// something, by as much as the model says. It never moves by itself, and never back. All devices of a
// process whose times come from a model share one clock. The zero clock is at 0.
//
// If several goroutines use such devices, each of them moves the one clock. What its time then means
// is up to the program.
type VirtualClock struct{ now atomic.Int64 }

// Now is the time of the program.
func (c *VirtualClock) Now() time.Duration { return time.Duration(c.now.Load()) }

// Spend moves the clock: the program has been busy for d. It returns the time after that.
func (c *VirtualClock) Spend(d time.Duration) time.Duration {
	return time.Duration(c.now.Add(int64(d)))
}

// Reach moves the clock to t, unless it is there or later: the program has waited until then. It returns how long it
// waited.
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

// A Stamp has the times of a command by a VirtualClock.
type Stamp struct {
	// Issued is when the program enqueued the command, or when its inputs on other devices were
	// ready, if that is later. It is written before Submit.
	Issued time.Duration
	// Began and Ended are when the device executed the command, and Queue tells its queues apart, if it has several.
	// They are written before Finish; both times are 0 if the device can't tell.
	Began, Ended time.Duration
	Queue        int
	finished     atomic.Int64
}

// Finish notes when the program can see that the command has finished. A backend calls it before the
// command is Done.
func (s *Stamp) Finish(t time.Duration) { s.finished.Store(int64(t)) }

// Finished is what Finish has noted, or 0.
func (s *Stamp) Finished() time.Duration { return time.Duration(s.finished.Load()) }

// VirtualOf returns the clock of b's times, and what it costs a program to enqueue a command. The clock
// is nil if the times are real, or if b does not have the optional method
//
//	Virtual() (clock *VirtualClock, host time.Duration)
//
// Done does not depend on the clock: it is true as soon as the result really exists. Whoever waits for
// a result on behalf of the program moves the clock to the time that the backend has noted in
// Command.Stamp.
func VirtualOf(b Backend) (clock *VirtualClock, host time.Duration) {
	if b, ok := b.(interface {
		Virtual() (*VirtualClock, time.Duration)
	}); ok {
		return b.Virtual()
	}
	return nil, 0
}
