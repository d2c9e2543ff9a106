package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
	"weak"
)

// A program may read results later than it was written to (asyncrt.Later). Functions that it has put
// off keep these results alive, so memory may run out only because of them. So an operation
// that finds no memory does not fail while there is a backlog: it is put back among the ready ones,
// and the goroutine that was to execute it waits until a backlog was run. Each owner runs its
// backlog where its program allows that, never in the middle of something else. It notices that
// memory is short when it gets to such a place, or while it waits there.
//
// A goroutine that waits elsewhere can't run its backlog. If it needs the operation itself, it will
// try to execute it, like every waiter; then the operation fails, unless other goroutines have
// backlogs.

// A Backlog stands for the functions that one goroutine has put off. Only that goroutine may use it.
type Backlog struct {
	e  *Engine
	me weak.Pointer[Backlog]
	// owner is the goroutine, see self.
	owner uintptr
	// entries counts the functions that have not run. It outlives a Backlog that is dropped, so
	// that its loss can be reported.
	entries *atomic.Int32
	yields  atomic.Bool // the owner waits where it can run them, see Yield
	isStuck atomic.Bool // the owner waits where it can't run them
}

// relief is what an engine knows of backlogs.
type relief struct {
	n atomic.Int32 // backlogs, with entries or without
	// short says that an operation found no memory, and that no backlog was run since. hold sets
	// it, Relieve clears it.
	short atomic.Bool
	turns atomic.Uint64 // how often a backlog was run because of that

	hasLeft atomic.Bool // left is not empty

	mu sync.Mutex // guards the rest
	// of is every backlog that has not ended. It holds them weakly, so that one that the program
	// drops is noticed.
	of   map[weak.Pointer[Backlog]]entries
	left []error // for takeLeft
}

// entries are what is known of a Backlog even after it was dropped.
type entries struct {
	n  *atomic.Int32
	pc uintptr // of the call that made it
}

// A patience says for which backlogs an operation that finds no memory waits.
type patience uint8

const (
	forAll    patience = iota // for all of them
	forOthers                 // for all but those of the goroutine that executes it
	forNone                   // for none: the operation fails
)

// maxHold is how long an operation waits at most for a goroutine that does not run its backlog.
const maxHold = 10 * time.Second

// errShort ends a wait because a backlog has to be run, see Backlog.Yield.
var errShort = errors.New("engine: memory is short")

// untilShort is the context of a wait that may end with errShort.
var untilShort context.Context = struct{ context.Context }{context.Background()}

// NewBacklog returns a Backlog of the calling goroutine. The engine forgets it at its End, or when
// nothing refers to it any more.
func (e *Engine) NewBacklog() *Backlog {
	b := &Backlog{e: e, owner: self(), entries: new(atomic.Int32)}
	b.me = weak.Make(b)
	r := &e.relief
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of == nil {
		r.of = map[weak.Pointer[Backlog]]entries{}
	}
	r.of[b.me] = entries{b.entries, callerPC()}
	r.n.Store(int32(len(r.of)))
	return b
}

// End says that b is not used any more.
func (b *Backlog) End() {
	r := &b.e.relief
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.of, b.me)
	r.n.Store(int32(len(r.of)))
}

// Add says that n functions were put off or, if n is negative, that -n of them have run.
func (b *Backlog) Add(n int) { b.entries.Add(int32(n)) }

// IsShort reports whether an operation waits for backlogs to be run.
func (e *Engine) IsShort() bool { return e.relief.short.Load() }

// Relieve says that the owner of a backlog has run what it could.
func (e *Engine) Relieve() {
	e.relief.short.Store(false)
	e.relief.turns.Add(1)
	e.stalled.wake()
}

// Yield calls f. Waits of the calling goroutine in f end early if a backlog has to be run; then what
// they waited for may not be Ready.
func (b *Backlog) Yield(f func()) {
	b.yields.Store(true)
	defer b.yields.Store(false)
	f()
}

