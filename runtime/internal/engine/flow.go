package engine

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/asyncgen/asyncgen/device"
)

// A flow executes the operations of a synchronous device: in any order that
// the program can't tell from its own, several at a time. Nothing of this happens when an
// operation is enqueued. Whoever comes to execute (a worker, a waiter, a producer at a
// bound) takes the lock and schedules what is new, in program order:
//
//	read of S:   no unfinished writer of S: S.readers++.
//	             Else it waits, in the list of readers of the newest such writer.
//	write of S:  no unfinished writer: if S.readers > 0 it waits, as S.heir.
//	             Else it waits, as the heir of the newest writer. It is S.writer from now on.
//	end of a read:   the last of S.readers releases S.heir.
//	end of a write:  releases the readers in its list, which become S.readers,
//	                 and its heir, or makes it S.heir if there are such readers.
//
// An operation that waits for nothing is ready, and runs in the order of becoming so. The links
// are in the records, so nothing is allocated. An operation is taken and the one before it
// finished in one critical section, which keeps a chain of operations on one core; taking several at a
// time would save nothing (each would have to be claimed by an atomic operation, lest a waiter
// be stuck behind another's batch) and hide what is ready from others.
type flow struct {
	st   *stream
	lock spinLock // guards everything up to the next blank line

	head      uint64 // all operations before have finished
	scheduled uint64 // all operations before have been scheduled
	first     ref    // of the ready operations
	last      ref
	nready    int
	readyCost int64
	freed     int64        // bytes written by finished operations, not yet taken from Engine.inFlight
	waiters   []*waiter    // parked
	free      []*waiter    // for reuse
	marks     uint64       // see closure
	outbox    []linkNotice // what to tell other streams after unlocking
	rouse     bool         // wake stalled producers after unlocking
	ran       uint64
	skipped   uint64

	lag     uint64        // how far stream.done may lag behind head
	parked  atomic.Int32  // workers in park that nobody has woken yet
	wakeups chan struct{} // a token for each worker woken
	closed  atomic.Bool
	wg      sync.WaitGroup
}

// The states of a record in a flow.
const (
	waiting  uint8 = iota
	ready          // in the list
	running        // somebody executes it
	open           // a gate whose turn it is; it ends when the operation at the other end does
	finished       // its effects are published
)

const (
	lookAhead     = 64       // so many ready operations are enough: no more are scheduled
	scheduleBatch = 256      // scheduled at most in one critical section, unless a waiter needs more
	freedBatch    = 64 << 10 // bytes that Engine.inFlight may lag behind
)

func newFlow(st *stream, workers int) *flow {
	f := &flow{st: st, lag: uint64(min(32, len(st.ring)/4)), wakeups: make(chan struct{}, max(workers, 1))}
	f.wg.Add(workers)
	for range workers {
		go f.work()
	}
	return f
}

// unlock ends a critical section and passes on what it has brought about elsewhere.
func (f *flow) unlock() {
	if len(f.outbox) == 0 && !f.rouse {
		f.lock.unlock()
		return
	}
	box, rouse := f.outbox, f.rouse
	f.outbox, f.rouse = nil, false
	f.lock.unlock()
	for _, n := range box {
		n.deliver()
	}
	if rouse {
		f.st.e.stalled.wake()
	}
}

// schedule finds out what the next operations wait for, up to the one at limit or until enough are ready.
func (f *flow) schedule(limit uint64, enough int) {
	limit = min(limit, f.st.enqueued())
	for f.scheduled < limit && f.nready < enough {
		f.scheduleNext()
	}
}

// scheduleThrough schedules the operations up to the one at seq, which is in the ring or about to be.
func (f *flow) scheduleThrough(seq uint64) {
	for i := 0; f.scheduled <= seq; i++ {
		f.schedule(seq+1, len(f.st.ring)+1)
		if f.scheduled <= seq {
			f.unlock()
			backoff(i)
			f.lock.lock()
		}
	}
}

