package engine

import (
	"cmp"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/asyncgen/asyncgen/device"
)

// A Storage gets its memory when the first operation that writes it is about to run, or to be
// handed to a device with a queue. So results of operations that have not run take no memory,
// however far the program is ahead of them.

// allocate gives s the memory that an operation enqueued at pc is going to write. The caller
// executes that operation, so nobody else looks at s.buf. isForeign says that it is an operation of
// another stream; then s gets no spare, because operations of its own stream may still use that.
func (s *Storage) allocate(pc uintptr, isForeign bool) error {
	// The operation was enqueued after the Release.
	if s.own.Handle == errUsed {
		return errUsed
	}
	if s.st.spares != nil && !isForeign && s.st.spares.take(s) {
		s.tookOver(pc)
		return nil
	}
	buf, err := s.st.alloc(s.own.Bytes)
	if err != nil {
		s.own.Handle = err
		if isForeign && errors.Is(err, device.ErrLost) {
			return &lostPeer{s.st, err}
		}
		return err
	}
	s.buf = buf
	if buf.NeedsFree() {
		buf.Tag(pc)
		s.block = &block{backend: s.st.backend, buf: *buf}
		// The cleanup holds the block, not the buffer, or buf would never be found dropped. The
		// block may pass to another storage, see takeOver and spares; buf always goes with it.
		runtime.AddCleanup(buf, (*block).free, s.block)
	}
	return nil
}

// tookOver tells the allocator that s, which an operation enqueued at pc writes, has got the memory
// of another storage.
func (s *Storage) tookOver(pc uintptr) {
	s.buf.Tag(pc)
	if memory := device.MemoryOf(s.st.backend); memory != nil {
		memory.Reused(s.buf)
	}
}

// lack returns why s has no buffer.
func (s *Storage) lack() error {
	if err, ok := s.own.Handle.(error); ok {
		return err
	}
	return errUnwritten
}

// errUnwritten is the error of an operation whose input no operation has ever written.
var errUnwritten = errors.New("engine: read before anything was written")

// alloc returns a buffer of st's device. If there is no memory, it has the collector find what was
// dropped. (Memory that only operations in flight refer to is the executor's concern, see
// flow.finishReady and queue.finishSubmitted.)
func (st *stream) alloc(bytes int64) (*device.Buffer, error) {
	buf, err := alloc(st.backend, bytes)
	if err == nil || !errors.Is(err, device.ErrOutOfMemory) {
		return buf, err
	}
	memory := device.MemoryOf(st.backend)
	if memory == nil || bytes < 0 || bytes > memory.Limit() {
		return nil, err
	}
	for memory.Reclaim() { // other allocations may take what it brings back
		if buf, err = alloc(st.backend, bytes); err == nil {
			return buf, nil
		}
	}
	return nil, &outOfMemory{err, holdersText(memory)}
}

// A block is memory that has to be given back, once: by a Release or by the collector, whichever comes first.
type block struct {
	backend device.Backend
	buf     device.Buffer
	// freed is set by the first that gives the memory back.
	freed atomic.Bool
	next  *block // in flow.drops
}

// free gives the memory back, unless that was done. It may be called from several goroutines; one
// of them is the collector's.
func (b *block) free() {
	if b.freed.CompareAndSwap(false, true) {
		b.backend.Free(&b.buf)
	}
}

// Release gives the memory of each storage back as soon as the operations enqueued so far that use
// it have finished. Later operations on the storage, and reads of it, get an error. So Release is for
// storages of which no handle has left the library.
//
// A Release is a record in the ring like an operation, and ordered as a write. So it needs no list
// of what uses the storage. It can stall, as Enqueue does, but not for the bound on bytes.
func (e *Engine) Release(storages ...*Storage) {
	for _, s := range storages {
		if s.own.Ptr != nil {
			continue // part of the handle
		}
		op := Op{Cmd: device.Command{Kernel: releases, N: int(s.own.Bytes)}, Operands: [device.MaxOperands]*Storage{s}}
		if e.mode == Naive || e.closed.Load() { // no operation is in flight
			e.naive.lock()
			s.drop()
			s.err.Store(errReleased)
			e.naive.unlock()
			continue
		}
		e.gates.Add(1)
		s.st.push(&op, 1, 0, 0, nil, nil) // in no Guess: it counts even if the operations on s are discarded
	}
}

// releases is the kernel of the records that Release enqueues; they are ordered like writes of the
// storage. It never runs. N is the size of the storage in bytes.
var releases = device.NewKernel("release", device.Fill, nil, device.Bool)

var (
	errUsed     = errors.New("engine: used after Release")
	errReleased = &OpError{Op: "release", Err: errUsed}
)

// isRelease reports whether r stands for a Release and is no operation.
func (r *record) isRelease() bool { return r.kernel == releases }

