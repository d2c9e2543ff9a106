package cpu

import (
	"fmt"
	"runtime"
	"slices"
	"testing"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/cpu/internal/vec"
	"github.com/asyncgen/asyncgen/device/kernel"
)

// epilogues are bodies of MatMul kernels.
func epilogues(dt device.DType) map[string]*kernel.Expr {
	x, y := kernel.Arg(0, dt), kernel.Arg(1, dt)
	return map[string]*kernel.Expr{
		"bias":             kernel.Add(x, y),
		"bias and relu":    kernel.Max(kernel.Add(x, y), kernel.Const(0, dt)),
		"scaled":           kernel.Mul(kernel.Imm(1, dt), x),
		"bias and tanh":    kernel.Tanh(kernel.Add(kernel.Mul(x, kernel.Imm(0, dt)), y)),
		"vector only":      y,
		"twice, no vector": kernel.Add(x, x),
	}
}

// TestEpilogues: a product and what becomes of it in one command have the bits of two, by every
// instruction set, on any number of workers.
func TestEpilogues(t *testing.T) {
	everyISA(t, func(t *testing.T) {
		testEpilogues[float32](t)
		testEpilogues[float64](t)
	})
}

func testEpilogues[T float32 | float64](t *testing.T) {
	defer func(g, procs int) { grain = g; runtime.GOMAXPROCS(procs) }(grain, runtime.GOMAXPROCS(0))
	rnd, dt := newRand(t), device.DTypeOf[T]()
	for name, e := range epilogues(dt) {
		for round := range 5 {
			m, n, k := 1+rnd.IntN(40), 1+rnd.IntN(70), rnd.IntN(40)
			if round == 0 && !raceEnabled { // cut in many ways
				m, n, k = 1+rnd.IntN(300), 1+rnd.IntN(600), 1+rnd.IntN(800)
			}
			x := newProduct[T](rnd, m, n, max(k, 1))
			x.k, x.Args.Ints[2] = k, k
			want := x.compute(t)
			step := []int{1, 1, 0, 3}[rnd.IntN(4)]
			vector := randomBuffer(rnd, dt, 2+n*max(step, 1))
			x.Imm = [2]uint64{kernel.Bits(T(0.5)), kernel.Bits(T(-3))}
			plain, in := slices.Clone(want), []device.DType{dt, dt, dt}[:1+max(1, e.Args())]
			after := device.Command{Kernel: device.NewKernel(name, device.Map, e, dt, in[1:]...), N: m * n, Imm: x.Imm, Args: &device.Args{Shape: device.Shape{m, n}}}
			after.Args.Strides[2] = []int{0, step}
			after.Off[2] = 2
			for i, b := range []*device.Buffer{hostOf(want), hostOf(want), vector}[:len(in)] {
				after.Buf[i] = b
			}
			if err := Run(&after); err != nil {
				t.Fatal(err)
			}
			want = device.Slice[T](after.Buf[0], 0, m*n)
			for range 20 {
				i := rnd.IntN(m * n)
				args := []uint64{kernel.Bits(plain[i]), load(vector, dt, 2+i%n*step)}
				if alone := kernel.Value[T](e.Eval(args, x.Imm[:])); !sameValue(want[i], alone) {
					t.Fatalf("%s: a map gives %v, alone %v", name, want[i], alone)
				}
			}
			x.Kernel = device.NewKernel(name, device.MatMul, e, dt, in...)
			if len(in) == 3 {
				x.Buf[3], x.Off[3] = vector, 2
				if step != 1 || rnd.IntN(2) == 0 {
					x.Args.Strides[3] = []int{step}
				}
			}
			for _, workers := range []int{1, 2, 7} {
				runtime.GOMAXPROCS(workers)
				for _, grain = range []int{64, 1 << 18} {
					x.same(t, fmt.Sprintf("%s, step %d, %d workers", name, step, workers), x.compute(t), want)
				}
			}
		}
	}
}

// hostOf returns x in memory of its own.
func hostOf[T float32 | float64](x []T) *device.Buffer {
	b := device.HostBuffer(int64(len(x) * device.DTypeOf[T]().Size()))
	copy(device.Slice[T](b, 0, len(x)), x)
	return b
}