func (f *flow) scheduleNext() {
	self := f.st.ref(f.scheduled)
	r := f.st.at(self)
	f.scheduled++
	r.state, r.waits, r.linked, r.skipped = waiting, 0, false, false
	r.reads, r.orders = r.access(f.st)
	for i, s := range r.operands {
		switch {
		case r.orders>>i&1 != 0:
			r.chain[i], r.count[i], r.heir[i] = 0, 0, 0
			if s.writer != 0 {
				w := f.st.at(s.writer)
				w.heir[w.writeOf(s)] = self
				r.waits++
			} else if s.readers > 0 {
				s.heir = self
				r.waits++
			}
			s.writer = self
		case r.reads>>i&1 != 0:
			if s.writer == 0 {
				s.readers++
				continue
			}
			w := f.st.at(s.writer)
			k := w.writeOf(s)
			r.chain[i] = w.chain[k]
			w.chain[k] = chained(self)<<operandBits | chained(i)
			w.count[k]++
			r.waits++
		}
	}
	if r.link != nil && !r.isGate && !r.link.granted.Load() {
		r.linked = true
		r.waits++
	}
	if r.waits == 0 {
		f.ready(self)
	}
}

// access returns which operands of st are to be ordered as reads, and which as writes. A storage that is
// read and written counts as written, and once.
func (r *record) access(st *stream) (reads, writes uint8) {
	for i, s := range r.operands {
		if s == nil || s.st != st {
			continue
		}
		if r.writes>>i&1 != 0 {
			if !r.among(writes, s) {
				writes |= 1 << i
			}
		} else {
			reads |= 1 << i
		}
	}
	for i := range r.operands {
		if reads>>i&1 != 0 && r.among(writes, r.operands[i]) {
			reads &^= 1 << i
		}
	}
	return reads, writes
}

// among reports whether s is one of the operands in set.
func (r *record) among(set uint8, s *Storage) bool {
	for i, have := range r.operands {
		if set>>i&1 != 0 && have == s {
			return true
		}
	}
	return false
}

// writeOf returns which operand of r is the write of s.
func (r *record) writeOf(s *Storage) int {
	i := 0
	for r.orders>>i&1 == 0 || r.operands[i] != s {
		i++
	}
	return i
}

// release takes one of the things away that the operation at x waits for.
func (f *flow) release(x ref) {
	r := f.st.at(x)
	r.waits--
	if r.waits == 0 {
		f.ready(x)
	}
}

func (f *flow) ready(x ref) {
	r := f.st.at(x)
	if r.isGate {
		r.state = open
		r.link.granted.Store(true)
		f.outbox = append(f.outbox, linkNotice{l: r.link, granted: true})
		return
	}
	r.state = ready
	r.next, r.prev = 0, f.last
	if f.last != 0 {
		f.st.at(f.last).next = x
	} else {
		f.first = x
	}
	f.last = x
	f.nready++
	f.readyCost += int64(r.cost)
}

// start takes the operation at x, which is ready, off the list.
func (f *flow) start(x ref) {
	r := f.st.at(x)
	if r.prev != 0 {
		f.st.at(r.prev).next = r.next
	} else {
		f.first = r.next
	}
	if r.next != 0 {
		f.st.at(r.next).prev = r.prev
	} else {
		f.last = r.prev
	}
	r.state = running
	f.nready--
	f.readyCost -= int64(r.cost)
}

// take starts an operation: one that a parked waiter needs, or else the one that has been ready for longest. 0: there is none.
func (f *flow) take() ref {
	for _, w := range f.waiters {
		if x := f.needed(w); x != 0 {
			f.start(x)
			return x
		}
	}
	if f.nready < lookAhead {
		f.schedule(f.scheduled+scheduleBatch, lookAhead)
	}
	x := f.first
	if x == 0 && f.scheduled < f.st.enqueued() {
		f.schedule(f.st.enqueued(), 1)
		x = f.first
	}
	if x != 0 {
		f.start(x)
	}
	return x
}

