package engine

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asyncgen/asyncgen/device"
)

// A waiter is a goroutine in flow.await. The flow's lock guards it.
type waiter struct {
	goal    goal
	need    []uint64 // the operations that lead to the goal, in order; not used if goal.all
	pos     int      // those before need[pos] have finished
	scratch scratch
	wake    chan struct{} // has a token when there is something to do again
}

// help is what one wait amounts to.
type help struct {
	ops   int64         // executed by the waiter
	idle  time.Duration // neither executing nor ordering anything
	since time.Duration // when it ran out of work; 0: it did not
}

// look notes that there is nothing to do.
func (h *help) look() {
	if h.since == 0 {
		h.since = now()
	}
}

// rest notes that there is something to do again.
func (h *help) rest() {
	if h.since != 0 {
		h.idle += now() - h.since
		h.since = 0
	}
}

// add adds what happened while waiting for something else in between.
func (h *help) add(other help) {
	h.ops += other.ops
	h.idle += other.idle
}

// busy is how much of the time the waiter worked.
func (h *help) busy(took time.Duration) time.Duration { return max(took-h.idle, 0) }

// await is the executor's.
func (f *flow) await(ctx context.Context, g goal) (help, error) {
	f.lock.lock()
	w := f.newWaiter(g)
	h, err := f.help(ctx, w)
	f.freeWaiter(w)
	f.unlock()
	h.rest()
	return h, err
}

// help executes what w needs until w's goal is reached. It waits, first looking, then parked, while all
// of that is in other hands. The lock is held before and after.
func (f *flow) help(ctx context.Context, w *waiter) (h help, err error) {
	f.scheduleThrough(w.goal.seq)
	if !w.goal.all {
		f.closure(w)
	}
	for looks := 0; ; looks++ {
		if f.reached(w) {
			f.settleLocked()
			return h, nil
		}
		if ctx.Done() != nil && ctx.Err() != nil {
			return h, ctx.Err()
		}
		if x := f.next(w); x != 0 {
			h.rest()
			f.notify()
			f.step(x, &w.scratch)
			h.ops++
			looks = 0
			continue
		}
		f.settleLocked()
		f.notify()
		if at, g, ok := f.elsewhere(w); ok {
			f.unlock()
			h.rest()
			there, err := at.exec.await(ctx, g)
			h.add(there)
			f.lock.lock()
			if err != nil {
				return h, err
			}
			looks = 0
			continue
		}
		if looks < f.st.e.looks {
			f.unlock()
			h.look()
			pause(pauses)
			f.lock.lock()
			continue
		}
		h.look()
		f.park(ctx, w)
	}
}

// park waits until somebody has something for w, or ctx ends.
func (f *flow) park(ctx context.Context, w *waiter) {
	f.waiters = append(f.waiters, w)
	f.unlock()
	select {
	case <-w.wake:
		f.lock.lock()
		return
	case <-ctx.Done():
	}
	f.lock.lock()
	if !f.dropWaiter(w) {
		<-w.wake // it was just woken
	}
}

func (f *flow) dropWaiter(w *waiter) bool {
	for i, have := range f.waiters {
		if have == w {
			f.waiters = append(f.waiters[:i], f.waiters[i+1:]...)
			return true
		}
	}
	return false
}

// notify wakes the parked waiters that have something to do.
func (f *flow) notify() {
	for i := 0; i < len(f.waiters); {
		w := f.waiters[i]
		_, _, away := f.elsewhere(w)
		if away || f.reached(w) || f.needed(w) != 0 || w.goal.all && f.first != 0 {
			f.waiters = append(f.waiters[:i], f.waiters[i+1:]...)
			w.wake <- struct{}{}
			continue
		}
		i++
	}
}

func (f *flow) reached(w *waiter) bool {
	switch g := w.goal; {
	case g.link != nil:
		return g.link.granted.Load()
	case g.all:
		return f.head > g.seq
	default:
		return f.isFinished(g.seq)
	}
}

// next starts an operation that w may execute. 0: there is none.
func (f *flow) next(w *waiter) ref {
	if w.goal.all {
		return f.take()
	}
	x := f.needed(w)
	if x != 0 {
		f.start(x)
	}
	return x
}

// needed returns an operation that is ready and that w needs, not looking far beyond the first that has not finished. 0: there is none.
func (f *flow) needed(w *waiter) ref {
	for w.pos < len(w.need) && f.isFinished(w.need[w.pos]) {
		w.pos++
	}
	for _, seq := range w.need[w.pos:min(len(w.need), w.pos+lookAhead)] {
		if seq >= f.head && f.st.seq(seq).state == ready {
			return f.st.ref(seq)
		}
	}
	return 0
}

