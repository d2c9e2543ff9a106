package cpu

import (
	"fmt"
	"math"
	"runtime"
	"testing"
	"time"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/kernel"
)

// BenchmarkShare compares commands on as many workers as there are with one worker, in one process
// and in turn: the best of many windows of each. Nobody lends helpers here, so what is shared is
// what is worth starting one for (see grain).
func BenchmarkShare(b *testing.B) {
	workers := runtime.GOMAXPROCS(0)
	if workers == 1 {
		b.Skip("there is one worker: use -cpu 2")
	}
	defer runtime.GOMAXPROCS(workers)
	x, y := kernel.Arg(0, device.Float32), kernel.Arg(1, device.Float32)
	sum := device.NewKernel("sum", device.Reduce, kernel.ReduceSum, device.Float32, device.Float32)
	for _, test := range []struct {
		name string
		k    *device.Kernel
	}{{"add", f32Map("add", kernel.Add(x, y), 2)}, {"exp", f32Map("exp", kernel.Exp(x), 1)}, {"sum", sum}} {
		for n := 1 << 10; n <= 1<<20; n *= 2 {
			b.Run(fmt.Sprintf("%s/%d", test.name, n), func(b *testing.B) {
				c := device.Command{Kernel: test.k, N: n}
				if test.name == "sum" {
					c.N, c.Args = 1, &device.Args{Shape: device.Shape{n}}
				}
				for i := range len(test.k.In) + 1 {
					c.Buf[i] = device.HostBuffer(int64(4 * n))
				}
				best := [2]time.Duration{math.MaxInt64, math.MaxInt64}
				calls := max(1, 1<<15/n)
				for b.Loop() {
					for range 20 {
						for i, procs := range []int{1, workers} {
							runtime.GOMAXPROCS(procs)
							begin := time.Now()
							for range calls {
								if err := Run(&c); err != nil {
									b.Fatal(err)
								}
							}
							best[i] = min(best[i], time.Since(begin)/time.Duration(calls))
						}
					}
				}
				b.ReportMetric(float64(best[0].Nanoseconds()), "ns/one")
				b.ReportMetric(float64(best[1].Nanoseconds()), "ns/all")
				b.ReportMetric(float64(best[0])/float64(best[1]), "x")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}
