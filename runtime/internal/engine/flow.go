package engine

import (
	"sync"
	"sync/atomic"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/pool"
)

// A flow executes the operations of a synchronous device: several at a time, in any order that the
// program can't tell from its own. Enqueueing schedules nothing. A goroutine that comes to execute
// (a worker, a waiter, a producer at a bound) takes the lock and schedules new operations, in
// program order:
//
//	read of S:   no unfinished writer of S: S.readers++.
//	             Else it waits, in the list of readers of the newest such writer.
//	write of S:  no unfinished writer: if S.readers > 0 it waits, as S.heir.
//	             Else it waits, as the heir of the newest writer. It is S.writer from now on.
//	end of a read:   the last of S.readers releases S.heir.
//	end of a write:  releases the readers in its list, which become S.readers,
//	                 and its heir, or makes it S.heir if there are such readers.
//
// An example, with the places of four operations:
//
//	0  a = f()   becomes a.writer
//	1  b = g(a)  waits, in the list of 0
//	2  c = g(a)  waits, in the list of 0
//	3  a = f()   waits, as the heir of 0; becomes a.writer
//
// When 0 ends, 1 and 2 are ready and a.readers is 2; since a has readers, 3 becomes a.heir. The
// second of 1 and 2 to end releases 3.
//
// An operation that waits for nothing is ready; ready operations start in program order. The lists
// are threaded through the records, so nothing is allocated. One critical section finishes an
// operation and takes the next one, which keeps a chain of operations on one core. Taking several
// operations at a time would save nothing: each would have to be claimed by an atomic operation, or
// a waiter could be stuck behind another's batch. It would also hide ready operations from others.
//
// The methods of the interface executor are called without the lock, and so are wakeWorker,
// wakeIfReady, send, run, finishReady and seqOfRunning. All others are called with the lock held.
// Of these, scheduleThrough, help, helpOnce, catchUp, step and park let go of it in between, so
// whatever the caller knew about other operations may be out of date when they return.
type flow struct {
	st   *stream
	lock spinLock // guards everything up to the next blank line

	head      uint64 // all operations before have finished
	scheduled uint64 // all operations before have been scheduled
	first     ref    // of the ready operations
	last      ref    // of the ready operations
	nready    int    // how many are ready
	readyCost int64  // their cost
	// early is how many bytes finished operations behind head have taken, see startable.
	early int64
	// drops are the blocks to give back after unlocking: a backend's Free may take long.
	drops   *block
	freed   int64     // bytes written by finished operations, not yet taken from Engine.inFlight
	waiters []*waiter // parked
	helpers int       // waiters that execute, or look for operations to execute
	// free are waiters for reuse: their parkers and lists cost an allocation each.
	free    []*waiter
	marks   uint64 // see closure
	marked  marks
	outbox  []linkNotice // what to tell other streams after unlocking
	rouse   bool         // wake stalled producers after unlocking
	moved   bool         // something has become ready or finished since the last notify
	counted counts

	// lag is how far stream.done may lag behind head: to publish each step would cost producers,
	// which read it, a cache miss.
	lag     uint64
	workers []*worker
	// parked counts the workers that are about to park, or are parked, and that nobody has woken
	// yet. It is read without the lock: 0 means that nobody needs waking.
	parked    atomic.Int32
	executing atomic.Int32 // how many operations run now
	endLoan   func()       // see pool.Lend
	closed    atomic.Bool
	scarce    atomic.Bool // somebody executes finishReady
	// freeing counts the goroutines that are giving back blocks from drops. It is raised under the
	// lock, so that settle, which waits until it is 0, misses none.
	freeing atomic.Int32
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
	enough        = 64       // no more are scheduled while this many operations are ready
	scheduleBatch = 256      // scheduled at most in one critical section, unless a waiter needs more
	freedBatch    = 64 << 10 // how many bytes Engine.inFlight may lag behind
)

// newFlow makes the flow of st. It starts no goroutine: each worker is dormant until somebody wakes
// it. The workers also help with big loops of device/pool, except with Options.Channels.
func newFlow(st *stream, workers int) *flow {
	f := &flow{st: st, lag: uint64(min(32, st.capacity()/4)), workers: make([]*worker, workers)}
	for i := range f.workers {
		w := &worker{f: f}
		w.parker.init(st.e.threads)
		w.parker.rest(w.start)
		f.workers[i] = w
	}
	f.parked.Store(int32(workers))
	if workers > 0 && !st.e.onChannels() {
		f.endLoan = pool.Lend((*loan)(f))
	}
	return f
}