// elsewhere returns the goal on another stream that the first operation in w's way waits for.
// (All that this one waits for in the flow itself has finished.)
func (f *flow) elsewhere(w *waiter) (*stream, goal, bool) {
	first := f.head
	if !w.goal.all {
		for w.pos < len(w.need) && f.isFinished(w.need[w.pos]) {
			w.pos++
		}
		if w.pos == len(w.need) {
			return nil, goal{}, false
		}
		first = w.need[w.pos]
	}
	if first >= f.scheduled {
		return nil, goal{}, false
	}
	r := f.st.seq(first)
	switch {
	case r.state == open:
		if at := r.link.opSeq.Load(); at != 0 {
			return r.link.op, goal{seq: at - 1}, true
		}
	case r.state == waiting && r.linked:
		return r.link.gate, goal{seq: r.link.gateSeq, link: r.link}, true
	}
	return nil, goal{}, false
}

// stalled are the producers that wait at a bound.
type stalled struct {
	n    atomic.Int32 // how many are about to park or parked
	mu   sync.Mutex
	cond sync.Cond
}

// wake lets them look again.
func (s *stalled) wake() {
	if s.n.Load() > 0 {
		s.mu.Lock()
		s.cond.Broadcast()
		s.mu.Unlock()
	}
}

// admit counts bytes as in flight, after waiting until the bound allows it.
func (e *Engine) admit(bytes int64, op *Op, pc uintptr) {
	if bytes == 0 {
		return
	}
	for {
		now := e.inFlight.Load()
		sum := now + bytes
		if limit := e.limit.Load(); limit != 0 && sum > limit && now != 0 {
			e.stallFor(nil, bytes, op.Cmd.Kernel, pc)
			continue
		}
		if !e.inFlight.CompareAndSwap(now, sum) {
			continue
		}
		for top := e.peak.Load(); sum > top && !e.peak.CompareAndSwap(top, sum); top = e.peak.Load() {
		}
		return
	}
}

// stallFor waits until the ring of st, or if st is nil the bound on bytes, has room. Whoever
// waits executes whatever is ready, on all devices.
func (e *Engine) stallFor(st *stream, bytes int64, k *device.Kernel, pc uintptr) {
	e.settle()
	if e.hasRoom(st, bytes) {
		return // the books were behind
	}
	start := now()
	var h help
	for looks := 0; !e.hasRoom(st, bytes); looks++ {
		if ops, some := e.helpAnywhere(); some {
			h.rest()
			h.ops += ops
			looks = 0
			continue
		}
		h.look()
		if looks < e.looks {
			pause(pauses)
			continue
		}
		// From here on whoever finishes something publishes it and then broadcasts, so nothing is missed.
		e.stalled.n.Add(1)
		for _, st := range e.allStreams() {
			st.exec.settle()
			st.exec.hurry()
		}
		e.stalled.mu.Lock()
		if !e.hasRoom(st, bytes) {
			e.stalled.cond.Wait()
		}
		e.stalled.mu.Unlock()
		e.stalled.n.Add(-1)
	}
	h.rest()
	e.countStall(k.Name, pc, now()-start, h)
}

// settle brings done of all streams and inFlight up to date.
func (e *Engine) settle() {
	for _, st := range e.allStreams() {
		st.exec.settle()
	}
}

func (e *Engine) hasRoom(st *stream, bytes int64) bool {
	if st != nil {
		return st.enqueued()-st.done.Load() < uint64(len(st.ring))
	}
	used, limit := e.inFlight.Load(), e.limit.Load()
	return limit == 0 || used == 0 || used+bytes <= limit
}

func (e *Engine) helpAnywhere() (ops int64, some bool) {
	for _, st := range e.allStreams() {
		n, did := st.exec.helpSome()
		ops += n
		some = some || did
	}
	return ops, some
}

// wait is the one place where a program waits for results. It counts.
func (e *Engine) wait(ctx context.Context, st *stream, g goal, name string, pc uintptr) error {
	start := now()
	h, err := st.exec.await(ctx, g)
	e.countWait(name, pc, now()-start, h)
	return err
}

// How a goroutine looks for work, or for room, before it parks: a number of times, each after a
// number of PAUSE instructions; about 20 µs together.
const (
	pauses   = 20
	maxLooks = 50
)

// looksOf is how often goroutines look before they park. With a single processor that would only keep others from working.
func looksOf(processors int) int {
	if processors == 1 {
		return 0
	}
	return maxLooks
}

// backoff is called for the i-th time in a row when something that takes nanoseconds has not yet happened.
func backoff(i int) {
	if i > 100 {
		runtime.Gosched()
		return
	}
	pause(4)
}

// A spinLock guards sections of nanoseconds. It is unfair.
type spinLock struct{ held atomic.Bool }

func (l *spinLock) lock() {
	for i := 0; !l.held.CompareAndSwap(false, true); i++ {
		backoff(i)
	}
}

func (l *spinLock) unlock() { l.held.Store(false) }

var epoch = time.Now()

// now is the time since the program started.
func now() time.Duration { return time.Since(epoch) }
