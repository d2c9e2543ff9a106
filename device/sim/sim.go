// Package sim is a backend of simulated accelerators: devices "sim:0", "sim:1" and so on, with
// queues, latencies and memory of their own, on a machine that has none. They are for
// demonstrations, for tests, and for developing programs for several devices. Their times come from
// a model and say nothing about any hardware: Caps.Simulated says so, and whoever prints such a
// figure must say so as well.
//
// The kernels of device/cpu really compute the commands, on a goroutine of the device that exists
// while there is work. All results have the CPU's bits. The model decides when the program sees a
// command as finished. Each device has four queues, as a GPU has: one for compute commands, one for
// Upload, one for Download, and one, its link, for copies to other devices.
//
//   - The commands of a queue run one after the other. A command starts when it has been issued,
//     the command before it in its queue has ended, and the commands that write its inputs have
//     ended. These may be copies from other devices.
//   - A compute command takes Launch, or its real time if that is longer.
//   - A copy takes Copy, plus the time of its bytes at Bandwidth, or at Link between devices.
//   - A command is seen to be finished Latency after its end, but not before earlier commands, and
//     not before its result exists.
//
// By the system's clock, a command is issued when it is submitted. A command that overwrites memory
// waits for earlier commands that read it.
//
// # Virtual time
//
// With clock=virtual nothing waits for the model, and the speed of this machine has no influence on
// it. If one goroutine of the program uses simulated devices, all times depend on the program
// alone, to the nanosecond. There is one clock, the program's ([device.VirtualClock]), and [Now]
// reads it. The program's own work takes no time, nor do operations on the CPU, except that:
//
//   - Enqueueing an operation takes Host.
//   - A wait for a value, or for all values, ends when they are seen to be finished. Asking whether
//     a value is ready takes a little time; the engine really computes the value before it answers.
//   - A program that enqueues more operations of a device than the engine's ring holds waits until
//     the oldest are finished. The bound on bytes in flight is not part of the model: the program
//     may really wait there, but its clock does not move.
//
// The program runs ahead of the device: a command is submitted some time after the program has
// enqueued it, in a batch whose size depends on what else goes on. So the model can't take the time
// of the submission. Instead, the engine stamps each operation with the time at which it was
// enqueued, or at which operations that it waits for on the CPU and on devices of other kinds were
// finished, if that is later. A command is issued at the time of its stamp. The model needs nothing
// else, since each queue handles its commands in the order of the program, and knows when copies
// from other simulated devices end. A compute command takes the longest of Launch, its operations
// at Flops, and its bytes at Memory ([kernel.WorkOf] in package device/kernel counts them). No
// command waits for memory to be reused, as the garbage collector decides which memory a result
// gets: the model has enough memory. A copy waits for the link of its own device only.
//
// # Settings
//
// ASYNCGEN_SIM sets the number of devices and the costs. These are the defaults:
//
//	ASYNCGEN_SIM=n=1,launch=5us,latency=50us,copy=20us,bandwidth=16GB/s,link=50GB/s
//	ASYNCGEN_SIM=clock=virtual,flops=10T,memory=1TB/s,host=1us (and those above)
//
// flops is a number of operations a second, with a unit of k, M, G or T. memory is the bandwidth of
// device memory.
package sim

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"sort"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/cpu"
)

func init() {
	device.Register(device.Driver{
		Name: "sim",
		Kind: device.KindSimulated,
		Count: func() (int, error) {
			n, _, err := Parse(os.Getenv("ASYNCGEN_SIM"))
			return n, err
		},
		Open: func(int) (device.Backend, error) {
			_, options, err := Parse(os.Getenv("ASYNCGEN_SIM"))
			if err != nil {
				return nil, err
			}
			return New(options), nil
		},
	})
}

// Backend implements [device.Backend]. A buffer's Ptr is nil: the host reaches the device's memory
// only by Upload and Download.
type Backend struct {
	options Options
	clock   Clock
	memory  *device.Allocator // the host memory of buffers

	seen     atomic.Uint64 // how many commands are seen to be finished
	executed atomic.Uint64 // how many commands have been computed
	failures atomic.Int64  // how many commands have failed

	// The queue is a ring: the command with ticket t is in entries[t%len]. Submit writes an entry,
	// and the goroutine of the device completes it. The entry is free again when its command is seen
	// to be finished.
	//
	//	seen <= executed <= submitted <= seen+len(entries)
	mu        sync.Mutex // guards what follows, and the advance of seen and executed
	entries   []entry
	submitted uint64
	running   bool // the device's goroutine runs
	waiters   []waiter
	closed    bool
	failed    []failure // in the order of tickets
	isTaken   bool      // a goroutine is in Submit or Close; the tickets of a Submit stay consecutive
	// left signals that isTaken has become false. A goroutine that waits for it is durably blocked,
	// as testing/synctest requires.
	left sync.Cond

	timeline // the goroutine of the device advances it

	goroutine sync.WaitGroup // the device's
}

