package engine

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asyncgen/asyncgen/device"
)

// Constants of when somebody is woken. Waking a worker costs the one who wakes 5 to 10 µs on a
// virtual machine, and reaches the other after 3 to 120 µs, depending on how that sleeps (see
// parker), so it pays for work that takes longer than that, or that nobody else will do.
const (
	wakeCost   = 20_000                 // nanoseconds of enqueued work for which a worker is woken
	launchCost = 1000                   // of a command for a device with a queue: it should get to work early
	flushTick  = 200 * time.Microsecond // after one to two of these, work below wakeCost is looked after
	idleTicks  = 8                      // the timer stops after so many without work
)

// A stream is the operations of one device, in program order, in a ring. They
// enter at tail and leave, in order, at done; between, they belong to whoever executes them:
//
//	seq:   done ............... tail
//	      | records in use     | free, up to done+len(ring) |
//
// A record is written by the producer that holds the lock in tail, and is read-only until
// the executor gives it back by moving done past it. What executors note in a record is in
// its second half and guarded as they say.
type stream struct {
	e             *Engine
	id            uint16 // in Engine.order
	dev           device.Device
	backend       device.Backend
	isSynchronous bool // its executor is a flow
	onHost        bool // the host reads and writes its memory, and operations may wait for each other (synchronous)
	exec          executor
	launch        int64         // nanoseconds that an operation costs beside what it says
	host          time.Duration // that enqueueing one costs the program by the clock of a model
	spares        *spares       // of a queue
	ring          []record
	mask          uint64

	_    [64]byte
	tail atomic.Uint64 // operations enqueued, shifted left by one; bit 0 is the producers' lock
	room uint64        // operations that fit without another look at done; guarded by tail
	shut bool          // nothing fits any more, see Engine.Close; guarded by tail
	owed int64         // cost enqueued since the executor was nudged; guarded by tail
	// Bytes that the operations write which were enqueued; guarded by tail.
	pushed  int64
	_       [24]byte
	done    atomic.Uint64 // operations retired; may lag behind until somebody settles
	retired atomic.Int64  // the bytes of those of pushed that were taken from Engine.inFlight
	written atomic.Int64  // see Written
	latest  timing        // when all up to done had finished, by the clock of a model
	times   times         // of each, by the same

	costOfTiny int64                       // up to which calls compute operations; less than 0: they compute none
	runTiny    func(*device.Command) error // by which they do so
	desks      []desk                      // where they do so; the length is a power of two

	instant uint64 // operations executed in mode Naive, where the ring stays empty; guarded by Engine.naive

	flush flusher
	roots roots
	lost  atomic.Pointer[OpError] // the operation that found the device lost; nil: it is there
}

// An executor runs the operations of a stream.
type executor interface {
	// nudge says that there is work worth waking somebody for. It never waits.
	nudge()
	// flush sees to it that whatever can run is run soon, however cheap. It never waits.
	flush()
	// await returns nil when the goal is reached, after helping with what leads there, or the context's error.
	await(ctx context.Context, g goal) (help, error)
	// hasten executes what the operation at seq needs, if that takes a moment; see Storage.Hasten. It
	// reports how many operations it has executed, and whether that one has finished.
	hasten(seq uint64) (ops int64, done bool)
	// helpSome does a little of any work there is, and none that has to wait, for want of memory, as
	// p says. It reports how many operations it has executed, and whether it did something.
	helpSome(p patience) (ops int64, some bool)
	// settle publishes what has finished: done and Engine.inFlight are exact after it, and the memory is back that
	// finished releases were for.
	settle()
	// hurry says that a producer is stalled until something is finished.
	hurry()
	// poll notices what has finished, if that takes no waiting.
	poll()
	// granted tells that what has kept the operation, or the gate, of l from being executed, or
	// handed over, does so no more.
	granted(l *link)
	// nextOf returns the first operation from place from on, before end, that belongs to s and has not finished.
	nextOf(s *device.Scope, from, end uint64) (seq uint64, ok bool)
	// mark tells m when end operations have finished.
	mark(m *Mark, end uint64)
	// counts returns how many operations have ended, and how.
	counts() counts
	// close stops all goroutines. The ring is empty.
	close()
}