// drop gives the memory of s back. No operation uses it any more.
func (s *Storage) drop() {
	s.leave()
	if s.block != nil {
		s.block.free()
		s.block = nil
	}
}

// leave takes the memory away from s: operations on s that begin later fail. Those that have begun may
// still use the memory.
func (s *Storage) leave() {
	s.buf, s.own.Handle = nil, errUsed
}

// outOfMemory is the error of an allocation that has failed even after the collector made room.
type outOfMemory struct {
	error
	holders string
}

// Error is the allocator's text, and a table of who holds the memory.
func (e *outOfMemory) Error() string { return e.error.Error() + e.holders }

func (e *outOfMemory) Unwrap() error { return e.error }

// maxHolders is how many lines of the program holdersText names.
const maxHolders = 10

// A Holder is a line of the program that has made results whose memory is in use on a device.
type Holder struct {
	Device        device.Device
	File, Func    string // "": it is not known, or was none of the program's
	Line          int
	Bytes, Blocks int64
}

// Holders returns the lines of the program that have made what is in use on the devices, those with the most bytes of a
// device first. Of devices that share their memory, it is that of the first. Holders looks at every block, and costs
// nothing before it is called.
func (e *Engine) Holders() []Holder {
	var all []Holder
	seen := map[*device.Allocator]bool{}
	for _, st := range e.allStreams() {
		if st.backend == nil {
			continue // staging memory
		}
		memory := device.MemoryOf(st.backend)
		if memory == nil || seen[memory] {
			continue
		}
		seen[memory] = true
		for _, h := range holdersOf(memory) {
			h.Device = st.dev
			all = append(all, h)
		}
	}
	return all
}

// holdersOf returns the holders of a device's memory.
func holdersOf(memory *device.Allocator) []Holder {
	var lines []Holder
	for _, h := range memory.Holders() {
		at := siteOf(h.Tag)
		if at == nil {
			at = &site{}
		}
		// Several calls may be on one line.
		i := slices.IndexFunc(lines, func(l Holder) bool { return l.File == at.file && l.Line == at.line })
		if i < 0 {
			i = len(lines)
			lines = append(lines, Holder{File: at.file, Func: at.fn, Line: at.line})
		}
		lines[i].Bytes += h.Bytes
		lines[i].Blocks += h.Blocks
	}
	slices.SortStableFunc(lines, func(a, b Holder) int { return cmp.Compare(b.Bytes, a.Bytes) })
	return lines
}

// holdersText returns a table of the holders of a device's memory.
func holdersText(memory *device.Allocator) string {
	var text strings.Builder
	lines := holdersOf(memory)
	for i, l := range lines {
		if i == maxHolders {
			fmt.Fprintf(&text, "\n\tand %d more lines", len(lines)-i)
			break
		}
		where := "elsewhere"
		if l.File != "" {
			where = fmt.Sprintf("%s:%d", l.File, l.Line)
		}
		if i == 0 {
			text.WriteString("\nin use:")
		}
		unit, of := "MiB", 1<<20
		if l.Bytes < 1<<20 {
			unit, of = "KiB", 1<<10
		}
		fmt.Fprintf(&text, "\n\t%10.1f %s in %5d results made at %s", float64(l.Bytes)/float64(of), unit, l.Blocks, where)
	}
	return text.String()
}

// DeviceMemory is the memory of one device as the engine uses it, in bytes.
type DeviceMemory struct {
	Device   device.Device
	Live     int64 // of results that something refers to, or that the collector has not found dropped yet
	Cached   int64 // given back, and kept for later results
	Peak     int64 // the largest Live so far
	InFlight int64 // written by operations that have not finished
	Limit    int64 // on Live; Cached counts too, but for what lies between results in use, see device.Allocator
}

// memory returns the numbers of each device that was used. Those of a device without an
// allocator are 0 except for InFlight.
func (e *Engine) memory() []DeviceMemory {
	var all []DeviceMemory
	for _, st := range e.allStreams() {
		if st.backend == nil {
			continue // staging memory
		}
		m := DeviceMemory{Device: st.dev, InFlight: st.inFlight()}
		if a := device.MemoryOf(st.backend); a != nil {
			s := a.Stats()
			m.Live, m.Cached, m.Peak, m.Limit = s.Live, s.Cached, s.Peak, s.Limit
		}
		all = append(all, m)
	}
	return all
}

// inFlight returns how many bytes are written by operations of st that have not finished. It reads
// retired after it has let go of the lock in tail: bytes that are enqueued and retired in between
// make the result too low.
func (st *stream) inFlight() int64 {
	for i := 0; ; i++ {
		t := st.tail.Load()
		if t&1 != 0 || !st.tail.CompareAndSwap(t, t|1) {
			backoff(i)
			continue
		}
		bytes := st.pushed
		st.tail.Store(t)
		return bytes - st.retired.Load()
	}
}
