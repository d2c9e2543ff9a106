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
		for _, n := range []int{2, 1 << 10, 1 << 14, 1 << 18, 1 << 20, 1 << 24} {
			b.Run(fmt.Sprintf("%s/%d", test.name, n), func(b *testing.B) { benchMap(b, f32Map(test.name, test.e, test.inputs), n) })
		}
	}
}

// BenchmarkMatMul tells what part of the processor's peak products take, on as many cores as there
// are: see -cpu. Both are measured in turn, and the best of many windows counts.
func BenchmarkMatMul(b *testing.B) {
	for _, dt := range []device.DType{device.Float32, device.Float64} {
		for _, s := range [][3]int{{4, 4, 4}, {16, 16, 16}, {64, 64, 64}, {128, 128, 128}, {256, 256, 256}, {512, 512, 512}, {1000, 1000, 1000}, {1024, 1024, 1024}, {2048, 2048, 2048},
			{1024, 2048, 512}, {1024, 512, 2048}, {2048, 512, 1024}, {2, 1024, 512}, {8, 1024, 512}, {16, 2048, 512}, {1024, 2, 512}, {1024, 8, 512}, {1024, 10, 512}} {
			b.Run(fmt.Sprintf("%v/%dx%dx%d", dt, s[0], s[1], s[2]), func(b *testing.B) {
				perSecond, peak := benchMatMul(b, dt, s[0], s[1], s[2])
				b.ReportMetric(perSecond/1e9, "GFLOP/s")
				if peak > 0 {
					b.ReportMetric(100*perSecond/peak/float64(runtime.GOMAXPROCS(0)), "%peak")
				}
			})
		}
	}
}

// BenchmarkBlockSizes tells how fast products are in blocks of other sizes than those that are chosen, which come
// first.
func BenchmarkBlockSizes(b *testing.B) {
	chosen := sizes
	defer func() { sizes = chosen }()
	all := []blockSizes{chosen}
	for _, depth := range []int{1 << 10, 1536, 2 << 10, 3 << 10, mostDepthBytes} {
		for _, a := range []int{192 << 10, 384 << 10, 768 << 10, 1 << 20} {
			all = append(all, blockSizes{depth, a, chosen.b})
		}
	}
	all = append(all, blockSizes{chosen.depth, chosen.a, 2 << 20}, blockSizes{chosen.depth, chosen.a, 32 << 20})
	for _, s := range all {
		for _, n := range []int{512, 1024, 2048} {
			b.Run(fmt.Sprintf("depth=%d/a=%dK/b=%dM/%d", s.depth, s.a>>10, s.b>>20, n), func(b *testing.B) {
				sizes = s
				perSecond, _ := benchMatMul(b, device.Float32, n, n, n)
				b.ReportMetric(perSecond/1e9, "GFLOP/s")
			})
		}
	}
}

// BenchmarkMatMulOfVectors tells how fast the matrix is read.
func BenchmarkMatMulOfVectors(b *testing.B) {
	for _, dt := range []device.DType{device.Float32, device.Float64} {
		for _, s := range [][3]int{{1, 64, 64}, {1, 1000, 100}, {1, 512, 2048}, {1, 4096, 4096}, {64, 1, 64}, {1000, 1, 100}, {1024, 1, 512}, {1024, 1, 1024}, {4096, 1, 4096}} {
			b.Run(fmt.Sprintf("%v/%dx%dx%d", dt, s[0], s[1], s[2]), func(b *testing.B) {
				perSecond, _ := benchMatMul(b, dt, s[0], s[1], s[2])
				b.ReportMetric(perSecond/2*float64(dt.Size())/1e9, "GB/s")
			})
		}
	}
}

