package cpu

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/asyncgen/asyncgen/device"
)

// BenchmarkScatterAdd tells what the gradient of an embedding takes for an element that is added, on as many cores as there
// are: the best of many windows, in nanoseconds.
func BenchmarkScatterAdd(b *testing.B) {
	rnd := rand.New(rand.NewPCG(1, 2))
	k := device.NewKernel("scatteradd", device.ScatterAdd, nil, device.Float32, device.Float32, device.Int64)
	for _, s := range [][3]int{{8192, 32000, 256}, {8192, 1000, 256}, {100, 1000, 16}, {1 << 18, 1 << 16, 1}} {
		count, rows, width := s[0], s[1], s[2]
		b.Run(fmt.Sprintf("%dx%d of %d", count, width, rows), func(b *testing.B) {
			indices := make([]int64, count)
			for i := range indices {
				indices[i] = int64(rnd.IntN(rows))
			}
			c := device.Command{Kernel: k, N: rows * width, Args: &device.Args{Shape: device.Shape{count, width}, Ints: []int{rows, width}}}
			c.Args.Strides[0], c.Args.Strides[2] = []int{0, 1}, []int{1, 0}
			c.Buf = [4]*device.Buffer{device.HostBuffer(int64(4 * c.N)), randomBuffer(rnd, device.Float32, count*width), bufferOf(indices)}
			best := time.Duration(1 << 62)
			for b.Loop() {
				begin := time.Now()
				if err := Run(&c); err != nil {
					b.Fatal(err)
				}
				best = min(best, time.Since(begin))
			}
			b.ReportMetric(float64(best.Nanoseconds())/float64(count*width), "ns/element")
			b.ReportMetric(0, "ns/op")
		})
	}
}
