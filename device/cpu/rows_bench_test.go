package cpu

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/kernel"
)

// BenchmarkRowsOf tells what commands on rows take for an element: the best of many windows, in nanoseconds.
func BenchmarkRowsOf(b *testing.B) {
	rnd := rand.New(rand.NewPCG(1, 2))
	f32 := device.Float32
	for _, shape := range []device.Shape{{1024, 1024}, {4096, 64}, {1024, 10}, {16, 1 << 16}} {
		rows, n := shape[0], shape[1]
		x, gain, bias := device.HostBuffer(int64(4*rows*n)), device.HostBuffer(int64(4*n)), device.HostBuffer(int64(4*n))
		for _, buf := range []*device.Buffer{x, gain, bias} {
			for i := range int(buf.Bytes) / 4 {
				device.Slice[float32](buf, 0, i+1)[i] = float32(rnd.NormFloat64())
			}
		}
		args := func(ints ...int) *device.Args { return &device.Args{Shape: shape, Kept: 1, Ints: ints} }
		out := device.HostBuffer(int64(8 * rows * n))
		most := min(10, n)
		for _, test := range []struct {
			name string
			c    device.Command
		}{
			{"layernorm", device.Command{Kernel: device.NewKernel("layernorm", device.Rows, kernel.LayerNorm, f32, f32, f32, f32), N: rows * n, Args: args(), Buf: [4]*device.Buffer{out, x, gain, bias}}},
			{"rmsnorm", device.Command{Kernel: device.NewKernel("rmsnorm", device.Rows, kernel.RMSNorm, f32, f32), N: rows * n, Args: args(), Buf: [4]*device.Buffer{out, x}}},
			{"softmax", device.Command{Kernel: device.NewKernel("softmax", device.Rows, kernel.Softmax, f32, f32), N: rows * n, Args: args(), Buf: [4]*device.Buffer{out, x}}},
			{"first10", device.Command{Kernel: device.NewKernel("argsort", device.ArgSort, nil, device.Int64, f32), N: rows * most, Args: args(most, 1), Buf: [4]*device.Buffer{out, x}}},
			{"first100", device.Command{Kernel: device.NewKernel("argsort", device.ArgSort, nil, device.Int64, f32), N: rows * min(100, n), Args: args(min(100, n), 1), Buf: [4]*device.Buffer{out, x}}},
		} {
			test.c.Imm[0] = kernel.Bits(float32(1e-5))
			b.Run(fmt.Sprintf("%s/%dx%d", test.name, rows, n), func(b *testing.B) {
				best := time.Duration(1 << 62)
				for b.Loop() {
					begin := time.Now()
					if err := Run(&test.c); err != nil {
						b.Fatal(err)
					}
					best = min(best, time.Since(begin))
				}
				b.ReportMetric(float64(best.Nanoseconds())/float64(rows*n), "ns/element")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}
