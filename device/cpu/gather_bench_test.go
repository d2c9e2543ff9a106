package cpu

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/asyncgen/asyncgen/device"
)

// BenchmarkGather tells what it takes to select something, on as many cores as there are: the best
// of many windows, in nanoseconds for an index.
func BenchmarkGather(b *testing.B) {
	rnd := rand.New(rand.NewPCG(1, 2))
	k := device.NewKernel("gather", device.Gather, nil, device.Float32, device.Float32, device.Int64)
	for _, s := range []struct {
		name               string
		count, rows, width int
		args               device.Args
	}{
		{"rows", 8192, 32000, 256, device.Args{Shape: device.Shape{8192, 256}, Ints: []int{32000, 256}, Strides: [4][]int{1: {0, 1}, 2: {1, 0}}}},
		{"one of each row", 8192, 1024, 1, device.Args{Shape: device.Shape{8192}, Ints: []int{1024, 1}, Strides: [4][]int{1: {1024}, 2: {1}}}},
		{"elements", 8192, 1 << 16, 1, device.Args{Shape: device.Shape{8192}, Ints: []int{1 << 16, 1}, Strides: [4][]int{1: {0}, 2: {1}}}},
	} {
		b.Run(fmt.Sprintf("%d %s", s.count, s.name), func(b *testing.B) {
			indices := make([]int64, s.count)
			for i := range indices {
				indices[i] = int64(rnd.IntN(s.rows))
			}
			size := s.rows * s.width
			if s.name == "one of each row" {
				size *= s.count
			}
			mem := device.NewAllocator(device.HostMemory, 1<<40) // with the pages that tensors have
			src, err := mem.Alloc(int64(4 * size))
			if err != nil {
				b.Fatal(err)
			}
			defer mem.Free(src)
			clear(device.Slice[float32](src, 0, size))
			c := device.Command{Kernel: k, N: s.count * s.width, Args: &s.args}
			c.Buf = [4]*device.Buffer{device.HostBuffer(int64(4 * s.count * s.width)), src, bufferOf(indices)}
			reportBest(b, &c, s.count, "ns/index")
		})
	}
}

// BenchmarkScatterAdd tells what the gradient of an embedding takes for an element that is added,
// on as many cores as there are: the best of many windows, in nanoseconds.
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
			reportBest(b, &c, count*width, "ns/element")
		})
	}
}

// reportBest reports the best time of c, of so many parts, for each.
func reportBest(b *testing.B, c *device.Command, parts int, unit string) {
	best := time.Duration(1 << 62)
	for b.Loop() {
		begin := time.Now()
		if err := Run(c); err != nil {
			b.Fatal(err)
		}
		best = min(best, time.Since(begin))
	}
	b.ReportMetric(float64(best.Nanoseconds())/float64(parts), unit)
	b.ReportMetric(0, "ns/op")
}
