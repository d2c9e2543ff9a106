package opencl

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/internal/cl"
	"github.com/asyncgen/asyncgen/device/internal/ffi"
)

// A block is what the Handle of a device's Buffer points to: a part of a slab, and the commands
// that used it last.
type block struct {
	owner *Backend
	slab  *slab

	writer  queueIndex       // the queue of the last command that changes the block
	written point            // that command's point; position 0: there is none
	readers uint32           // a bit for each queue with commands that read the block since then
	read    [maxQueues]point // the last such command of each of these queues
}

// A slab is an OpenCL memory object.
type slab struct {
	mem     cl.Mem
	room    ffi.Arena
	address uintptr // of a word that holds mem, as an argument of SetKernelArg
}

// create allocates a memory object of the given size for s.
func (s *slab) create(b *Backend, bytes int64) (err error) {
	if s.mem, err = b.driver.CreateBuffer(b.context, bytes); err != nil {
		return err
	}
	words, address := s.room.Words(1)
	words[0], s.address = uint64(s.mem), address
	return nil
}

// createOrTrim is create, but if the device is out of memory, it first trims the device's allocator
// and tries again.
func (s *slab) createOrTrim(b *Backend, bytes int64) error {
	err := s.create(b, bytes)
	if errors.Is(err, device.ErrOutOfMemory) && b.memory.Trim() > 0 {
		err = s.create(b, bytes)
	}
	return err
}

// release releases the memory object of s, if there is one.
func (s *slab) release(b *Backend) {
	if s.mem != 0 {
		s.mem.Release(b.driver)
		s.mem = 0
	}
}

// source implements [device.Source] for a Backend's allocator.
type source Backend

// Map returns a new memory object, and makes the driver allocate its memory now.
func (src *source) Map(bytes int64) (device.Region, error) {
	b := (*Backend)(src)
	if bytes > b.maxBlock {
		return device.Region{}, fmt.Errorf("%d bytes at once, the device has %d at most", bytes, b.maxBlock)
	}
	s := new(slab)
	if err := s.create(b, bytes); err != nil {
		return device.Region{}, err
	}
	// On a queue with commands, this would wait for them. The mapping queue is always empty.
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

// Unmap releases the memory object.
func (src *source) Unmap(r device.Region) error {
	return r.Handle.(*slab).mem.Release(src.driver)
}

// A scratch is device memory for intermediate results in one compute queue: the launches of one
// command use it at a time.
type scratch struct {
	*slab
	bytes int64
}

// A pinned is host memory that the device reads and writes directly.
type pinned struct {
	mem   cl.Mem
	bytes []byte
}

// pin allocates pinned host memory and maps it.
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
	stagingMost  = stagingBytes / 8 // bytes; larger copies get pinned memory of their own
	pinnedMost   = 256 << 20        // bytes of such memory in use together, unless a single copy needs more
)

// A staging is a ring of pinned host memory that copies pass through. Parts are taken in order, and
// come back in the same order when their groups are done.
//
//	tail <= head <= tail+len(bytes)
type staging struct {
	pinned
	head, tail int // the part in use, as offsets that never wrap
}

// take returns n contiguous bytes, or nil if there is no room now.
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

// addressOf returns the address of p, which is host memory outside of the Go heap.
func addressOf(p []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(p))) }

var (
	errForeign = errors.New("not memory of this device")
	errNotHost = errors.New("not host memory")
	errBounds  = errors.New("it reaches outside of its buffer")
)

// blockOf returns the block of operand i.
func (b *Backend) blockOf(c *device.Command, i int) (*block, error) { return b.blockIn(c, c.Buf[i], i) }

// blockIn returns the block of buf, which is operand or part i of c.
func (b *Backend) blockIn(c *device.Command, buf *device.Buffer, i int) (*block, error) {
	if buf != nil {
		if m, ok := buf.Handle.(*block); ok && m.owner == b {
			return m, nil
		}
	}
	return nil, fmt.Errorf("opencl: kernel %s: operand %d: %w", c.Kernel.Name, i, errForeign)
}

// contiguous returns where operand i begins in its buffer and how long it is, both in bytes: c.N
// elements of type dt.
func contiguous(c *device.Command, i int, dt device.DType) (at, bytes int64, err error) {
	size := int64(dt.Size())
	at, bytes = int64(c.Off[i])*size, int64(c.N)*size
	if at < 0 || bytes < 0 || bytes > c.Buf[i].Bytes-at {
		return 0, 0, fmt.Errorf("opencl: kernel %s: operand %d: %w", c.Kernel.Name, i, errBounds)
	}
	return at, bytes, nil
}

// hostBytes returns the bytes of operand i, the host side of a copy.
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

// words returns p as words. Its address and length are multiples of 8 bytes.
func words(p []byte) []int64 {
	return unsafe.Slice((*int64)(unsafe.Pointer(unsafe.SliceData(p))), len(p)/8)
}
