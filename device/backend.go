package device

import (
	"context"
	"errors"
	"time"
	"unsafe"
)

// A Backend runs commands on one device. A device that computes while the
// program goes on (a GPU) has a queue: Submit returns at once, commands run as
// if in the order of submission, and tickets tell how far it has come. One
// that is made of the program's own threads (the CPU) says Caps.Synchronous:
// Submit runs the commands on the calling goroutine, and whoever calls it from
// several goroutines has seen to it that the commands do not depend on each
// other.
//
// A device may be lost: it stays so. Then Alloc, Submit and Wait return errors that wrap ErrLost,
// Done reports true, and Failure returns such an error for commands that had not finished. Nothing
// touches their buffers any more.
//
// All methods may be called from several goroutines.
type Backend interface {
	// Alloc returns a buffer of at least bytes bytes with undefined contents,
	// or an error that wraps ErrOutOfMemory. Most backends have an Allocator for that, see MemoryOf.
	Alloc(bytes int64) (*Buffer, error)
	// Free gives back what Alloc has returned, or a copy of that Buffer. Commands that use it have finished.
	Free(b *Buffer)
	// Submit queues the commands, in order; it may wait for room in the
	// device's queue, never for a result. The ticket is that of the last
	// command; those before it have the tickets just below. An error says
	// that no command was queued (asynchronous) or which one failed first
	// (synchronous: the ones after it did not run).
	Submit(cmds []Command) (Ticket, error)
	// Done reports whether the command with ticket t and all before it have
	// finished, successfully or not.
	Done(t Ticket) bool
	// Wait returns nil when Done(t), or the context's error when that ends first.
	Wait(ctx context.Context, t Ticket) error
	// Failure is the error of the command with ticket t, which is done, or
	// nil. It is cheap as long as nothing has failed.
	Failure(t Ticket) error
	// Caps says what the device promises. It never changes.
	Caps() Caps
	// Close waits for submitted commands and gives the device up. From then on it computes nothing:
	// Submit returns an error that wraps ErrClosed, unless all commands are reads (see OnlyReads).
	// Results that exist can still be read: Alloc and Submit work for reads until all buffers of the
	// device are freed. Then everything that the device has taken from the system is given back, and
	// they may return such errors, too. Closing again does nothing.
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
	// what computes with float64, or compares it, fails with ErrUnsupported; Upload, Download, Copy,
	// Fill, Concat and Gather work
	NoFloat64   bool
	Description string // for people: "AMD EPYC, 2 workers"
	Workers     int    // of a synchronous backend: how many commands it is worth running at once
}

// A Buffer is memory of one device, aligned to 8 bytes at least.
type Buffer struct {
	Ptr    unsafe.Pointer // host address; nil when the host can't reach the memory
	Bytes  int64
	Handle any   // what the backend knows it by; nil for host memory
	at     place // in the regions of an Allocator, if it is from one
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
	// Objects whose size is a multiple of 64 begin at one, as Go's heap is made today. It makes kernels faster.
	words := make([]uint64, (bytes+63)/64*8)
	return &Buffer{Ptr: unsafe.Pointer(unsafe.SliceData(words)), Bytes: bytes}
}

// NeedsFree reports whether somebody has to call Backend.Free when b is not used any more. Memory of
// the Go heap is the collector's business.
func (b *Buffer) NeedsFree() bool { return b.Handle != nil || b.at.span != nil }

// MemoryOf returns the allocator that b.Alloc takes memory from, for statistics and to Trim it. It is nil
// if b has none: it is optional for a Backend to have a method
//
//	Memory() *Allocator
func MemoryOf(b Backend) *Allocator {
	if b, ok := b.(interface{ Memory() *Allocator }); ok {
		return b.Memory()
	}
	return nil
}

// Reaches reports whether commands of b may write to memory of other: a Copy without Args whose
// output is a buffer of that. It begins when b comes to it, whatever other does meanwhile: no
// command for that buffer was submitted before. Once Submit has returned, commands that other is
// given may use the buffer: the devices see to it that these come after the copy, wherever they
// read or write it. The copy is Done, and may fail, on b alone; other does not know how it has
// ended, and runs on what is in the buffer then. The buffer is freed when both have done with it,
// even if one of them is lost. It is optional for a Backend to have a method
//
//	Reaches(other Backend) bool
func Reaches(b, other Backend) bool {
	if b, ok := b.(interface{ Reaches(Backend) bool }); ok {
		return b.Reaches(other)
	}
	return false
}

// TinyOf returns a function that runs a command on the calling goroutine, with the outcome of
// Submit but without a ticket, or nil if b has none. It is for commands of a few elements, which
// cost less than to hand them over: whoever asks for one may run it at once. It is optional for a
// synchronous Backend with host memory to have a method
//
//	RunTiny(c *Command) error
//
// A backend that wraps another one, and wants to see all commands, has none.
func TinyOf(b Backend) func(c *Command) error {
	if b, ok := b.(interface{ RunTiny(c *Command) error }); ok {
		return b.RunTiny
	}
	return nil
}

// IdleOf returns how long b has had nothing to compute: 0 if it computes, or has never computed
// anything. It is not ok if b does not tell: it is optional for a Backend to have a method
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
