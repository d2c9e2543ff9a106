package engine

import (
	"sync/atomic"
	"time"

	"github.com/asyncgen/asyncgen/device"
)

// A link ties an operation on one stream to the storage of another stream that it reads or writes.
// The storage's stream, a flow, has a gate: a record that is ordered like an operation with that
// access. When the gate's turn comes, it opens and the operation may run; when the operation has
// finished, so has the gate. The two ends of each link are enqueued under one lock, so that links
// are in the same order on all streams, and no cycle of waits can arise.
//
// A copy between two queues whose devices reach each other (device.Reaches) is an operation of the
// source's queue. Its gate is on the destination's queue. The gate stands for the write of a new
// storage with memory of its own, so the copy need not wait for the gate. The gate holds up the
// operations behind it in two ways:
//
//   - They are not handed over until the copy was handed over, or is known never to be. From then on
//     the devices order the copy before the commands that use its memory, without the host.
//   - They do not retire until the copy has retired. So the outcome of the copy is known before that
//     of its dependents, and they are spoiled if it failed. Releases retire too, so no memory that
//     the copy may still write is given back, even if the destination is lost.
//
// This causes no cycle either. Copies between queues are in one order, that of Engine.crossing, and
// each queue has its ends of them in that order. An operation is held up, in being handed over or
// in retiring, only by records before it on its own queue, among them gates of earlier copies; the
// earliest copy waits for no gate. And a device waits only for commands that were handed over
// earlier, to itself or to another device: the first unfinished command waits for nothing.
type link struct {
	// The gate is the record at gateSeq of this stream, the storage's. gateSeq is set before the
	// operation is enqueued.
	gate    *stream
	gateSeq uint64
	// The operation is on this stream, at opSeq minus one. 0: it is not yet enqueued, as the gate
	// goes first.
	op    *stream
	opSeq atomic.Uint64 // plus one; 0: not yet enqueued
	// The gate is open. Set by a flow when the gate's turn comes; from the beginning if the gate is
	// on a queue, since the operation need not wait for it.
	granted atomic.Bool
	handed  atomic.Bool   // the operation was handed to its device, or never will be
	ended   atomic.Bool   // the operation has retired; set if the gate is on a queue
	scope   *device.Scope // that the operation belongs to, or nil
	fail    *OpError      // how the operation ended; at and fail are written before the gate is told
	at      time.Duration // when the operation ended, by the clock of a model
}

// A linkNotice tells the other end of a link that its gate has opened, or that its operation has finished.
type linkNotice struct {
	l       *link
	granted bool
}

// deliver tells the executor at the other end. No lock of an executor is held.
func (n linkNotice) deliver() {
	if n.granted {
		n.l.op.exec.granted(n.l)
		return
	}
	n.l.gate.exec.(gatekeeper).endGate(n.l)
}

// granted implements executor: the operation of l waits for one thing less.
func (f *flow) granted(l *link) {
	f.lock.lock()
	defer f.wakeIfReady()
	defer f.unlock()
	at := l.opSeq.Load()
	if at == 0 || at > f.scheduled {
		return // scheduleNext will see it
	}
	// The operation may have seen the open gate before this notice came, and another one may use its record by now.
	if r := f.st.seq(at - 1); r.linked && r.link == l {
		r.linked = false
		f.release(f.st.ref(at - 1))
		f.notify()
	}
}

// A gatekeeper is an executor that can have gates: every executor, except in naive engines.
type gatekeeper interface{ endGate(l *link) }

// endGate has the reaper retire the gate of l, whose operation has retired, if a producer is stalled.
// Waiters retire the gate themselves.
func (q *queue) endGate(*link) {
	if q.st.e.stalled.n.Load() > 0 {
		q.reaper.ring()
	}
}

// handedOver notes that the operation of l was handed to its device, or never will be.
func (l *link) handedOver() {
	l.handed.Store(true)
	if !l.gate.isSynchronous {
		l.gate.exec.granted(l)
	}
}

// isHeld reports whether r, which is next in a queue, has to wait for the other end of its link
// before it is handed over.
func (r *record) isHeld() bool {
	switch {
	case r.link == nil:
		return false
	case r.isGate:
		return !r.link.handed.Load()
	}
	return !r.link.granted.Load()
}

// isOpen reports whether r, which is next in a queue, is a gate whose operation has not retired.
func (r *record) isOpen() bool { return r.isGate && !r.link.ended.Load() }

