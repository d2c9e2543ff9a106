package engine

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/asyncgen/asyncgen/internal/bubble"
)

// A context ends a wait whatever the wait has led to: an operation that the waiter executes, a call
// of a driver, a bound, a lock that somebody holds meanwhile. None of these can be interrupted. So
// who waits with a context that can end has a deputy, a goroutine that does all this for it, and
// itself waits for two things alone: the deputy and the context. That costs less than a
// microsecond, as the deputy gets the processor that the waiter leaves; and it needs no worker to
// be awake.
//
// What a deputy enqueues is enqueued by the line of the program, and belongs to the Guess, of the
// goroutine that it acts for.
var deputies struct {
	n  atomic.Int32        // how many there are
	mu sync.RWMutex        // guards pc
	pc map[uintptr]uintptr // by the goroutine of the deputy: the call in the program that it acts for
}

// deputyPC returns what callerPC was for the goroutine that the calling one is the deputy of; 0 if it is none.
func deputyPC() uintptr {
	if deputies.n.Load() == 0 {
		return 0
	}
	deputies.mu.RLock()
	defer deputies.mu.RUnlock()
	return deputies.pc[self()]
}

// leaving is how an engine knows that it has no deputies any more: they may go on for a while when
// the context has ended the wait.
type leaving struct {
	mu   sync.Mutex    // guards the rest
	n    int           // deputies that have not ended
	none chan struct{} // closed when there is none; nil: nobody waits for that
}

func (l *leaving) begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.n++
}

func (l *leaving) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.n--; l.n == 0 && l.none != nil {
		close(l.none)
		l.none = nil
	}
}

// await waits until there is none. In a bubble the bubble's time passes meanwhile, as deputies may
// sleep, if it is the engine's own bubble.
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

// actFor calls f as a deputy. It returns what f has panicked with, or nil.
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

// Within calls f, for the calling goroutine. It returns nil when f has returned, or the error of
// ctx if that ends first; f, which should end soon then, goes on by itself, and Close waits for it.
// If f panics before, so does Within.
func (e *Engine) Within(ctx context.Context, f func()) error {
	if ctx.Done() == nil {
		f()
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	pc, g := callerPC(), e.guess()
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

// await waits for a goal on st, helping, or for the end of ctx.
func (st *stream) await(ctx context.Context, g goal) (help, error) {
	if ctx.Done() == nil {
		ctx = st.e.relief.until(ctx)
		if st.e.onChannels() || !bubble.In() {
			return st.exec.await(ctx, g)
		}
	}
	return st.awaitElsewhere(ctx, g)
}

// awaitElsewhere is await where the caller does nothing itself.
func (st *stream) awaitElsewhere(ctx context.Context, g goal) (help, error) {
	if ctx != untilShort {
		defer st.e.relief.stick()()
	}
	inner := ctx
	if ctx.Done() != nil && !st.e.onChannels() && bubble.In() { // nobody outside may wait for ctx
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
		return help{}, err // what is in o is still the deputy's
	}
	return o.h, o.err
}
