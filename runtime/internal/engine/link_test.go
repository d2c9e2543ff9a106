package engine

import (
	"context"
	"errors"
	"runtime"
	"testing"

	"github.com/asyncgen/asyncgen/device"
)

// linked returns devices with queues that copy to each other's memory, as far as fakeGPU.Reaches allows.
func linked(t *testing.T) (gpus []*fakeGPU, devices []device.Device) {
	links := newFakeLinks()
	for i := range fakeDevices {
		g := newFakeGPU()
		g.links, g.number, g.poison = links, i, true
		t.Cleanup(func() { g.Close() })
		gpus, devices = append(gpus, g), append(devices, device.Wrap("gpu", device.KindGPU, g))
	}
	return gpus, devices
}

// sentSoon waits until the device has been given n commands.
func (g *fakeGPU) sentSoon(n int) {
	for {
		g.mu.Lock()
		sent := g.sent
		g.mu.Unlock()
		if sent >= device.Ticket(n) {
			return
		}
		runtime.Gosched()
	}
}

// copyOf copies x to a device.
func copyOf(e *Engine, x *Storage, to device.Device) *Storage {
	return e.Copy(x, 0, int(x.own.Bytes/8), device.Float64, to)
}

// next adds one to x on its device.
func next(e *Engine, x *Storage) *Storage {
	return unary(e, addOne, e.NewStorage(x.Device(), x.own.Bytes), x)
}

// Operations that need a copy from another device are handed over before the copy has even begun, along
// a whole ring of devices: the devices order them without the host.
func TestLinkedDevicesNeedNoHost(t *testing.T) {
	gpus, devices := linked(t)
	e := newEngine(t, Options{Mode: Async, MaxBytes: -1})
	k, started, open := blocking()
	defer open()
	x := unary(e, k, e.NewStorage(devices[0], 24), fromFloats(e, devices[0], 1, 2, 3))
	<-started
	for i := range 2 * fakeDevices {
		x = next(e, copyOf(e, x, devices[(i+1)%fakeDevices]))
	}
	// The first has an upload and the kernel too.
	for i, g := range gpus {
		g.sentSoon(map[bool]int{true: 6, false: 4}[i == 0])
	}
	if x.Ready() || gpus[1].Done(1) {
		t.Error("something has come before the kernel that blocks")
	}
	open()
	s := &setup{T: t, e: e, dev: devices[0], host: newCPU(1)}
	s.want(x, 2+2*fakeDevices, 3+2*fakeDevices, 4+2*fakeDevices)
}

// Operations of the destination that need no copy finish without it, but they retire only after the
// copies enqueued before them.
func TestLinkedDevicesRetireInOrder(t *testing.T) {
	gpus, devices := linked(t)
	e := newEngine(t, Options{Mode: Async, MaxBytes: -1})
	k, started, open := blocking()
	defer open()
	x := unary(e, k, e.NewStorage(devices[0], 8), fromFloats(e, devices[0], 1))
	y := copyOf(e, x, devices[1])
	z := next(e, fromFloats(e, devices[1], 5))
	<-started
	gpus[1].sentSoon(2)
	gpus[1].Wait(bg, 2)
	if z.Ready() || y.Ready() {
		t.Error("ready before the copy is")
	}
	ctx, cancel := context.WithCancel(bg)
	cancel()
	if err := z.Wait(ctx, "test"); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	open()
	gpus[0].Wait(bg, 3)
	for _, s := range []*Storage{z, y} { // nobody waits: Ready finds out, on both streams
		for i := 0; !s.Ready(); i++ {
			backoff(i)
		}
	}
}

// reaching is a device that copies to any other.
type reaching struct{ *fakeGPU }

func (reaching) Reaches(device.Backend) bool { return true }

