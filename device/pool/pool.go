// Package pool lets several goroutines share the work of one loop. It is for
// loops that take much longer than starting a goroutine does, some 100
// microseconds at least, and whose results do not depend on how they are cut.
//
// All loops of the process share the same few helpers, one less than
// GOMAXPROCS, and no loop waits for one: whoever calls [Run] does what nobody
// helps with. A helper is a goroutine that exists while it helps.
package pool

import (
	"runtime"
	"sync"
	"sync/atomic"
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
		go l.help()
	}
	l.work()
	l.join()
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