// A goal is what a waiter waits for: that operation seq of a stream has finished, that its link was
// granted, or the operation of that handed over, or that all operations up to it have finished.
type goal struct {
	seq  uint64
	all  bool
	link *link // not nil: seq is the link's gate, on a flow, or its operation, on a queue
}

// A record is one operation in the ring.
type record struct {
	// Written by the producer.
	kernel   *device.Kernel
	args     *device.Args
	n        int
	off      [device.MaxOperands]int
	imm      [2]uint64
	operands [device.MaxOperands]*Storage
	more     []*Storage // see Op.Reads
	shapes   [device.MaxOperands]*device.Shape
	scope    *device.Scope // that it belongs to, or nil
	link     *link         // the other end, if it touches another stream
	guess    *Guess        // what it is part of; nil: the program wants it
	pc       uintptr       // of the user's call
	order    uint64        // see Engine.order
	bytes    int64         // written
	stamp    device.Stamp  // by the clock of a model. Who executes the operation finishes it
	cost     uint32
	writes   uint8 // bit i: operands[i] is written
	isGate   bool  // it stands for the operation at link.op and runs nothing

	// Written by the executor: a flow under its lock, a queue under its mutex.
	state     uint8
	orders    uint8  // bit i: a flow orders operands[i] as a write
	reads     uint8  // bit i: a flow orders operands[i] as a read
	linked    bool   // it waits for its link to be granted
	skipped   bool   // it did not run
	withdrawn bool   // a queue's device was not asked: it was cancelled
	donor     uint8  // the operand whose memory the output takes; 0: none
	waits     uint32 // what must finish before it can run
	next      ref    // in the list of ready operations
	prev      ref
	// of a written operand: the readers that wait for it; of a read one: the next such reader
	chain   [device.MaxOperands]chained
	chains  []chained                  // the same of more
	count   [device.MaxOperands]uint32 // of a written operand: how many readers that are
	heir    [device.MaxOperands]ref    // of a written operand: the next writer
	ticket  device.Ticket              // of a queue
	refused error                      // why a queue's device did not take it, or was not asked
	fail    *OpError                   // why it has no result
}

// A ref is the index of a record in its ring plus one; 0 is none.
type ref uint32

// chained is a ref and, in the lower half, which of its operands; those in more come after the others.
type chained uint64

// chainOf is operand i of the record at x.
func chainOf(x ref, i int) chained { return chained(x)<<32 | chained(i) }

func (c chained) ref() ref { return ref(c >> 32) }

// link is where a record notes which reader of the operand of c, that is its own, comes next.
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
		ring: make([]record, e.ring), mask: uint64(e.ring - 1)}
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
		st.flush.armed.Store(true) // that is, never: who makes moves is not to depend on time
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
	return st
}

func (st *stream) at(r ref) *record { return &st.ring[r-1] }

func (st *stream) seq(seq uint64) *record { return &st.ring[seq&st.mask] }

func (st *stream) ref(seq uint64) ref { return ref(seq&st.mask) + 1 }

// enqueued is how many operations have been put into the ring.
func (st *stream) enqueued() uint64 { return st.tail.Load() >> 1 }

