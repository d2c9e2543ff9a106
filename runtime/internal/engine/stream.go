package engine

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asyncgen/asyncgen/device"
)

// When a worker is woken. On a virtual machine a wake costs the caller 5 to 10 µs, and the worker is
// awake after 3 to 120 µs, depending on how it sleeps (see parker). So a wake pays for work that
// takes longer than that, or that nobody else will do.
const (
	wakeCost   = 20_000                 // nanoseconds of enqueued work for which a worker is woken
	launchCost = 1000                   // added for each command to a queue, so that the device begins early
	flushTick  = 200 * time.Microsecond // after one to two of these, work below wakeCost is flushed
	idleTicks  = 8                      // the timer stops after this many ticks without work
)

// A stream is the operations of one device, in program order, in a ring. They enter at tail and
// leave, in order, at done; in between they belong to the executor:
//
//	seq:   done ............... tail
//	      | records in use     | free, up to done+capacity |
//
// A record is written by the producer that holds the lock in tail. From then on it is read-only,
// until the executor gives it back by moving done past it. The second half of a record is written by
// the executor; flow and queue say under which lock.
type stream struct {
	e             *Engine
	id            uint16 // in Engine.order
	dev           device.Device
	backend       device.Backend
	isSynchronous bool // its executor is a flow
	onHost        bool // synchronous, and the host can read and write its memory
	exec          executor
	launch        int64         // nanoseconds that an operation costs beyond Op.Cost
	host          time.Duration // what enqueueing an operation costs the program by the clock of a model
	spares        *spares       // of a queue
	slips         atomic.Pointer[slips]
	ring          []*records // each is made when the first of its records is needed
	mask          uint64     // the number of records in the ring - 1

	_    [64]byte
	tail atomic.Uint64 // operations enqueued, shifted left by one; bit 0 is the producers' lock
	room uint64        // the ring has room for operations before this place; guarded by tail
	shut bool          // nothing fits any more, see Engine.Close; guarded by tail
	owed int64         // cost enqueued since the executor was nudged; guarded by tail
	// Bytes written by all operations enqueued so far; guarded by tail.
	pushed  int64
	_       [24]byte
	done    atomic.Uint64 // operations retired; exact after executor.settle, else it may lag behind
	retired atomic.Int64  // how many of the bytes in pushed were taken from Engine.inFlight again
	written atomic.Int64  // see Written
	latest  timing        // when all operations before done had finished, by the clock of a model
	times   times         // when each operation finished, by the same clock

	// Operations that the call computes itself, see tiny.go.
	costOfTiny int64                       // the largest cost of such an operation; negative: there are none
	runTiny    func(*device.Command) error // runs it
	desks      []desk                      // where it runs; the length is a power of two

	instant uint64 // operations executed in mode Naive, where the ring stays empty; guarded by Engine.naive

	flush flusher
	roots roots
	lost  atomic.Pointer[OpError] // the operation that found the device lost; nil: the device works
}

// An executor runs the operations of a stream.
//
// Methods may be called from several goroutines. An executor lets go of its own lock before it
// calls a method of another one. So two streams that are linked both ways never wait for each
// other's locks. Locks of failures and marks (Guess.mu, roots.mu, Mark.mu) may be taken under an
// executor's lock, in this order.
type executor interface {
	// nudge says that there is work worth waking somebody for. It never waits.
	nudge()
	// flush has every operation that can run begin soon, however cheap it is. It never waits.
	flush()
	// await waits for g and helps to execute what g needs. It returns nil when g is reached, or the context's error.
	await(ctx context.Context, g goal) (help, error)
	// hasten executes the operations that the one at seq needs, if that takes only a moment; see
	// Storage.Hasten. It returns how many operations it has executed, and whether the one at seq has
	// finished.
	hasten(seq uint64) (ops int64, done bool)
	// helpSome executes a little of any work that is ready. If an operation lacks memory, p says
	// whether helpSome leaves it for later. It returns how many operations it has executed, and
	// whether it did something.
	helpSome(p patience) (ops int64, some bool)
	// settle publishes what has finished: after it, done and Engine.inFlight are exact, and the
	// memory of finished releases has been given back.
	settle()
	// hurry says that a producer is stalled until something finishes.
	hurry()
	// poll retires what has finished, as far as that takes no waiting.
	poll()
	// granted says that the other end of l no longer holds up this end: the operation or gate here
	// may be executed, or handed to the device.
	granted(l *link)
	// nextOf returns the first operation from place from on, before end, that belongs to s and has not finished.
	nextOf(s *device.Scope, from, end uint64) (seq uint64, ok bool)
	// mark tells m when the first end operations have finished.
	mark(m *Mark, end uint64)
	// counts returns how many operations were executed and how many were skipped.
	counts() counts
	// close stops all goroutines. The ring is empty.
	close()
}

