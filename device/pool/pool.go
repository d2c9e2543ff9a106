// Package pool lets several goroutines share the work of one loop. It is for
// loops that take much longer than starting a goroutine does, some 100
// microseconds at least, and whose results do not depend on how they are cut.
//
// All loops of the process share the same few helpers, one less than
// GOMAXPROCS, and no loop waits for one: whoever calls [Run] does what nobody
// helps with. A helper is a goroutine that somebody lends (see [Lend]) or
// one that exists while it helps.
package pool

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// helpers is how many goroutines help now, with any loop.
var helpers atomic.Int64

// Run calls f(lo, hi) for ranges that together are 0 to n, each once, at the
// same time on the calling goroutine and on others. A range has at least
// grain elements, but for the last. Run returns when all calls have.
//
// If a call panics, no further ranges are begun and Run panics with the same value: that
// of the first range, should there be several.
func Run(n, grain int, f func(lo, hi int)) {
	most := runtime.GOMAXPROCS(0)
	if n <= grain || most == 1 {
		if n > 0 {
			f(0, n)
		}
		return
	}
	// A few ranges for each goroutine, as some will be slower than others.
	chunk := max(grain, (n+4*most-1)/(4*most))
	l := &loop{n: n, chunk: chunk, f: f}
	l.finished.L = &l.mu
	chunks := (n + chunk - 1) / chunk
	for range min(most, chunks) - 1 {
		if helpers.Add(1) > int64(most-1) {
			helpers.Add(-1)
			break
		}
		if help := l.help; !borrow(help) {
			go help()
		}
	}
	l.work()
	l.join()
}

// A lender is somebody who has goroutines that are idle now and then.
type lender struct {
	ask func(help func()) bool
}

var (
	lending sync.Mutex // held while lenders changes
	lenders atomic.Pointer[[]*lender]
)

// Lend offers goroutines that are idle now and then as helpers: that is
// faster than to start new ones, and may be the only way to have the processors that they
// occupy while they are idle. Run calls ask for each helper it wants; ask has one of the goroutines call help soon, or reports false if
// none is idle. It does not wait, and may be called at any time until end has returned and the calls of it that had begun have.
func Lend(ask func(help func()) bool) (end func()) {
	l := &lender{ask}
	change(func(all []*lender) []*lender { return append(all, l) })
	return func() {
		change(func(all []*lender) []*lender {
			return slices.DeleteFunc(all, func(have *lender) bool { return have == l })
		})
	}
}

func change(f func([]*lender) []*lender) {
	lending.Lock()
	defer lending.Unlock()
	var all []*lender
	if old := lenders.Load(); old != nil {
		all = slices.Clone(*old)
	}
	all = f(all)
	lenders.Store(&all)
}

// borrow has a goroutine of somebody else call help. It reports false if there is none.
func borrow(help func()) bool {
	all := lenders.Load()
	if all == nil || len(*all) == 0 || inBubble() {
		return false
	}
	for _, l := range *all {
		if l.ask(help) {
			return true
		}
	}
	return false
}

// inBubble reports whether the caller is in a bubble of testing/synctest, where goroutines can't wait for those
// outside. The clock gives it away: its readings have no monotonic part there.
func inBubble() bool {
	now := time.Now()
	return now == now.Round(0)
}

// A loop is one call of Run.
type loop struct {
	n, chunk int
	f        func(lo, hi int)
	next     atomic.Int64 // where the next range begins

	mu       sync.Mutex // guards what follows
	finished sync.Cond  // active went to 0
	active   int        // helpers at work
	over     bool       // helpers that come now are too late
	panicked bool
	panicAt  int // of the first range that panicked
	value    any
}

func (l *loop) help() {
	defer helpers.Add(-1)
	l.mu.Lock()
	if l.over {
		l.mu.Unlock()
		return
	}
	l.active++
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.active--; l.active == 0 {
			l.finished.Signal()
		}
	}()
	l.work()
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

// join waits for the helpers that have begun.
func (l *loop) join() {
	l.mu.Lock()
	l.over = true
	for l.active > 0 {
		l.finished.Wait()
	}
	l.mu.Unlock()
	if l.panicked {
		panic(l.value)
	}
}