// push appends an operation and returns its place. It waits, helping, while the ring is full.
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
			st.room = st.done.Load() + uint64(len(st.ring))
			if seq >= st.room {
				st.tail.Store(t)
				st.e.stallFor(st, 0, op.Cmd.Kernel, pc)
				i = 0
				continue
			}
		}
		r := st.seq(seq)
		r.fill(op, writes, pc)
		r.order, r.bytes, r.link = order, bytes, l
		if g != nil { // else there is none since clear
			r.guess = g
		}
		r.isGate = l != nil && l.gate == st
		if r.isGate {
			r.scope = l.scope // who waits for the scope waits for what the operation does here
			l.gateSeq = seq
		} else if l != nil {
			l.opSeq.Store(seq + 1)
		}
		if clock := st.e.virtual.Load(); clock != nil {
			st.stamp(clock, r)
		}
		for i, s := range op.Operands {
			if s != nil && writes>>i&1 != 0 && s.st == st {
				s.last.Store(seq + 1)
			}
		}
		st.pushed += bytes
		st.owed += int64(r.cost) + st.launch
		wake := st.isDue()
		st.tail.Store(t + 2)
		if !st.flush.armed.Load() {
			st.e.outside(st.flush.arm)
		}
		if wake {
			st.exec.nudge()
		}
		return seq
	}
}

func (r *record) fill(op *Op, writes uint8, pc uintptr) {
	r.kernel, r.args, r.n, r.off, r.imm = op.Cmd.Kernel, op.Cmd.Args, op.Cmd.N, op.Cmd.Off, op.Cmd.Imm
	r.operands, r.shapes, r.scope = op.Operands, op.Shapes, op.Operands[0].in.Scope()
	if op.Reads != nil { // else there are none since clear
		r.more = op.Reads
	}
	r.pc, r.cost, r.writes = pc, uint32(min(max(op.Cost, 1), 1<<31)), writes
}

// clear drops what a finished record refers to, so that the collector may have it.
func (r *record) clear() {
	r.operands = [device.MaxOperands]*Storage{}
	r.shapes = [device.MaxOperands]*device.Shape{}
	r.withdrawn = false
	if r.more != nil {
		r.more, r.chains = nil, nil
	}
	r.args, r.scope, r.link, r.guess, r.refused, r.fail = nil, nil, nil, nil, nil, nil
}

// skips returns what the outputs of r, which is about to begin, carry if it must not. nil: it may.
func (st *stream) skips(r *record) *OpError {
	if e := r.spoiled(); e != nil || r.guess == nil && r.scope == nil {
		return e
	}
	if err := r.cancelled(); err != nil {
		return st.opError(r, err)
	}
	return nil
}

// cancelled returns why r must not begin whatever it reads, or nil: its guess was discarded, or its scope has ended.
func (r *record) cancelled() error {
	if r.guess.isDiscarded() {
		return ErrDiscarded
	}
	if r.scope == nil {
		return nil
	}
	return r.scope.Err()
}

// command fills c from r, which st is about to execute. It returns an error if a buffer is missing,
// or can't be allocated.
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
				continue // when nothing can fail any more
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

// publish makes the outcome of the operation at seq visible in what it wrote.
func (st *stream) publish(r *record, seq uint64) {
	if st.e.virtual.Load() != nil {
		st.pass(r, seq)
	}
	for i, s := range r.operands {
		if s != nil && r.writes>>i&1 != 0 && s.st == st {
			s.finished(seq, r.fail)
		}
	}
}

// shutRing makes push panic from now on.
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

func (st *stream) close() {
	st.shutRing()
	st.flush.close()
	st.exec.close()
}

// A flusher looks after work that is too small for anyone to be woken for: while there is
// some, it checks every flushTick whether the stream has moved and flushes it if not.
type flusher struct {
	st    *stream
	armed atomic.Bool // the timer runs

	mu     sync.Mutex  // guards the rest
	timer  *time.Timer // nil until it is needed
	done   uint64      // at the last tick
	idle   int         // ticks without work
	closed bool
}

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
			f.armed.Store(true) // something came in between and may have seen armed
		}
	} else {
		f.idle = 0
		if stuck {
			f.st.exec.flush()
		}
	}
	f.timer.Reset(flushTick)
}

func (f *flusher) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	if f.timer != nil {
		f.timer.Stop()
	}
}
