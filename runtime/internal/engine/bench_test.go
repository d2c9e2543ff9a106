package engine

import (
	"math"
	"runtime"
	"testing"
	"time"

	"github.com/asyncgen/asyncgen/device"
)

// nop does nothing, so that what is measured is the engine.
var nop = fakeKernel("nop", 1, func(*device.Command) error { return nil })

// BenchmarkEnqueue is what a producer pays for an operation that others execute, 1,000 at a time into an empty ring.
func BenchmarkEnqueue(b *testing.B) {
	for _, c := range []struct {
		name  string
		o     Options
		watch bool
	}{
		{"unbounded", Options{Mode: Async, MaxBytes: -1}, false},
		{"bounded", Options{Mode: Async, MaxBytes: 1 << 30}, false},
		{"recorded", Options{Mode: Async, MaxBytes: 1 << 30}, true},
	} {
		b.Run(c.name, func(b *testing.B) {
			e, dev := newEngine(b, c.o), newCPU(1)
			x, y := fromFloats(e, dev, 1), fromFloats(e, dev, 1)
			op := Op{Cmd: device.Command{Kernel: nop, N: 1}, Operands: [device.MaxOperands]*Storage{y, x}, Cost: 1}
			if c.watch {
				defer e.Record(func(Event) {})()
			}
			const batch = 1000
			best := time.Duration(math.MaxInt64)
			b.ReportAllocs()
			for b.Loop() {
				start := time.Now()
				for range batch {
					e.Enqueue(&op)
				}
				best = min(best, time.Since(start))
				y.Wait(bg, "wait")
			}
			b.ReportMetric(float64(best.Nanoseconds())/batch, "best-ns/enqueue")
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*batch), "ns/done")
		})
	}
}

// BenchmarkChain is 10,000 operations on one element, each of which reads what the one before has written, from the first
// call to the end of the last.
func BenchmarkChain(b *testing.B) {
	e, dev := newEngine(b, Options{}), newCPU(1)
	x, y := fromFloats(e, dev, 1, 2), fromFloats(e, dev, 1, 2)
	const ops = 10_000
	best := time.Duration(math.MaxInt64)
	b.ReportAllocs()
	for b.Loop() {
		start := time.Now()
		for range ops {
			unary(e, addOne, y, x)
			x, y = y, x
		}
		x.Wait(bg, "wait")
		best = min(best, time.Since(start))
	}
	b.ReportMetric(float64(best.Nanoseconds())/ops, "best-ns/done")
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*ops), "ns/done")
}

// BenchmarkRoundTrip is one operation and the wait for it.
func BenchmarkRoundTrip(b *testing.B) {
	e, dev := newEngine(b, Options{}), newCPU(1)
	x, y := fromFloats(e, dev, 1), fromFloats(e, dev, 1)
	b.ReportAllocs()
	for b.Loop() {
		unary(e, addOne, y, x)
		x, y = y, x
		x.Wait(bg, "wait")
	}
}

// BenchmarkTwoChains is two chains of operations of about 20 µs that have nothing to do with each other: the
// ratio of the best times with one executor and with two.
func BenchmarkTwoChains(b *testing.B) {
	if runtime.GOMAXPROCS(0) < 2 {
		b.Skip("one processor")
	}
	spin := fakeKernel("spin", 1, func(c *device.Command) error {
		for end := now() + 20*time.Microsecond; now() < end; {
		}
		return nil
	})
	measure := func(workers, n int) time.Duration {
		e, dev := newEngine(b, Options{}), newCPU(workers)
		x, y := fromFloats(e, dev, 1), fromFloats(e, dev, 1)
		start := time.Now()
		for range n {
			for _, s := range []*Storage{x, y} {
				e.Enqueue(&Op{Cmd: device.Command{Kernel: spin, N: 1}, Operands: [device.MaxOperands]*Storage{s, s}, Cost: 20_000})
			}
		}
		for !x.Ready() || !y.Ready() { // without helping
			time.Sleep(100 * time.Microsecond)
		}
		return time.Since(start)
	}
	const n = 100
	one, two := time.Duration(math.MaxInt64), time.Duration(math.MaxInt64)
	for b.Loop() {
		one = min(one, measure(1, n))
		two = min(two, measure(2, n))
	}
	b.ReportMetric(float64(one)/float64(two), "speedup")
}

// BenchmarkCallerPC is what the source line of an operation costs.
func BenchmarkCallerPC(b *testing.B) {
	for b.Loop() {
		callerPC()
	}
}
