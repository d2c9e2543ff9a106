// Package opencl is the backend of GPUs that have a driver for OpenCL 1.2: devices "opencl:0", "opencl:1", ... A
// program has them when it imports
//
//	import _ "github.com/asyncgen/asyncgen/device/opencl"
//
// It is built as before, by plain go build, without cgo. The library of OpenCL is looked for when a
// GPU is asked for; where there is none, device.GPU says what was tried. But the import makes the
// program a dynamically linked one.
//
//	ASYNCGEN_OPENCL=off            there are no such devices
//	ASYNCGEN_OPENCL_CPU=1          drivers that compute on the CPU count as well, such as PoCL: for tests
//	ASYNCGEN_LIBOPENCL=/path       the library to open instead of the system's
//	ASYNCGEN_OPENCL_QUEUES=n       how many queues compute: 1 to 8, or else 4
//
// What a command computes is printed by package device/kernel/clc, compiled by the driver when it
// is needed first, and kept on disk, in the user's folder for such files
// ($XDG_CACHE_HOME/asyncgen). A process that is the first time about to add to them removes those
// that were used longest ago, until 256 MiB are left. PoCL keeps them itself ($POCL_CACHE_DIR).
//
// A device has several queues for what it computes, and one for copies in each direction. They run
// beside each other; a command waits for those in other queues that use one of its buffers.
// Commands that depend on each other, and small ones, share a queue. All calls for up to 64
// commands are made in one crossing into C, and what several of them read, if it is little, comes
// to the host in one copy. One goroutine waits for the device while it works; it is the only one
// that is blocked in C.
package opencl

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/internal/cl"
	"github.com/asyncgen/asyncgen/device/internal/dl"
	"github.com/asyncgen/asyncgen/device/kernel/clc"
)

func init() {
	device.Register(device.Driver{
		Name: "opencl",
		Kind: device.KindGPU,
		Count: func() (int, error) {
			found, err := find()
			return len(found), err
		},
		Notes: notes,
		Open: func(i int) (device.Backend, error) {
			found, err := find()
			if err != nil {
				return nil, err
			}
			return open(found[i])
		},
	})
}

// Backend implements [device.Backend]. A buffer's Ptr is nil: the host reaches the device's memory
// by Upload and Download only.
type Backend struct {
	found
	context  cl.Context
	limits   clc.Limits
	memory   *device.Allocator
	cache    cache
	packing  *clc.Source
	crossing uint64 // what an event takes, in work; tests have it be less

	done     atomic.Uint64 // all tickets up to this one are done
	failures atomic.Int64  // how many commands have failed

	// A group is up to maxCommands commands that were handed to the driver together. They are done
	// together. groups are those that are not done, the oldest first; the tickets of each follow
	// those of the one before.
	mu         sync.Mutex // guards the rest, and blocks
	queues     []queue
	latest     queueIndex // where the last command to be computed was put
	mapping    cl.Queue   // always empty, so that to map memory waits for nothing
	kernels    []kernels  // by the number of their source
	stagings   [compute]staging
	pinned     int64 // bytes of host memory of groups with so much to copy that staging is too small
	packs      [packsMost]*block
	packed     int  // how often one was used
	packFails  bool // the kernel for them can't be had
	groups     []*group
	spare      []*group
	wrecked    []*group // that were not done when the device was lost
	submitted  uint64
	attended   bool      // the goroutine that waits for the device exists
	waiters    []waiter  // for tickets
	failed     []failure // by ticket
	lost       error     // why the device is; nil: it is there
	lostFrom   uint64    // the first ticket that was not done then
	troubles   int       // how often in a row the driver did not say how far it is
	closed     bool
	released   bool      // nothing is left but the memory of live blocks
	live       int       // blocks, and calls of Alloc that have not returned
	isTaken    bool      // somebody is in Submit or Close: batches stay together
	left       sync.Cond // isTaken has become false
	retired    sync.Cond // a group is done, or the device lost
	rested     time.Time // when the last group was done
	isIdleEver bool      // rested is set
	attendants sync.WaitGroup
	allocs     sync.WaitGroup // calls of Alloc, which use the driver; none begins when the device is closed and lost
}

// open starts a device.
func open(f found) (b *Backend, err error) {
	dl.KeepSignals(func() { b, err = start(f) })
	return b, err
}