type entry struct {
	command   device.Command
	submitted time.Duration
	visible   time.Duration // when Done may report the command, once executed
}

// A waiter waits for a ticket: reached is closed when the command has been executed.
type waiter struct {
	ticket  uint64
	reached chan struct{}
}

type failure struct {
	ticket uint64
	err    error
}

// maxFailures bounds how many failures are kept; the oldest are dropped.
const maxFailures = 1 << 16

// New returns a device with the given costs. Programs use device.Open("sim:0") instead.
func New(options Options) *Backend {
	if options.Queue <= 0 {
		options.Queue = 1024
	}
	b := &Backend{options: options, clock: options.Clock, memory: device.NewAllocator(device.HostMemory, 0), entries: make([]entry, options.Queue)}
	b.left.L = &b.mu
	switch {
	case options.Virtual:
		b.clock = virtualClock{}
	case b.clock == nil:
		b.clock = systemClock{time.Now()}
	}
	return b
}

func (b *Backend) Caps() device.Caps {
	return device.Caps{
		Simulated:      true,
		BatchInvariant: true,
		Epilogues:      true,
		Description:    b.options.String(),
	}
}

// Alloc returns memory of the device, with undefined contents. The limit of each device is
// ASYNCGEN_MEMORY, or by default nearly all memory of the machine.
func (b *Backend) Alloc(bytes int64) (*device.Buffer, error) {
	if b.isUnused() {
		return nil, fmt.Errorf("sim: %w", device.ErrClosed)
	}
	host, err := b.memory.Alloc(bytes)
	if err != nil {
		return nil, fmt.Errorf("sim: %w", err)
	}
	buf := *host
	buf.Ptr, buf.Handle = nil, &memory{owner: b, host: host}
	return &buf, nil
}

// Free gives buf back. It also works after Close.
func (b *Backend) Free(buf *device.Buffer) {
	b.memory.Free(buf)
	if b.isUnused() {
		b.memory.Trim()
	}
}

// isUnused reports whether b is closed and all its memory has been freed.
func (b *Backend) isUnused() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.closed && b.memory.Live() == 0
}

// Memory returns the allocator of the device's memory.
func (b *Backend) Memory() *device.Allocator { return b.memory }

// Submit queues the commands. It waits while the queue is full.
func (b *Backend) Submit(cmds []device.Command) (device.Ticket, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.takeLocked()
	defer b.leaveLocked()
	now := b.clock.Now()
	if b.closed && !device.OnlyReads(cmds) {
		return 0, fmt.Errorf("sim: %w", device.ErrClosed)
	}
	for i := range cmds {
		for b.submitted-b.seen.Load() == uint64(len(b.entries)) {
			oldest := b.seen.Load() + 1
			b.mu.Unlock()
			b.Wait(context.Background(), device.Ticket(oldest)) // no error: a valid ticket, and no deadline
			now = b.clock.Now()
			b.mu.Lock()
		}
		b.submitted++
		*b.entry(b.submitted) = entry{command: cmds[i], submitted: now}
		if b.queueOf(&cmds[i]) == linkQueue {
			memoryOf(cmds[i].Buf[0]).incoming = &incoming{b, b.submitted}
		}
		if !b.running {
			b.running = true
			b.goroutine.Go(b.execute)
		}
	}
	return device.Ticket(b.submitted), nil
}

// takeLocked waits until no other goroutine is in Submit or Close, and takes its place.
func (b *Backend) takeLocked() {
	for b.isTaken {
		b.left.Wait()
	}
	b.isTaken = true
}

func (b *Backend) leaveLocked() {
	b.isTaken = false
	b.left.Signal()
}

func (b *Backend) entry(ticket uint64) *entry { return &b.entries[ticket%uint64(len(b.entries))] }

// execute is the goroutine of the device. It ends when the queue is empty.
func (b *Backend) execute() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.executed.Load() < b.submitted {
		ticket := b.executed.Load() + 1
		e := b.entry(ticket)
		b.mu.Unlock()
		b.receive(&e.command)
		begin := b.clock.Now()
		err := b.run(&e.command)
		end := b.clock.Now()
		b.mu.Lock()
		e.visible = b.finish(e, end-begin, end)
		e.command = device.Command{} // keeps no buffer alive
		if err != nil {
			b.failLocked(ticket, err)
		}
		b.executed.Store(ticket)
		b.waiters = slices.DeleteFunc(b.waiters, func(w waiter) bool {
			if w.ticket > ticket {
				return false
			}
			close(w.reached)
			return true
		})
	}
	b.running = false
}

func (b *Backend) failLocked(ticket uint64, err error) {
	if len(b.failed) == maxFailures {
		b.failed = append(b.failed[:0], b.failed[maxFailures/2:]...)
	}
	b.failed = append(b.failed, failure{ticket, err})
	b.failures.Add(1)
}

