package engine

import (
	"context"
	"sync/atomic"
	"unsafe"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/internal/trace"
)

// A Storage is the unit by which dependencies are tracked: a buffer of one device and, if the
// operation that was to fill it has failed, the error. It can be embedded in a larger struct, see
// Init, and must not be copied.
//
// Its memory is reused when nothing refers to its Buffer any more. The Storage refers to its Buffer.
// Handles, views and gradients refer to the Storage, and so do the operations on it until they have
// finished. An address taken from the Buffer does not keep the memory alive: its user must keep the
// Storage.
type Storage struct {
	st    *stream
	buf   *device.Buffer // nil: nothing was written yet, or it could not be allocated; see allocate
	block *block         // the memory of buf, if it has to be given back, or nil
	last  atomic.Uint64  // place of the newest enqueued writer in st, plus one
	fin   atomic.Uint64  // place of the newest finished writer, plus one; it never overtakes last
	err   atomic.Pointer[OpError]
	in    device.Device // the device with the scope that s was made in; the zero Device: in no scope

	// A flow orders the operations on s by these three; the flow's lock guards them. A queue uses heir
	// and readers for findDonor alone: heir is the Release, and readers counts the uses that look has
	// seen and that are not handed over yet. There queue.submitting guards them.
	writer  ref    // the newest scheduled writer that has not finished
	heir    ref    // the scheduled writer that waits for readers
	readers uint32 // scheduled readers of the current contents that have not finished
	// Holders beside the first, see Hold; needs no lock.
	more atomic.Int32
	mark uint64 // see flow.closure

	// own describes the memory; its Bytes is the size. If the memory is tiny, own.Ptr points there and
	// buf points to own. If buf is nil, own.Handle says why, if there is a reason.
	own  device.Buffer
	tiny [2]uint64
}

// NewStorage returns a storage of d, which has to be written before it is read. It gets its memory
// when it is written. When memory is short, the engine first finishes operations in flight and has
// the collector find dropped storages. If there is still none, the writing operation fails with the
// allocator's error, whose text says which lines of the program hold how much.
func (e *Engine) NewStorage(d device.Device, bytes int64) *Storage {
	s := new(Storage)
	s.Init(e, d, bytes)
	return s
}

// Init makes s what NewStorage returns. It is for a Storage that is part of a larger struct.
func (s *Storage) Init(e *Engine, d device.Device, bytes int64) {
	st := e.stream(d)
	s.st, s.own.Bytes, s.in = st, bytes, scopedOnly(d)
	// A few numbers lie in the Storage itself: they need no allocation, and nobody has to free
	// them.
	if st.onHost && bytes <= int64(unsafe.Sizeof(s.tiny)) {
		s.own.Ptr = unsafe.Pointer(&s.tiny)
		s.buf = &s.own
	}
}

// FromHost returns a storage of d with the contents of data, which belongs to the engine from now on.
// A device whose memory the host can reach adopts the buffer; for other devices FromHost enqueues a
// copy.
func (e *Engine) FromHost(d device.Device, data *device.Buffer) *Storage {
	st := e.stream(d)
	if st.onHost {
		st.count(data.Bytes)
		return adopt(st, data, scopedOnly(d))
	}
	s := e.NewStorage(d, data.Bytes)
	// Nothing ever writes the source, so it needs no gate on its own stream.
	from := adopt(e.hostStream(), data, s.in)
	e.enqueueOn(st, &Op{
		Cmd:      device.Command{Kernel: uploads.of(device.Bool), N: int(data.Bytes)},
		Operands: [device.MaxOperands]*Storage{s, from},
		Cost:     copyCost(data.Bytes),
	}, 1, callerPC())
	return s
}

// adopt returns a storage of st whose buffer is b. For in, see Storage.
func adopt(st *stream, b *device.Buffer, in device.Device) *Storage {
	return &Storage{st: st, buf: b, own: device.Buffer{Bytes: b.Bytes}, in: in}
}

// scopedOnly returns d if it is in a scope, or else the zero Device.
func scopedOnly(d device.Device) device.Device {
	if d.Scope() == nil {
		return device.Device{}
	}
	return d
}

