// Package opencl is the backend for GPUs with an OpenCL 1.2 driver: devices "opencl:0", "opencl:1"
// and so on. A program gets them by importing
//
//	import _ "github.com/asyncgen/asyncgen/device/opencl"
//
// Plain go build is enough, without cgo; the import makes the program a dynamically linked one. The
// OpenCL library is looked for when the program first asks for a GPU. Where there is none,
// device.GPU says what was tried.
//
//	ASYNCGEN_OPENCL=off            there are no such devices
//	ASYNCGEN_OPENCL_CPU=1          also use drivers that compute on the CPU, such as PoCL: for tests
//	ASYNCGEN_LIBOPENCL=/path       the library to open instead of the system's
//	ASYNCGEN_OPENCL_QUEUES=n       how many compute queues a device has: 1 to 8; the default is 4
//
// Package device/kernel/clc prints the OpenCL C source of each command. The driver compiles a
// source when it is first needed. Compiled programs are kept on disk, in the user's cache folder
// ($XDG_CACHE_HOME/asyncgen). When a process is about to add its first program, it removes the
// least recently used ones until at most 256 MiB are left. PoCL has a cache of its own as well
// ($POCL_CACHE_DIR); of its programs those are kept that are compiled a second time.
//
// A device has several compute queues, and one queue for copies in each direction. Queues run
// concurrently; a command waits for commands of other queues that use one of its buffers. Commands
// that depend on each other, and small ones, share a queue. The driver calls for up to 64 commands
// are made in one crossing into C. Several small reads come to the host in one copy. One goroutine
// waits for the device while the device works; no other goroutine blocks in C unless a driver call
// fails.
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
// only by Upload and Download.
type Backend struct {
	found
	context  cl.Context
	limits   clc.Limits
	memory   *device.Allocator
	cache    cache
	packing  *clc.Source
	crossing uint64 // what an event costs, in units of work (see workOf); tests make it smaller

	done     atomic.Uint64 // all tickets up to this one are done
	failures atomic.Int64  // how many commands have failed

	// A group is up to maxCommands commands that are handed to the driver together and retired
	// together. groups are those in flight, oldest first, in the order of their tickets.
	mu         sync.Mutex // guards the rest, and blocks
	queues     []queue
	latest     queueIndex        // the compute queue of the last command
	mapping    cl.Queue          // always empty, so mapping memory waits for nothing
	kernels    []kernels         // by Source.ID
	stagings   [compute]staging  // by queue: up and down
	pinned     int64             // bytes of pinned memory in use besides the stagings, for large copies
	packs      [packsMost]*block // used in turn
	packed     int               // how often a pack was used
	packFails  bool              // the pack kernel is not available
	groups     []*group
	spare      []*group // to be used again
	wrecked    []*group // groups that were in flight when the device was lost
	submitted  uint64   // the last ticket given out
	attended   bool     // the goroutine attend runs
	waiters    []waiter
	failed     []failure // in the order of tickets
	lost       error     // why the device is lost; nil: it is not
	lostFrom   uint64    // the first ticket that was not done when the device was lost
	troubles   int       // failed status queries in a row
	closed     bool
	released   bool      // only the memory of live blocks is left
	live       int       // blocks, and calls of Alloc that have not returned
	isTaken    bool      // a goroutine is in Submit, Close or releaseUnused; the tickets of a Submit stay consecutive
	left       sync.Cond // signals that isTaken has become false
	retired    sync.Cond // signals that a group is done, or that the device is lost
	rested     time.Time // when the last group was done
	isIdleEver bool      // rested is set
	attendants sync.WaitGroup
	// allocs counts calls of Alloc that may use the driver. No call begins once releaseUnused waits
	// for them.
	allocs sync.WaitGroup
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

// make creates the context, the queues, the stagings and the fault slots. If it fails, release
// releases what make has created.
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

// release releases all driver objects of b except the memory of live blocks, which stays until they
// are freed. No command is running.
func (b *Backend) release() {
	d := b.driver
	if len(b.wrecked) > 0 {
		for i := range b.queues {
			d.Finish(b.queues[i].handle) // a driver that reports a lost device may still use our memory
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

func (b *Backend) Caps() device.Caps {
	return device.Caps{BatchInvariant: true, Epilogues: true, NoFloat64: !b.limits.FP64, Description: b.description()}
}

// Memory returns the allocator of the device's memory.
func (b *Backend) Memory() *device.Allocator { return b.memory }

// Alloc returns memory of the device, with undefined contents. The limit of each device is
// ASYNCGEN_MEMORY, or by default nine tenths of its memory.
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

// Free gives buf back. It also works after Close.
func (b *Backend) Free(buf *device.Buffer) {
	b.memory.Free(buf)
	b.drop()
}

// drop counts one block less. The last block of a closed device releases the device's driver
// objects. If they are released already (the device was lost), drop only gives free memory back to
// the driver.
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

// goneLocked returns why the device takes no more commands or allocations, or nil. With canRead, a
// closed device still takes them until it is released.
func (b *Backend) goneLocked(canRead bool) error {
	if b.lost != nil {
		return b.lost
	}
	if b.closed && (!canRead || b.released) {
		return fmt.Errorf("opencl: %w", device.ErrClosed)
	}
	return nil
}

// Idle implements the optional method of [device.IdleOf]. It reports 0 before the first command.
func (b *Backend) Idle() (time.Duration, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.groups) > 0 || !b.isIdleEver {
		return 0, true
	}
	return time.Since(b.rested), true
}
