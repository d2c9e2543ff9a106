package engine

import (
	"context"
	rtrace "runtime/trace"
	"slices"
	"time"

	"github.com/asyncgen/asyncgen/device/pool"
	"github.com/asyncgen/asyncgen/internal/trace"
)

// A waiter is a goroutine in flow.await. The flow's lock guards it.
type waiter struct {
	goal goal
	// The operations that lead to the goal, in program order: closure collects them. Not used if
	// goal.all.
	need    []uint64
	pos     int  // those before need[pos] have finished
	yields  bool // the wait ends when memory is short, see Backlog.Yield
	scratch scratch
	parker  parker
}

// patience returns for which backlogs an operation that w executes may wait.
func (w *waiter) patience() patience {
	if w.yields {
		return forAll
	}
	return forOthers
}

// help counts what a waiter did during one wait.
type help struct {
	ops   int64         // operations that the waiter executed
	idle  time.Duration // how long it neither executed nor scheduled anything
	since time.Duration // when it ran out of work; 0: it has work
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

// add adds the help of a wait that was part of this one.
func (h *help) add(other help) {
	h.ops += other.ops
	h.idle += other.idle
}

// busy returns for how long the waiter worked, in a wait that took so long.
func (h *help) busy(took time.Duration) time.Duration { return max(took-h.idle, 0) }

// await implements executor. While it executes, or looks for operations, the waiter counts as a
// helper: workers leave cheap work to it.
func (f *flow) await(ctx context.Context, g goal) (help, error) {
	f.lock.lock()
	w := f.newWaiter(g)
	f.helpers++
	h, err := f.help(ctx, w)
	f.helpers--
	f.freeWaiter(w)
	f.notify() // another waiter may wait for what this one did last
	f.unlock()
	h.rest()
	return h, err
}

// help executes the operations that w needs until w's goal is reached. While others are executing
// all of them, it waits: first it looks again and again, then it parks. The lock is held before and
// after.
//
// It returns early, with an error, if ctx ends, or with errShort if w yields and memory is short.
// What it has executed until then is published, and an operation that it could not run is ready
// again.
func (f *flow) help(ctx context.Context, w *waiter) (h help, err error) {
	f.scheduleThrough(w.goal.seq)
	f.schedule(f.scheduled+lookBeyond, f.st.capacity()+1) // finds the Releases that findDonor needs
	if !w.goal.all {
		f.closure(w)
	}
	var there elsewhere
	w.yields = ctx == untilShort
	p := w.patience()
	for looks := 0; ; looks++ {
		if f.reached(w) {
			f.settleLocked()
			return h, nil
		}
		if ctx.Done() != nil && ctx.Err() != nil {
			return h, ctx.Err()
		}
		if w.yields && f.st.e.IsShort() {
			return h, errShort
		}
		if x := f.next(w); x != 0 {
			h.rest()
			f.notify()
			if f.step(x, &w.scratch, p) {
				if w.yields {
					return h, errShort
				}
				f.notify()
				f.unlock()
				p, err = f.st.e.relief.await(ctx, p)
				f.lock.lock()
				if err != nil {
					return h, err
				}
				continue
			}
			p = w.patience()
			h.ops++
			looks = 0
			continue
		}
		f.settleLocked()
		f.notify()
		// The lock is released meanwhile, and w is no helper: nobody here may rely on it.
		if at, g, ok := f.elsewhere(w); ok {
			f.helpers--
			f.unlock()
			h.rest()
			there.comesTo(at, g)
			more, err := at.exec.await(ctx, g)
			h.add(more)
			f.lock.lock()
			f.helpers++
			if err != nil {
				return h, err
			}
			looks = 0
			continue
		}
		if looks < f.st.e.looks {
			f.unlock()
			h.look()
			// If one operation runs, it is one that w needs, and its loop is the one that Help finds.
			switch {
			case f.executing.Load() != 1 || f.st.e.onChannels():
				pause(pauses)
			case pool.Help():
				looks = 0
			default:
				pool.Look(func() { pause(pauses) })
			}
			f.lock.lock()
			continue
		}
		h.look()
		f.helpers--
		f.park(ctx, w)
		f.helpers++
	}
}

// elsewhere is what a waiter waits for on another stream.
type elsewhere struct {
	at    *stream
	g     goal
	times int // how often it came there again in a row
}

// comesTo notes that the waiter is about to wait for g at another stream. If it has just done so, g
// is reached, and another goroutine is about to say so here. That goroutine may need the processor,
// so comesTo backs off.
func (e *elsewhere) comesTo(at *stream, g goal) {
	if e.at != at || e.g != g {
		*e = elsewhere{at: at, g: g}
		return
	}
	backoff(e.times)
	e.times++
}

// park waits until notify wakes w, or ctx ends.
func (f *flow) park(ctx context.Context, w *waiter) {
	// Announced before w is in the list, under the lock: whoever finds w there can wake it.
	w.parker.announce()
	f.waiters = append(f.waiters, w)
	f.unlock()
	f.wakeIfReady() // a worker may have left small work to w, see cheapCost
	wasWoken := w.parker.wait(0, ctx.Done())
	f.lock.lock()
	// notify takes those that it wakes off the list; one that gave up does so itself.
	if !wasWoken {
		f.waiters = slices.DeleteFunc(f.waiters, func(have *waiter) bool { return have == w })
	}
}

// notify wakes the parked waiters that have something to do. It is called before the lock is
// released, whenever something may have become ready or finished.
func (f *flow) notify() {
	if !f.moved {
		return
	}
	f.moved = false
	for i := 0; i < len(f.waiters); {
		w := f.waiters[i]
		_, _, away := f.elsewhere(w)
		if away || f.reached(w) || f.needed(w) != 0 || w.yields && f.st.e.IsShort() {
			f.waiters = append(f.waiters[:i], f.waiters[i+1:]...)
			w.parker.wake()
			continue
		}
		i++
	}
}

// reached reports whether w's goal is reached.
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
	x := f.needed(w)
	if x != 0 {
		f.start(x)
	}
	return x
}

