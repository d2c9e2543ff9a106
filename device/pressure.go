package device

import (
	"math"
	"runtime"
	"runtime/metrics"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asyncgen/asyncgen/internal/bubble"
)

// Blocks are put back when the collector finds that nothing refers to their Buffers any more. Left to
// itself, the collector would run too late: it sees handles of a few hundred bytes, not the megabytes
// behind them. So an Allocator calls it.

const (
	minPressure = 64 << 20 // the collector is called after this many bytes are handed out, or later
	idleFactor  = 19       // a collection is followed by a pause this many times as long: 5 % of the time at most
	// payRate is how many bytes of garbage are worth a nanosecond of collections beyond that. Memory that was used
	// lately is in the caches: a loop that drops 4 MiB in each iteration took 0.15 to 0.2 ns a byte longer when it
	// went through half a gigabyte before a collection (two cores of an AMD EPYC, Zen 4). So a collection takes at most
	// a sixth of what it saves.
	payRate = 40
	// usualTime is how long a first collection takes, and surprise how many times as long as the last one the next is
	// taken to be at most: where the system had no processor for it, a collection took 60 ms instead of one.
	usualTime = time.Millisecond
	surprise  = 4
)

// pressure decides when an Allocator calls the collector.
type pressure struct {
	isOff bool         // nothing is garbage, see NewPool
	due   atomic.Int64 // press is called when Allocator.handedOut has reached this

	mu      sync.Mutex    // held during a collection; guards the rest
	earlier int64         // handedOut when the last collection ended
	live    int64         // Live when the last collection ended
	need    int64         // how much has to be handed out before the next one
	rested  time.Time     // when the next one may begin
	took    time.Duration // how long a collection takes, by the last ones
	spent   time.Duration // time for collections beyond the 5 %, see collectInstead
	collect func()
	now     func() time.Time
}

func (p *pressure) init() {
	p.need = minPressure
	p.took = usualTime
	p.due.Store(minPressure)
	p.collect, p.now = Collect, bubble.Now
}

// handedOut is how many bytes were handed out since the beginning, with those of Reused.
func (a *Allocator) handedOut() int64 { return a.allocated.Load() + a.reused.Load() }

func (a *Allocator) pressIfDue() {
	if a.handedOut() >= a.pressure.due.Load() {
		a.press()
	}
}

// press calls the collector if it is time. It does nothing while another goroutine does so.
func (a *Allocator) press() {
	p := &a.pressure
	if !p.mu.TryLock() {
		return
	}
	defer p.mu.Unlock()
	handed := a.handedOut()
	if left := p.need - (handed - p.earlier); left > 0 {
		p.due.Store(handed + left)
		return
	}
	start := p.now()
	if garbage := a.Live() - p.live; start.Before(p.rested) && garbage < max(p.need, payRate*p.took.Nanoseconds()) {
		p.due.Store(handed + p.need/8) // look again, but not each time
		return
	}
	a.collectLocked(start)
}

// collectLocked calls the collector. start is the time now, and a.pressure.mu is held.
func (a *Allocator) collectLocked(start time.Time) {
	p := &a.pressure
	p.due.Store(math.MaxInt64)
	p.collect()
	end := p.now()
	p.took = min(end.Sub(start), surprise*max(p.took, usualTime))
	p.rested = end.Add(idleFactor * p.took)
	p.earlier = a.handedOut()
	p.live = a.Live()
	p.need = max(minPressure, p.live/2)
	p.due.Store(p.earlier + p.need)
}

// touchRate is how many bytes of fresh memory are made usable in a nanosecond: the system has to
// find and clear them. Between 0.2 (a busy virtual machine) and 12 (bare metal, huge pages) were
// measured.
const touchRate = 1

// collectInstead calls the garbage collector instead of mapping a region for a block of the given
// size, if there may be enough garbage and a collection is cheaper. It reports whether it did. One
// collection costs less than a region, but without the region there will be more of them. So
// collections get 5 % of the time and, beyond that, half of the cost of a region. After that,
// collectInstead reports false, and the region is mapped.
func (a *Allocator) collectInstead(bytes int64) bool {
	p := &a.pressure
	region := max(bytes, minRegion)
	if p.isOff || a.allocated.Load() < region || !p.mu.TryLock() { // the first blocks of a program
		return false
	}
	defer p.mu.Unlock()
	if a.handedOut()-p.earlier < max(region, a.Live()/4) {
		return false
	}
	start := p.now()
	if start.Before(p.rested) {
		if p.spent+p.took > time.Duration(region/touchRate/2) {
			p.spent = 0
			return false
		}
		p.spent += p.took
	}
	a.collectLocked(start)
	return true
}

// Collect runs the garbage collector, and returns when the Buffers that nothing refers to any more
// have been freed. To that end it waits for the cleanups of package runtime that are due, but no
// longer than maxCleanup: cleanups of the program may be slow, or wait for the caller.
func Collect() { bubble.Outside(collect) } // in a bubble, no time passes and maxCleanup never ends

func collect() { cleanups.collect(runtime.GC, cleanupReader(), maxCleanup) }

// cleanupQueue knows what package runtime has not called of its cleanups.
type cleanupQueue struct {
	// abandoned is how many a call has waited for in vain: they are slow, or lost. Where GOMAXPROCS is reduced, package
	// runtime forgets the cleanups that wait at the processors that go, but has them in its count.
	abandoned atomic.Uint64
}

var cleanups, neededCleanups cleanupQueue // for Collect; for Reclaim, which waits longer

// collect runs gc, and waits until no more cleanups are due than have been abandoned, but no longer than limit.
// read tells how many were ever queued and executed.
func (c *cleanupQueue) collect(gc func(), read func() (queued, executed uint64), limit time.Duration) {
	queued, executed := read()
	if due := queued - executed; due < c.abandoned.Load() {
		c.abandoned.Store(due)
	}
	gc()
	abandoned := c.abandoned.Load()
	queued, executed = read()
	for begin := time.Now(); queued > executed+abandoned; _, executed = read() {
		switch took := time.Since(begin); {
		case took >= limit:
			c.abandoned.Store(queued - executed)
			return
		case took < time.Millisecond:
			runtime.Gosched()
		default: // the goroutine that calls them may need this processor
			time.Sleep(50 * time.Microsecond)
		}
	}
}

// cleanupReader returns a function that tells how many cleanups package runtime has ever queued and executed.
func cleanupReader() func() (queued, executed uint64) {
	samples := []metrics.Sample{{Name: "/gc/cleanups/queued:cleanups"}, {Name: "/gc/cleanups/executed:cleanups"}}
	return func() (queued, executed uint64) {
		metrics.Read(samples)
		return samples[0].Value.Uint64(), samples[1].Value.Uint64()
	}
}

// maxReclaim is how long Reclaim waits for cleanups. On a busy machine the goroutine that calls them may get no
// processor for as long as maxCleanup.
const maxReclaim = maxCleanup + 5*time.Second

// Reclaim is Collect for when memory has run out. It waits longer. It reports whether any of a's blocks were freed
// meanwhile.
func (a *Allocator) Reclaim() bool {
	before := a.freed.Load()
	bubble.Outside(func() { neededCleanups.collect(runtime.GC, cleanupReader(), maxReclaim) })
	return a.freed.Load() != before
}