// A goal is what a waiter waits for on one stream. By default it is that operation seq has finished.
// With all, it is that every operation up to seq has finished. With link, it is that the gate of the
// link was granted (on a flow), or that the operation of the link was handed over (on a queue).
type goal struct {
	seq  uint64
	all  bool
	link *link // not nil: seq is the link's gate, on a flow, or its operation, on a queue
}

// A record is one operation in the ring.
type record struct {
	// Written by the producer. From the push on, only the executor changes these: it fills in stamp,
	// and clear drops the references.
	kernel   *device.Kernel
	args     *device.Args
	n        int
	off      [device.MaxOperands]int
	imm      [2]uint64
	operands [device.MaxOperands]*Storage
	more     []*Storage // see Op.Reads
	run      *run       // of a Plan, whose outputs it writes; nil: it is an operation
	shapes   [device.MaxOperands]*device.Shape
	scope    *device.Scope // that it belongs to, or nil
	link     *link         // the link to another stream that the operation touches, or nil
	guess    *Guess        // that it is part of; nil: the program wants it for certain
	pc       uintptr       // of the user's call
	order    uint64        // see Engine.order
	bytes    int64         // written
	stamp    device.Stamp  // by the clock of a model; the executor fills in when the operation finished
	cost     uint32        // nanoseconds, see Op.Cost
	writes   uint8         // bit i: operands[i] is written
	isGate   bool          // it stands for the operation at link.op and runs nothing

	// Written by the executor: a flow under its lock, a queue under the lock that owns the record.

	// state is that of an operation in a flow, see waiting. Queues have no states: where an operation
	// is, before or behind submitted and done, says how far it has come.
	state     uint8
	orders    uint8 // bit i: a flow orders operands[i] as a write
	reads     uint8 // bit i: a flow orders operands[i] as a read
	linked    bool  // it waits for its link to be granted
	skipped   bool  // it did not run
	withdrawn bool  // it was cancelled before a queue's device got it
	donor     uint8 // the operand whose memory the output takes; 0: none
	// waits is how many things must finish before the operation can run: writers, readers and a
	// link. At 0 it is ready.
	waits uint32
	// next and prev are its neighbours in the list of ready operations.
	next ref
	prev ref
	// of a written operand: the first of the readers that wait for it; of a read one: the next such reader
	chain   [device.MaxOperands]chained
	chains  []chained                  // like chain, for the storages in more
	count   [device.MaxOperands]uint32 // of a written operand: how many readers wait for it
	heir    [device.MaxOperands]ref    // of a written operand: the next writer
	ticket  device.Ticket              // of a queue
	refused error                      // of a queue: why the device did not take it, or did not get it
	// fail is why the operation has no result; nil: it succeeded. Valid once it has run, or was
	// skipped.
	fail *OpError
}

// A ring is made of blocks of records. Most streams never have more than a few operations under way, and the garbage
// collector looks at each record that there is.
type records [blockRecords]record

const blockRecords = 64

// A ref is the index of a record in its ring plus one; 0 is none.
type ref uint32

// chained names an operand of a record: the record's ref in the upper half, the operand's index in
// the lower. The indices of storages in more begin at device.MaxOperands.
type chained uint64