// needed returns an operation that is ready and that w needs, or where memory is crowded one before that. 0: there
// is none among the first few that have not finished.
func (f *flow) needed(w *waiter) ref {
	if w.goal.all {
		if x := f.startable(); x != 0 && f.seqOf(x) <= w.goal.seq {
			return x
		}
		return 0
	}
	f.skipFinished(w)
	for _, seq := range w.need[w.pos:min(len(w.need), w.pos+enough)] {
		if seq >= f.head && f.st.seq(seq).state == ready {
			if f.isCrowded() {
				return f.first
			}
			return f.st.ref(seq)
		}
	}
	return 0
}

// skipFinished moves pos over the needed operations that have finished. pos never moves back.
func (f *flow) skipFinished(w *waiter) {
	for w.pos < len(w.need) && f.isFinished(w.need[w.pos]) {
		w.pos++
	}
}

// elsewhere looks at the first operation that w needs and that has not finished. If that operation
// waits for another stream, elsewhere returns the stream and the goal to wait for there. (Nothing in
// the flow itself holds the operation up, since it is the first.)
func (f *flow) elsewhere(w *waiter) (*stream, goal, bool) {
	first := f.head
	if !w.goal.all {
		f.skipFinished(w)
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

// newWaiter returns a waiter for g, a used one if there is one. freeWaiter takes it back.
func (f *flow) newWaiter(g goal) *waiter {
	var w *waiter
	if n := len(f.free); n > 0 {
		w = f.free[n-1]
		f.free = f.free[:n-1]
	} else {
		w = &waiter{}
		w.parker.init(nil)
	}
	w.goal, w.yields = g, false
	return w
}

// freeWaiter keeps w for reuse, without what refers to buffers. w is in no list.
func (f *flow) freeWaiter(w *waiter) {
	w.need, w.pos = w.need[:0], 0
	w.scratch = scratch{}
	f.free = append(f.free, w)
}

// closure puts into w.need, in program order, the operations that must finish before w's goal is
// reached. It goes back from the goal and collects each operation that writes what a collected one
// reads or writes, or that reads what a collected one writes. Marks in the storages say what the
// collected operations access: f.marks if they only read a storage, f.marks+1 if one writes it.
// f.marks grows by two for each closure, so marks of earlier ones count for nothing.
func (f *flow) closure(w *waiter) {
	seq := w.goal.seq
	if f.isFinished(seq) {
		return
	}
	f.marks += 2
	r := f.st.seq(seq)
	if w.goal.link == nil {
		w.need = append(w.need, seq)
		if r.state == ready {
			return
		}
	}
	for {
		f.markOperands(r)
		for {
			if seq == f.head {
				slices.Reverse(w.need)
				return
			}
			seq--
			r = f.st.seq(seq)
			if r.state != finished && f.isMarked(r) {
				break
			}
		}
		w.need = append(w.need, seq)
	}
}

// markOperands marks the storages that r, which was collected, accesses. A mark as written is never
// lowered to one as read.
func (f *flow) markOperands(r *record) {
	for i, s := range r.operands {
		if r.orders>>i&1 != 0 {
			s.mark = f.marks + 1
		} else if r.reads>>i&1 != 0 && s.mark < f.marks {
			s.mark = f.marks
		}
	}
	for _, s := range r.more {
		s.mark = max(s.mark, f.marks)
	}
	if r.run != nil {
		for _, s := range r.run.outs {
			s.mark = f.marks + 1
		}
	}
}

// isMarked reports whether r must finish before an operation whose operands are marked.
func (f *flow) isMarked(r *record) bool {
	for i, s := range r.operands {
		if r.orders>>i&1 != 0 && s.mark >= f.marks || r.reads>>i&1 != 0 && s.mark == f.marks+1 {
			return true
		}
	}
	if r.run != nil && slices.ContainsFunc(r.run.outs, func(s *Storage) bool { return s.mark >= f.marks }) {
		return true
	}
	return slices.ContainsFunc(r.more, func(s *Storage) bool { return s.mark == f.marks+1 })
}

// wait waits for a goal on st, if the sync policy allows that, and counts it as one wait.
func (e *Engine) wait(ctx context.Context, st *stream, g goal, name string, pc uintptr) error {
	if err := e.allow(name, pc); err != nil {
		return err
	}
	start := now()
	region := rtrace.StartRegion(context.Background(), name) // for go tool trace
	h, err := st.await(ctx, g)
	region.End()
	e.countWait(name, pc, since(start), h, trace.ID{Stream: st.id, Seq: g.seq})
	return err
}

// drain waits for everything that was enqueued on the streams before. It takes the failures and
// returns them, followed by the errors of more, if that is not nil.
func (e *Engine) drain(ctx context.Context, streams []*stream, name string, pc uintptr, more func() []error) error {
	// What is enqueued from now on is not waited for, or a drain might never end.
	ends := make([]uint64, len(streams))
	for i, st := range streams {
		ends[i] = st.enqueued()
	}
	if err := e.finish(ctx, streams, ends, name, pc); err != nil {
		return err
	}
	var others []error
	if more != nil {
		others = more()
	}
	return joinRoots(streams, nil, others...)
}

// finish waits until each of the streams has finished its first operations, as many as ends says. It
// counts as one wait, or as none if all of them had finished already.
func (e *Engine) finish(ctx context.Context, streams []*stream, ends []uint64, name string, pc uintptr) (err error) {
	if clock := e.virtual.Load(); clock != nil {
		return e.finishVirtually(ctx, clock, streams, ends, name, pc)
	}
	var start time.Duration
	var h help
	for i, st := range streams {
		if ends[i] == 0 {
			continue
		}
		st.exec.settle()
		if st.done.Load() >= ends[i] {
			continue
		}
		if start == 0 {
			if err := e.allow(name, pc); err != nil {
				return err
			}
			start = now()
		}
		var there help
		there, err = st.await(ctx, goal{seq: ends[i] - 1, all: true})
		h.add(there)
		if err != nil && st.done.Load() < ends[i] {
			break
		}
		err = nil
		st.exec.settle()
	}
	if start != 0 {
		e.countWait(name, pc, since(start), h, trace.ID{})
	}
	return err
}
