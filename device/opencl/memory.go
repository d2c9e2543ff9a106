package opencl

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/internal/cl"
	"github.com/asyncgen/asyncgen/device/internal/ffi"
)

// A block is what a Buffer's Handle points to.
type block struct {
	owner *Backend
	slab  *slab

	// Commands that use it have these points in their queues.
	writer  queueIndex // of the last that changes it
	written point      // at 0: none has
	readers uint32     // of those that read it since, bit by bit
	read    [maxQueues]point
}

// A slab is a memory object of OpenCL.
type slab struct {
	mem     cl.Mem
	room    ffi.Arena
	address uintptr // of a word that holds mem, for SetKernelArg
}

// create makes s a memory object of the given size.
func (s *slab) create(b *Backend, bytes int64) (err error) {
	if s.mem, err = b.driver.CreateBuffer(b.context, bytes); err != nil {
		return err
	}
	words, address := s.room.Words(1)
	words[0], s.address = uint64(s.mem), address
	return nil
}

// createOrTrim is create, with the memory that the device's allocator has in reserve if there is no other.
func (s *slab) createOrTrim(b *Backend, bytes int64) error {
	err := s.create(b, bytes)
	if errors.Is(err, device.ErrOutOfMemory) && b.memory.Trim() > 0 {
		err = s.create(b, bytes)
	}
	return err
}

// release gives s up, if it is something.
func (s *slab) release(b *Backend) {
	if s.mem != 0 {
		s.mem.Release(b.driver)
		s.mem = 0
	}
}

// source is the device.Source of a Backend.
type source Backend

// Map returns a memory object, with memory behind it.
func (src *source) Map(bytes int64) (device.Region, error) {
	b := (*Backend)(src)
	if bytes > b.maxBlock {
		return device.Region{}, fmt.Errorf("%d bytes at once, the device has %d at most", bytes, b.maxBlock)
	}
	s := new(slab)
	if err := s.create(b, bytes); err != nil {
		return device.Region{}, err
	}
	// Without a queue of its own it would wait for what is computed; on this one there is nothing to wait for.
	if err := b.driver.Provide(b.mapping, s.mem); err != nil {
		s.release(b)
		return device.Region{}, err
	}
	if err := b.driver.Finish(b.mapping); err != nil {
		s.release(b)
		return device.Region{}, err
	}
	return device.Region{Bytes: bytes, Handle: s}, nil
}

// Unmap gives it up.
func (src *source) Unmap(r device.Region) error {
	return r.Handle.(*slab).mem.Release(src.driver)
}

// A scratch is memory of the device that the launches of one command at a time use.
type scratch struct {
	*slab
	bytes int64
}

// A pinned is memory of the host that the device copies from and to without help.
type pinned struct {
	mem   cl.Mem
	bytes []byte
}

func (b *Backend) pin(bytes int64) (p pinned, err error) {
	if p.mem, err = b.driver.CreatePinned(b.context, bytes); err != nil {
		return pinned{}, err
	}
	address, err := b.driver.Map(b.mapping, p.mem, bytes)
	if err != nil {
		p.mem.Release(b.driver)
		return pinned{}, err
	}
	p.bytes = unsafe.Slice((*byte)(address), bytes)
	return p, nil
}

func (p *pinned) release(b *Backend) {
	if p.mem != 0 {
		b.driver.Unmap(b.mapping, p.mem, unsafe.Pointer(unsafe.SliceData(p.bytes)))
		b.driver.Finish(b.mapping)
		p.mem.Release(b.driver)
		*p = pinned{}
	}
}

const (
	stagingBytes = 8 << 20
	stagingMost  = stagingBytes / 8 // more has memory of its own
	pinnedMost   = 256 << 20        // bytes of such memory in use together, unless one alone needs more
)

// A staging is a ring of host memory through which what is copied passes. Parts are taken in order,
// and come back in that order, when the groups that use them are done.
//
//	tail <= head <= tail+len(bytes)
type staging struct {
	pinned
	head, tail int // what is in use, counted from the beginning of time
}

// take returns n bytes, or nil if there is no room now.
func (s *staging) take(n int) []byte {
	n = (n + 63) &^ 63
	size := len(s.bytes)
	at := s.head % size
	skip := 0
	if at+n > size {
		skip, at = size-at, 0
	}
	if s.head+skip+n-s.tail > size {
		return nil
	}
	s.head += skip + n
	return s.bytes[at : at+n]
}

// addressOf is where memory of the host is that is not on the Go heap.
func addressOf(p []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(p))) }

var (
	errForeign = errors.New("not memory of this device")
	errNotHost = errors.New("not host memory")
	errBounds  = errors.New("it reaches outside of its buffer")
)

// blockOf is the block of operand i.
func (b *Backend) blockOf(c *device.Command, i int) (*block, error) { return b.blockIn(c, c.Buf[i], i) }

// blockIn is the block of buf, which is operand or part i of c.
func (b *Backend) blockIn(c *device.Command, buf *device.Buffer, i int) (*block, error) {
	if buf != nil {
		if m, ok := buf.Handle.(*block); ok && m.owner == b {
			return m, nil
		}
	}
	return nil, fmt.Errorf("opencl: kernel %s: operand %d: %w", c.Kernel.Name, i, errForeign)
}

// contiguous returns where the c.N elements of operand i of the given type begin in its buffer, in
// bytes, and how many bytes they are.
func contiguous(c *device.Command, i int, dt device.DType) (at, bytes int64, err error) {
	size := int64(dt.Size())
	at, bytes = int64(c.Off[i])*size, int64(c.N)*size
	if at < 0 || bytes < 0 || bytes > c.Buf[i].Bytes-at {
		return 0, 0, fmt.Errorf("opencl: kernel %s: operand %d: %w", c.Kernel.Name, i, errBounds)
	}
	return at, bytes, nil
}

// hostBytes is the operand of a copy that is memory of the host.
func hostBytes(c *device.Command, i int, dt device.DType) ([]byte, error) {
	if c.Buf[i] == nil || c.Buf[i].Ptr == nil {
		return nil, fmt.Errorf("opencl: kernel %s: operand %d: %w", c.Kernel.Name, i, errNotHost)
	}
	at, bytes, err := contiguous(c, i, dt)
	if err != nil {
		return nil, err
	}
	return unsafe.Slice((*byte)(c.Buf[i].Ptr), at+bytes)[at:], nil
}

// words is p, whose length and place are multiples of 8 bytes, as words.
func words(p []byte) []int64 {
	return unsafe.Slice((*int64)(unsafe.Pointer(unsafe.SliceData(p))), len(p)/8)
}