// chainOf names operand i of the record at x.
func chainOf(x ref, i int) chained { return chained(x)<<32 | chained(i) }

// ref names the record of c.
func (c chained) ref() ref { return ref(c >> 32) }

// link returns where r, the record of c, notes the reader that comes after c in its list.
func (c chained) link(r *record) *chained {
	i := int(uint32(c))
	if i < device.MaxOperands {
		return &r.chain[i]
	}
	return &r.chains[i-device.MaxOperands]
}

// newStream makes the stream of d. Engine.mu is held.
func newStream(e *Engine, d device.Device, b device.Backend) *stream {
	e.made++
	st := &stream{e: e, id: e.made, dev: d, backend: b,
		ring: make([]*records, (e.ring+blockRecords-1)/blockRecords), mask: uint64(e.ring - 1)}
	st.flush.st = st
	if b != nil {
		var clock *device.VirtualClock
		if clock, st.host = device.VirtualOf(b); clock != nil {
			e.virtual.CompareAndSwap(nil, clock)
		}
	}
	synchronous := b == nil || b.Caps().Synchronous
	st.isSynchronous = synchronous
	st.onHost = b == nil || synchronous && b.Caps().HostMemory
	st.setTiny()
	switch {
	case e.mode == Shuffle:
		st.flush.armed.Store(true) // so the timer never starts: which operations run must not depend on time
		st.exec = e.shuffler.shuffle(st, synchronous)
	case b == nil || e.mode == Naive:
		st.exec = newFlow(st, 0) // of a naive engine: never used
	case synchronous:
		st.exec = newFlow(st, e.workersOf(b))
	default:
		st.launch = launchCost
		q := newQueue(st)
		q.start()
		st.exec = q
	}
	if t := e.tracer.w.Load(); t != nil {
		st.trace(t)
	}
	return st
}

// at returns the record that r names. r is not 0.
func (st *stream) at(r ref) *record { return &st.ring[(r-1)/blockRecords][(r-1)%blockRecords] }

// seq returns the record of the operation at seq, which is in the ring or about to be.
func (st *stream) seq(seq uint64) *record {
	at := seq & st.mask
	return &st.ring[at/blockRecords][at%blockRecords]
}

// fresh is seq for the next operation: the lock in tail is held, and tail publishes the records that fresh makes.
func (st *stream) fresh(seq uint64) *record {
	if b := &st.ring[seq&st.mask/blockRecords]; *b == nil {
		*b = new(records)
	}
	return st.seq(seq)
}

// capacity returns how many records the ring has.
func (st *stream) capacity() int { return int(st.mask + 1) }

// ref returns the name of that record. It is the name of another operation once this one has
// retired.
func (st *stream) ref(seq uint64) ref { return ref(seq&st.mask) + 1 }

// enqueued returns how many operations have been put into the ring.
func (st *stream) enqueued() uint64 { return st.tail.Load() >> 1 }