// unlock ends a critical section. Then it does what the section left for later: it gives back
// memory, tells other streams, and wakes stalled producers.
func (f *flow) unlock() {
	if len(f.outbox) == 0 && !f.rouse && f.drops == nil {
		f.lock.unlock()
		return
	}
	// They are taken under the lock: whoever takes a notice delivers it, so each is delivered once.
	box, rouse, drops := f.outbox, f.rouse, f.drops
	f.outbox, f.rouse, f.drops = nil, false, nil
	if drops != nil {
		f.freeing.Add(1)
	}
	f.lock.unlock()
	if drops != nil {
		for b := drops; b != nil; b = b.next {
			b.free()
		}
		f.freeing.Add(-1)
	}
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
// A waiter knows seq from Storage.last, which push sets before it publishes the operation. In
// between, scheduleThrough lets go of the lock and looks again.
func (f *flow) scheduleThrough(seq uint64) {
	for i := 0; f.scheduled <= seq; i++ {
		f.schedule(seq+1, f.st.capacity()+1)
		if f.scheduled <= seq {
			f.unlock()
			backoff(i)
			f.lock.lock()
		}
	}
}

// scheduleNext enters the next operation into the lists of its operands, by the table above. It is
// ready at once if it waits for nothing. A gate and a Release count as writes or reads like any
// operation.
func (f *flow) scheduleNext() {
	self := f.st.ref(f.scheduled)
	r := f.st.at(self)
	f.scheduled++
	r.state, r.waits, r.linked, r.skipped = waiting, 0, false, false
	// This is decided once, since finish has to undo exactly what scheduling did.
	r.reads, r.orders = r.access(f.st)
	for i, s := range r.operands {
		switch {
		case r.orders>>i&1 != 0:
			r.chain[i], r.count[i], r.heir[i] = 0, 0, 0
			if s.writer != 0 {
				f.st.at(s.writer).setHeir(s, self)
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
			r.chain[i] = f.st.at(s.writer).join(s, chainOf(self, i))
			r.waits++
		}
	}
	if r.run != nil {
		for _, s := range r.run.outs { // new, so nobody writes or reads them yet
			s.writer = self
		}
	}
	if r.more != nil {
		f.scheduleMore(r, self)
	}
	if r.link != nil && !r.isGate && !r.link.granted.Load() {
		r.linked = true
		r.waits++
	}
	if r.waits == 0 {
		f.ready(self)
	}
}

// scheduleMore schedules the reads in r.more. r is the record at self.
func (f *flow) scheduleMore(r *record, self ref) {
	r.chains = make([]chained, len(r.more))
	for i, s := range r.more {
		if s.writer == 0 {
			s.readers++
			continue
		}
		r.chains[i] = f.st.at(s.writer).join(s, chainOf(self, device.MaxOperands+i))
		r.waits++
	}
}

// join adds c to the readers that wait for r's write of s. It returns the one that was added before.
func (r *record) join(s *Storage, c chained) (before chained) {
	if r.run != nil {
		w := r.run.find(s)
		before, w.chain = w.chain, c
		w.count++
		return before
	}
	k := r.writeOf(s)
	before, r.chain[k] = r.chain[k], c
	r.count[k]++
	return before
}

// setHeir notes that the operation at x waits for r's write of s, and is its next writer.
func (r *record) setHeir(s *Storage, x ref) {
	if r.run != nil {
		r.run.find(s).heir = x
		return
	}
	r.heir[r.writeOf(s)] = x
}

// access returns which operands on st are ordered as reads, and which as writes. A storage that is
// both read and written counts once, as written.
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

// writeOf returns which operand of r is the write of s. There is such an operand.
func (r *record) writeOf(s *Storage) int {
	i := 0
	for r.orders>>i&1 == 0 || r.operands[i] != s {
		i++
	}
	return i
}

// release notes that the operation at x waits for one thing less.
func (f *flow) release(x ref) {
	r := f.st.at(x)
	r.waits--
	if r.waits == 0 {
		f.ready(x)
	}
}

// ready is called when the operation at x waits for nothing more. A gate opens; the operation at
// its other end may run now. A Release is carried out. Anything else goes into the list of ready
// operations.
func (f *flow) ready(x ref) {
	f.moved = true
	r := f.st.at(x)
	if r.isGate {
		r.state = open
		r.link.granted.Store(true)
		f.outbox = append(f.outbox, linkNotice{l: r.link, granted: true})
		return
	}
	if r.isRelease() && f.st.e.mode != Shuffle { // at once: no waiter needs a release, but memory may be short
		r.state = running
		f.drop(r)
		f.finish(x)
		return
	}
	r.state = ready
	f.insert(x)
	f.nready++
	f.readyCost += int64(r.cost)
}

// drop executes the release r: its block goes to f.drops, and unlock gives it back.
func (f *flow) drop(r *record) {
	s := r.operands[0]
	s.leave()
	if s.block != nil {
		s.block.next = f.drops
		f.drops = s.block
		s.block = nil
	}
	r.fail = errReleased
}

// start takes the operation at x, which is ready, off the list. Who calls start executes the
// operation, and then calls finish or putBack.
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

// take starts an operation: one that a parked waiter needs, or else the first of the ready ones. It
// returns 0 if none may start now. What a parked waiter needs comes first, since the program is
// blocked until it is done.
func (f *flow) take() ref {
	for _, w := range f.waiters {
		if x := f.needed(w); x != 0 {
			f.start(x)
			return x
		}
	}
	f.lookAhead()
	x := f.startable()
	if x != 0 {
		f.start(x)
	}
	return x
}

// lookAhead schedules until enough operations are ready, or scheduleBatch were scheduled. If none is
// ready by then, it goes on until one is.
func (f *flow) lookAhead() {
	f.schedule(f.scheduled+scheduleBatch, enough)
	if f.first == 0 {
		f.schedule(f.st.enqueued(), 1)
	}
}

// finish publishes the outcome of the operation at x and releases the operations that waited for it.
// The order matters. The outcome is published before anything is released, so dependents find it.
// The record is cleared last, as its operands say what to release. finish does not let go of the
// lock: notices to other streams, memory and wakes go to outbox, drops and rouse, for unlock.
func (f *flow) finish(x ref) {
	f.moved = true
	r := f.st.at(x)
	if f.st.e.virtual.Load() != nil {
		r.stamp.Finish(r.arrivesOnHost())
	}
	f.st.publish(r, f.seqOf(x))
	for i, s := range r.operands {
		switch {
		case r.orders>>i&1 != 0:
			f.finishWrite(s, x, r.chain[i], r.count[i], r.heir[i])
		case r.reads>>i&1 != 0:
			f.finishRead(s)
		}
	}
	for _, s := range r.more {
		f.finishRead(s)
	}
	if r.run != nil {
		for i, s := range r.run.outs {
			w := &r.run.waits[i]
			f.finishWrite(s, x, w.chain, w.count, w.heir)
		}
	}
	switch {
	case r.isGate, r.isRelease():
	case r.skipped:
		f.counted.skipped++
	default:
		f.counted.run(r)
	}
	if r.link != nil && !r.isGate {
		r.link.at = r.stamp.Finished()
		r.link.fail = r.fail
		f.outbox = append(f.outbox, linkNotice{l: r.link})
	}
	f.freed += r.bytes
	// An operation that finishes before its turn counts in early until head has passed it.
	f.early += r.taken()
	r.state = finished
	r.clear()
	for f.head < f.scheduled && f.st.seq(f.head).state == finished {
		f.head++
		f.early -= f.st.seq(f.head - 1).taken()
		if f.st.e.virtual.Load() != nil {
			f.st.latest.note(f.st.seq(f.head - 1).stamp.Finished())
			f.marked.reach(f.head, f.st)
		}
	}
	f.marked.reach(f.head, f.st)
	stalled := f.st.e.stalled.n.Load() > 0
	if stalled || f.freed >= freedBatch || f.head-f.st.done.Load() >= f.lag {
		f.settleLocked()
	}
	f.rouse = f.rouse || stalled
}

// finishWrite notes that the operation at x has written s, and releases what waits for it: the readers in a chain of
// that length, and the next writer.
func (f *flow) finishWrite(s *Storage, x ref, chain chained, count uint32, heir ref) {
	for c := chain; c != 0; {
		reader := c.ref()
		c = *c.link(f.st.at(reader))
		f.release(reader)
	}
	s.readers = count
	if s.writer == x {
		s.writer = 0
	}
	if heir == 0 {
		return
	}
	if s.readers == 0 {
		f.release(heir)
	} else {
		s.heir = heir
	}
}

// finishRead notes that a reader of s has finished.
func (f *flow) finishRead(s *Storage) {
	s.readers--
	if heir := s.heir; s.readers == 0 && heir != 0 {
		s.heir = 0
		f.release(heir)
	}
}

// seqOf returns the place of the record at x, which is in use.
func (f *flow) seqOf(x ref) uint64 {
	return f.head + (uint64(x-1)-f.head)&f.st.mask
}

// isFinished reports whether the operation at seq, which has been scheduled, has finished.
func (f *flow) isFinished(seq uint64) bool {
	return seq < f.head || f.st.seq(seq).state == finished
}

// settleLocked publishes head and the bytes freed, for producers. Who calls it often costs them
// cache misses, so finish calls it only when enough has gathered or somebody is stalled.
func (f *flow) settleLocked() {
	if f.st.done.Load() != f.head {
		f.st.done.Store(f.head)
	}
	if f.freed != 0 {
		f.st.e.inFlight.Add(-f.freed)
		f.st.retired.Add(f.freed)
		f.freed = 0
	}
}

// settle implements executor. It waits for the goroutines that are giving memory back, too.
func (f *flow) settle() {
	f.lock.lock()
	f.settleLocked()
	f.unlock()
	for i := 0; f.freeing.Load() > 0; i++ {
		backoff(i)
	}
}

// poll does nothing: what a flow has executed is known at once.
func (f *flow) poll() {}

func (f *flow) counts() counts {
	f.lock.lock()
	defer f.unlock()
	return f.counted
}
