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

// There may be no memory for an operation only because the program looks at results later than it
// would (asyncrt.Later), and keeps them until then. So such an operation does not fail as long as
// there is a backlog: it is put back among those that are ready, and whoever was to execute it
// waits for the goroutines that have backlogs to run them. They do so where their program says that
// they may, never in the middle of something else. Each finds out that memory is short when it
// comes there, or when it waits there.
//
// A goroutine that waits elsewhere can't run its backlog. If it needs the operation itself, it
// comes to execute it, as all do who wait; and then the operation fails, unless others have
// backlogs.

// A Backlog is what one goroutine has put off. It is that goroutine's alone.
type Backlog struct {
	e       *Engine
	me      weak.Pointer[Backlog]
	owner   uintptr
	entries *atomic.Int32 // functions that have not run; it is there when the Backlog is forgotten
	yields  atomic.Bool   // the owner waits where it can run them
	isStuck atomic.Bool   // the owner waits for others to run theirs
}

// relief is what an engine knows of backlogs.
type relief struct {
	n     atomic.Int32  // how many there are, with entries or not
	short atomic.Bool   // there was no memory for an operation, and no backlog has been run since
	turns atomic.Uint64 // how often one was, for that

	hasLeft atomic.Bool // left is not empty

	mu   sync.Mutex // guards the rest
	of   map[weak.Pointer[Backlog]]entries
	left []error // for takeLeft
}

// entries are what is known of a Backlog that may be forgotten.
type entries struct {
	n  *atomic.Int32
	pc uintptr // of the call that made it
}

// A patience says for which backlogs an operation waits for which there is no memory.
type patience uint8

const (
	forAll    patience = iota
	forOthers          // but for that of who executes it
	forNone
)

// maxHold is how long an operation waits, at most, for a goroutine that runs no backlog although it has one.
const maxHold = 10 * time.Second

// errShort is how a wait ends because a backlog has to be run, see Backlog.Yield.
var errShort = errors.New("engine: memory is short")

// untilShort is the context of such a wait.
var untilShort context.Context = struct{ context.Context }{context.Background()}

// NewBacklog returns a Backlog of the calling goroutine, which is forgotten at its End, or when nothing refers to it.
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

// Add says that n functions were added, or, if n is negative, have run.
func (b *Backlog) Add(n int) { b.entries.Add(int32(n)) }

// IsShort reports whether an operation waits for backlogs to be run.
func (e *Engine) IsShort() bool { return e.relief.short.Load() }

// Relieve says that the owner of a backlog has run what it could.
func (e *Engine) Relieve() {
	e.relief.short.Store(false)
	e.relief.turns.Add(1)
	e.stalled.wake()
}

// Yield calls f, whose waits end early if a backlog has to be run, so that what was waited for is not Ready.
func (b *Backlog) Yield(f func()) {
	b.yields.Store(true)
	defer b.yields.Store(false)
	f()
}

// backlogs calls f for the backlogs that have entries, until it returns false.
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

// until returns the context for a wait with ctx by the calling goroutine.
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

// hold reports whether an operation that the calling goroutine was to execute waits for a backlog.
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

// await waits until a backlog was run, and returns the patience for another try to execute what was held with p. It
// returns the error of ctx if that ends first.
func (r *relief) await(ctx context.Context, p patience) (patience, error) {
	if p == forOthers {
		defer r.stick()()
	}
	turn, start := r.turns.Load(), now()
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

// stick notes that the calling goroutine runs no backlog until the result is called.
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

// retry tries again what has failed for want of memory. It reports true if that is to wait for a backlog.
func (r *relief) retry(p patience, try func() error) (held bool, err error) {
	for range 2 {
		var short *outOfMemory
		if err = try(); !errors.As(err, &short) {
			return false, err // it is there, or never will be
		}
		if r.hold(p) {
			return true, nil
		}
		if r.n.Load() == 0 {
			break
		} // else the last backlog may just have been run
	}
	return false, err
}
