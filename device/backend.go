package device

import (
	"context"
	"errors"
	"time"
	"unsafe"
)

// A Backend runs commands on one device. A device that computes while the program goes on (a GPU) has
// a queue: Submit returns at once, commands run as if in the order of submission, and tickets tell how
// far the device has come. A device made of the program's own threads (the CPU) says
// Caps.Synchronous: Submit runs the commands on the calling goroutine. Commands submitted by several
// goroutines at once must not depend on each other there.
//
// A device may be lost, and stays lost. Then Alloc, Submit and Wait return errors that wrap ErrLost,
// Done reports true, and Failure returns such an error for commands that had not finished. Nothing
// touches their buffers any more.
//
// All methods may be called from several goroutines.
type Backend interface {
	// Alloc returns a buffer of at least bytes bytes with undefined contents, or an error that wraps
	// ErrOutOfMemory. Most backends have an Allocator for that, see MemoryOf.
	Alloc(bytes int64) (*Buffer, error)
	// Free gives back a Buffer that Alloc returned, or a copy of it. All commands that use it must
	// have finished.
	Free(b *Buffer)
	// Submit queues the commands, in order. It may wait for room in the device's queue, never for a
	// result. The ticket is that of the last command; those before it have the tickets just below.
	// On an asynchronous device, an error means that no command was queued. On a synchronous one, it
	// is the error of the first command that failed; the ones after it did not run.
	Submit(cmds []Command) (Ticket, error)
	// Done reports whether the command with ticket t and all before it have
	// finished, successfully or not.
	Done(t Ticket) bool
	// Wait returns nil once Done(t) is true, or the context's error if the context ends first.
	Wait(ctx context.Context, t Ticket) error
	// Failure is the error of the command with ticket t, which is done, or
	// nil. It is cheap as long as nothing has failed.
	Failure(t Ticket) error
	// Caps says what the device promises. It never changes.
	Caps() Caps
	// Close waits for submitted commands and gives the device up. From then on it computes nothing:
	// Submit returns an error that wraps ErrClosed, unless all commands are reads (see OnlyReads).
	// Results that exist can still be read: Alloc and Submit work for reads until all buffers of the
	// device are freed. Then the device gives back everything that it has taken from the system, and
	// Alloc and reads may fail with ErrClosed as well. Closing again does nothing.
	Close() error
}

// OnlyReads reports whether cmds only copy results to another place, in the device's memory or the
// host's: they are Downloads and Copies. Copies count because the elements of a view are collected
// on the device before they are downloaded.
func OnlyReads(cmds []Command) bool {
	for i := range cmds {
		if code := cmds[i].Kernel.Code; code != Download && code != Copy {
			return false
		}
	}
	return true
}

// A Ticket numbers the commands of one backend, from 1, in order of submission. Ticket 0 is always done.
type Ticket uint64

// Caps are the properties of a device.
type Caps struct {
	Synchronous    bool // Submit runs the commands before it returns
	HostMemory     bool // Buffer.Ptr is set: the host may read and write results in place
	Simulated      bool // its times come from a model and say nothing about hardware
	BatchInvariant bool // an element's bits do not depend on how many are computed with it
	Epilogues      bool // kernels of MatMul may have a Body
	// NoFloat64 says that commands that compute with float64, or compare it, fail with ErrUnsupported.
	// Upload, Download, Copy, Fill, Concat and Gather of float64 work.
	NoFloat64   bool
	Description string // for people: "AMD EPYC, 2 workers"
	Workers     int    // of a synchronous backend: how many commands should run at once
	Ahead       int64  // of others: how many bytes of results they need to have been asked for to stay busy; 0: 64 MiB
}

// A Buffer is memory of one device, aligned to 8 bytes at least.
type Buffer struct {
	Ptr    unsafe.Pointer // host address; nil when the host can't reach the memory
	Bytes  int64
	Handle any   // the backend's name for it; nil for host memory
	at     place // in the regions of an Allocator, if it comes from one
}

// The errors that backends wrap.
var (
	ErrOutOfMemory = errors.New("out of device memory")
	ErrUnsupported = errors.New("not supported by this device")
	ErrLost        = errors.New("device lost")
	ErrClosed      = errors.New("device closed")
)

// HostBuffer returns zeroed host memory of the Go heap.
func HostBuffer(bytes int64) *Buffer {
	if bytes == 0 {
		return &Buffer{Ptr: unsafe.Pointer(new(uint64))}
	}
	// In today's Go heap, objects whose size is a multiple of 64 begin at a multiple of 64. It makes kernels faster.
	words := make([]uint64, (bytes+63)/64*8)
	return &Buffer{Ptr: unsafe.Pointer(unsafe.SliceData(words)), Bytes: bytes}
}

// NeedsFree reports whether somebody has to call Backend.Free when b is not used any more. The
// collector frees memory of the Go heap.
func (b *Buffer) NeedsFree() bool { return b.Handle != nil || b.at.span != nil }

// MemoryOf returns the allocator that b.Alloc takes memory from, for statistics and to Trim it. It is nil
// if b does not have the optional method
//
//	Memory() *Allocator
func MemoryOf(b Backend) *Allocator {
	if b, ok := b.(interface{ Memory() *Allocator }); ok {
		return b.Memory()
	}
	return nil
}

// Reaches reports whether b can copy into memory of other: by a Copy without Args whose output is a
// buffer of other. Before the copy is submitted, no command on other may use that buffer: b runs the
// copy without regard to what other does. Once Submit of the copy has returned, commands submitted to
// other may use the buffer. The devices make these run after the copy. The copy is Done, and may fail,
// on b alone: other then uses whatever the buffer contains. The buffer may be freed once the commands
// of both devices that use it have finished, even if one of the devices is lost. Reaches is false if b
// does not have the optional method
//
//	Reaches(other Backend) bool
func Reaches(b, other Backend) bool {
	if b, ok := b.(interface{ Reaches(Backend) bool }); ok {
		return b.Reaches(other)
	}
	return false
}

// TinyOf returns a function that runs a command on the calling goroutine, with the outcome of Submit
// but without a ticket. It is for commands of a few elements: running one costs less than handing it
// to another goroutine. TinyOf returns nil if b does not have the method
//
//	RunTiny(c *Command) error
//
// which is optional for a synchronous Backend with host memory. A backend that wraps another one and
// wants to see all commands does not have it.
func TinyOf(b Backend) func(c *Command) error {
	if b, ok := b.(interface{ RunTiny(c *Command) error }); ok {
		return b.RunTiny
	}
	return nil
}

// IdleOf returns how long b has had nothing to compute: 0 if it computes, or has never computed
// anything. ok is false if b can't tell, or does not have the optional method
//
//	Idle() (time.Duration, bool)
func IdleOf(b Backend) (idle time.Duration, ok bool) {
	if b, ok := b.(interface{ Idle() (time.Duration, bool) }); ok {
		return b.Idle()
	}
	return 0, false
}

// Slice views n elements of b, from element off on. It panics if b is not
// host memory or too short.
func Slice[T Element](b *Buffer, off, n int) []T {
	var zero T
	size := int64(unsafe.Sizeof(zero))
	if b.Ptr == nil || off < 0 || n < 0 || int64(n) > b.Bytes/size-int64(off) {
		panic("device: Slice outside of host memory")
	}
	return unsafe.Slice((*T)(b.Ptr), off+n)[off:]
}