// TestEpilogueOutside: a vector that is not in its buffer is found before anything is written.
func TestEpilogueOutside(t *testing.T) {
	x := newProduct[float32](newRand(t), 300, 200, 100)
	x.Kernel = device.NewKernel("bias", device.MatMul, epilogues(device.Float32)["bias"], device.Float32, device.Float32, device.Float32, device.Float32)
	x.Buf[0], x.Buf[3] = device.HostBuffer(4*300*200), device.HostBuffer(4*200)
	x.Off[3] = 1
	func() {
		defer func() {
			if recover() == nil {
				t.Error("no panic")
			}
		}()
		if err := Run(&x.Command); err != nil {
			t.Error(err)
		}
	}()
	for i, v := range device.Slice[float32](x.Buf[0], 0, 300*200) {
		if v != 0 {
			t.Fatalf("element %d is written", i)
		}
	}
}

// TestNoEpilogue has kernels that can't be compiled.
func TestNoEpilogue(t *testing.T) {
	f := device.Float32
	for _, k := range []*device.Kernel{
		device.NewKernel("reducer", device.MatMul, kernel.ReduceSum, f, f, f),
		device.NewKernel("other type", device.MatMul, kernel.Gt(kernel.Arg(0, f), kernel.Arg(1, f)), f, f, f, f),
		device.NewKernel("no vector", device.MatMul, kernel.Add(kernel.Arg(0, f), kernel.Arg(1, f)), f, f, f),
		device.NewKernel("vector for nothing", device.MatMul, nil, f, f, f, f),
		device.NewKernel("one operand", device.MatMul, kernel.Arg(0, f), f, f),
	} {
		if _, err := newMatMul(k); err == nil {
			t.Errorf("%s is compiled, by %v", k.Name, vec.Current())
		}
	}
}

// BenchmarkEpilogue compares a product with bias and ReLU in one command with three commands, in
// one process and in turn: the best of many windows.
func BenchmarkEpilogue(b *testing.B) {
	f := device.Float32
	x, y := kernel.Arg(0, f), kernel.Arg(1, f)
	fused := device.NewKernel("fused", device.MatMul, epilogues(f)["bias and relu"], f, f, f, f)
	add, relu := f32Map("add", kernel.Add(x, y), 2), f32Map("max", kernel.Max(x, kernel.Const(0, f)), 1)
	for _, s := range [][3]int{{8, 16, 16}, {64, 64, 64}, {1024, 512, 64}, {1024, 2048, 512}} {
		m, n, k := s[0], s[1], s[2]
		b.Run(fmt.Sprintf("%dx%dx%d", m, n, k), func(b *testing.B) {
			one := device.Command{Kernel: fused, N: m * n, Args: &device.Args{Ints: s[:]}}
			for i, length := range []int{m * n, m * k, k * n, n} {
				one.Buf[i] = device.HostBuffer(int64(4 * length))
			}
			product, sum, after := one, one, one
			product.Kernel, product.Buf[3] = productKernels[f], nil
			out, bias := one.Buf[0], one.Buf[3]
			sum.Kernel, sum.Buf = add, [device.MaxOperands]*device.Buffer{out, out, bias}
			sum.Args = &device.Args{Shape: device.Shape{m, n}, Strides: [device.MaxOperands][]int{2: {0, 1}}}
			after.Kernel, after.Args, after.Buf = relu, nil, [device.MaxOperands]*device.Buffer{out, out}
			run := func(cmds ...device.Command) func() {
				return func() {
					for i := range cmds {
						if err := Run(&cmds[i]); err != nil {
							b.Fatal(err)
						}
					}
				}
			}
			var got, want float64
			for b.Loop() {
				got, want = rates(run(one), run(product, sum, after), m*n, m*n)
			}
			b.ReportMetric(1e9/got*float64(m*n), "ns/fused")
			b.ReportMetric(got/want, "x")
			b.ReportMetric(0, "ns/op")
		})
	}
}