// push appends an operation and returns its place. It waits, helping, while the ring is full. push
// takes the lock in tail, fills the record, and lets go of the lock with the new tail. That store
// publishes the record. It panics if the engine was closed; then nothing was enqueued and the lock
// is free.
func (st *stream) push(op *Op, writes uint8, pc uintptr, bytes int64, l *link, g *Guess) uint64 {
	order := st.e.order(st)
	for i := 0; ; i++ {
		t := st.tail.Load()
		if t&1 != 0 || !st.tail.CompareAndSwap(t, t|1) {
			backoff(i)
			continue
		}
		seq := t >> 1
		if seq >= st.room {
			if st.shut {
				st.tail.Store(t)
				panic(usedAfterClose)
			}
			// done is read only when the room last seen is used up: executors write it, so a read
			// may cost a cache miss.
			st.room = st.done.Load() + uint64(st.capacity())
			if seq >= st.room {
				st.tail.Store(t)
				st.e.stallFor(st, 0, op.Cmd.Kernel, pc)
				i = 0
				continue
			}
		}
		r := st.fresh(seq)
		r.fill(op, writes, pc)
		r.order, r.bytes, r.link = order, bytes, l
		if g != nil { // else it is nil already, see clear
			r.guess = g
		}
		r.isGate = l != nil && l.gate == st
		if r.isGate {
			r.scope = l.scope // a wait for the scope includes what the operation does on this stream
			l.gateSeq = seq
		} else if l != nil {
			l.opSeq.Store(seq + 1)
		}
		if clock := st.e.virtual.Load(); clock != nil {
			st.stamp(clock, r)
		}
		if s := st.slips.Load(); s != nil {
			s.note(st, r, seq)
		}
		// From here on, a wait for the storage waits for this operation. last is stored before
		// tail, so a waiter may come before the operation is published (see scheduleThrough).
		for i, s := range op.Operands {
			if s != nil && writes>>i&1 != 0 && s.st == st {
				s.last.Store(seq + 1)
			}
		}
		if op.run != nil {
			for _, s := range op.run.outs {
				s.last.Store(seq + 1)
			}
		}
		st.pushed += bytes
		st.owed += int64(r.cost) + st.launch
		wake := st.isDue()
		st.tail.Store(t + 2)
		// After the lock: the timer and the executor may look at the stream at once.
		if !st.flush.armed.Load() {
			st.e.outside(st.flush.arm)
		}
		if wake {
			st.exec.nudge()
		}
		return seq
	}
}

// fill sets what the request says. It leaves what depends on the stream to push: order, bytes,
// link, guess and stamp.
func (r *record) fill(op *Op, writes uint8, pc uintptr) {
	r.kernel, r.args, r.n, r.off, r.imm = op.Cmd.Kernel, op.Cmd.Args, op.Cmd.N, op.Cmd.Off, op.Cmd.Imm
	r.operands, r.shapes = op.Operands, op.Shapes
	if op.run != nil { // else it is nil already, see clear
		r.run = op.run
	} else {
		r.scope = op.Operands[0].in.Scope()
	}
	if op.Reads != nil { // else it is nil already, see clear
		r.more = op.Reads
	}
	r.pc, r.cost, r.writes = pc, uint32(min(max(op.Cost, 1), 1<<31)), writes
}

// clear drops what a finished record refers to, so that the collector may free it. The place in the
// ring says that r is free, not its fields: those that hold no references keep their old values.
func (r *record) clear() {
	r.operands = [device.MaxOperands]*Storage{}
	r.shapes = [device.MaxOperands]*device.Shape{}
	r.withdrawn = false
	if r.more != nil {
		r.more, r.chains = nil, nil
	}
	if r.run != nil {
		r.run = nil
	}
	r.args, r.scope, r.link, r.guess, r.refused, r.fail = nil, nil, nil, nil, nil, nil
}

// skips returns nil if r may begin, or else the error that its outputs carry. An input that is
// spoiled goes before a scope that has ended, since the error of the first cause says more.
func (st *stream) skips(r *record) *OpError {
	if e := r.spoiled(); e != nil || r.guess == nil && r.scope == nil {
		return e
	}
	if err := r.cancelled(); err != nil {
		return st.opError(r, err)
	}
	return nil
}

// cancelled returns why r must not begin even if its inputs are good: its guess was discarded, or
// its scope has ended. nil: neither.
func (r *record) cancelled() error {
	if r.guess.isDiscarded() {
		return ErrDiscarded
	}
	if r.scope == nil {
		return nil
	}
	return r.scope.Err()
}

// command fills c from r, which st is about to execute, and allocates what r writes. It returns an
// error if an input has no buffer, or an output can't be allocated. It may be called again after it
// has failed: outputs that it has allocated keep their memory until then.
func (r *record) command(st *stream, c *device.Command) error {
	c.Kernel, c.Args, c.N, c.Off, c.Imm = r.kernel, r.args, r.n, r.off, r.imm
	for i, s := range r.operands {
		c.Buf[i] = nil
		if s == nil {
			continue
		}
		if s.buf == nil {
			if !r.among(r.writes, s) {
				r.donor = 0
				return s.lack()
			}
			if i == 0 && r.donor != 0 {
				continue // the donor gives its memory below, when nothing can fail any more
			}
			if err := s.allocate(r.pc, s.st != st); err != nil {
				return err
			}
		}
		c.Buf[i] = s.buf
	}
	for i, s := range r.more {
		if s.buf == nil {
			return s.lack()
		}
		c.Args.Parts[i].Buf = s.buf
	}
	if r.donor != 0 && c.Buf[0] == nil {
		r.operands[0].takeOver(r.operands[r.donor], r.pc)
		c.Buf[0] = r.operands[0].buf
	}
	return nil
}

