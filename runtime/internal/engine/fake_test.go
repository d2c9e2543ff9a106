package engine

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"
	"unsafe"

	"github.com/asyncgen/asyncgen/device"
)

// fakeBody is what the fake devices run: any Go function of a command's buffers.
type fakeBody struct {
	f func(c *device.Command) error
}

func (*fakeBody) Key() string { return "fake" }

// fakeKernel makes a kernel of float64 operands.
func fakeKernel(name string, inputs int, f func(c *device.Command) error) *device.Kernel {
	in := make([]device.DType, inputs)
	for i := range in {
		in[i] = device.Float64
	}
	return device.NewKernel(name, device.Map, &fakeBody{f}, device.Float64, in...)
}

// vals returns operand i of a command as a slice of its memory. The fakes have allocated its buffers.
func vals(c *device.Command, i int) []float64 { return valsOf(c.Buf[i]) }

func valsOf(b *device.Buffer) []float64 {
	p := b.Ptr
	if p == nil {
		p = b.Handle.(*device.Buffer).Ptr
	}
	return unsafe.Slice((*float64)(p), b.Bytes/8)
}

// addOne adds one to each element of the first input.
var addOne = fakeKernel("addone", 1, func(c *device.Command) error {
	out, in := vals(c, 0), vals(c, 1)
	for i := range out {
		out[i] = in[i] + 1
	}
	return nil
})

var errBoom = errors.New("boom")

// failing fails.
var failing = fakeKernel("failing", 1, func(*device.Command) error { return errBoom })

// panicking panics.
var panicking = fakeKernel("panicking", 1, func(*device.Command) error { panic("ouch") })

// runCommand executes a command on host memory.
func runCommand(c *device.Command) error {
	switch c.Kernel.Code {
	case device.Copy, device.Upload, device.Download:
		size := c.Kernel.Out.Size()
		copyBytes(c.Buf[0], c.Off[0]*size, c.Buf[1], c.Off[1]*size, c.N*size)
		return nil
	}
	return c.Kernel.Body.(*fakeBody).f(c)
}

func copyBytes(dst *device.Buffer, dstOff int, src *device.Buffer, srcOff, n int) {
	view := func(b *device.Buffer) []byte {
		p := b.Ptr
		if p == nil {
			p = b.Handle.(*device.Buffer).Ptr
		}
		return unsafe.Slice((*byte)(p), b.Bytes)
	}
	copy(view(dst)[dstOff:dstOff+n], view(src)[srcOff:srcOff+n])
}

// fakeCPU is a synchronous device with host memory.
type fakeCPU struct {
	workers int
	noHost  bool // the host can't reach its memory
	poison  bool // fresh memory is full of NaN, and freed buffers are counted
	onFree  func()

	mu    sync.Mutex // guards the rest
	made  int
	freed int
	twice int // buffers that were given back twice
	inUse map[*float64]bool
}

// scarce returns a size in bytes, for n float64s, that the fakes never have memory for.
func scarce(n int) int64 { return int64(n)*8 - 1 }

func (f *fakeCPU) Alloc(bytes int64) (*device.Buffer, error) { return f.alloc(bytes, f.noHost) }

func (f *fakeCPU) alloc(bytes int64, hidden bool) (*device.Buffer, error) {
	if bytes%8 == 7 {
		return nil, fmt.Errorf("fake: %d bytes: %w", bytes, device.ErrOutOfMemory)
	}
	b := device.HostBuffer(bytes)
	if f.poison {
		f.hand(b)
	}
	if hidden {
		return &device.Buffer{Bytes: bytes, Handle: b}, nil
	}
	b.Handle = "to be freed"
	return b, nil
}