func start(f found) (*Backend, error) {
	queues, err := computeQueues()
	if err != nil {
		return nil, fmt.Errorf("opencl: %w", err)
	}
	b := &Backend{found: f, limits: f.limits(), cache: cacheFor(&f), packing: clc.PackSource(), queues: make([]queue, int(compute)+queues), latest: compute, crossing: crossing}
	b.left.L, b.retired.L = &b.mu, &b.mu
	b.memory = device.NewAllocator((*source)(b), f.memoryLimit())
	if err := b.make(); err != nil {
		b.release()
		return nil, fmt.Errorf("opencl: %s: %w", f.name, err)
	}
	return b, nil
}

// make makes what every device has. What it has made when it fails, release releases.
func (b *Backend) make() (err error) {
	if b.context, err = b.driver.CreateContext(b.device); err != nil {
		return err
	}
	for i := range b.queues {
		if b.queues[i].handle, err = b.driver.CreateQueue(b.context, b.device); err != nil {
			return err
		}
	}
	if b.mapping, err = b.driver.CreateQueue(b.context, b.device); err != nil {
		return err
	}
	for i := range b.stagings {
		if b.stagings[i].pinned, err = b.pin(stagingBytes); err != nil {
			return err
		}
	}
	for i := range b.queues[compute:] {
		if err := b.queues[int(compute)+i].faults.create(b, maxCommands*clc.FaultWords*8); err != nil {
			return err
		}
	}
	return nil
}

// release gives up what make has made, kernels and scratch memory. Nothing is running. Memory that
// is in blocks stays until these are freed.
func (b *Backend) release() {
	d := b.driver
	if len(b.wrecked) > 0 {
		for i := range b.queues {
			d.Finish(b.queues[i].handle) // a driver that says that the device is lost may still use our memory
		}
	}
	for _, g := range b.wrecked {
		b.freeLocked(g)
	}
	b.memory.Trim()
	for i := range b.stagings {
		b.stagings[i].pinned.release(b)
	}
	for _, p := range b.packs {
		if p != nil {
			p.slab.release(b)
		}
	}
	for i := range b.kernels {
		b.kernels[i].release(d)
	}
	for i := range b.queues {
		b.queues[i].release(b)
	}
	if b.mapping != 0 {
		b.mapping.Release(d)
	}
	if b.context != 0 {
		b.context.Release(d)
	}
	b.released = true
}

// Caps says what the device promises.
func (b *Backend) Caps() device.Caps {
	return device.Caps{BatchInvariant: true, Epilogues: true, NoFloat64: !b.limits.FP64, Description: b.description()}
}

// Memory is where Alloc takes it from.
func (b *Backend) Memory() *device.Allocator { return b.memory }

// Alloc returns memory of the device, with undefined contents. Each device has as much
// as ASYNCGEN_MEMORY says, or else nine tenths of its memory.
func (b *Backend) Alloc(bytes int64) (*device.Buffer, error) {
	b.mu.Lock()
	err := b.goneLocked(b.live > 0)
	if err == nil {
		b.live++
		b.allocs.Add(1)
	}
	b.mu.Unlock()
	if err != nil {
		return nil, err
	}
	memory, err := b.memory.Alloc(bytes)
	b.allocs.Done()
	if err != nil {
		b.drop()
		return nil, fmt.Errorf("opencl: %w", err)
	}
	buf := *memory
	buf.Handle = &block{owner: b, slab: memory.Handle.(*slab)}
	return &buf, nil
}

// Free gives buf back. It works after Close, too.
func (b *Backend) Free(buf *device.Buffer) {
	b.memory.Free(buf)
	b.drop()
}

// drop is for a block that is not in use any more. The last one of a closed device takes with it
// what that has of the driver.
func (b *Backend) drop() {
	b.mu.Lock()
	b.live--
	released, isLast := b.released, b.closed && b.live == 0
	b.mu.Unlock()
	switch {
	case released:
		b.memory.Trim()
	case isLast:
		b.releaseUnused()
	}
}

// goneLocked is why the device takes nothing any more, or nil. canRead is set if it would take it
// from a closed device whose memory is in use.
func (b *Backend) goneLocked(canRead bool) error {
	if b.lost != nil {
		return b.lost
	}
	if b.closed && (!canRead || b.released) {
		return fmt.Errorf("opencl: %w", device.ErrClosed)
	}
	return nil
}

// Idle returns how long nothing has been running, though something has.
func (b *Backend) Idle() (time.Duration, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.groups) > 0 || !b.isIdleEver {
		return 0, true
	}
	return time.Since(b.rested), true
}
