package engine

import (
	"testing"

	"github.com/asyncgen/asyncgen/device"
)

// TestWaitAllOutOfOrder lets the operation that was enqueued last finish first. WaitAll still waits for
// the one before it.
func TestWaitAllOutOfOrder(t *testing.T) {
	dev := device.Wrap("cpu", device.KindCPU, &fakeCPU{workers: 2})
	e := newEngine(t, Options{})
	gate := make(chan struct{})
	slow := fakeKernel("slow", 1, func(*device.Command) error { <-gate; return nil })
	x := fromFloats(e, dev, 1)
	y := unary(e, slow, e.NewStorage(dev, 8), x)
	z := unary(e, addOne, e.NewStorage(dev, 8), x)
	if err := z.Wait(bg, "t"); err != nil {
		t.Fatal(err)
	}
	if y.Ready() {
		t.Fatal("the slow operation does not block")
	}
	go close(gate) // at some time after WaitAll has been called, or before
	if err := e.WaitAll(bg); err != nil || !y.Ready() {
		t.Errorf("WaitAll returned %v while an operation was still running", err)
	}
}