// spoiled returns the error of the first input that is spoiled.
func (r *record) spoiled() *OpError {
	for i, s := range r.operands {
		if s != nil && r.writes>>i&1 == 0 {
			if err := s.err.Load(); err != nil {
				return err
			}
		}
	}
	for _, s := range r.more {
		if err := s.err.Load(); err != nil {
			return err
		}
	}
	return nil
}

// publish notes the outcome of the operation at seq in the storages that it wrote. publish is
// called once for each operation, with the executor's lock held. It notes the time first, as who
// sees the outcome may ask for the time.
func (st *stream) publish(r *record, seq uint64) {
	if st.e.virtual.Load() != nil {
		st.pass(r, seq)
	}
	for i, s := range r.operands {
		if s != nil && r.writes>>i&1 != 0 && s.st == st {
			s.finished(seq, r.fail)
		}
	}
	if r.run == nil {
		return
	}
	for i, s := range r.run.outs {
		fail := r.fail
		if r.run.fails != nil {
			fail = r.run.fails[i]
		}
		s.finished(seq, fail)
	}
}

// shutRing makes push panic from now on. Producers that are stalled find that out when they look
// for room again.
func (st *stream) shutRing() {
	for i := 0; ; i++ {
		if t := st.tail.Load(); t&1 == 0 && st.tail.CompareAndSwap(t, t|1) {
			st.room, st.shut = 0, true
			st.tail.Store(t)
			return
		}
		backoff(i)
	}
}

// close stops what runs for st. The ring comes first, so that nothing is enqueued that nobody would
// run. Its operations have finished, and no lock is held, since the goroutines of the executor may
// need any.
func (st *stream) close() {
	st.shutRing()
	st.flush.close()
	st.exec.close()
}

// A flusher takes care of work that is too small to wake anyone for: while there is some, it checks
// every flushTick whether the stream has moved, and flushes the stream if not.
type flusher struct {
	st    *stream
	armed atomic.Bool // the timer runs

	mu     sync.Mutex  // guards the rest
	timer  *time.Timer // nil until it is needed
	done   uint64      // at the last tick
	idle   int         // ticks without work
	closed bool
}

// arm starts the timer, if it does not run. push calls it after the new operation is published; so
// either tick sees the operation, or arm comes after tick has cleared armed.
func (f *flusher) arm() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.armed.Load() || f.closed {
		return
	}
	f.armed.Store(true)
	f.idle = 0
	if f.timer == nil {
		f.timer = time.AfterFunc(flushTick, f.tick)
		return
	}
	f.timer.Reset(flushTick)
}

// tick is what the timer calls. Work that nobody has finished a part of since the last tick is
// flushed; so a cheap operation begins after one to two ticks, even if nobody ever waits for it.
func (f *flusher) tick() {
	f.st.exec.settle()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return
	}
	done := f.st.done.Load()
	stuck := done == f.done
	f.done = done
	if done == f.st.enqueued() {
		f.idle++
		if f.idle >= idleTicks {
			f.armed.Store(false)
			if done == f.st.enqueued() {
				return
			}
			f.armed.Store(true) // an operation came in between, and its push may have seen armed
		}
	} else {
		f.idle = 0
		if stuck {
			f.st.exec.flush()
		}
	}
	f.timer.Reset(flushTick)
}

// close stops the timer. A tick that is under way finds closed set and does not start it again.
func (f *flusher) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	if f.timer != nil {
		f.timer.Stop()
	}
}
