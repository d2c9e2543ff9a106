package engine

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/asyncgen/asyncgen/device"
)

// fullGPU has room for one batch for each token. It tells when somebody waits with a context that can end.
type fullGPU struct {
	*fakeGPU
	room  chan struct{}
	waits func()
}

func (g *fullGPU) Submit(cmds []device.Command) (device.Ticket, error) {
	<-g.room
	return g.fakeGPU.Submit(cmds)
}

func (g *fullGPU) Wait(ctx context.Context, t device.Ticket) error {
	if ctx.Done() != nil {
		g.waits()
	}
	return g.fakeGPU.Wait(ctx, t)
}

// A context also ends a wait for an operation that the device has no room for.
func TestContextEndsWaitForFullDevice(t *testing.T) {
	ctx, cancel := context.WithCancel(bg)
	g := &fullGPU{newFakeGPU(), make(chan struct{}, 2), cancel}
	t.Cleanup(func() { g.Close() })
	e := newEngine(t, Options{Mode: Async})
	dev := device.Wrap("full", device.KindGPU, g)

	open := make(chan struct{})
	blocked := fakeKernel("blocked", 1, func(*device.Command) error { <-open; return nil })
	g.room <- struct{}{}
	x := fromFloats(e, dev, 1)
	if err := x.Wait(bg, "read"); err != nil {
		t.Fatal(err)
	}
	g.room <- struct{}{}
	y := e.NewStorage(dev, 8)
	unary(e, blocked, y, x)
	for range 2 * submitBatch {
		unary(e, addOne, x, x)
	}

	ended := make(chan error)
	go func() { ended <- x.Wait(ctx, "read") }()
	select {
	case err := <-ended:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("the wait ended with %v", err)
		}
	case <-time.After(20 * time.Second):
		t.Error("the wait did not end with its context")
		defer func() { <-ended }()
	}
	close(open)
	close(g.room)
	if err := x.Wait(bg, "read"); err != nil {
		t.Error(err)
	}
}