// finish publishes the effects of the operation at x and releases what waited for it.
func (f *flow) finish(x ref) {
	r := f.st.at(x)
	f.st.publish(r, f.seqOf(x))
	for i, s := range r.operands {
		switch {
		case r.orders>>i&1 != 0:
			for c := r.chain[i]; c != 0; {
				reader := ref(c >> operandBits)
				c = f.st.at(reader).chain[c&(1<<operandBits-1)]
				f.release(reader)
			}
			s.readers = r.count[i]
			if s.writer == x {
				s.writer = 0
			}
			if heir := r.heir[i]; heir != 0 {
				if s.readers == 0 {
					f.release(heir)
				} else {
					s.heir = heir
				}
			}
		case r.reads>>i&1 != 0:
			s.readers--
			if heir := s.heir; s.readers == 0 && heir != 0 {
				s.heir = 0
				f.release(heir)
			}
		}
	}
	switch {
	case r.isGate:
	case r.skipped:
		f.skipped++
	default:
		f.ran++
	}
	if r.link != nil && !r.isGate {
		r.link.fail = r.fail
		f.outbox = append(f.outbox, linkNotice{l: r.link})
	}
	f.freed += r.bytes
	r.state = finished
	r.clear()
	for f.head < f.scheduled && f.st.seq(f.head).state == finished {
		f.head++
	}
	stalled := f.st.e.stalled.n.Load() > 0
	if stalled || f.freed >= freedBatch || f.head-f.st.done.Load() >= f.lag {
		f.settleLocked()
	}
	f.rouse = f.rouse || stalled
}

// seqOf returns the place of the record at x, which is in use.
func (f *flow) seqOf(x ref) uint64 {
	return f.head + (uint64(x-1)-f.head)&f.st.mask
}

// isFinished reports whether the operation at seq, which has been scheduled, has finished.
func (f *flow) isFinished(seq uint64) bool {
	return seq < f.head || f.st.seq(seq).state == finished
}

func (f *flow) settleLocked() {
	if f.st.done.Load() != f.head {
		f.st.done.Store(f.head)
	}
	if f.freed != 0 {
		f.st.e.inFlight.Add(-f.freed)
		f.freed = 0
	}
}

func (f *flow) settle() {
	f.lock.lock()
	f.settleLocked()
	f.unlock()
}

func (f *flow) poll() {}

func (f *flow) counts() (ran, skipped uint64) {
	f.lock.lock()
	defer f.unlock()
	return f.ran, f.skipped
}

// scratch is what executing an operation needs that must not be on the stack: a Backend keeps no
// command, but the compiler can't know.
type scratch [1]device.Command

// run executes the operation at x, which has been started. The lock is not held.
func (f *flow) run(x ref, c *scratch) {
	r := f.st.at(x)
	if r.fail = r.spoiled(); r.fail != nil {
		r.skipped = true
		return
	}
	err := r.command(&c[0])
	if err == nil {
		_, err = submit(f.st.backend, c[:])
	}
	if err != nil {
		r.fail = f.st.failed(r, f.seqOfRunning(x), err)
	}
}

// seqOfRunning is seqOf without the lock.
func (f *flow) seqOfRunning(x ref) uint64 {
	f.lock.lock()
	defer f.unlock()
	return f.seqOf(x)
}

// step runs and finishes the operation at x, which has been started. The lock is held before and after, not between.
func (f *flow) step(x ref, c *scratch) {
	wake := f.readyCost >= wakeCost && f.parked.Load() > 0
	f.unlock()
	if wake {
		f.wakeWorker()
	}
	f.run(x, c)
	f.lock.lock()
	f.finish(x)
}

// work is a worker: it executes whatever is ready.
func (f *flow) work() {
	defer f.wg.Done()
	var c scratch
	for {
		f.lock.lock()
		for x := f.take(); x != 0; x = f.take() {
			f.notify()
			f.step(x, &c)
		}
		f.notify()
		f.settleLocked()
		f.unlock()
		c[0] = device.Command{}
		if !f.idle() {
			return
		}
	}
}

// idle waits until somebody wakes this worker: it looks for a while, then parks. It reports false when the flow is
// closed. A worker does not look for work by itself: it would snatch a few nanoseconds' worth away from the
// core that has just enqueued it and is about to wait for it.
func (f *flow) idle() bool {
	f.parked.Add(1)
	if f.closed.Load() {
		return false
	}
	if f.hasWork() && f.unpark() { // it came before we were counted
		return true
	}
	for i := f.st.e.looks; i > 0 && len(f.wakeups) == 0; i-- {
		pause(pauses)
	}
	<-f.wakeups
	return !f.closed.Load()
}