// Free spoils the contents of the buffer, so that a later use of it shows.
func (f *fakeCPU) Free(b *device.Buffer) {
	if f.onFree != nil {
		f.onFree()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.freed++
	if hidden, ok := b.Handle.(*device.Buffer); ok {
		b = hidden
	}
	if f.poison {
		first := &device.Slice[float64](b, 0, 1)[0]
		if !f.inUse[first] {
			f.twice++
		}
		delete(f.inUse, first)
	}
	spoil(b)
}

// hand counts a buffer, and spoils its contents, so that a read before the first write shows.
func (f *fakeCPU) hand(b *device.Buffer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.made++
	if f.inUse == nil {
		f.inUse = map[*float64]bool{}
	}
	f.inUse[&device.Slice[float64](b, 0, 1)[0]] = true
	spoil(b)
}

func spoil(b *device.Buffer) {
	for i := range b.Bytes / 8 {
		device.Slice[float64](b, int(i), 1)[0] = math.NaN()
	}
}

// counts returns how many buffers were made and given back, and how many of those twice.
func (f *fakeCPU) counts() (made, freed, twice int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.made, f.freed, f.twice
}

func (f *fakeCPU) Submit(cmds []device.Command) (device.Ticket, error) {
	for i := range cmds {
		if err := runCommand(&cmds[i]); err != nil {
			return 0, err
		}
	}
	return 0, nil
}
func (f *fakeCPU) Done(device.Ticket) bool                   { return true }
func (f *fakeCPU) Wait(context.Context, device.Ticket) error { return nil }
func (f *fakeCPU) Failure(device.Ticket) error               { return nil }
func (f *fakeCPU) Caps() device.Caps {
	return device.Caps{Synchronous: true, HostMemory: !f.noHost, Workers: f.workers, BatchInvariant: true}
}
func (f *fakeCPU) Close() error { return nil }

// fakeGPU is a device with a queue: one goroutine runs commands in order.
type fakeGPU struct {
	fakeCPU
	refuse bool // Submit refuses commands that would fail
	room   int  // Submit waits while this many commands are queued; 0: it never waits
	links  *fakeLinks
	number int // its index among the devices that share links

	mu       sync.Mutex
	cond     sync.Cond
	queue    []device.Command
	sent     device.Ticket
	done     device.Ticket
	failures map[device.Ticket]error
	closed   bool
	exited   chan struct{}
}

func newFakeGPU() *fakeGPU {
	g := &fakeGPU{failures: map[device.Ticket]error{}}
	g.cond.L = &g.mu
	g.open()
	return g
}

// open starts the device, for the first time or after Close.
func (g *fakeGPU) open() {
	g.closed, g.exited = false, make(chan struct{})
	go g.work()
}

func (g *fakeGPU) work() {
	defer close(g.exited)
	g.mu.Lock()
	defer g.mu.Unlock()
	for {
		for len(g.queue) == 0 && !g.closed {
			g.cond.Wait()
		}
		if len(g.queue) == 0 {
			return
		}
		c := g.queue[0]
		g.queue[0] = device.Command{}
		g.queue = g.queue[1:]
		if g.room > 0 {
			g.cond.Broadcast()
		}
		ticket := g.done + 1
		g.mu.Unlock()
		err := func() (err error) {
			defer func() {
				if v := recover(); v != nil {
					err = &PanicError{v}
				}
			}()
			if g.links != nil {
				g.links.receive(g, &c, ticket)
			}
			return runCommand(&c)
		}()
		if g.links != nil {
			g.links.arrived(g, &c)
		}
		g.mu.Lock()
		g.done++
		if err != nil {
			g.failures[g.done] = err
		}
		g.cond.Broadcast()
	}
}

func (g *fakeGPU) Alloc(bytes int64) (*device.Buffer, error) {
	b, err := g.alloc(bytes, true)
	if err == nil && g.links != nil {
		g.links.made(g, b)
	}
	return b, err
}

// Free frees the memory. No other device may be about to write it.
func (g *fakeGPU) Free(b *device.Buffer) {
	if g.links != nil {
		g.links.freed(b)
	}
	g.fakeCPU.Free(b)
}

// Reaches implements [device.Reaches]: the devices of one world reach each other, but some only one way.
func (g *fakeGPU) Reaches(other device.Backend) bool {
	o, ok := other.(*fakeGPU)
	return ok && g.links != nil && o.links == g.links && (g.number < o.number || g.number == fakeDevices-1 && o.number == 0)
}

// fakeDevices is how many devices share fakeLinks. The first reaches both others, the second reaches
// the third, and the third reaches the first.
const fakeDevices = 3

// fakeLinks are shared by several fakeGPUs that use each other's memory. They check that the memory is
// used as [device.Reaches] says.
type fakeLinks struct {
	mu       sync.Mutex
	owner    map[any]*fakeGPU // by Buffer.Handle
	used     map[any]bool     // a submitted command has used the buffer
	incoming map[any]incomingCopy
}

// An incomingCopy is a command that writes to the memory of another device.
type incomingCopy struct {
	from   *fakeGPU
	ticket device.Ticket
}

func newFakeLinks() *fakeLinks {
	return &fakeLinks{owner: map[any]*fakeGPU{}, used: map[any]bool{}, incoming: map[any]incomingCopy{}}
}

func (l *fakeLinks) made(g *fakeGPU, b *device.Buffer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.owner[b.Handle] = g
}

func (l *fakeLinks) freed(b *device.Buffer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, pending := l.incoming[b.Handle]; pending {
		panic("memory is freed that a copy is about to write")
	}
	delete(l.owner, b.Handle)
	delete(l.used, b.Handle)
}

// submitted notes which memory of other devices a command of g writes.
func (l *fakeLinks) submitted(g *fakeGPU, c *device.Command, t device.Ticket) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, b := range c.Buf {
		if b == nil || l.owner[b.Handle] == nil {
			continue
		}
		if i == 0 && l.owner[b.Handle] != g {
			if l.used[b.Handle] {
				panic("a copy writes memory that is in use")
			}
			l.incoming[b.Handle] = incomingCopy{g, t}
		}
		l.used[b.Handle] = true
	}
}