// Buffer returns the memory of a Ready storage. It is nil if nothing was written, or if it could not be allocated.
func (s *Storage) Buffer() *device.Buffer { return s.buf }

// Bytes returns how much memory s has, or will have.
func (s *Storage) Bytes() int64 { return s.own.Bytes }

// Device returns the device of the memory, in the scope that s was made in.
func (s *Storage) Device() device.Device {
	if s.in != (device.Device{}) {
		return s.in
	}
	return s.st.dev
}

// Ready reports whether all operations enqueued before that write s have finished, with or without
// success. It never waits.
//
// By the clock of a model, Ready reports whether they have finished by now. It then really waits,
// which takes no time by that clock. If they have not finished, the clock moves on a little.
func (s *Storage) Ready() bool {
	if s.st.e.Capturing() != nil {
		return false // what depends on time can't be captured
	}
	if clock := s.st.e.virtual.Load(); clock != nil {
		return s.isReadyBy(clock)
	}
	if s.fin.Load() >= s.last.Load() {
		return true
	}
	s.st.e.poll()
	return s.fin.Load() >= s.last.Load()
}

// Err returns the *OpError that spoiled s, or nil. s is Ready.
func (s *Storage) Err() error {
	if err := s.err.Load(); err != nil {
		return err
	}
	return nil
}

// Wait waits until all operations enqueued before that write s have finished. While it waits it
// helps to execute them and the operations that they depend on, and no others. It returns the
// *OpError that spoiled s, or nil. If ctx ends first, Wait returns its error at once; the operations
// go on. If s is Ready, the context's error does not matter.
//
// name is the call by which the program reads, such as "Item", for the report and for SetSyncPolicy.
// If waiting is forbidden and s is not Ready, Wait does not wait and returns a *SyncError.
func (s *Storage) Wait(ctx context.Context, name string) error {
	s.st.e.mustNotCapture(refusedWait)
	if clock := s.st.e.virtual.Load(); clock != nil {
		return s.waitVirtually(ctx, clock, name, callerPC())
	}
	want := s.last.Load()
	// What a device has finished by itself needs no wait, so it is neither forbidden nor counted as
	// one.
	if s.fin.Load() < want && (ctx.Done() == nil || s.st.e.mode != Shuffle) { // in mode Shuffle, poll executes
		s.st.e.poll()
	}
	if s.fin.Load() < want {
		// If ctx ends at the moment when s gets ready, the value counts.
		err := s.st.e.wait(ctx, s.st, goal{seq: want - 1}, name, callerPC())
		if err != nil && s.fin.Load() < want {
			return err
		}
	}
	return s.Err()
}

// WaitEach is Wait for several storages, one after the other. It counts as one wait. It returns the
// error of the first storage that is spoiled.
func WaitEach(ctx context.Context, name string, ss []*Storage) error {
	pc := callerPC()
	if len(ss) > 0 {
		ss[0].st.e.mustNotCapture(refusedWait)
		if clock := ss[0].st.e.virtual.Load(); clock != nil {
			return waitEachVirtually(ctx, clock, name, ss, pc)
		}
	}
	start := now()
	var h help
	var waited *Engine
	var last trace.ID
	var err error
	for _, s := range ss {
		if want := s.last.Load(); s.fin.Load() < want {
			if waited == nil {
				if err := s.st.e.allow(name, pc); err != nil {
					return err
				}
			}
			waited = s.st.e
			last = trace.ID{Stream: s.st.id, Seq: want - 1}
			var more help
			more, err = s.st.await(ctx, goal{seq: want - 1})
			h.ops += more.ops
			h.idle += more.idle
			if err != nil && s.fin.Load() < want {
				break
			}
			err = nil
		}
	}
	if waited != nil {
		waited.countWait(name, pc, since(start), h, last)
	}
	for _, s := range ss {
		if err == nil {
			err = s.Err()
		}
	}
	return err
}

// finished notes the outcome of the writer at seq. The outcome is stored before fin: who sees the
// new fin, without a lock, finds the outcome that belongs to it.
func (s *Storage) finished(seq uint64, fail *OpError) {
	if s.err.Load() != fail {
		s.err.Store(fail)
	}
	s.fin.Store(seq + 1)
}