// run really computes c.
func (b *Backend) run(c *device.Command) (err error) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case error:
			err = fmt.Errorf("sim: kernel %s panicked: %w", c.Kernel.Name, p)
		default:
			err = fmt.Errorf("sim: kernel %s panicked: %v", c.Kernel.Name, p)
		}
	}()
	local := *c
	for i := range min(len(c.Kernel.In)+1, device.MaxOperands) {
		onHost := c.Kernel.Code == device.Upload && i == 1 || c.Kernel.Code == device.Download && i == 0
		if onHost {
			if c.Buf[i].Ptr == nil {
				return fmt.Errorf("sim: kernel %s: operand %d is not host memory", c.Kernel.Name, i)
			}
			continue
		}
		m, ok := c.Buf[i].Handle.(*memory)
		if !ok || m.owner != b && (i > 0 || !isPlainCopy(c)) {
			return fmt.Errorf("sim: kernel %s: operand %d is not memory of this device", c.Kernel.Name, i)
		}
		local.Buf[i] = m.host
	}
	if c.Args != nil && c.Args.Parts != nil {
		args := *c.Args
		args.Parts = slices.Clone(args.Parts)
		for i, part := range args.Parts {
			m := memoryOf(part.Buf)
			if m == nil || m.owner != b {
				return fmt.Errorf("sim: kernel %s: part %d is not memory of this device", c.Kernel.Name, i)
			}
			args.Parts[i].Buf = m.host
		}
		local.Args = &args
	}
	return cpu.Run(&local)
}

// Idle returns how long the compute queue has been empty, by the model: 0 before the first compute
// command. Copies don't count.
func (b *Backend) Idle() (time.Duration, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	computed := b.free[computeQueue]
	if b.executed.Load() < b.submitted || computed == 0 {
		return 0, true
	}
	return max(b.clock.Now()-computed, 0), true
}

// Done reports whether command t and all before it are seen to be finished.
func (b *Backend) Done(t device.Ticket) bool {
	if uint64(t) <= b.seen.Load() {
		return true
	}
	if uint64(t) > b.executed.Load() {
		return false
	}
	now := b.clock.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	for n := b.seen.Load(); n < b.executed.Load() && b.entry(n+1).visible <= now; n++ {
		b.seen.Store(n + 1)
	}
	return uint64(t) <= b.seen.Load()
}

// patience is how long a waiter yields before it parks. Waking it up takes about as long.
const patience = 100 * time.Microsecond

// Wait returns when Done(t), or the context's error if that ends first. Just before the command is
// seen to be finished, Wait yields instead of sleeping, to be precise.
func (b *Backend) Wait(ctx context.Context, t device.Ticket) error {
	for !b.Done(t) {
		if err := ctx.Err(); err != nil {
			return err
		}
		b.mu.Lock()
		switch {
		case uint64(t) > b.submitted:
			b.mu.Unlock()
			return fmt.Errorf("sim: ticket %d was never given out", t)
		case uint64(t) <= b.seen.Load():
			b.mu.Unlock()
			return nil
		case uint64(t) <= b.executed.Load():
			at := b.entry(uint64(t)).visible
			b.mu.Unlock()
			if err := b.clock.Wait(ctx, at); err != nil {
				return err
			}
			continue
		}
		b.mu.Unlock()
		if err := b.waitExecuted(ctx, uint64(t)); err != nil {
			return err
		}
	}
	return nil
}

// waitExecuted waits until command t, which was submitted, has been executed.
func (b *Backend) waitExecuted(ctx context.Context, t uint64) error {
	begin := time.Now()
	var s stillness
	for took := time.Duration(0); took < patience && !s.stands(took); took = time.Since(begin) {
		if b.executed.Load() >= t {
			return nil
		}
		runtime.Gosched()
	}
	b.mu.Lock()
	if b.executed.Load() >= t {
		b.mu.Unlock()
		return nil
	}
	w := waiter{t, make(chan struct{})}
	b.waiters = append(b.waiters, w)
	b.mu.Unlock()
	select {
	case <-w.reached:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Failure returns the error of command t, or nil. At least the latest 32,768 failures are kept.
func (b *Backend) Failure(t device.Ticket) error {
	if b.failures.Load() == 0 {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	i := sort.Search(len(b.failed), func(i int) bool { return b.failed[i].ticket >= uint64(t) })
	if i < len(b.failed) && b.failed[i].ticket == uint64(t) {
		return b.failed[i].err
	}
	return nil
}

// Close waits for what was submitted. Later calls of Submit fail, unless they only read.
func (b *Backend) Close() error {
	b.mu.Lock()
	b.takeLocked()
	b.closed = true
	last := b.submitted
	b.leaveLocked()
	b.mu.Unlock()
	err := b.Wait(context.Background(), device.Ticket(last))
	b.goroutine.Wait()
	b.memory.Trim()
	return err
}
