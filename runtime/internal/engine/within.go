package engine

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/asyncgen/asyncgen/internal/bubble"
)

// A context must end a wait at once, whatever the waiter is doing: it may be executing an operation,
// calling a driver, waiting at a bound or for a lock. None of these can be interrupted. So a
// goroutine that waits with a context that can end has a deputy: another goroutine that does all
// this, while the first one waits only for the deputy and the context. That costs less than a
// microsecond, since the deputy gets the processor that the waiter leaves, and it works even if no
// worker is awake.
//
// Operations that a deputy enqueues carry the program line and the Guess of the goroutine that it
// acts for.
var deputies struct {
	n  atomic.Int32        // how many there are
	mu sync.RWMutex        // guards pc
	pc map[uintptr]uintptr // by the deputy's goroutine: the call in the program that it acts for
}

// deputyPC returns callerPC of the goroutine that the calling one is the deputy of; 0 if it is no
// deputy.
func deputyPC() uintptr {
	if deputies.n.Load() == 0 {
		return 0
	}
	deputies.mu.RLock()
	defer deputies.mu.RUnlock()
	return deputies.pc[self()]
}

// leaving counts the deputies of an engine, so that Close can wait for them: a deputy may go on for a
// while after the context has ended the wait.
type leaving struct {
	mu   sync.Mutex    // guards the rest
	n    int           // deputies that have not ended
	none chan struct{} // closed when there is none; nil: nobody waits for that
}

// begin counts a deputy, before its goroutine is started: an await that comes later waits for it.
func (l *leaving) begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.n++
}

// end is called when a deputy has done all that it does with the engine.
func (l *leaving) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.n--; l.n == 0 && l.none != nil {
		close(l.none)
		l.none = nil
	}
}

// await waits until there are no deputies. If the engine lives in a bubble, the bubble's time passes
// meanwhile, since deputies may sleep.
func (l *leaving) await() {
	l.mu.Lock()
	if l.n > 0 && l.none == nil {
		l.none = make(chan struct{})
	}
	none := l.none
	l.mu.Unlock()
	if none != nil {
		<-none
	}
}

// setDeputy notes that the goroutine deputy acts for the call at pc; 0: it is no deputy any more.
func setDeputy(deputy, pc uintptr) {
	deputies.mu.Lock()
	defer deputies.mu.Unlock()
	if deputies.pc == nil {
		deputies.pc = map[uintptr]uintptr{}
	}
	if pc == 0 {
		delete(deputies.pc, deputy)
	} else {
		deputies.pc[deputy] = pc
	}
	deputies.n.Store(int32(len(deputies.pc)))
}

// ActFor calls f. What that enqueues carries the line that caller identifies, see Caller, unless the user's code
// enqueues it.
func ActFor(caller uintptr, f func()) {
	me := self()
	setDeputy(me, caller)
	defer setDeputy(me, 0)
	f()
}

// actFor calls f as a deputy for the call at pc and the Guess g. It returns the value that f panicked
// with, or nil.
func (e *Engine) actFor(pc uintptr, g *Guess, f func()) (panicked any) {
	me := self()
	setDeputy(me, pc)
	if g != nil {
		e.guesses.set(me, guessing{g: g})
	}
	defer func() {
		panicked = recover()
		setDeputy(me, 0)
		if g != nil {
			e.guesses.set(me, guessing{})
		}
	}()
	f()
	return nil
}

// Within calls f on behalf of the calling goroutine, and returns nil when f has returned. If ctx ends
// first, Within returns its error at once; f goes on by itself and should end soon, and Close waits
// for it. If f panics before that, so does Within.
func (e *Engine) Within(ctx context.Context, f func()) error {
	if ctx.Done() == nil {
		f()
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	pc, g := callerPC(), e.guess()
	// There is room for the value: if ctx ends first, nobody receives it.
	ended := make(chan any, 1)
	e.leaving.begin()
	go func() {
		v := e.actFor(pc, g, f)
		e.leaving.end()
		ended <- v
	}()
	select {
	case v := <-ended:
		if v != nil {
			panic(v)
		}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// await waits for a goal on st, helping to execute, or for the end of ctx. It also observes the
// caller's bubble and backlogs; exec.await does not.
func (st *stream) await(ctx context.Context, g goal) (help, error) {
	if ctx.Done() == nil {
		ctx = st.e.relief.until(ctx)
		if st.e.onChannels() || !bubble.In() {
			return st.exec.await(ctx, g)
		}
	}
	return st.awaitElsewhere(ctx, g)
}

// awaitElsewhere is await where a deputy or a goroutine outside the bubble does the work. If it
// returns early, the deputy goes on until the inner wait has noticed the end of the context.
func (st *stream) awaitElsewhere(ctx context.Context, g goal) (help, error) {
	if ctx != untilShort {
		// The deputy is another goroutine than the owner of backlogs, who is stuck here all the
		// same.
		defer st.e.relief.stick()()
	}
	inner := ctx
	if ctx.Done() != nil && !st.e.onChannels() && bubble.In() { // goroutines outside the bubble can't wait for ctx
		var cancel func()
		inner, cancel = context.WithCancel(context.Background())
		defer bubble.Outside(cancel)
	}
	var o struct {
		h   help
		err error
	}
	if err := st.e.Within(ctx, func() {
		st.e.outside(func() { o.h, o.err = st.exec.await(inner, g) })
	}); err != nil {
		return help{}, err // the deputy may still write to o
	}
	return o.h, o.err
}