// backlogs calls f for each backlog with entries, until f returns false. It also forgets backlogs that
// were dropped, and notes an error for those that had entries.
func (r *relief) backlogs(f func(b *Backlog) bool) {
	if r.n.Load() == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for p, x := range r.of {
		b := p.Value()
		if b == nil {
			if n := x.n.Load(); n > 0 {
				r.left = append(r.left, leftAt(x.pc, fmt.Sprintf("has put off %d functions, which will never run", n)))
				r.hasLeft.Store(true)
			}
			delete(r.of, p)
			r.n.Store(int32(len(r.of)))
		} else if b.entries.Load() > 0 && !f(b) {
			return
		}
	}
}

// takeLeft returns an error for each backlog that nobody can run any more.
func (r *relief) takeLeft() []error {
	r.backlogs(func(*Backlog) bool { return true })
	if !r.hasLeft.Load() {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	left := r.left
	r.left = nil
	r.hasLeft.Store(false)
	return left
}

// until returns untilShort if the calling goroutine is in Backlog.Yield, or else ctx.
func (r *relief) until(ctx context.Context) context.Context {
	if r.n.Load() > 0 && ctx != untilShort {
		me := self()
		r.backlogs(func(b *Backlog) bool {
			if b.owner == me && b.yields.Load() {
				ctx = untilShort
			}
			return true
		})
	}
	return ctx
}

// hold reports whether an operation that the calling goroutine was to execute, and that finds no
// memory, waits for a backlog. If so it notes that memory is short. It looks for a backlog whose
// owner can run it. An owner that is stuck cannot, and with forOthers the caller's own backlogs do
// not count.
func (r *relief) hold(p patience) (is bool) {
	if p == forNone || r.n.Load() == 0 {
		return false
	}
	me := self()
	r.backlogs(func(b *Backlog) bool {
		is = !b.isStuck.Load() && (p == forAll || b.owner != me)
		return !is
	})
	if is {
		r.short.Store(true)
	}
	return is
}

// await waits until a backlog was run, and returns the patience with which to try the held operation
// again: p, or forNone after maxHold. It returns the error of ctx if that ends first.
func (r *relief) await(ctx context.Context, p patience) (patience, error) {
	// While it sleeps here, the caller runs no backlog of its own. Others have to know, or two such
	// goroutines would wait for each other.
	if p == forOthers {
		defer r.stick()()
	}
	turn, start := r.turns.Load(), now()
	// It looks again at growing intervals, since backlogs also end, or are dropped, without a
	// Relieve.
	for pause := 20 * time.Microsecond; r.turns.Load() == turn && r.hold(p); pause = min(2*pause, time.Millisecond) {
		if err := ctx.Err(); err != nil {
			return p, err
		}
		if now()-start > maxHold {
			return forNone, nil
		}
		time.Sleep(pause)
	}
	return p, nil
}

// stick notes that the calling goroutine runs none of its backlogs until release is called.
func (r *relief) stick() (release func()) {
	if r.n.Load() == 0 {
		return func() {}
	}
	me := self()
	var mine []*Backlog
	r.backlogs(func(b *Backlog) bool {
		if b.owner == me {
			b.isStuck.Store(true)
			mine = append(mine, b)
		}
		return true
	})
	return func() {
		for _, b := range mine {
			b.isStuck.Store(false)
		}
	}
}

// retry tries again what has failed because there was no memory. It returns held if memory is still
// short and the operation is to wait for a backlog.
func (r *relief) retry(p patience, try func() error) (held bool, err error) {
	for range 2 {
		var short *outOfMemory
		if err = try(); !errors.As(err, &short) {
			return false, err // there is memory now, or the error is another one
		}
		if r.hold(p) {
			return true, nil
		}
		if r.n.Load() == 0 {
			break
		} // else try once more: the last backlog may just have been run
	}
	return false, err
}
