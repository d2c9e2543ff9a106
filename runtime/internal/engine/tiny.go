package engine

import (
	"math"
	"runtime"
	"sync/atomic"
	"unsafe"

	"github.com/asyncgen/asyncgen/device"
)

// An operation on a few numbers costs less than its record would. So the call that would enqueue it
// computes it instead, if nobody can tell the difference except by the clock:
//
//   - The device runs on the program's own threads and allows it (device.TinyOf), and the operation's
//     Cost is small. So the call waits for nothing, and returns as soon as one that enqueues.
//   - All inputs are there and good: their writers enqueued before have finished, and none has failed.
//     (A writer that is enqueued later begins later; one that another goroutine enqueues at the same
//     time is a mistake, see Enqueue.) If an input is not there, the operation is enqueued like any
//     other, so that calls never pile up behind a blocked one.
//   - The result is new and lies in the Storage itself. So nobody reads older contents, and no memory
//     is allocated, counted or given back, so no bound is affected.
//   - The operation would be allowed to begin: its scope has not ended, and the engine is not closed.
//   - Nobody speculates. A Guess tells its own storages from older ones by their writers' places in
//     the stream, and a result that a call has computed has no such place. Nor does anybody capture:
//     a Capture records what is enqueued.
//   - Nobody observes the order or the time of operations: there is no Record, no trace, no report of waits, no
//     sync policy, no clock of a model, and the mode is Async. Devices that fail on purpose (package
//     fault) don't allow it.
//
// The call leaves only the result and a count. If the operation fails, it is enqueued and fails again
// there, since failure depends only on its operands and the device. So the error, its line, its order
// among other errors and what it spoils are those of any operation, and the line is looked up only
// then.

// tinyCost is the cost in nanoseconds up to which a call computes an operation: about the cost of a
// record.
const tinyCost = 64

// A TinyPolicy says which operations with tiny results are computed by the calls that enqueue them.
// The results and the errors are the same.
type TinyPolicy uint8

const (
	TinyCheap TinyPolicy = iota // those with a Cost up to tinyCost
	// all that can be, whatever their Cost, on every device that runs on the program's threads; for tests
	TinyAll
	TinyNone // none
)

// setTiny decides which operations of st, a new stream, are computed by calls.
func (st *stream) setTiny() {
	e := st.e
	st.costOfTiny = -1
	if st.backend != nil && st.onHost {
		st.runTiny = device.TinyOf(st.backend)
	}
	if e.mode != Async || st.backend == nil || !st.onHost || e.tiny == TinyNone || e.report.on() {
		return
	}
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

// computes computes op instead of enqueueing it on st, if the conditions above hold. It reports
// whether it has computed op.
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
		return false // another goroutine computes there, or was preempted while it did
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

// computed returns how many operations of st were computed by calls.
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

// desk returns the desk of the calling goroutine, chosen by the address of its stack. Goroutines that
// run at the same time seldom share one.
func (st *stream) desk() *desk {
	var here byte
	stack := uintptr(unsafe.Pointer(&here)) >> 13 * 0x9e3779b1 >> 16
	return &st.desks[stack&uintptr(len(st.desks)-1)]
}

// isWatched reports whether somebody speculates, captures or observes the order or time of
// operations, or the engine is closed.
func (st *stream) isWatched() bool {
	e := st.e
	return e.guesses.n.Load() != 0 || e.captures.n.Load() != 0 || e.watcher.on.Load() || e.closed.Load() || SyncPolicy(e.syncs.policy.Load()) != Allow || forbidding.Load() != 0 ||
		e.virtual.Load() != nil || st.slips.Load() != nil
}

// byCall is Storage.own.Handle of a storage whose contents a call has computed.
type byCall struct{}

// isNew reports whether the memory of s is in s itself, and neither a call nor an enqueued operation
// writes it.
func (s *Storage) isNew() bool { return s.own.Ptr != nil && s.last.Load() == 0 && s.own.Handle == nil }

// A desk is a prepared command on which a call computes. Tiny operands are copied into the desk, and
// the result out of it, as numbers. So the call writes hardly any pointers; while the collector runs
// that would cost more than everything else.
type desk struct {
	busy     atomic.Bool // guards the rest
	computed uint64      // operations so far
	cmd      device.Command
	own      [device.MaxOperands]device.Buffer // own[i] is the buffer of numbers[i]
	numbers  [device.MaxOperands][2]uint64
	_        [64]byte
}

// init makes each operand of the command the buffer of the numbers of d with the same index.
func (d *desk) init() {
	for i := range d.own {
		d.own[i].Ptr = unsafe.Pointer(&d.numbers[i])
		d.cmd.Buf[i] = &d.own[i]
	}
}

// run executes op, whose inputs are ready, and leaves the result in d.numbers[0]. It reports false if
// op has failed.
func (d *desk) run(f func(*device.Command) error, op *Op) bool {
	// Pointers are stored only where they differ: while the collector runs, each store costs more.
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
	// Operands that lie elsewhere were passed by their buffers. None of these may stay, or the desk
	// would keep it alive.
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
