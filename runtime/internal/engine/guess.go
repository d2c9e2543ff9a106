package engine

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"weak"

	"github.com/asyncgen/asyncgen/device"
)

// A program may enqueue operations before it knows whether it wants them: those of a loop past a
// test whose value has not arrived. Such operations carry a Guess. Operations that other goroutines
// enqueue meanwhile do not: the goroutine that enqueues an operation (see self) decides its Guess.
// All of this costs one load as long as nobody speculates.

// A Speculation is the time in which one goroutine runs ahead of its tests; it consists of one Guess
// after the other. Only that goroutine may use it, and must End it. If the goroutine ends first, or
// drops the Speculation, WaitAll ends the Speculation and returns a *LeftError.
type Speculation struct {
	e *Engine
	// owner is the goroutine, see self.
	owner uintptr
	last  guessing // what the goroutine guesses, or guessed last
}

// A Guess is a group of operations that may turn out not to be wanted. They run like others until
// Discard. They must write no storage that was there before the Speculation began: Discard does not
// bring back its contents. Restore brings back other things that the goroutine has changed, if they
// were saved.
//
// Failures in a Guess spoil dependents as usual. WaitAll returns them only once the Guess is kept,
// and never if it is discarded.
type Guess struct {
	outer *Guess // the Guess around it, or nil: it is wanted only if outer is
	// state changes once, from undecided, with mu held. It is read without: to decide what to do
	// with a failure, hold looks again with mu held.
	state atomic.Int32

	began []uint64      // see Engine.beginnings
	saved map[any]Saved // see Save; only the goroutine that guesses uses it

	mu sync.Mutex // guards the rest
	// failures and letGoes have effect when the Guess is kept. They are nil once it is decided.
	failures map[*stream]*roots
	letGoes  []*Storage // see Storage.LetGo
}

// The states of a Guess.
const (
	undecided int32 = iota
	kept
	discarded
)

// ErrDiscarded is the Err of the *OpError in results of operations that Discard has cancelled.
var ErrDiscarded = errors.New("computed past the end of the loop, and so never computed")

// guesses holds what each goroutine guesses now.
type guesses struct {
	n  atomic.Int32         // how many goroutines guess
	mu sync.RWMutex         // guards of
	of map[uintptr]guessing // by goroutine, see self
}

// guessing is what one goroutine guesses now.
type guessing struct {
	g      *Guess                    // nil: it does not guess
	by     weak.Pointer[Speculation] // zero if the goroutine is a deputy, which has no Speculation
	record uintptr                   // the runtime's record of the goroutine, see hasEnded
	pc     uintptr                   // of the call that began the speculation
	outer  *guessing                 // what the goroutine guessed when it began; nil: nothing
}

// Speculate begins a speculation of the calling goroutine. It can be nested in another one.
func (e *Engine) Speculate() *Speculation {
	e.mustNotCapture(refusedGuess)
	s := &Speculation{e: e, owner: self()}
	s.last = guessing{by: weak.Make(s), record: goroutine(), pc: callerPC()}
	if outer := e.guesses.get(s.owner); outer.g != nil {
		s.last.outer = &outer
	}
	return s
}

// Guess returns a new Guess. What the goroutine enqueues from now on belongs to it, until the next
// Guess or End.
func (s *Speculation) Guess() *Guess {
	s.last.g = &Guess{outer: s.outer().g, began: s.e.beginnings()}
	s.Resume()
	return s.last.g
}

// outer returns what the goroutine guessed when the speculation began; the zero guessing: nothing.
func (s *Speculation) outer() guessing {
	if s.last.outer == nil {
		return guessing{}
	}
	return *s.last.outer
}

// End ends the speculation: what the goroutine enqueues from now on belongs to the speculation around
// this one, if there is one. The guesses may be decided later.
func (s *Speculation) End() { s.e.guesses.set(s.owner, s.outer()) }

// Resume undoes End: what the goroutine enqueues from now on belongs to its last Guess again.
func (s *Speculation) Resume() { s.e.guesses.set(s.owner, s.last) }

// guess returns the Guess of an operation that the calling goroutine enqueues, or nil.
func (e *Engine) guess() *Guess {
	if e.guesses.n.Load() == 0 {
		return nil
	}
	return e.guesses.get(self()).g
}

// Guessing returns the Guess of what the calling goroutine enqueues now, or nil.
func (e *Engine) Guessing() *Guess { return e.guess() }

// get returns what a goroutine guesses now; the zero guessing: nothing.
func (gs *guesses) get(owner uintptr) guessing {
	gs.mu.RLock()
	defer gs.mu.RUnlock()
	return gs.of[owner]
}

// set notes what a goroutine guesses from now on. The zero guessing makes it forget the goroutine.
func (gs *guesses) set(owner uintptr, x guessing) {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	gs.setLocked(owner, x)
}

