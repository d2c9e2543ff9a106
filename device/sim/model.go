package sim

import (
	"context"
	"math"
	"time"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/kernel"
)

// A queue is one of those that a device has.
type queue uint8

const (
	computeQueue queue = iota
	uploadQueue
	downloadQueue
	linkQueue
	queues
)

// queueOf is the queue that c goes to.
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

// isPlainCopy reports whether c may write to another device.
func isPlainCopy(c *device.Command) bool { return c.Kernel.Code == device.Copy && c.Args == nil }

// Reaches is what [device.Reaches] returns: any other simulated device.
func (b *Backend) Reaches(other device.Backend) bool {
	o, ok := other.(*Backend)
	return ok && o != b
}

// A timeline is the state of the model.
type timeline struct {
	free [queues]time.Duration // when the last command of the queue ends
	busy [queues]time.Duration // the sum of what its commands took
	last time.Duration         // when the last command is seen to be finished
}

// memory is what a Buffer's Handle points to.
type memory struct {
	owner *Backend
	host  *device.Buffer
	// For the timeline: when the last command ends that writes it, and the last one that uses it.
	written, used time.Duration
	// What another device copies to here; nil: nothing, or it is there. It is set by Submit over
	// there, and then belongs to the goroutine of the owner.
	incoming *incoming
}

// incoming is a command of another device.
type incoming struct {
	from   *Backend
	ticket uint64
}

// receive waits for what other devices copy to the memory that c uses: really, as the model knows
// when that ends once it is there. They were told before b was told to run c, and wait for nothing
// that they have been told later.
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
	m.incoming.from.waitExecuted(context.Background(), m.incoming.ticket) // no context: no error
	m.incoming = nil
}

func memoryOf(buf *device.Buffer) *memory {
	if buf == nil {
		return nil
	}
	m, _ := buf.Handle.(*memory)
	return m
}

// finish notes in the timeline what becomes of e, which has been computed, has taken so long and
// ended then. It returns when Done may say so.
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
		c.Stamp.Finish(b.last)
	}
	return 0
}

// start is when e may start as far as its operands are concerned.
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

// keepsSome reports whether c leaves some of its output as it was.
func keepsSome(c *device.Command) bool {
	return c.Kernel.Code == device.Copy && c.Args != nil && c.Args.Strides[0] != nil
}

// takes is how long c keeps q, its queue, busy if it has really taken so long.
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

// at is how long so much takes at a rate a second; 0: none.
func at(rate float64, amount int64) time.Duration {
	if rate == 0 {
		return 0
	}
	return time.Duration(math.Round(float64(amount) / rate * float64(time.Second)))
}

// clock is the virtual time of this process.
var theClock device.VirtualClock

// Now is the time of the program by the model, if its simulated devices have a virtual clock. By how much it moves over
// a part of the program that waits for all it has enqueued is how long that takes.
func Now() time.Duration { return theClock.Now() }

// virtualClock is the Clock of devices in virtual time. Nothing waits for it.
type virtualClock struct{}

func (virtualClock) Now() time.Duration                        { return Now() }
func (virtualClock) Wait(context.Context, time.Duration) error { return nil }

// Virtual is what [device.VirtualOf] returns.
func (b *Backend) Virtual() (*device.VirtualClock, time.Duration) {
	if !b.options.Virtual {
		return nil, 0
	}
	return &theClock, b.options.Host
}

// Busy is how long each queue of a device has had a command to run. Divided by the time that has
// passed it is the queue's utilisation.
type Busy struct{ Compute, Upload, Download, Link time.Duration }

// Busy counts what has been computed so far: all that the program has enqueued if it has just waited for it.
func (b *Backend) Busy() Busy {
	b.mu.Lock()
	defer b.mu.Unlock()
	return Busy{b.busy[computeQueue], b.busy[uploadQueue], b.busy[downloadQueue], b.busy[linkQueue]}
}

// BusyOf is the Busy of a simulated device. It reports false for others.
func BusyOf(d device.Device) (Busy, bool) {
	b, ok := d.Backend().(*Backend)
	if !ok {
		return Busy{}, false
	}
	return b.Busy(), true
}
