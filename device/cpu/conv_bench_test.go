package cpu

import (
	"fmt"
	"math"
	"runtime"
	"testing"
	"time"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/cpu/internal/vec"
	"github.com/asyncgen/asyncgen/device/kernel"
)

// A layer is a convolution as residual networks have them.
type layer struct {
	n, c, o, groups, side, size, stride, pad int
}

var layers = []layer{
	{8, 3, 64, 1, 224, 7, 2, 3},
	{8, 64, 64, 1, 56, 3, 1, 1},
	{8, 64, 256, 1, 56, 1, 1, 0},
	{8, 128, 128, 1, 28, 3, 1, 1},
	{8, 256, 512, 1, 28, 1, 2, 0},
	{8, 256, 256, 1, 14, 3, 1, 1},
	{8, 512, 512, 1, 7, 3, 1, 1},
	{8, 144, 144, 144, 56, 3, 1, 1},
	{8, 144, 144, 144, 56, 3, 2, 1},
	{1, 64, 64, 1, 56, 3, 1, 1},
	{64, 1, 8, 1, 28, 5, 1, 2},
}

func (l layer) String() string {
	groups := ""
	if l.groups > 1 {
		groups = fmt.Sprintf(" in %d groups", l.groups)
	}
	return fmt.Sprintf("%dx%dx%dx%d to %d by %dx%d stride %d%s", l.n, l.c, l.side, l.side, l.o, l.size, l.size, l.stride, groups)
}

func (l layer) out() int { return (l.side+2*l.pad-l.size)/l.stride + 1 }

// flops is how many multiplications and additions it is.
func (l layer) flops() float64 {
	return 2 * float64(l.n*l.o*l.out()*l.out()) * float64(l.c/l.groups*l.size*l.size)
}

// commands are the convolution, and its gradients with respect to images and kernel.
func (l layer) commands() map[string]device.Command {
	k := device.NewKernel("conv", device.Conv, nil, device.Float32, device.Float32, device.Float32)
	images, results, kernels := l.n*l.c*l.side*l.side, l.n*l.o*l.out()*l.out(), l.o*l.c/l.groups*l.size*l.size
	in, out := l.c/l.groups, l.o/l.groups
	plane, place, area := l.side*l.side, l.out()*l.out(), l.size*l.size
	x := []int{l.c * plane, in * plane, plane, l.side, 1}
	w := []int{out * in * area, in * area, area, l.size, 1}
	y := []int{l.o * place, out * place, place, l.out(), 1}
	turn := func(s []int, order ...int) (t []int) {
		for _, i := range order {
			t = append(t, s[i])
		}
		return t
	}
	command := func(of device.Window, shape device.Shape, c int, a, b, o []int, sizes ...int) device.Command {
		cmd := device.Command{Kernel: k, N: sizes[0], Args: &device.Args{Shape: shape, Ints: []int{c}, Window: &[2]device.Window{of, of}}}
		cmd.Args.Strides = [device.MaxOperands][]int{o, a, b}
		for i, n := range sizes {
			cmd.Buf[i] = device.HostBuffer(int64(4 * n))
			data := device.Slice[float32](cmd.Buf[i], 0, n)
			for j := range data {
				data[j] = float32(j%7) - 3
			}
		}
		return cmd
	}
	return map[string]device.Command{
		"forward": command(device.Window{In: l.side, Out: l.out(), Size: l.size, Stride: l.stride, Pad: l.pad, Step: 1, Holes: 1},
			device.Shape{l.n, l.groups, out}, in, x, w, nil, results, images, kernels),
		"images": command(device.Window{In: l.out(), Out: l.side, Size: l.size, Stride: 1, Pad: -l.pad, Step: -1, Holes: l.stride},
			device.Shape{l.n, l.groups, in}, out, y, turn(w, 0, 2, 1, 3, 4), nil, images, results, kernels),
		"kernel": command(device.Window{In: l.side, Out: l.size, Size: l.out(), Stride: 1, Pad: l.pad, Step: l.stride, Holes: 1},
			device.Shape{in, l.groups, out}, l.n, turn(x, 2, 1, 0, 3, 4), turn(y, 1, 2, 0, 3, 4), []int{area, out * in * area, in * area}, kernels, images, results),
	}
}

// best is how long f takes at best.
func best(b *testing.B, f func() error) time.Duration {
	least := time.Duration(1 << 62)
	for begin := time.Now(); time.Since(begin) < 300*time.Millisecond; {
		start := time.Now()
		if err := f(); err != nil {
			b.Fatal(err)
		}
		least = min(least, time.Since(start))
	}
	return least
}

// BenchmarkConv tells what part of the processor's peak convolutions take, on as many cores as there are, at best.
func BenchmarkConv(b *testing.B) {
	for _, l := range layers {
		for name, c := range l.commands() {
			b.Run(name+"/"+l.String(), func(b *testing.B) {
				for b.Loop() {
					took := best(b, func() error { return Run(&c) })
					perSecond := l.flops() / took.Seconds()
					b.ReportMetric(took.Seconds()*1e3, "ms")
					b.ReportMetric(perSecond/1e9, "GFLOP/s")
					if operations := vec.Peak(20_000); operations > 0 {
						peak := best(b, func() error { vec.Peak(20_000); return nil })
						b.ReportMetric(100*perSecond*peak.Seconds()/float64(operations*runtime.GOMAXPROCS(0)), "%peak")
					}
				}
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

// BenchmarkPool tells how fast planes are read.
func BenchmarkPool(b *testing.B) {
	for _, s := range []struct{ planes, side, size, stride, pad int }{{512, 112, 3, 2, 1}, {512, 56, 2, 2, 0}, {4096, 7, 7, 7, 0}} {
		w := device.Window{In: s.side, Out: (s.side+2*s.pad-s.size)/s.stride + 1, Size: s.size, Stride: s.stride, Pad: s.pad, Step: 1, Holes: 1}
		for name, k := range map[string]*device.Kernel{
			"max":    device.NewKernel("max", device.Pool, kernel.ReduceMax, device.Float32, device.Float32),
			"sum":    device.NewKernel("sum", device.Pool, kernel.ReduceSum, device.Float32, device.Float32),
			"argmax": device.NewKernel("argmax", device.ArgPool, kernel.ReduceMax, device.Int64, device.Float32),
		} {
			b.Run(fmt.Sprintf("%s/%dx%dx%d by %dx%d stride %d", name, s.planes, s.side, s.side, s.size, s.size, s.stride), func(b *testing.B) {
				c := device.Command{Kernel: k, N: s.planes * w.Out * w.Out, Args: &device.Args{Shape: device.Shape{s.planes}, Window: &[2]device.Window{w, w}}}
				c.Buf = [4]*device.Buffer{device.HostBuffer(int64(8 * c.N)), device.HostBuffer(int64(4 * s.planes * s.side * s.side))}
				for i, x := 0, device.Slice[float32](c.Buf[1], 0, s.planes*s.side*s.side); i < len(x); i++ {
					x[i] = float32(math.Sin(float64(i * i))) // nobody can foretell which is greater
				}
				for b.Loop() {
					took := best(b, func() error { return Run(&c) })
					b.ReportMetric(took.Seconds()*1e3, "ms")
					b.ReportMetric(float64(4*s.planes*s.side*s.side)/took.Seconds()/1e9, "GB/s")
				}
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}
