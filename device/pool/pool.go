// Package pool lets several goroutines share the work of one loop whose
// results do not depend on how it is cut.
//
// All loops of the process share the same few helpers, one less than GOMAXPROCS, and no loop waits
// for one: whoever calls [Run] does what nobody helps with. A helper is a goroutine that somebody
// lends (see [Lend]) or one that exists while it helps. One that is awake begins within a fraction
// of a microsecond. One that has to be woken or started begins after some microseconds, which also
// cost the caller some. So short loops are shared with those only that are awake. One that has
// become idle joins a long loop (see [Help]).
package pool

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/asyncgen/asyncgen/internal/bubble"
)

// finest is how many times less than what is worth waking a helper a range has at least: half a
// microsecond's work. A helper that is awake begins after 0.55 µs, and a loop of 1.6 µs took 1.2
// (BenchmarkSharedLoop of the engine, on two busy cores of an AMD EPYC, Zen 4).
const finest = 32

// helpers is how many goroutines help now, with any loop.
var helpers atomic.Int64

// Worth reports whether [Run] would probably share a loop over n elements, rather than do all in one go. Callers need
// not ask: it is for those to whom preparing Run costs more than asking.
func Worth(n, grain int) bool {
	return n > grain || n >= 2*leastRange(grain) && anyAwake()
}

func leastRange(grain int) int { return max(1, grain/finest) }

// Run calls f(lo, hi) for ranges that together are 0 to n, each once, at the
// same time on the calling goroutine and on others. Run returns when all calls have.
//
// grain is how many elements are worth waking a helper for: 15 to 25 microseconds' work. A loop
// over more has helpers woken or started, one over fewer is shared with those that are awake. A
// range has at least a 32nd of grain, but for the last.
//
// If a call panics, no further ranges are begun and Run panics with the same value: that
// of the first range, should there be several.
func Run(n, grain int, f func(lo, hi int)) {
	most := runtime.GOMAXPROCS(0)
	least := leastRange(grain)
	if n <= least || most == 1 {
		if n > 0 {
			f(0, n)
		}
		return
	}
	// A few ranges for each goroutine, as some will be slower than others.
	chunk := max(least, (n+4*most-1)/(4*most))
	l := &loop{n: n, chunk: chunk, f: f}
	chunks := (n + chunk - 1) / chunk
	for range min(most, chunks) - 1 {
		if !l.engage(most-1, n > grain) {
			if n > grain && !bubble.In() {
				defer l.advertise()()
			}
			break
		}
	}
	l.work()
	l.join()
}

// open are loops that have found fewer helpers than they want.
var open [8]atomic.Pointer[loop]

// advertise has Help find l, if there is room for it, until end is called.
func (l *loop) advertise() (end func()) {
	for i := range open {
		if open[i].CompareAndSwap(nil, l) {
			return func() { open[i].Store(nil) }
		}
	}
	return func() {}
}

// Help takes part in a loop that found too few helpers when it began, if there is one that has
// ranges left, and reports whether it has done so. Goroutines that are idle now and then call it
// before they sleep: all may have been busy when a long loop began. It must not be called in a
// bubble of testing/synctest.
func Help() bool {
	for i := range open {
		l := open[i].Load()
		if l == nil || l.next.Load() >= int64(l.n) {
			continue
		}
		if helpers.Add(1) > int64(runtime.GOMAXPROCS(0)-1) {
			helpers.Add(-1)
			return false
		}
		l.help()
		return true
	}
	return false
}

// engage finds a helper, if fewer than the given number help now. It reports false if there is none. If wake
// is set it may wake or start one.
func (l *loop) engage(most int, wake bool) bool {
	if !wake && !anyAwake() {
		return false
	}
	if helpers.Add(1) > int64(most) {
		helpers.Add(-1)
		return false
	}
	help := l.help
	if borrow(help, wake) {
		return true
	}
	if wake {
		go func() {
			help()
			for !bubble.In() && Help() {
			}
		}()
		return true
	}
	helpers.Add(-1)
	return false
}