func (f *flow) hasWork() bool {
	f.lock.lock()
	has := f.nready > 0 || f.scheduled < f.st.enqueued()
	f.unlock()
	return has
}

// unpark takes back an announcement to park. It reports false if a token is on its way.
func (f *flow) unpark() bool {
	for {
		n := f.parked.Load()
		if n == 0 {
			return false
		}
		if f.parked.CompareAndSwap(n, n-1) {
			return true
		}
	}
}

// wakeWorker wakes one worker, if one is parked.
func (f *flow) wakeWorker() {
	if f.unpark() {
		f.wakeups <- struct{}{} // there is room: at most one token for each worker
	}
}

func (f *flow) nudge() {
	parked := f.parked.Load()
	if parked == 0 {
		return
	}
	if int(parked) < cap(f.wakeups) {
		// Somebody is at work. Another one is of use only for what is independent of that.
		f.lock.lock()
		f.schedule(f.scheduled+scheduleBatch, lookAhead)
		enough := f.readyCost >= wakeCost
		f.unlock()
		if !enough {
			return
		}
	}
	f.wakeWorker()
}

// flush schedules what is new, so that gates open although nobody executes anything, and wakes a worker for what is ready.
func (f *flow) flush() {
	f.lock.lock()
	f.schedule(f.st.enqueued(), len(f.st.ring)+1)
	f.unlock()
	f.wakeIfReady()
}

func (f *flow) hurry() {}

func (f *flow) granted(l *link) {
	f.lock.lock()
	defer f.wakeIfReady()
	defer f.unlock()
	at := l.opSeq.Load()
	if at == 0 || at > f.scheduled {
		return // scheduleNext will see it
	}
	if r := f.st.seq(at - 1); r.linked {
		r.linked = false
		f.release(f.st.ref(at - 1))
		f.notify()
	}
}

// endGate finishes the gate of l, whose operation has finished.
func (f *flow) endGate(l *link) {
	f.lock.lock()
	r := f.st.seq(l.gateSeq)
	r.fail = l.fail
	f.finish(f.st.ref(l.gateSeq))
	f.notify()
	f.unlock()
	f.wakeIfReady()
}

// wakeIfReady wakes a worker for operations that something outside has released.
func (f *flow) wakeIfReady() {
	if f.parked.Load() == 0 {
		return
	}
	f.lock.lock()
	ready := f.nready > 0
	f.unlock()
	if ready {
		f.wakeWorker()
	}
}

func (f *flow) close() {
	f.closed.Store(true)
	for range cap(f.wakeups) {
		select {
		case f.wakeups <- struct{}{}:
		default:
		}
	}
	f.wg.Wait()
}

// helpSome runs operations of its choice for about wakeCost, one at least if there is one.
func (f *flow) helpSome() (ops int64, some bool) {
	f.lock.lock()
	w := f.newWaiter(goal{})
	for cost := int64(0); cost < wakeCost; ops++ {
		x := f.take()
		if x == 0 {
			break
		}
		cost += int64(f.st.at(x).cost)
		f.notify()
		f.step(x, &w.scratch)
	}
	f.notify()
	f.settleLocked()
	f.freeWaiter(w)
	f.unlock()
	return ops, ops > 0
}

func (f *flow) newWaiter(g goal) *waiter {
	var w *waiter
	if n := len(f.free); n > 0 {
		w = f.free[n-1]
		f.free = f.free[:n-1]
	} else {
		w = &waiter{wake: make(chan struct{}, 1)}
	}
	w.goal = g
	return w
}

func (f *flow) freeWaiter(w *waiter) {
	w.need, w.pos = w.need[:0], 0
	w.scratch[0] = device.Command{}
	f.free = append(f.free, w)
}

// closure notes in w.need which operations must finish before w's goal is
// reached, in program order: going back from it, those that write what a noted one reads
// or writes, and those that read what a noted one writes. Marks in the storages, of a new number
// each time, stand for the set of what is read (the number doubled) and written (plus one).
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

func (f *flow) markOperands(r *record) {
	for i, s := range r.operands {
		if r.orders>>i&1 != 0 {
			s.mark = f.marks + 1
		} else if r.reads>>i&1 != 0 && s.mark < f.marks {
			s.mark = f.marks
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
	return false
}