// setLocked is set for a caller that holds gs.mu. It keeps n equal to the size of the map: while n is
// 0, nobody takes the lock.
func (gs *guesses) setLocked(owner uintptr, x guessing) {
	switch {
	case x.g == nil:
		delete(gs.of, owner)
	case gs.of == nil:
		gs.of = map[uintptr]guessing{owner: x}
	default:
		gs.of[owner] = x
	}
	gs.n.Store(int32(len(gs.of)))
}

// takeLeft ends the speculations whose goroutine has ended or that were dropped, and returns an error
// for each.
func (gs *guesses) takeLeft() (left []error) {
	if gs.n.Load() == 0 {
		return nil
	}
	gs.mu.Lock()
	defer gs.mu.Unlock()
	for owner, x := range gs.of {
		if x.by == (weak.Pointer[Speculation]{}) {
			continue
		}
		ended := hasEnded(owner, x.record)
		last := &x
		for last != nil && (ended || last.by.Value() == nil) {
			left = append(left, leftAt(last.pc, "has run ahead of a test, and was never ended"))
			last = last.outer
		}
		if last == nil {
			last = &guessing{}
		}
		gs.setLocked(owner, *last)
	}
	return left
}

// A LeftError says that a speculation or a backlog was left behind: a goroutine has run ahead of a
// test, or put off functions, and its function has returned or panicked without ending that. WaitAll
// returns it once.
type LeftError struct {
	What string // what the loop did, after "a loop at FILE:LINE"
	File string // of the first caller outside the library; "" if there is none
	Line int
}

// Error says where, and what the function has to do about it.
func (e *LeftError) Error() string {
	where := ""
	if e.File != "" {
		where = fmt.Sprintf(" at %s:%d", e.File, e.Line)
	}
	return fmt.Sprintf("asyncgen: a loop%s %s: its function has to call Flush or Close of its Later on every way out, as with defer", where, e.What)
}

// leftAt returns the LeftError of the loop that called the library at pc.
func leftAt(pc uintptr, what string) error {
	err := &LeftError{What: what}
	err.File, err.Line = Line(pc)
	return err
}

// takeLeft returns a *LeftError for each speculation and each backlog that was left behind since the
// last call. It costs two loads if there are none.
func (e *Engine) takeLeft() []error {
	left := append(e.guesses.takeLeft(), e.relief.takeLeft()...)
	slices.SortFunc(left, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return left
}

// Keep says that the operations of g are wanted, if those of the guesses around it are. The
// failures and the storages let go, which were held back until now, pass to the guess around it if
// that is undecided, and take effect if all guesses around it are kept.
func (g *Guess) Keep() {
	failures, letGoes := g.decide(kept)
	for st, r := range failures {
		for s, f := range r.of {
			g.outer.failed(st, s, f.list, f.more)
		}
	}
	for _, s := range letGoes {
		g.outer.letGo(s)
	}
	g.handOver()
}

// Discard says that the operations of g are not wanted, including those enqueued later. Operations
// that have not begun never do. Their results are spoiled: by the error of a spoiled input if there
// is one, or else by ErrDiscarded. Discard does not wait.
func (g *Guess) Discard() { g.decide(discarded) }

// decide sets the state. It returns the failures so far, and the storages that were let go. The
// caller deals with them, without g.mu.
func (g *Guess) decide(state int32) (failures map[*stream]*roots, letGoes []*Storage) {
	g.mu.Lock()
	defer g.mu.Unlock()
	failures, letGoes = g.failures, g.letGoes
	g.failures, g.letGoes = nil, nil
	g.state.Store(state)
	return failures, letGoes
}

// isDiscarded reports whether g, or a Guess around it, was discarded. A nil g was not.
func (g *Guess) isDiscarded() bool {
	for ; g != nil; g = g.outer {
		if g.state.Load() == discarded {
			return true
		}
	}
	return false
}

// failed notes failures of operations of g on st that belong to s, and counts more that are not in
// the list. If g and the guesses around it are kept, or g is nil, WaitAll returns them; otherwise
// they are kept in the first Guess that is undecided, or dropped at one that is discarded.
func (g *Guess) failed(st *stream, s *device.Scope, list []root, more int) {
	for ; g != nil; g = g.outer {
		if state := g.hold(st, s, list, more); state != kept {
			return
		}
	}
	st.roots.add(s, list, more)
}

// hold notes failures if g is undecided. It returns the state of g.
func (g *Guess) hold(st *stream, s *device.Scope, list []root, more int) int32 {
	g.mu.Lock()
	defer g.mu.Unlock()
	state := g.state.Load()
	if state == undecided {
		if g.failures == nil {
			g.failures = map[*stream]*roots{}
		}
		if g.failures[st] == nil {
			g.failures[st] = &roots{}
		}
		g.failures[st].add(s, list, more)
	}
	return state
}