// endGate finishes the gate of l. Its operation has finished.
func (f *flow) endGate(l *link) {
	f.lock.lock()
	r := f.st.seq(l.gateSeq)
	r.fail = l.fail
	f.finish(f.st.ref(l.gateSeq))
	f.notify()
	f.unlock()
	f.wakeIfReady()
}

// Copy returns a new storage on device to with n elements of s, from element off on. It enqueues an
// operation like others, so Copy does not wait, and copies s as of now. To read the memory of a
// device without host memory, copy it to device.CPU(): the Buffer of the copy can be read when the
// copy is Ready.
func (e *Engine) Copy(s *Storage, off, n int, dt device.DType, to device.Device) *Storage {
	e.mustNotCapture(refusedCopy)
	pc := callerPC()
	size := int64(n) * int64(dt.Size())
	dst := e.NewStorage(to, size)
	op := Op{
		Cmd:      device.Command{N: n, Off: [device.MaxOperands]int{0, off}},
		Operands: [device.MaxOperands]*Storage{dst, s},
		Cost:     copyCost(size),
	}
	switch from, to := s.st, dst.st; {
	case from == to:
		op.Cmd.Kernel = copies.of(dt)
		e.enqueueOn(to, &op, 1, pc)
	case from.onHost && to.onHost:
		op.Cmd.Kernel = copies.of(dt)
		e.enqueueLinked(to, &op, s, 0, size, pc)
	case from.onHost:
		op.Cmd.Kernel = uploads.of(dt)
		e.enqueueLinked(to, &op, s, 0, size, pc)
	case to.onHost:
		op.Cmd.Kernel = downloads.of(dt)
		e.enqueueLinked(from, &op, dst, 1, size, pc)
	case device.Reaches(from.backend, to.backend):
		op.Cmd.Kernel = copies.of(dt)
		e.enqueueLinked(from, &op, dst, 1, size, pc)
	default:
		e.relay(&op, dt, pc)
	}
	return dst
}

// copyCost guesses the nanoseconds that a copy takes.
func copyCost(bytes int64) int64 { return 100 + bytes/8 }

// enqueueLinked enqueues op, which writes its first operand, on st. foreign is the operand that lives
// on another stream; access is 1 if op writes it, or else 0. bytes is how many more bytes are in use
// once op has run.
func (e *Engine) enqueueLinked(st *stream, op *Op, foreign *Storage, access uint8, bytes int64, pc uintptr) {
	if e.mode == Naive {
		e.enqueueOn(st, op, 1, pc)
		return
	}
	if e.closed.Load() {
		panic(usedAfterClose) // here, because push would panic with crossing held
	}
	if e.watcher.on.Load() {
		e.watcher.tell(op, 1, pc)
	}
	op.Operands[0].st.count(bytes)
	if s := op.Operands[0].in.Scope(); s != nil {
		s.Err() // as in enqueueOn
	}
	e.admit(bytes, op, pc)
	gate := Op{Cmd: device.Command{Kernel: op.Cmd.Kernel}, Operands: [device.MaxOperands]*Storage{foreign}}
	l := &link{gate: foreign.st, op: st, scope: op.Operands[0].in.Scope()}
	l.granted.Store(!foreign.st.isSynchronous)
	e.gates.Add(1)
	// Gate first: an operation whose gate is not yet enqueued could be executed, and could finish,
	// before it.
	e.crossing.lock()
	foreign.st.push(&gate, access, pc, 0, l, nil)
	st.push(op, 1, pc, bytes, l, e.guess())
	e.crossing.unlock()
	// The gate opens only when somebody schedules it, and nobody may come to its stream by itself.
	foreign.st.exec.flush()
	if e.mode == Shuffle {
		e.outside(e.shuffler.enqueued)
	}
}

// A kernelSet holds one kernel for each element type.
type kernelSet [device.NumDTypes]*device.Kernel

// makeKernels returns kernels for all element types, which do what code says.
func makeKernels(name string, code device.Code) (set kernelSet) {
	for _, dt := range device.DTypes() {
		set[dt] = device.NewKernel(name, code, nil, dt, dt)
	}
	return set
}

// of returns the kernel for elements of type dt.
func (k *kernelSet) of(dt device.DType) *device.Kernel { return k[dt] }

var (
	copies    = makeKernels("copy", device.Copy)
	uploads   = makeKernels("upload", device.Upload)
	downloads = makeKernels("download", device.Download)
)
