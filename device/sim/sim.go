// Package sim is a backend of pretend accelerators: devices "sim:0", "sim:1",
// ... with queues, latencies and memory of their own, on a machine that has
// none. They are for demonstrations, for tests, and for code that is to run on
// several devices. Their times come from a model and say nothing about any
// hardware: Caps.Simulated says so, and whoever prints a figure repeats it.
//
// Commands are really computed, by the kernels of device/cpu, on a goroutine of the device that
// exists while there is work. The bits of all results are those of the CPU. When a command is
// finished, as far as the program can see, the model tells. Each device has four queues, as a GPU
// has: one computes, one is for Upload, one for Download, and one, its link, for copies to other
// devices.
//
//   - The commands of a queue run one after the other. One starts when it was issued, the one before it in its
//     queue has ended, and so has what wrote its inputs, be that a copy from another device.
//   - A compute command takes Launch, or as long as it really took if that is more.
//   - A copy takes Copy and the time that its bytes take at Bandwidth, or over the link at Link.
//   - A command is seen to be finished Latency after its end, after those
//     that were submitted before it, and not before its result is there.
//
// By the system's clock, a command is issued when it is submitted, and one that overwrites memory
// waits for those before it that read that.
//
// # Virtual time
//
// With clock=virtual nothing waits for the model, and how fast this machine is has no influence on
// it: what is told depends on the program alone, to the nanosecond, if one goroutine of it uses
// simulated devices. There is one clock, the program's ([device.VirtualClock]), which [Now] tells.
// What the program does itself takes no time, nor do operations on the CPU, but:
//
//   - Enqueueing an operation takes Host.
//   - Who waits for a value, or for all, goes on when that is seen to be finished. Looking whether a value is
//     ready takes a little; to be able to tell, it is really computed first.
//   - As many operations of a device as the engine's ring has are enqueued and not finished at
//     most. The bound on bytes in flight is none of the model's business: the program may really
//     wait there, in no time.
//
// The program runs ahead, so the model can't ask the clock when a command is submitted, which is
// some time after the program has enqueued it, in a batch of a size that depends on what else goes
// on. Instead each operation is stamped by the engine with the time at which it was enqueued, later
// by no more than what it waits for on the CPU and on devices of other kinds, and that is when it
// is issued; since each queue then handles its commands in the order of the program, and knows of
// copies from other simulated devices when they end, nothing else has to be known. A compute
// command takes Launch, or as long as its operations take at Flops or its bytes at Memory if that
// is more (package device/kernel, [kernel.WorkOf], says how they are counted). Nothing waits
// because memory is reused, as which memory a result has depends on the collector: there is plenty.
// A link of another device is never what holds a copy up.
//
// # Settings
//
// ASYNCGEN_SIM sets how many devices there are and the costs, each with its default:
//
//	ASYNCGEN_SIM=n=1,launch=5us,latency=50us,copy=20us,bandwidth=16GB/s,link=50GB/s
//	ASYNCGEN_SIM=clock=virtual,flops=10T,memory=1TB/s,host=1us (and those above)
//
// flops are operations a second, in M, G or T; memory is what its memory gives and takes.
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

// Backend implements [device.Backend]. A buffer's Ptr is nil: the host reaches
// the device's memory by Upload and Download only.
type Backend struct {
	options Options
	clock   Clock
	memory  *device.Allocator // where buffers really are

	seen     atomic.Uint64 // commands that were seen to be finished
	executed atomic.Uint64 // commands whose results are there
	failures atomic.Int64  // how many commands have failed

	// The queue is a ring: the command with ticket t is in entries[t%len]. It is
	// written by Submit, completed by the goroutine of the device, and free
	// for another command once it was seen to be finished.
	//
	//	seen <= executed <= submitted <= seen+len(entries)
	mu        sync.Mutex // guards what follows, and the advance of seen and executed
	entries   []entry
	submitted uint64
	running   bool     // the device's goroutine exists
	waiters   []waiter // for results
	closed    bool
	failed    []failure // by ticket
	isTaken   bool      // somebody is in Submit or Close: batches stay together
	left      sync.Cond // isTaken has become false; who waits for that is asleep as testing/synctest wants it

	timeline // advanced by the goroutine of the device

	goroutine sync.WaitGroup // the device's
}

type entry struct {
	command   device.Command
	submitted time.Duration
	visible   time.Duration // when Done may say so, once executed
}

// A waiter has reached closed when the command has been executed.
type waiter struct {
	ticket  uint64
	reached chan struct{}
}

type failure struct {
	ticket uint64
	err    error
}

// maxFailures bounds the failures that are remembered; the oldest are forgotten.
const maxFailures = 1 << 16

// New returns a device with the given costs. Programs use those that
// device.Open("sim:0") finds.
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

// Caps says what the device promises.
func (b *Backend) Caps() device.Caps {
	return device.Caps{
		Simulated:      true,
		BatchInvariant: true,
		Epilogues:      true,
		Description:    b.options.String(),
	}
}

// Alloc returns memory of the device, with undefined contents. Each device has as much
// as ASYNCGEN_MEMORY says, or else nearly all that the machine has.
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

// Free gives buf back. It works after Close, too.
func (b *Backend) Free(buf *device.Buffer) {
	b.memory.Free(buf)
	if b.isUnused() {
		b.memory.Trim()
	}
}

// isUnused reports whether b is closed and none of its memory is in use.
func (b *Backend) isUnused() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.closed && b.memory.Live() == 0
}

// Memory is where Alloc takes it from.
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
			b.Wait(context.Background(), device.Ticket(oldest)) // a valid ticket, no context: no error
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

// takeLocked waits until nobody else is in Submit or Close.
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

// execute is the goroutine of the device. It runs until the queue is empty.
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
		e.command = device.Command{} // holds no buffer longer than needed
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

// run computes c for real.
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
	for i := range len(c.Kernel.In) + 1 {
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
	if c.Kernel.Code == device.Concat {
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

// Idle returns how long the compute queue has been empty, by the model, though something has been
// computed; a copy is none of its business.
func (b *Backend) Idle() (time.Duration, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	computed := b.free[computeQueue]
	if b.executed.Load() < b.submitted || computed == 0 {
		return 0, true
	}
	return max(b.clock.Now()-computed, 0), true
}

// Done reports whether the command with ticket t and all before it are seen to be finished.
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

// patience is how long a waiter yields before it parks: waking it up again takes about as long.
const patience = 100 * time.Microsecond

// Wait returns when Done(t), or the context's error when that ends first. For
// the last moments before that it keeps its thread busy, so as to be precise.
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

// waitExecuted returns when the result of command t, which was submitted, is there.
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

// Failure is the error of command t. The 32,768 latest failures at least are remembered.
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

// Close waits for what was submitted. Later calls of Submit fail, but for reads.
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
