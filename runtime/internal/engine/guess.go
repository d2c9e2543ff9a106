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

// A program may enqueue operations before it knows whether it wants them: those of a loop past a test
// whose value has not arrived. They carry a Guess. What another goroutine enqueues at the same time does not,
// so whose an operation is decides who enqueues it (self). All of this costs one load as
// long as nobody speculates.

// A Speculation is what one goroutine does while it runs ahead of its tests: one Guess after the
// other. It is for that goroutine alone, and must be ended before the goroutine ends. If it is not,
// or is forgotten before it is ended, WaitAll returns a *LeftError, and what the goroutine enqueues
// after that does not belong to it.
type Speculation struct {
	e     *Engine
	owner uintptr
	last  guessing
}

// A Guess is operations that may turn out not to be wanted. They run like others, in any order that
// the program can't tell, until Discard. They must write no storage that was there before the
// Speculation began: Discard does not bring back what it held. What else the goroutine changes is
// brought back by Restore, if it was saved.
//
// Until the Guess is kept, their failures spoil what is computed from them as all do, but are not
// among those that WaitAll returns. If it is discarded they never are.
type Guess struct {
	outer *Guess       // what it is a part of: it is wanted only if that is
	state atomic.Int32 // changes once, with mu held

	began []uint64      // see Engine.beginnings
	saved map[any]Saved // what it has changed; of the goroutine that guesses alone

	mu       sync.Mutex // guards the rest
	failures map[*stream]*roots
	letGoes  []*Storage // see Storage.LetGo
}

// The states of a Guess.
const (
	undecided int32 = iota
	kept
	discarded
)

// ErrDiscarded is what spoils the results of operations that Discard has cancelled.
var ErrDiscarded = errors.New("computed past the end of the loop, and so never computed")

// guesses are what goroutines guess now.
type guesses struct {
	n  atomic.Int32 // how many goroutines
	mu sync.RWMutex // guards of
	of map[uintptr]guessing
}

// guessing is what one goroutine guesses now.
type guessing struct {
	g      *Guess                    // nil: nothing
	by     weak.Pointer[Speculation] // of no Speculation if the goroutine is a deputy
	record uintptr                   // of the goroutine, see hasEnded
	pc     uintptr                   // of the call that has begun the speculation
	outer  *guessing                 // what the goroutine guessed then; nil: nothing
}

// Speculate begins a speculation of the calling goroutine. It can be part of another one.
func (e *Engine) Speculate() *Speculation {
	s := &Speculation{e: e, owner: self()}
	s.last = guessing{by: weak.Make(s), record: goroutine(), pc: callerPC()}
	if outer := e.guesses.get(s.owner); outer.g != nil {
		s.last.outer = &outer
	}
	return s
}

// Guess returns a new Guess: what the goroutine enqueues from now on belongs to it, until the next one or End.
func (s *Speculation) Guess() *Guess {
	s.last.g = &Guess{outer: s.outer().g, began: s.e.beginnings()}
	s.Resume()
	return s.last.g
}

func (s *Speculation) outer() guessing {
	if s.last.outer == nil {
		return guessing{}
	}
	return *s.last.outer
}

// End ends the speculation: what the goroutine enqueues from now on is wanted if what it guessed
// before is. Its guesses may be decided later.
func (s *Speculation) End() { s.e.guesses.set(s.owner, s.outer()) }

// Resume takes End back: what the goroutine enqueues from now on belongs to its last Guess again.
func (s *Speculation) Resume() { s.e.guesses.set(s.owner, s.last) }

// guess returns the Guess of an operation that the calling goroutine enqueues, or nil.
func (e *Engine) guess() *Guess {
	if e.guesses.n.Load() == 0 {
		return nil
	}
	return e.guesses.get(self()).g
}

func (gs *guesses) get(owner uintptr) guessing {
	gs.mu.RLock()
	defer gs.mu.RUnlock()
	return gs.of[owner]
}

func (gs *guesses) set(owner uintptr, x guessing) {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	gs.setLocked(owner, x)
}

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

// takeLeft ends the speculations that nobody will end any more, and returns an error for each.
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

// A LeftError says that a goroutine has begun what nobody can end any more, as the goroutine has
// ended or nothing refers to it: it has run ahead of a test, or put off functions, and returned,
// panicked or left without having said what becomes of that. WaitAll returns it, once.
type LeftError struct {
	What string
	File string // of the first caller outside the library; "" if there is none
	Line int
}

func (e *LeftError) Error() string {
	where := ""
	if e.File != "" {
		where = fmt.Sprintf(" at %s:%d", e.File, e.Line)
	}
	return fmt.Sprintf("asyncgen: a loop%s %s: its function has to call Flush or Close of its Later on every way out, as with defer", where, e.What)
}

func leftAt(pc uintptr, what string) error {
	err := &LeftError{What: what}
	err.File, err.Line = Line(pc)
	return err
}

// takeLeft returns an error for each speculation, and for each backlog, that was left behind since
// the last call. It costs two loads if there is none.
func (e *Engine) takeLeft() []error {
	left := append(e.guesses.takeLeft(), e.relief.takeLeft()...)
	slices.SortFunc(left, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return left
}

// Keep says that the operations of g are wanted, as far as those are that g is a part of.
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

// Discard says that the operations of g, those that are still to be enqueued too, are not wanted.
// Those that have not begun never do, and what they were to write is spoiled by what has spoiled
// what they read, or else by ErrDiscarded. It does not wait.
func (g *Guess) Discard() { g.decide(discarded) }

// decide returns the failures so far, and what was let go.
func (g *Guess) decide(state int32) (failures map[*stream]*roots, letGoes []*Storage) {
	g.mu.Lock()
	defer g.mu.Unlock()
	failures, letGoes = g.failures, g.letGoes
	g.failures, g.letGoes = nil, nil
	g.state.Store(state)
	return failures, letGoes
}

// isDiscarded reports whether g, or something that it is a part of, was discarded. A nil g was not.
func (g *Guess) isDiscarded() bool {
	for ; g != nil; g = g.outer {
		if g.state.Load() == discarded {
			return true
		}
	}
	return false
}

// failed notes failures of operations of g on st that belong to s, and that there were more: for WaitAll if g is kept
// or nil, else for later.
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
