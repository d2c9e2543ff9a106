package engine

import (
	"math"
	"runtime"
	"sync/atomic"
	"unsafe"

	"github.com/asyncgen/asyncgen/device"
)

// An operation on a few numbers costs less than the record of it. So the call computes it, where
// nobody can tell but by the clock:
//
//   - The device is made of the program's own threads and says that this is worth it
//     (device.TinyOf), and the operation says that it takes a moment. So the call waits for
//     nothing, and returns as soon as one that enqueues.
//   - All that it reads is there and good: the writers enqueued before have finished, and none has
//     failed. A writer that is enqueued later begins later; one that another goroutine enqueues at
//     the same time is a mistake (see Enqueue). If something is still to be computed, the operation
//     takes the way of all others, so that a thousand calls behind one that is blocked return.
//   - Its result is new and lies in the Storage itself: nobody reads what was there before, and no
//     memory has to be had, counted or given back, so that no bound is touched.
//   - It would begin: its scope has not ended, and the engine is not closed.
//   - Nobody speculates. What is enqueued past a test may be taken back, and is told from what was
//     there before by its place in the stream, which a result that a call has computed does not
//     have.
//   - Nobody looks at where operations are and when: no Record, no report of waits, no policy that
//     forbids them, no clock of a model. The modes that have an order of their own keep it, and
//     devices that are to fail now and then (package fault) do so as if it were not for this.
//
// It leaves nothing behind but the result and a count. An operation that fails is enqueued, and
// fails again, as that is a matter of its operands and of the device: so the error, its line, its
// place among the others and what it spoils are those of any operation. The line is not looked up
// before.

// tinyCost is the cost in nanoseconds up to which a call computes an operation: about that of the record.
const tinyCost = 64

// A TinyPolicy says which operations with tiny results are computed by the calls that enqueue them.
// The results and the errors are the same.
type TinyPolicy uint8

const (
	TinyCheap TinyPolicy = iota // those that say that they are cheap
	// all that can be, whatever they cost, on all devices made of the program's threads; for tests
	TinyAll
	TinyNone // none
)

// setTiny decides which operations of st, which is about to be made, are computed by calls.
func (st *stream) setTiny() {
	e := st.e
	st.costOfTiny = -1
	if e.mode != Async || st.backend == nil || !st.onHost || e.tiny == TinyNone || e.report.on() {
		return
	}
	st.runTiny = device.TinyOf(st.backend)
	switch {
	case e.tiny == TinyAll:
		st.costOfTiny = math.MaxInt64
		if st.runTiny == nil {
			st.runTiny = func(c *device.Command) error { _, err := st.backend.Submit([]device.Command{*c}); return err }
		}
	case st.runTiny != nil:
		st.costOfTiny = tinyCost
	default:
		return
	}
	n := 1
	for n < runtime.GOMAXPROCS(0) {
		n *= 2
	}
	st.desks = make([]desk, n)
	for i := range st.desks {
		st.desks[i].init()
	}
}

// computes computes op, which is about to be enqueued on st, if that may be done here and now, see
// above. It reports whether it has.
func (st *stream) computes(op *Op) bool {
	out := op.Operands[0]
	if op.Cost > st.costOfTiny || !out.isNew() || op.Writes > 1 || op.Reads != nil || st.isWatched() {
		return false
	}
	if s := out.in.Scope(); s != nil && s.Err() != nil {
		return false
	}
	for _, s := range op.Operands[1:] {
		if s != nil && (s.st != st || s == out || s.fin.Load() < s.last.Load() || s.err.Load() != nil || s.buf == nil) {
			return false
		}
	}
	d := st.desk()
	if !d.busy.CompareAndSwap(false, true) {
		return false // somebody computes there, or has been interrupted
	}
	done := d.run(st.runTiny, op)
	if done {
		out.tiny = d.numbers[0]
		out.own.Handle = byCall{}
		d.computed++
	}
	d.busy.Store(false)
	return done
}

// computed is how many operations calls have computed.
func (st *stream) computed() (n uint64) {
	for i := range st.desks {
		d := &st.desks[i]
		for tries := 0; !d.busy.CompareAndSwap(false, true); tries++ {
			st.e.doze(tries)
		}
		n += d.computed
		d.busy.Store(false)
	}
	return n
}

// desk returns where the calling goroutine is to compute. Those that run at the same time seldom have the same.
func (st *stream) desk() *desk {
	var here byte
	stack := uintptr(unsafe.Pointer(&here)) >> 13 * 0x9e3779b1 >> 16
	return &st.desks[stack&uintptr(len(st.desks)-1)]
}

// isWatched reports whether somebody looks at where the operations of st are, or there are to be no more.
func (st *stream) isWatched() bool {
	e := st.e
	return e.guesses.n.Load() != 0 || e.watcher.on.Load() || e.closed.Load() || SyncPolicy(e.syncs.policy.Load()) != Allow || forbidding.Load() != 0 ||
		e.virtual.Load() != nil
}

// byCall is the Handle of the own Buffer of a storage that a call has written.
type byCall struct{}

// isNew reports whether s has its memory in itself, and no operation has written it, or is going to.
func (s *Storage) isNew() bool { return s.own.Ptr != nil && s.last.Load() == 0 && s.own.Handle == nil }

// A desk is where a call computes. Tiny operands are copied to it, and the result from it, as numbers: so hardly any
// pointer is written, which would cost more than all the rest while the collector runs.
type desk struct {
	busy     atomic.Bool // guards the rest
	computed uint64      // operations
	cmd      device.Command
	own      [device.MaxOperands]device.Buffer // of numbers
	numbers  [device.MaxOperands][2]uint64
	_        [64]byte
}

func (d *desk) init() {
	for i := range d.own {
		d.own[i].Ptr = unsafe.Pointer(&d.numbers[i])
		d.cmd.Buf[i] = &d.own[i]
	}
}

// run executes op, whose operands are there. It reports false if that has failed. The result is the
// first of d's numbers.
func (d *desk) run(f func(*device.Command) error, op *Op) bool {
	c := &d.cmd
	if c.Kernel != op.Cmd.Kernel {
		c.Kernel = op.Cmd.Kernel
	}
	if op.Cmd.Args != nil {
		c.Args = op.Cmd.Args
	}
	c.N, c.Off, c.Imm = op.Cmd.N, op.Cmd.Off, op.Cmd.Imm
	large := false
	for i, s := range op.Operands {
		switch {
		case s == nil:
			d.own[i].Bytes = 0
		case s.own.Ptr != nil:
			d.numbers[i], d.own[i].Bytes = s.tiny, s.own.Bytes
		default:
			c.Buf[i] = s.buf
			large = true
		}
	}
	err := call(f, c)
	if c.Args != nil {
		c.Args = nil
	}
	if large {
		for i := range c.Buf {
			c.Buf[i] = &d.own[i]
		}
	}
	return err == nil
}

// call is f(c), with panics as errors.
func call(f func(*device.Command) error, c *device.Command) (err error) {
	defer caught(&err)
	return f(c)
}
