package engine

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/pool"
)

// nop does nothing, so that benchmarks measure the engine.
var nop = fakeKernel("nop", 1, func(*device.Command) error { return nil })

// BenchmarkEnqueue measures what a producer pays for an operation that others execute: 1,000 at a time,
// into an empty ring.
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

// BenchmarkChain measures 10,000 operations on one element, from the first call to the end of the last
// operation. Each reads what the one before has written.
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

// BenchmarkRoundTrip measures one operation and the wait for it.
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

// BenchmarkTwoChains measures two independent chains of operations of about 20 µs: the ratio of the best
// times with one executor and with two.
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

// BenchmarkCallerPC measures what it costs to find the source line of an operation.
func BenchmarkCallerPC(b *testing.B) {
	for b.Loop() {
		callerPC()
	}
}

// BenchmarkWake measures how long it takes from enqueueing an operation until it begins on a worker,
// when the engine has been idle for a while and the producer neither waits nor helps. For comparison it
// measures the same for a goroutine that waits on a channel and, where possible, for a thread that
// waits in the kernel.
func BenchmarkWake(b *testing.B) {
	if runtime.GOMAXPROCS(0) < 2 {
		b.Skip("one processor")
	}
	const idle = 2 * time.Millisecond
	pauses := map[string]func(){
		"busy": func() {
			for end := now() + idle; now() < end; {
			}
		},
		"asleep": func() { time.Sleep(idle) },
	}
	for _, way := range wakers {
		for _, producer := range []string{"busy", "asleep"} {
			b.Run(way.name+"/"+producer, func(b *testing.B) {
				var began atomic.Int64
				wake, stop := way.start(b, func() { began.Store(int64(now())) })
				defer stop()
				var took []time.Duration
				for b.Loop() {
					pauses[producer]()
					began.Store(0)
					start := now()
					wake()
					for began.Load() == 0 {
					}
					took = append(took, time.Duration(began.Load())-start)
				}
				slices.Sort(took)
				b.ReportMetric(float64(took[len(took)/2].Nanoseconds())/1e3, "p50-µs")
				b.ReportMetric(float64(took[len(took)*9/10].Nanoseconds())/1e3, "p90-µs")
				b.ReportMetric(float64(took[len(took)*99/100].Nanoseconds())/1e3, "p99-µs")
			})
		}
	}
}

// A waker starts a goroutine or worker that waits, and calls f each time it is woken.
type waker struct {
	name  string
	start func(b *testing.B, f func()) (wake, stop func())
}

var wakers = append([]waker{
	{"engine", func(b *testing.B, f func()) (wake, stop func()) { return wakeEngine(b, Options{}, f) }},
	{"engine-channels", func(b *testing.B, f func()) (wake, stop func()) { return wakeEngine(b, Options{Channels: true}, f) }},
	{"channel", func(b *testing.B, f func()) (wake, stop func()) {
		c := make(chan struct{}, 1)
		go func() {
			for range c {
				f()
			}
		}()
		return func() { c <- struct{}{} }, func() { close(c) }
	}},
}, systemWakers...)

func wakeEngine(b *testing.B, o Options, f func()) (wake, stop func()) {
	e, dev := newEngine(b, o), newCPU(1)
	x, y := fromFloats(e, dev, 1), fromFloats(e, dev, 1)
	k := fakeKernel("began", 1, func(*device.Command) error { f(); return nil })
	op := Op{Cmd: device.Command{Kernel: k, N: 1}, Operands: [device.MaxOperands]*Storage{y, x}, Cost: wakeCost}
	return func() { e.Enqueue(&op) }, func() {}
}

// BenchmarkSharedLoop measures a loop of some length, alone and shared with the engine's workers. The
// workers are awake, because there was a loop just before, or asleep. It reports the best time of each,
// and their ratio.
func BenchmarkSharedLoop(b *testing.B) {
	if runtime.GOMAXPROCS(0) < 2 {
		b.Skip("one processor")
	}
	e, dev := newEngine(b, Options{}), newCPU(1)
	l := (*loan)(e.stream(dev).exec.(*flow))
	const unit = 512 // multiplications that depend on each other: about half a microsecond
	spin := func(lo, hi int) {
		for range hi - lo {
			x := 1.0
			for range unit {
				x *= 1.0000001
			}
			sink.Store(math.Float64bits(x))
		}
	}
	for _, c := range []struct {
		name    string
		isAwake bool
	}{{"awake", true}, {"asleep", false}} {
		for _, n := range []int{2, 4, 8, 16, 32, 64, 128} {
			b.Run(fmt.Sprintf("%s/%d", c.name, n), func(b *testing.B) {
				alone, shared := time.Duration(math.MaxInt64), time.Duration(math.MaxInt64)
				var all []time.Duration
				for b.Loop() {
					start := time.Now()
					spin(0, n)
					alone = min(alone, time.Since(start))
					var run func(n, grain int, f func(lo, hi int))
					if c.isAwake {
						if !awaken(l) {
							continue // the machine is busy
						}
						run = runAwake
					} else {
						time.Sleep(time.Millisecond)
						run = pool.Run
					}
					start = time.Now()
					run(n, 1, spin)
					all = append(all, time.Since(start))
					shared = min(shared, all[len(all)-1])
				}
				if len(all) == 0 {
					b.Skip("no worker was awake")
				}
				slices.Sort(all)
				b.ReportMetric(float64(alone.Nanoseconds())/1e3, "alone-µs")
				b.ReportMetric(float64(shared.Nanoseconds())/1e3, "shared-µs")
				b.ReportMetric(float64(all[len(all)/2].Nanoseconds())/1e3, "p50-µs")
				b.ReportMetric(float64(alone)/float64(shared), "times-as-fast")
			})
		}
	}
}

var sink atomic.Uint64

// awaken wakes a worker and reports whether it is awake and idle afterwards.
func awaken(l *loan) bool {
	for !l.Awake() && !l.Wake(true) {
		runtime.Gosched()
	}
	for i := 0; i < 1000 && !l.Awake(); i++ {
		pause(4)
	}
	return l.Awake()
}

// runAwake is pool.Run for a short loop of n ranges.
func runAwake(n, _ int, f func(lo, hi int)) {
	pool.Run(32*n, 32*max(n, 32), func(lo, hi int) { f(lo/32, hi/32) })
}