// benchMatMul returns how many multiplications and additions a second it made at best, and how many
// one core makes in registers, or 0 if nobody knows.
func benchMatMul(b *testing.B, dt device.DType, m, n, depth int) (perSecond, peak float64) {
	dev := New()
	memory := device.NewAllocator(device.HostMemory, 1<<40)
	c := device.Command{Kernel: productKernels[dt], N: m * n, Args: &device.Args{Ints: []int{m, n, depth}}}
	for i, length := range []int{m * n, m * depth, n * depth} {
		buf, err := memory.Alloc(int64(dt.Size() * length))
		if err != nil {
			b.Fatal(err)
		}
		defer memory.Free(buf)
		clear(slice[byte](buf.Ptr, dt.Size()*length))
		c.Buf[i] = buf
	}
	cmds := []device.Command{c}
	operations := 2 * m * n * depth
	calls := max(1, 1_000_000/operations) // a window of 10 µs or more
	for b.Loop() {
		begin := time.Now()
		for range calls {
			if _, err := dev.Submit(cmds); err != nil {
				b.Fatal(err)
			}
		}
		perSecond = max(perSecond, float64(operations*calls)/time.Since(begin).Seconds())
		begin = time.Now()
		inRegisters := vec.Peak(2000)
		peak = max(peak, float64(inRegisters)/time.Since(begin).Seconds()*4/float64(dt.Size()))
	}
	b.ReportMetric(0, "ns/op")
	return perSecond, peak
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
		{"columns/64x10000", device.Shape{10000, 64}, 1, []int{1, 10000}},
		{"columns/10000x64", device.Shape{64, 10000}, 1, []int{1, 64}},
		{"middle/4x256x1024", device.Shape{4, 1024, 256}, 2, []int{256 << 10, 1, 1024}},
		{"middle/64x32x512", device.Shape{64, 512, 32}, 2, []int{32 << 9, 1, 512}},
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

// BenchmarkOfAdd compares what commands move a second with what the bare loop of add does on
// operands of the same size, in the same process and in turn, the best of many windows of each.
// That loop has the bandwidth of triad: see the benchmark of package vec.
func BenchmarkOfAdd(b *testing.B) {
	x, y := kernel.Arg(0, device.Float32), kernel.Arg(1, device.Float32)
	zero := kernel.Const(0, device.Float32)
	sum := device.NewKernel("sum", device.Reduce, kernel.ReduceSum, device.Float32, device.Float32)
	argmax := device.NewKernel("argmax", device.ArgReduce, kernel.ReduceMax, device.Int64, device.Float32)
	for _, side := range []int{32, 256, 1024, 2048} {
		n := side * side
		matrix := device.Shape{side, side}
		for _, test := range []struct {
			name string
			c    device.Command
			args *device.Args
		}{
			{"add", device.Command{Kernel: f32Map("add", kernel.Add(x, y), 2), N: n}, nil},
			{"addScalar", device.Command{Kernel: f32Map("addScalar", kernel.Add(x, kernel.Imm(0, device.Float32)), 1), N: n}, nil},
			{"addRow", device.Command{Kernel: f32Map("add", kernel.Add(x, y), 2), N: n}, &device.Args{Shape: matrix, Strides: [device.MaxOperands][]int{2: {0, 1}}}},
			{"subColumn", device.Command{Kernel: f32Map("sub", kernel.Sub(x, y), 2), N: n}, &device.Args{Shape: matrix, Strides: [device.MaxOperands][]int{2: {1, 0}}}},
			{"relu", device.Command{Kernel: f32Map("relu", kernel.Where(kernel.Le(x, zero), zero, x), 1), N: n}, nil},
			{"sum", device.Command{Kernel: sum, N: 1}, &device.Args{Shape: device.Shape{n}}},
			{"sumOfRows", device.Command{Kernel: sum, N: side}, &device.Args{Shape: matrix, Kept: 1}},
			{"sumOfColumns", device.Command{Kernel: sum, N: side}, &device.Args{Shape: matrix, Kept: 1, Strides: [device.MaxOperands][]int{1: {1, side}}}},
			{"argmaxOfRows", device.Command{Kernel: argmax, N: side}, &device.Args{Shape: matrix, Kept: 1}},
		} {
			b.Run(fmt.Sprintf("%s/%d", test.name, n), func(b *testing.B) {
				c := test.c
				c.Args = test.args
				bytes := 0
				for i := range len(c.Kernel.In) + 1 {
					c.Buf[i] = device.HostBuffer(int64(8 * n))
					if i == 0 {
						bytes += c.N * c.Kernel.Out.Size()
					} else if c.Args == nil || c.Args.Strides[i] == nil || c.Kernel.Code == device.Reduce {
						bytes += 4 * n
					}
				}
				dst, loop := device.HostBuffer(int64(4*n)), vec.PrimLoop(kernel.PrimAdd, device.Float32, vec.NoScalar)
				other := device.HostBuffer(int64(4 * n))
				add := func() { loop(dst.Ptr, c.Buf[1].Ptr, other.Ptr, nil, 0, n) }
				var got, want float64
				for b.Loop() {
					got, want = rates(func() {
						if err := Run(&c); err != nil {
							b.Fatal(err)
						}
					}, add, bytes, 12*n)
				}
				b.ReportMetric(got/1e9, "GB/s")
				b.ReportMetric(100*got/want, "%add")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

// rates returns how many bytes a second f and g move.
func rates(f, g func(), fBytes, gBytes int) (float64, float64) {
	best := [2]time.Duration{math.MaxInt64, math.MaxInt64}
	calls := max(1, (100<<10)/max(fBytes, gBytes))
	begin := time.Now()
	for round := 0; round < 40 || time.Since(begin) < 200*time.Millisecond; round++ {
		for i, call := range []func(){f, g} {
			start := time.Now()
			for range calls {
				call()
			}
			best[i] = min(best[i], time.Since(start))
		}
	}
	return float64(fBytes*calls) / best[0].Seconds(), float64(gBytes*calls) / best[1].Seconds()
}

// BenchmarkTiny tells what a command of few elements takes from Submit to its end: the best of many
// windows, in nanoseconds.
func BenchmarkTiny(b *testing.B) {
	x, y, z := kernel.Arg(0, device.Float32), kernel.Arg(1, device.Float32), kernel.Arg(2, device.Float32)
	zero := kernel.Const(0, device.Float32)
	sum := device.NewKernel("sum", device.Reduce, kernel.ReduceSum, device.Float32, device.Float32)
	dot := device.NewKernel("dot", device.Reduce, kernel.FoldOf{By: kernel.ReduceSum, Expr: kernel.Mul(x, y)}, device.Float32, device.Float32, device.Float32)
	fill := device.NewKernel("fill", device.Fill, nil, device.Float32)
	for _, test := range []struct {
		name string
		k    *device.Kernel
	}{
		{"addScalar", f32Map("addScalar", kernel.Add(x, kernel.Imm(0, device.Float32)), 1)},
		{"add", f32Map("add", kernel.Add(x, y), 2)},
		{"addRow", f32Map("add", kernel.Add(x, y), 2)},
		{"exp", f32Map("exp", kernel.Exp(x), 1)},
		{"relu", f32Map("relu", kernel.Where(kernel.Le(x, zero), zero, x), 1)},
		{"muladd", f32Map("muladd", kernel.Add(kernel.Mul(x, y), z), 3)},
		{"addColumn", f32Map("add", kernel.Add(x, y), 2)},
		{"addOne", f32Map("add", kernel.Add(x, y), 2)},
		{"addMatrix", f32Map("add", kernel.Add(x, y), 2)},
		{"sum", sum},
		{"sumColumns", sum},
		{"dot", dot},
		{"fill", fill},
	} {
		for _, n := range []int{2, 16} {
			b.Run(fmt.Sprintf("%s/%d", test.name, n), func(b *testing.B) {
				c := device.Command{Kernel: test.k, N: n, Imm: [2]uint64{kernel.Bits(float32(1))}}
				for i := range len(test.k.In) + 1 {
					c.Buf[i] = device.HostBuffer(int64(4 * n))
				}
				switch test.name {
				case "sum", "dot":
					c.N, c.Args = 1, &device.Args{Shape: device.Shape{n}}
				case "sumColumns":
					c.N, c.Args = n/2, &device.Args{Shape: device.Shape{n / 2, 2}, Kept: 1, Strides: [device.MaxOperands][]int{1: {1, n / 2}}}
				case "addColumn":
					c.Args = &device.Args{Shape: device.Shape{2, n / 2}, Strides: [device.MaxOperands][]int{2: {1, 0}}}
				case "addOne":
					c.Args = &device.Args{Shape: device.Shape{n}, Strides: [device.MaxOperands][]int{2: {0}}}
				case "addMatrix":
					c.Args = &device.Args{Shape: device.Shape{2, n / 2}, Strides: [device.MaxOperands][]int{2: {1, 2}}}
				case "addRow":
					c.Args = &device.Args{Shape: device.Shape{2, n / 2}, Strides: [device.MaxOperands][]int{2: {0, 1}}}
				}
				var dev device.Backend = New()
				cmds := []device.Command{c}
				best := time.Duration(math.MaxInt64)
				const calls = 200
				for range b.N {
					begin := time.Now()
					for range calls {
						if _, err := dev.Submit(cmds); err != nil {
							b.Fatal(err)
						}
					}
					best = min(best, time.Since(begin))
				}
				b.ReportMetric(float64(best.Nanoseconds())/calls, "ns/command")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

// chains are expressions of five operations.
func chains() map[string]*kernel.Expr {
	x, y, z := kernel.Arg(0, device.Float32), kernel.Arg(1, device.Float32), kernel.Arg(2, device.Float32)
	c := func(v float64) *kernel.Expr { return kernel.Const(v, device.Float32) }
	return map[string]*kernel.Expr{
		"arithmetic": kernel.Max(kernel.Sub(kernel.Mul(kernel.Add(kernel.Mul(x, y), z), c(0.5)), x), c(0)),
		"silu":       kernel.Mul(x, kernel.Div(c(1), kernel.Add(c(1), kernel.Exp(kernel.Neg(x))))),
		"scalars":    kernel.Abs(kernel.Sub(c(1), kernel.Mul(kernel.Add(kernel.Neg(x), c(3)), c(0.25)))),
	}
}

// BenchmarkFused compares an expression of several operations with a command for each of them, in
// one process and in turn.
func BenchmarkFused(b *testing.B) {
	for _, name := range []string{"arithmetic", "scalars", "silu"} {
		e := chains()[name]
		for _, n := range []int{1 << 14, 1 << 17, 1 << 20, 1 << 22} {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				fused := device.Command{Kernel: device.NewKernel(name, device.Map, e, device.Float32, device.Float32, device.Float32, device.Float32), N: n}
				for i := range fused.Buf {
					fused.Buf[i] = device.HostBuffer(int64(4 * n))
				}
				alone, _ := unfused(e, &fused)
				var got, want float64
				dev := New()
				run := func(cmds []device.Command) func() {
					return func() {
						if _, err := dev.Submit(cmds); err != nil {
							b.Fatal(err)
						}
					}
				}
				for b.Loop() {
					got, want = rates(run([]device.Command{fused}), run(alone), n, n)
				}
				b.ReportMetric(1e9/got, "ns/element")
				b.ReportMetric(got/want, "x")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}
