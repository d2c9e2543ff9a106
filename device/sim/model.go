package sim

import (
	"context"
	"math"
	"time"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/kernel"
)

// A queue is one of the queues of a device.
type queue uint8

const (
	computeQueue queue = iota
	uploadQueue
	downloadQueue
	linkQueue
	queues
)

// queueOf returns the queue for c.
func (b *Backend) queueOf(c *device.Command) queue {
	switch c.Kernel.Code {
	case device.Upload:
		return uploadQueue
	case device.Download:
		return downloadQueue
	case device.Copy:
		if m := memoryOf(c.Buf[0]); m != nil && m.owner != b {
			return linkQueue
		}
	}
	return computeQueue
}

// isPlainCopy reports whether c is a copy that may write to another device.
func isPlainCopy(c *device.Command) bool { return c.Kernel.Code == device.Copy && c.Args == nil }

// Reaches implements the optional method of [device.Reaches]: copies reach every other simulated
// device.
func (b *Backend) Reaches(other device.Backend) bool {
	o, ok := other.(*Backend)
	return ok && o != b
}

// A timeline is the state of the model.
type timeline struct {
	free [queues]time.Duration // when the last command of each queue ends
	busy [queues]time.Duration // how long the commands of each queue have taken, in total
	last time.Duration         // when the last command is seen to be finished
}

// A memory is what the Handle of a Buffer points to.
type memory struct {
	owner *Backend
	host  *device.Buffer
	// For the timeline: the end of the last command that writes the memory, and of the last command
	// that uses it.
	written, used time.Duration
	// incoming is a copy from another device that is not known to be executed; nil: there is none.
	// Submit of the sending device sets it. From then on it belongs to the goroutine of the owner.
	incoming *incoming
}

// An incoming is a copy that another device executes.
type incoming struct {
	from   *Backend
	ticket uint64
}

// receive waits until all copies from other devices to the memory that c uses have really been
// executed. Only then does the model know when they end. There is no deadlock: these copies were
// submitted before c, and wait for nothing that was submitted later.
func (b *Backend) receive(c *device.Command) {
	for _, buf := range c.Buf {
		b.receiveInto(buf)
	}
	if c.Args != nil {
		for _, part := range c.Args.Parts {
			b.receiveInto(part.Buf)
		}
	}
}

func (b *Backend) receiveInto(buf *device.Buffer) {
	m := memoryOf(buf)
	if m == nil || m.owner != b || m.incoming == nil {
		return
	}
	m.incoming.from.waitExecuted(context.Background(), m.incoming.ticket) // no error: the context never ends
	m.incoming = nil
}

func memoryOf(buf *device.Buffer) *memory {
	if buf == nil {
		return nil
	}
	m, _ := buf.Handle.(*memory)
	return m
}

// finish adds e to the timeline. Computing it really took the given time, until ended. finish
// returns the time from which Done may report it, which is 0 in virtual time.
func (b *Backend) finish(e *entry, took, ended time.Duration) time.Duration {
	c := &e.command
	q := b.queueOf(c)
	start, takes := max(b.start(e), b.free[q]), b.options.takes(c, q, took)
	end := start + takes
	b.free[q] = end
	b.busy[q] += takes
	for i, buf := range c.Buf {
		if m := memoryOf(buf); m != nil {
			m.used = max(m.used, end)
			if i == 0 {
				m.written = end
			}
		}
	}
	b.last = max(b.last, end+b.options.Latency)
	if !b.options.Virtual {
		b.last = max(b.last, ended)
		return b.last
	}
	if c.Stamp != nil {
		c.Stamp.Began, c.Stamp.Ended, c.Stamp.Queue = start, end, int(q)
		c.Stamp.Finish(b.last)
	}
	return 0
}

// start returns when e may start: not before it was submitted, or issued, and not before its
// operands are ready.
func (b *Backend) start(e *entry) time.Duration {
	c := &e.command
	start := e.submitted
	if b.options.Virtual && c.Stamp != nil {
		start = c.Stamp.Issued
	}
	for i, buf := range c.Buf {
		m := memoryOf(buf)
		switch {
		case m == nil:
		case i > 0 || keepsSome(c):
			start = max(start, m.written)
		case !b.options.Virtual:
			start = max(start, m.used)
		}
	}
	if c.Args != nil {
		for _, part := range c.Args.Parts {
			if m := memoryOf(part.Buf); m != nil {
				start = max(start, m.written)
			}
		}
	}
	return start
}

// keepsSome reports whether c leaves some elements of its output unchanged.
func keepsSome(c *device.Command) bool {
	return c.Kernel.Code == device.Copy && c.Args != nil && c.Args.Strides[0] != nil
}

// takes returns how long c occupies its queue q in the model. took is how long it really took.
func (o *Options) takes(c *device.Command, q queue, took time.Duration) time.Duration {
	switch bytes := int64(c.N) * int64(c.Kernel.Out.Size()); q {
	case uploadQueue, downloadQueue:
		return o.Copy + at(o.Bandwidth, bytes)
	case linkQueue:
		return o.Copy + at(o.Link, bytes)
	}
	if !o.Virtual {
		return max(o.Launch, took)
	}
	w := kernel.WorkOf(c)
	return max(o.Launch, at(o.Flops, w.Operations), at(o.Memory, w.Bytes))
}

// at returns how long amount takes at rate a second. Rate 0 is unlimited.
func at(rate float64, amount int64) time.Duration {
	if rate == 0 {
		return 0
	}
	return time.Duration(math.Round(float64(amount) / rate * float64(time.Second)))
}

// theClock is the virtual time of this process.
var theClock device.VirtualClock

// Now returns the program's time by the model, if its simulated devices have a virtual clock. The
// time of a part of the program is the difference of Now, if the part waits for everything it has
// enqueued.
func Now() time.Duration { return theClock.Now() }

// virtualClock is the Clock of devices in virtual time. Its Wait returns at once.
type virtualClock struct{}

func (virtualClock) Now() time.Duration                        { return Now() }
func (virtualClock) Wait(context.Context, time.Duration) error { return nil }

// Virtual implements the optional method of [device.VirtualOf].
func (b *Backend) Virtual() (*device.VirtualClock, time.Duration) {
	if !b.options.Virtual {
		return nil, 0
	}
	return &theClock, b.options.Host
}

// Busy is how long each queue of a device has been executing commands. Divided by the time that has
// passed, it is the queue's utilisation.
type Busy struct{ Compute, Upload, Download, Link time.Duration }

// Busy counts the commands computed so far. After the program has waited for all its operations,
// these are all commands.
func (b *Backend) Busy() Busy {
	b.mu.Lock()
	defer b.mu.Unlock()
	return Busy{b.busy[computeQueue], b.busy[uploadQueue], b.busy[downloadQueue], b.busy[linkQueue]}
}

// BusyOf returns the Busy of a simulated device. It reports false for other devices.
func BusyOf(d device.Device) (Busy, bool) {
	b, ok := d.Backend().(*Backend)
	if !ok {
		return Busy{}, false
	}
	return b.Busy(), true
}
