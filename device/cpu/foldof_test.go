package cpu

import (
	"fmt"
	"testing"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/kernel"
)

// The fold of an expression has the bits of the expression's elements in memory, folded, for all
// lengths up to some blocks, on views that are used where they lie, repeated or gathered.
func TestFoldOf(t *testing.T) { everySplit(t, testFoldOf) }

func testFoldOf(t *testing.T) {
	rnd := newRand(t)
	f32 := device.Float32
	x, y, z := kernel.Arg(0, f32), kernel.Arg(1, f32), kernel.Arg(2, f32)
	e := kernel.Add(kernel.Mul(x, kernel.Sub(y, kernel.Const(2, f32))), z)
	fused := device.NewKernel("fold of", device.Reduce, kernel.FoldOf{By: kernel.ReduceSum, Expr: e}, f32, f32, f32, f32)
	each := device.NewKernel("each", device.Map, e, f32, f32, f32, f32)
	sum := device.NewKernel("sum", device.Reduce, kernel.ReduceSum, f32, f32)
	for _, n := range []int{1, 2, 63, 64, 65, 511, 513, 1024, 1025, 3000, kernel.Block, kernel.Block + 1, 3*kernel.Block + 7} {
		for _, rows := range []int{1, 5} {
			shape := device.Shape{rows, n}
			for name, strides := range map[string][]int{"contiguous": nil, "column": {1, 0}, "row": {0, 1}, "scalar": {0, 0}, "transposed": {1, rows}} {
				c := device.Command{Kernel: each, N: rows * n, Args: &device.Args{Shape: shape, Kept: 1}}
				c.Args.Strides[2] = strides
				for i := range c.Buf {
					c.Buf[i] = randomBuffer(rnd, f32, rows*n)
				}
				folded := device.Command{Kernel: sum, N: rows, Args: &device.Args{Shape: shape, Kept: 1}, Buf: [4]*device.Buffer{device.HostBuffer(int64(4 * rows)), c.Buf[0]}}
				for _, c := range []device.Command{c, folded} {
					if err := Run(&c); err != nil {
						t.Fatal(err)
					}
				}
				c.Kernel, c.N, c.Buf[0] = fused, rows, device.HostBuffer(int64(4*rows))
				if err := Run(&c); err != nil {
					t.Fatal(err)
				}
				for i := range rows {
					got, want := device.Slice[float32](c.Buf[0], i, 1)[0], device.Slice[float32](folded.Buf[0], i, 1)[0]
					if !sameBits(f32, kernel.Bits(got), kernel.Bits(want)) {
						t.Errorf("%s, %d rows of %d: row %d is %v, want %v", name, rows, n, i, got, want)
					}
				}
			}
		}
	}
}

// BenchmarkFoldOf compares the inner product of two vectors in one command with that in two, in one
// process and in turn.
func BenchmarkFoldOf(b *testing.B) {
	f32 := device.Float32
	product := kernel.Mul(kernel.Arg(0, f32), kernel.Arg(1, f32))
	fused := device.NewKernel("dot", device.Reduce, kernel.FoldOf{By: kernel.ReduceSum, Expr: product}, f32, f32, f32)
	sum := device.NewKernel("sum", device.Reduce, kernel.ReduceSum, f32, f32)
	for _, n := range []int{16, 1 << 10, 1 << 14, 1 << 17, 1 << 20, 1 << 24} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			one := device.HostBuffer(4)
			all := func() *device.Buffer { return device.HostBuffer(int64(4 * n)) }
			c := device.Command{Kernel: fused, N: 1, Args: &device.Args{Shape: device.Shape{n}}, Buf: [4]*device.Buffer{one, all(), all()}}
			mul := device.Command{Kernel: f32Map("mul", product, 2), N: n, Buf: [4]*device.Buffer{all(), c.Buf[1], c.Buf[2]}}
			add := device.Command{Kernel: sum, N: 1, Args: c.Args, Buf: [4]*device.Buffer{one, mul.Buf[0]}}
			var got, want float64
			for b.Loop() {
				got, want = rates(func() { Run(&c) }, func() { Run(&mul); Run(&add) }, n, n)
			}
			b.ReportMetric(1e9/got*float64(n), "ns/dot")
			b.ReportMetric(got/want, "x")
			b.ReportMetric(0, "ns/op")
		})
	}
}