// receive waits for the copies of other devices to memory that a command of g uses.
func (l *fakeLinks) receive(g *fakeGPU, c *device.Command, t device.Ticket) {
	bufs := c.Buf[:]
	if c.Args != nil {
		bufs = slices.Clone(bufs)
		for _, part := range c.Args.Parts {
			bufs = append(bufs, part.Buf)
		}
	}
	for i, b := range bufs {
		if b == nil {
			continue
		}
		l.mu.Lock()
		in, pending := l.incoming[b.Handle]
		l.mu.Unlock()
		switch {
		case pending && in.from != g:
			in.from.Wait(bg, in.ticket)
		case pending && i == 0: // the copy itself takes its time
			for range t % 8 * 8 {
				runtime.Gosched()
			}
		}
	}
}

// arrived notes that a command of g has ended.
func (l *fakeLinks) arrived(g *fakeGPU, c *device.Command) {
	if c.Buf[0] == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.incoming[c.Buf[0].Handle].from == g {
		delete(l.incoming, c.Buf[0].Handle)
	}
}

func (g *fakeGPU) Submit(cmds []device.Command) (device.Ticket, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.refuse {
		for i := range cmds {
			if cmds[i].Kernel.Name == "failing" {
				return 0, errBoom
			}
		}
	}
	for g.room > 0 && len(g.queue) >= g.room {
		g.cond.Wait()
	}
	for i := range cmds {
		g.queue = append(g.queue, cmds[i])
		g.sent++
		if g.links != nil {
			g.links.submitted(g, &cmds[i], g.sent)
		}
	}
	g.cond.Broadcast()
	return g.sent, nil
}

func (g *fakeGPU) Done(t device.Ticket) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.done >= t
}

func (g *fakeGPU) Wait(ctx context.Context, t device.Ticket) error {
	stop := context.AfterFunc(ctx, func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.cond.Broadcast()
	})
	defer stop()
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.done < t {
		if err := ctx.Err(); err != nil {
			return err
		}
		g.cond.Wait()
	}
	return nil
}

func (g *fakeGPU) Failure(t device.Ticket) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.failures[t]
}

func (g *fakeGPU) Caps() device.Caps { return device.Caps{BatchInvariant: true} }

func (g *fakeGPU) Close() error {
	g.mu.Lock()
	g.closed = true
	g.cond.Broadcast()
	g.mu.Unlock()
	<-g.exited
	return nil
}

// opOf returns a command that adds one to s.
func opOf(s *Storage) device.Command { return device.Command{Kernel: addOne, N: int(s.own.Bytes / 8)} }
