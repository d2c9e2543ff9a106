package cpu

import (
	"fmt"
	"testing"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/kernel"
)

var kernelsForBench = map[string]*device.Kernel{}

func f32Map(name string, e *kernel.Expr, inputs int) *device.Kernel {
	if k := kernelsForBench[name]; k != nil {
		return k
	}
	in := []device.DType{device.Float32, device.Float32, device.Float32}[:inputs]
	k := device.NewKernel(name, device.Map, e, device.Float32, in...)
	kernelsForBench[name] = k
	return k
}

func benchMap(b *testing.B, k *device.Kernel, n int) {
	c := device.Command{Kernel: k, N: n}
	for i := range len(k.In) + 1 {
		c.Buf[i] = device.HostBuffer(int64(4 * n))
	}
	c.Imm[0] = kernel.Bits(float32(1))
	cmds := []device.Command{c}
	dev := New()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := dev.Submit(cmds); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(4*n*(len(k.In)+1))*float64(b.N)/b.Elapsed().Seconds()/1e9, "GB/s")
}

func BenchmarkMap(b *testing.B) {
	x, y, z := kernel.Arg(0, device.Float32), kernel.Arg(1, device.Float32), kernel.Arg(2, device.Float32)
	for _, test := range []struct {
		name   string
		e      *kernel.Expr
		inputs int
	}{
		{"addScalar", kernel.Add(x, kernel.Imm(0, device.Float32)), 1},
		{"add", kernel.Add(x, y), 2},
		{"muladd", kernel.Add(kernel.Mul(x, y), z), 3},
		{"relu", kernel.Where(kernel.Le(x, kernel.Const(0, device.Float32)), kernel.Const(0, device.Float32), x), 1},
		{"exp", kernel.Exp(x), 1},
	} {
		for _, n := range []int{2, 1 << 10, 1 << 18} {
			b.Run(fmt.Sprintf("%s/%d", test.name, n), func(b *testing.B) { benchMap(b, f32Map(test.name, test.e, test.inputs), n) })
		}
	}
}

func BenchmarkMatMul(b *testing.B) {
	k := device.NewKernel("matmul", device.MatMul, nil, device.Float32, device.Float32, device.Float32)
	for _, s := range [][3]int{{4, 4, 4}, {64, 64, 64}, {512, 512, 512}, {1, 512, 2048}, {1024, 1, 512}, {2, 512, 512}, {1024, 10, 512}, {512, 3, 512}} {
		m, n, depth := s[0], s[1], s[2]
		b.Run(fmt.Sprintf("%dx%dx%d", m, n, depth), func(b *testing.B) {
			c := device.Command{Kernel: k, N: m * n, Args: &device.Args{Ints: s[:]}}
			c.Buf[0], c.Buf[1], c.Buf[2] = device.HostBuffer(int64(4*m*n)), device.HostBuffer(int64(4*m*depth)), device.HostBuffer(int64(4*n*depth))
			cmds := []device.Command{c}
			dev := New()
			b.ReportAllocs()
			for b.Loop() {
				if _, err := dev.Submit(cmds); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(2*float64(m*n*depth)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
		})
	}
}

func BenchmarkReduce(b *testing.B) {
	k := device.NewKernel("sum", device.Reduce, kernel.ReduceSum, device.Float32, device.Float32)
	for _, test := range []struct {
		name    string
		shape   device.Shape
		kept    int
		strides []int
	}{
		{"all/1048576", device.Shape{1 << 20}, 0, nil},
		{"all/4", device.Shape{4}, 0, nil},
		{"rows/1024x1024", device.Shape{1024, 1024}, 1, nil},
		{"rows/1024x10", device.Shape{1024, 10}, 1, nil},
		{"columns/1024x1024", device.Shape{1024, 1024}, 1, []int{1, 1024}},
	} {
		b.Run(test.name, func(b *testing.B) {
			n := test.shape.Size()
			c := device.Command{Kernel: k, N: test.shape[:test.kept].Size(), Args: &device.Args{Shape: test.shape, Kept: test.kept}}
			c.Args.Strides[1] = test.strides
			c.Buf[0], c.Buf[1] = device.HostBuffer(int64(4*c.N)), device.HostBuffer(int64(4*n))
			cmds := []device.Command{c}
			dev := New()
			b.ReportAllocs()
			for b.Loop() {
				if _, err := dev.Submit(cmds); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(4*float64(n)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GB/s")
		})
	}
}
