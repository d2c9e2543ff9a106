package engine

import (
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/asyncgen/asyncgen/device"
)

// A countingGPU notes how many commands come at once.
type countingGPU struct {
	*fakeGPU
	batches chan int
}

func (g *countingGPU) Submit(cmds []device.Command) (device.Ticket, error) {
	g.batches <- len(cmds)
	return g.fakeGPU.Submit(cmds)
}

// Operations enqueued in a bulk begin when it has ended, and reach a device with a queue all at once. It
// makes no difference how the bulk ends, or whether there are bulks in it. In the bubble no time passes
// while f runs, so only the end of the bulk can make operations begin.
func TestBulk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEngine(t, Options{Mode: Async, Channels: true})
		gpu := &countingGPU{fakeGPU: newFakeGPU(), batches: make(chan int, 100)}
		defer gpu.Close()
		x, y := fromFloats(e, device.Wrap("gpu:0", device.KindGPU, gpu), 0), fromFloats(e, newCPU(2), 0)
		e.WaitAll(bg)
		synctest.Wait() // the workers sleep
		for len(gpu.batches) > 0 {
			<-gpu.batches
		}
		var ran atomic.Int32
		counted := fakeKernel("counted", 1, func(c *device.Command) error {
			ran.Add(1)
			return addOne.Body.(*fakeBody).f(c)
		})
		add := func() {
			for range 10 {
				for _, s := range []*Storage{x, y} {
					e.Enqueue(&Op{Cmd: device.Command{Kernel: counted, N: 1}, Operands: [device.MaxOperands]*Storage{s, s}, Cost: 2 * wakeCost})
				}
			}
		}
		func() {
			defer func() {
				if recover() == nil {
					t.Error("the panic is lost")
				}
			}()
			e.Bulk(func() {
				add()
				e.Bulk(add)
				synctest.Wait()
				if n := ran.Load(); n != 0 || len(gpu.batches) != 0 {
					t.Errorf("%d operations ran, %d batches were submitted before the end", n, len(gpu.batches))
				}
				panic("over")
			})
		}()
		synctest.Wait()
		if n := ran.Load(); n != 40 {
			t.Errorf("%d of 40 operations ran after the end", n)
		}
		if len(gpu.batches) != 1 || <-gpu.batches != 20 {
			t.Error("the device did not get 20 operations at once")
		}
	})
}

// A goroutine that waits in a bulk, or is at a bound, makes progress.
func TestWaitInBulk(t *testing.T) {
	for _, k := range kindsOfDevice {
		runOn(t, k.make(t), Options{Mode: Async, Ring: 16, MaxBytes: 64}, func(s *setup) {
			s.e.Bulk(func() {
				x := s.from(0)
				for range 100 {
					x = s.apply(addOne, x)
				}
				s.want(s.fetch(x), 100)
				for x = s.apply(addOne, x); !x.Ready(); {
				}
			})
		})
	}
}

// BenchmarkBulk measures some operations and a wait for the last one, after a rest, with and without a bulk.
func BenchmarkBulk(b *testing.B) {
	for _, in := range []string{"alone", "bulk"} {
		b.Run(in, func(b *testing.B) {
			e := New(Options{Mode: Async, Workers: 1})
			defer e.Close()
			x := fromFloats(e, newCPU(1), 0)
			some := func() {
				for range 200 {
					unary(e, addOne, x, x)
				}
			}
			for b.Loop() {
				if in == "bulk" {
					e.Bulk(some)
				} else {
					some()
				}
				x.Wait(bg, "Item")
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/200, "ns/operation")
		})
	}
}