// A Lender is somebody who has goroutines that are idle now and then. Its methods do not wait.
type Lender interface {
	// Ask has an idle goroutine call help soon, one that is awake or, if wake is set, one that has to be woken. It
	// reports false if there is none.
	Ask(help func(), wake bool) bool
	// Awake reports whether Ask would probably find one that is awake.
	Awake() bool
}

var (
	lending sync.Mutex // held while lenders changes
	lenders atomic.Pointer[[]Lender]
)

// Lend offers goroutines that are idle now and then as helpers: that is
// faster than to start new ones, and may be the only way to have the processors that they
// occupy while they are idle. Run asks for each helper that it wants. The
// methods of l may be called at any time until end has returned and the calls that had begun have.
func Lend(l Lender) (end func()) {
	change(func(all []Lender) []Lender { return append(all, l) })
	return func() {
		change(func(all []Lender) []Lender {
			return slices.DeleteFunc(all, func(have Lender) bool { return have == l })
		})
	}
}

func change(f func([]Lender) []Lender) {
	lending.Lock()
	defer lending.Unlock()
	all := f(slices.Clone(allLenders()))
	lenders.Store(&all)
}

func allLenders() []Lender {
	if all := lenders.Load(); all != nil {
		return *all
	}
	return nil
}

func anyAwake() bool {
	return slices.ContainsFunc(allLenders(), Lender.Awake)
}

// borrow has a goroutine of somebody else call help. It reports false if there is none.
func borrow(help func(), wake bool) bool {
	all := allLenders()
	if len(all) == 0 || bubble.In() {
		return false
	}
	return slices.ContainsFunc(all, func(l Lender) bool { return l.Ask(help, wake) })
}

// A loop is one call of Run.
//
// state has how many helpers are at work in its low bits, and above them over, when helpers that come now
// are too late, and parked, when the caller sleeps until there are none.
type loop struct {
	n, chunk int
	f        func(lo, hi int)
	next     atomic.Int64 // where the next range begins
	state    atomic.Uint32
	finished chan struct{} // has a token when no helper is left; made before parked is set

	mu       sync.Mutex // guards what follows
	panicked bool
	panicAt  int // of the first range that panicked
	value    any
}

const (
	over   uint32 = 1 << 31
	parked uint32 = 1 << 30
)

func (l *loop) help() {
	defer helpers.Add(-1)
	defer l.leave()
	if l.state.Add(1)&over == 0 {
		l.work()
	}
}

// leave is the end of a helper, whether it came in time or not.
func (l *loop) leave() {
	if l.state.Add(^uint32(0)) == over|parked {
		select {
		case l.finished <- struct{}{}:
		default: // somebody who came too late was here before
		}
	}
}

// work takes ranges until none is left.
func (l *loop) work() {
	for {
		lo := int(l.next.Add(int64(l.chunk))) - l.chunk
		if lo >= l.n {
			return
		}
		l.call(lo, min(lo+l.chunk, l.n))
	}
}

func (l *loop) call(lo, hi int) {
	isPanicking := true
	defer func() {
		if !isPanicking {
			return
		}
		value := recover()
		l.next.Store(int64(l.n))
		l.mu.Lock()
		if !l.panicked || lo < l.panicAt {
			l.panicked, l.panicAt, l.value = true, lo, value
		}
		l.mu.Unlock()
	}()
	l.f(lo, hi)
	isPanicking = false
}

// join waits for the helpers that have begun: awake for a while, as they are about to finish if
// they have a processor, and then asleep.
func (l *loop) join() {
	l.state.Or(over)
	for i := 0; l.state.Load() != over && i < looks; i++ {
		pause(pauses)
	}
	if l.state.Load() != over {
		l.finished = make(chan struct{}, 1)
		if l.state.Or(parked) != over {
			<-l.finished
		}
	}
	if l.panicked {
		panic(l.value)
	}
}

// How often join looks before it sleeps, and how many PAUSE instructions it waits in between: about 20 µs together.
const (
	looks  = 250
	pauses = 4
)