// If the destination of a copy is lost, the memory of the copy stays until the copy is done.
func TestLossOfWhereACopyGoes(t *testing.T) {
	for _, silent := range []bool{false, true} {
		gpus, _ := linked(t)
		from := device.Wrap("from", device.KindGPU, reaching{gpus[0]})
		to := device.Wrap("to", device.KindGPU, &mortal{Backend: gpus[1], silent: silent})
		e := newEngine(t, Options{Mode: Async, MaxBytes: -1})
		other := fromFloats(e, to, 1, 2) // of another size than what is released
		if err := e.WaitAll(bg); err != nil {
			t.Fatal(err)
		}
		k, started, open := blocking()
		x := unary(e, k, e.NewStorage(from, 8), fromFloats(e, from, 1))
		y := copyOf(e, x, to)
		<-started
		gpus[0].sentSoon(3) // so there is memory for y by now
		e.Release(y)
		bad := unary(e, dying, e.NewStorage(to, 16), other)
		worse := next(e, bad)
		ctx, cancel := context.WithCancel(bg)
		waited := make(chan error)
		go func() { waited <- worse.Wait(ctx, "test") }()
		for m := to.Backend().(*mortal); !m.isLost(); {
			runtime.Gosched()
		}
		cancel()
		if err := <-waited; !errors.Is(err, context.Canceled) && !errors.Is(err, device.ErrLost) {
			t.Errorf("error %v", err)
		}
		_, freed, _ := gpus[1].counts()
		if freed > 0 {
			t.Errorf("silent %v: memory is freed before the copy", silent)
		}
		open()
		if err := worse.Wait(bg, "test"); !errors.Is(err, device.ErrLost) {
			t.Errorf("silent %v: %v", silent, err)
		}
		var op *OpError
		if err := e.WaitAll(bg); !errors.As(err, &op) || op.Op != dying.Name || op.Device != to {
			t.Errorf("silent %v: the loss is %+v", silent, err)
		}
		if made, freed, twice := gpus[1].counts(); made == 0 || freed == 0 || twice > 0 {
			t.Errorf("silent %v: of %d buffers %d are freed, %d twice", silent, made, freed, twice)
		}
		s := &setup{T: t, e: e, dev: from, host: newCPU(1)}
		s.want(next(e, x), 3)
	}
}

// smallGPU has memory for a limited number of buffers.
type smallGPU struct {
	*fakeGPU
	most    int
	refused chan struct{} // has room
}

func (g *smallGPU) Alloc(bytes int64) (*device.Buffer, error) {
	if made, freed, _ := g.counts(); made-freed >= g.most {
		g.refused <- struct{}{}
		return nil, device.ErrOutOfMemory
	}
	return g.fakeGPU.Alloc(bytes)
}

// Memory may be short until a storage that was released behind an incoming copy is given back. An
// operation that needs memory then waits for the copy.
func TestMemoryReleasedBehindACopy(t *testing.T) {
	gpus, _ := linked(t)
	from := device.Wrap("from", device.KindGPU, reaching{gpus[0]})
	small := &smallGPU{gpus[1], 2, make(chan struct{}, 100)}
	to := device.Wrap("to", device.KindGPU, small)
	e := newEngine(t, Options{Mode: Async, MaxBytes: -1})
	z := fromFloats(e, to, 1, 2) // of another size than the result
	k, started, open := blocking()
	defer open()
	x := unary(e, k, e.NewStorage(from, 8), fromFloats(e, from, 1))
	if err := z.Wait(bg, "test"); err != nil {
		t.Fatal(err)
	}
	y := copyOf(e, x, to)
	e.Release(z)
	<-started
	for q, i := e.stream(to).queue(), 0; ; i++ { // the gate and the release are handed over
		q.mu.Lock()
		submitted := q.submitted
		q.mu.Unlock()
		if submitted == 3 {
			break
		}
		backoff(i)
	}
	w := next(e, y)
	waited := make(chan error)
	go func() { waited <- w.Wait(bg, "test") }()
	<-small.refused
	open()
	if err := <-waited; err != nil {
		t.Errorf("error %v", err)
	}
	s := &setup{T: t, e: e, dev: to, host: newCPU(1)}
	s.want(w, 3)
}
