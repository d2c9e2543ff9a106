package engine

import (
	"context"
	"errors"
	"testing"

	"github.com/asyncgen/asyncgen/device"
)

// A context ends every form of waiting: also while the waiter itself executes the one operation that it
// waits for, while the device's driver does not answer, and in modes without workers.
func TestContextEndsEveryWait(t *testing.T) {
	f := func(s *setup) {
		k, started, open := blocking()
		defer open()
		of, end := scoped(s.dev)
		defer end(nil)
		x := s.from(1)
		y := unary(s.e, k, s.e.NewStorage(of, 8), x)
		for name, wait := range map[string]func(ctx context.Context) error{
			"Wait":                   func(ctx context.Context) error { return y.Wait(ctx, "read") },
			"WaitEach":               func(ctx context.Context) error { return WaitEach(ctx, "read", []*Storage{y}) },
			"WaitAll":                s.e.WaitAll,
			"Synchronize":            func(ctx context.Context) error { return s.e.Synchronize(ctx, s.dev) },
			"Synchronize of a scope": func(ctx context.Context) error { return s.e.Synchronize(ctx, of) },
			"a mark":                 func(ctx context.Context) error { return s.e.Mark(s.dev).Wait(ctx, "mark") },
		} {
			ctx, cancel := context.WithCancel(bg)
			ended := make(chan error)
			go func() { ended <- wait(ctx) }()
			<-started
			cancel()
			if err := <-ended; !errors.Is(err, context.Canceled) {
				s.Errorf("%s: %v", name, err)
			}
		}
		open()
		s.want(y, 2)
		over, cancel := context.WithCancel(bg)
		cancel()
		if err := y.Wait(over, "read"); err != nil && s.host == s.dev {
			s.Errorf("what is there can't be had after the end of the context: %v", err)
		}
	}
	onDevices(t, f)
	for _, kind := range kindsOfDevice {
		t.Run(kind.name+", shuffle", func(t *testing.T) { runOn(t, kind.make(t), Options{Mode: Shuffle, Seed: 1}, f) })
	}
}

// The driver of a deafGPU is busy: until open is closed it does not return from the calls in busy, whatever
// the context.
type deafGPU struct {
	*fakeGPU
	call   string
	called chan struct{}
	open   chan struct{}
}

func (g *deafGPU) stick(call string) {
	if call == g.call {
		select {
		case g.called <- struct{}{}:
		default:
		}
		<-g.open
	}
}

func (g *deafGPU) Alloc(bytes int64) (*device.Buffer, error) {
	g.stick("Alloc")
	return g.fakeGPU.Alloc(bytes)
}

func (g *deafGPU) Submit(cmds []device.Command) (device.Ticket, error) {
	g.stick("Submit")
	return g.fakeGPU.Submit(cmds)
}

func (g *deafGPU) Wait(ctx context.Context, t device.Ticket) error {
	g.stick("Wait")
	return g.fakeGPU.Wait(ctx, t)
}

func TestContextEndsWaitForABusyDriver(t *testing.T) {
	for _, call := range []string{"Alloc", "Submit", "Wait"} {
		g := &deafGPU{newFakeGPU(), call, make(chan struct{}, 1), make(chan struct{})}
		dev := device.Wrap("deaf", device.KindGPU, g)
		e := New(Options{Mode: Async})
		k, started, open := blocking()
		y := unary(e, k, e.NewStorage(dev, 8), fromFloats(e, dev, 1))
		if call == "Wait" {
			e.stream(dev).exec.flush()
			<-started
		}
		ctx, cancel := context.WithCancel(bg)
		ended := make(chan error)
		go func() { ended <- y.Wait(ctx, "read") }()
		<-g.called
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", call, err)
		}
		close(g.open)
		open()
		if err := e.Close(); err != nil {
			t.Errorf("%s: Close: %v", call, err)
		}
		g.Close()
	}
}

// A copy that finds no room, in the ring or below the bound on bytes, holds up no wait beyond the end of
// its context.
func TestContextEndsACopyAtABound(t *testing.T) {
	for name, o := range map[string]Options{"ring": {Mode: Async, Ring: 2, MaxBytes: -1}, "bytes": {Mode: Async, MaxBytes: 8}} {
		dev := newGPU(t)
		e := New(o)
		k, started, open := blocking()
		x := fromFloats(e, dev, 1)
		if err := x.Wait(bg, "read"); err != nil {
			t.Fatal(err)
		}
		y := unary(e, k, e.NewStorage(dev, 8), x)
		e.stream(dev).exec.flush()
		<-started
		more := make(chan struct{})
		go func() { // at the bound, too
			defer close(more)
			for range 3 {
				e.Copy(y, 0, 1, device.Float64, newCPU(1))
			}
		}()
		ctx, cancel := context.WithCancel(bg)
		ended := make(chan error)
		go func() {
			for range 3 {
				if err := e.Within(ctx, func() { e.Copy(y, 0, 1, device.Float64, newCPU(1)) }); err != nil {
					ended <- err
				}
			}
			close(ended)
		}()
		for e.stalled.n.Load() == 0 {
		}
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
		open()
		<-more
		for range ended {
		}
		if err := e.Close(); err != nil {
			t.Errorf("%s: Close: %v", name, err)
		}
	}
}
