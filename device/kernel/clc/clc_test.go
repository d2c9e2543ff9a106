package clc_test

import (
	"context"
	"flag"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/devicetest"
	"github.com/asyncgen/asyncgen/device/kernel"
	_ "github.com/asyncgen/asyncgen/device/opencl"
)

var seed = flag.Uint64("seed", 0, "of random numbers; 0: another one each time")

// openCL returns an OpenCL device of any kind, or skips the test. Package device/opencl tests
// everything that a backend promises.
func openCL(t *testing.T) device.Backend {
	t.Helper()
	t.Setenv("ASYNCGEN_OPENCL_CPU", "1")
	d, err := device.Open("opencl:0")
	if err != nil {
		devicetest.NoOpenCL(t, err)
	}
	return d.Backend()
}

// run runs a command that must not fail.
func run(t *testing.T, b device.Backend, c device.Command) {
	t.Helper()
	ticket, err := b.Submit([]device.Command{c})
	if err == nil {
		err = b.Wait(context.Background(), ticket)
	}
	if err == nil {
		err = b.Failure(ticket)
	}
	if err != nil {
		t.Fatalf("%s: %v", c.Kernel.Name, err)
	}
}

// put returns device memory with these contents, until the test ends.
func put[T device.Element](t *testing.T, b device.Backend, values []T) *device.Buffer {
	t.Helper()
	dt := device.DTypeOf[T]()
	host := device.HostBuffer(int64(len(values) * dt.Size()))
	copy(device.Slice[T](host, 0, len(values)), values)
	buf, err := b.Alloc(host.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Free(buf) })
	run(t, b, device.Command{Kernel: device.NewKernel("upload", device.Upload, nil, dt, dt), N: len(values), Buf: [4]*device.Buffer{buf, host}})
	return buf
}

// get reads the contents of a buffer into values.
func get[T device.Element](t *testing.T, b device.Backend, buf *device.Buffer, values []T) {
	t.Helper()
	dt := device.DTypeOf[T]()
	host := device.HostBuffer(int64(len(values) * dt.Size()))
	run(t, b, device.Command{Kernel: device.NewKernel("download", device.Download, nil, dt, dt), N: len(values), Buf: [4]*device.Buffer{host, buf}})
	copy(values, device.Slice[T](host, 0, len(values)))
}

// Functions that are not correctly rounded have the same bits as package kernel's.
func TestBits(t *testing.T) {
	dev := openCL(t)
	if *seed == 0 {
		*seed = uint64(time.Now().UnixNano())
	}
	t.Logf("-seed=%d tests the same again", *seed)
	rnd := rand.New(rand.NewPCG(*seed, 0))
	bits(t, dev, rnd, math.Float32frombits, func(v float32) uint64 { return uint64(math.Float32bits(v)) }, rnd.Uint32)
	bits(t, dev, rnd, math.Float64frombits, math.Float64bits, rnd.Uint64)
}

var functions = []kernel.Prim{kernel.PrimExp, kernel.PrimExpm1, kernel.PrimLog, kernel.PrimLog1p, kernel.PrimSin, kernel.PrimCos, kernel.PrimTanh, kernel.PrimErf, kernel.PrimPow, kernel.PrimSqrt, kernel.PrimDiv}

// bits compares the functions on ordinary numbers and on random bits. All are in one expression, in
// which an immediate chooses a function: that compiles faster.
func bits[T float32 | float64, B uint32 | uint64](t *testing.T, dev device.Backend, rnd *rand.Rand, from func(B) T, to func(T) uint64, any func() B) {
	const n = 4000
	dt := device.DTypeOf[T]()
	x, y := make([]T, n), make([]T, n)
	for i := range n {
		x[i], y[i] = from(any()), from(any())
		switch i % 4 {
		case 0:
			x[i], y[i] = T(rnd.NormFloat64()), T(rnd.NormFloat64())
		case 1:
			x[i], y[i] = T(rnd.ExpFloat64()*100), T(rnd.NormFloat64()*10)
		}
	}
	e := kernel.Arg(0, dt)
	for i, p := range functions {
		args := []*kernel.Expr{kernel.Arg(0, dt), kernel.Arg(1, dt)}[:p.Arity()]
		e = kernel.Where(kernel.Eq(kernel.Imm(0, device.Int64), constant(i)), kernel.Apply(p, args...), e)
	}
	k := device.NewKernel("functions", device.Map, e, dt, dt, dt)
	c := device.Command{Kernel: k, N: n, Buf: [4]*device.Buffer{put(t, dev, make([]T, n)), put(t, dev, x), put(t, dev, y)}}
	got := make([]T, n)
	for i, p := range functions {
		c.Imm[0] = uint64(i)
		run(t, dev, c)
		get(t, dev, c.Buf[0], got)
		wrong := 0
		for j := range n {
			var want T
			switch f := p.Func(dt).(type) {
			case func(T) T:
				want = f(x[j])
			case func(T, T) T:
				want = f(x[j], y[j])
			}
			if to(got[j]) != to(want) && (got[j] == got[j] || want == want) {
				if wrong++; wrong < 5 {
					t.Errorf("%v of %v, %v is %v (%#x), want %v (%#x)", p, x[j], y[j], got[j], to(got[j]), want, to(want))
				}
			}
		}
		if wrong > 0 {
			t.Errorf("%v of %v: %d of %d are wrong", p, dt, wrong, n)
		}
	}
}

func constant(i int) *kernel.Expr { return kernel.Const(float64(i), device.Int64) }

// Convolutions with more channels and places than a tile have the bits of their definition.
func TestConvolutions(t *testing.T) {
	dev := openCL(t)
	convolve(t, dev, [3]int{2, 2, 5}, 3, [2]device.Window{
		{In: 6, Out: 6, Size: 3, Stride: 1, Pad: 1, Step: 1, Holes: 1},
		{In: 9, Out: 4, Size: 2, Stride: 2, Pad: 0, Step: 2, Holes: 1}})
	convolve(t, dev, [3]int{3, 1, 70}, 7, [2]device.Window{
		{In: 5, Out: 5, Size: 3, Stride: 1, Pad: 1, Step: 1, Holes: 1},
		{In: 8, Out: 4, Size: 4, Stride: 2, Pad: 1, Step: 1, Holes: 1}})
	// One wide tile, and four of the next size.
	convolve(t, dev, [3]int{1, 1, 40}, 90, [2]device.Window{
		{In: 8, Out: 8, Size: 3, Stride: 1, Pad: 1, Step: 1, Holes: 1},
		{In: 6, Out: 6, Size: 3, Stride: 1, Pad: 1, Step: 1, Holes: 1}})
	convolve(t, dev, [3]int{1, 1, 20}, 2, [2]device.Window{
		{In: 3, Out: 5, Size: 3, Stride: 1, Pad: 1, Step: 1, Holes: 2},
		{In: 4, Out: 4, Size: 1, Stride: 1, Pad: 0, Step: 1, Holes: 1}})
}

func convolve(t *testing.T, dev device.Backend, shape [3]int, channels int, ws [2]device.Window) {
	n, g, o := shape[0], shape[1], shape[2]
	rnd := rand.New(rand.NewPCG(1, 2))
	random := func(n int) []float32 {
		x := make([]float32, n)
		for i := range x {
			x[i] = rnd.Float32() - 0.5
		}
		return x
	}
	a := random(n * g * channels * ws[0].In * ws[1].In)
	b := random(g * o * channels * ws[0].Size * ws[1].Size)
	plane := ws[0].Out * ws[1].Out
	got := make([]float32, n*g*o*plane)
	k := device.NewKernel("conv", device.Conv, nil, device.Float32, device.Float32, device.Float32)
	c := device.Command{Kernel: k, N: len(got), Buf: [4]*device.Buffer{put(t, dev, got), put(t, dev, a), put(t, dev, b)},
		Args: &device.Args{Shape: device.Shape{n, g, o}, Ints: []int{channels}, Window: &ws}}
	run(t, dev, c)
	get(t, dev, c.Buf[0], got)
	for e, v := range got {
		i, j := e%plane/ws[1].Out, e%ws[1].Out
		image, group, channelOut := e/plane/o/g, e/plane/o%g, e/plane%o
		want := float32(0)
		for q := range channels * ws[0].Size * ws[1].Size {
			c, k, l := q/ws[1].Size/ws[0].Size, q/ws[1].Size%ws[0].Size, q%ws[1].Size
			y, isRow := ws[0].At(i, k)
			x, isCol := ws[1].At(j, l)
			if !isRow || !isCol {
				continue
			}
			element := float32(0)
			if y >= 0 && y < ws[0].In && x >= 0 && x < ws[1].In {
				element = a[(((image*g+group)*channels+c)*ws[0].In+y)*ws[1].In+x]
			}
			want = kernel.MulAdd(element, b[(((group*o+channelOut)*channels+c)*ws[0].Size+k)*ws[1].Size+l], want)
		}
		if v != want {
			t.Fatalf("%v, %d channels: element %d is %v, want %v", shape, channels, e, v, want)
		}
	}
}

// A product and an expression fused into one kernel give the bits of the product followed by the
// expression, whose second operand is the vector.
func TestMadeOfProducts(t *testing.T) {
	dev := openCL(t)
	const m, n, k, step = 20, 30, 40, 2
	rnd := rand.New(rand.NewPCG(3, 4))
	random := func(n int) []float32 {
		x := make([]float32, n)
		for i := range x {
			x[i] = float32(rnd.NormFloat64())
		}
		return x
	}
	a, b, vector := random(m*k), random(k*n), random((n-1)*step+1)
	dt := device.Float32
	sum, v := kernel.Arg(0, dt), kernel.Arg(1, dt)
	e := kernel.Max(kernel.Add(kernel.Mul(sum, kernel.Imm(1, dt)), v), kernel.Const(0, dt))
	c := device.Command{Kernel: device.NewKernel("relu", device.MatMul, e, dt, dt, dt, dt), N: m * n, Imm: [2]uint64{0, kernel.Bits[float32](0.5)},
		Args: &device.Args{Ints: []int{m, n, k}, Strides: [4][]int{3: {step}}}}
	got := make([]float32, m*n)
	c.Buf = [4]*device.Buffer{put(t, dev, got), put(t, dev, a), put(t, dev, b), put(t, dev, vector)}
	run(t, dev, c)
	get(t, dev, c.Buf[0], got)
	for i, g := range got {
		product := float32(0)
		for q := range k {
			product = kernel.MulAdd(a[i/n*k+q], b[q*n+i%n], product)
		}
		product *= 0.5
		if want := max(product+vector[i%n*step], 0); g != want {
			t.Fatalf("element %d is %v, want %v", i, g, want)
		}
	}
}

// Vector kernels for aligned operands give the same bits as scalar ones, and as package kernel's
// functions.
func TestBitsOfVectors(t *testing.T) {
	dev := openCL(t)
	const n = 1<<17 + 3
	rnd := rand.New(rand.NewPCG(7, 8))
	x, y, chosen := make([]float32, n+1), make([]float64, n+1), make([]bool, n+1)
	for i := range x {
		x[i], y[i], chosen[i] = math.Float32frombits(rnd.Uint32()), rnd.NormFloat64(), rnd.IntN(2) == 0
	}
	f32, f64, b := device.Float32, device.Float64, device.Bool
	e := kernel.Where(kernel.Arg(2, b), kernel.Div(kernel.Cast(kernel.Arg(0, f32), f64), kernel.Imm(0, f64)), kernel.Mul(kernel.Arg(1, f64), kernel.Imm(1, f64)))
	c := device.Command{Kernel: device.NewKernel("chosen", device.Map, e, f64, f32, f64, b), N: n, Imm: [2]uint64{kernel.Bits(3.0), kernel.Bits(0.1)}}
	c.Buf = [4]*device.Buffer{put(t, dev, make([]float64, n+1)), put(t, dev, x), put(t, dev, y), put(t, dev, chosen)}
	for off := range 2 {
		c.Off = [4]int{off, off, off, off}
		run(t, dev, c)
		got := make([]float64, n+1)
		get(t, dev, c.Buf[0], got)
		for i, g := range got[off : off+n] {
			want := y[off+i] * 0.1
			if chosen[off+i] {
				want = float64(x[off+i]) / 3
			}
			if math.Float64bits(g) != math.Float64bits(want) && (g == g || want == want) {
				t.Fatalf("from %d: element %d is %v, want %v", off, i, g, want)
			}
		}
	}
}

// Products have the bits of sums in order, whatever the layout and the tiles. So do a few of their
// rows computed alone, with smaller tiles.
func TestLargeProducts(t *testing.T) {
	dev := openCL(t)
	dt := device.Float32
	sum, v := kernel.Arg(0, dt), kernel.Arg(1, dt)
	relu := device.NewKernel("relu", device.MatMul, kernel.Max(kernel.Add(sum, v), kernel.Const(0, dt)), dt, dt, dt, dt)
	plain := device.NewKernel("matmul", device.MatMul, nil, dt, dt, dt)
	for _, test := range []struct {
		name           string
		kernel         *device.Kernel
		batch, m, n, k int
		a, b           [3]int // strides of batch, rows and columns
		offA, offB     int
	}{
		{"contiguous", plain, 34, 250, 252, 12, [3]int{3000, 12, 1}, [3]int{3024, 252, 1}, 0, 0},
		{"odd lengths", plain, 2, 251, 255, 21, [3]int{251 * 21, 21, 1}, [3]int{255 * 21, 255, 1}, 0, 0},
		{"both transposed", plain, 1, 256, 248, 9, [3]int{0, 1, 256}, [3]int{0, 1, 12}, 4, 8},
		{"not aligned", plain, 1, 256, 256, 16, [3]int{0, 16, 1}, [3]int{0, 256, 1}, 3, 6},
		{"one for all of the batch", plain, 2, 128, 256, 8, [3]int{1024, 8, 1}, [3]int{0, 256, 1}, 0, 4},
		{"batch that is not aligned", plain, 2, 128, 256, 8, [3]int{1025, 8, 1}, [3]int{2049, 256, 1}, 0, 0},
		{"no neighbours", plain, 1, 256, 250, 5, [3]int{0, 11, 2}, [3]int{0, 500, 2}, 1, 0},
		{"backwards", plain, 1, 256, 256, 12, [3]int{0, 12, 1}, [3]int{0, -256, 1}, 0, 11 * 256},
		{"nothing to add", plain, 1, 256, 256, 0, [3]int{0, 1, 1}, [3]int{0, 256, 1}, 0, 0},
		{"tiles of 64", plain, 2, 70, 131, 37, [3]int{70 * 37, 37, 1}, [3]int{132 * 37, 132, 1}, 0, 0},
		{"tiles of 64, transposed", plain, 1, 132, 68, 35, [3]int{0, 1, 132}, [3]int{0, 1, 36}, 0, 0},
		{"with a vector", relu, 1, 250, 250, 30, [3]int{0, 30, 1}, [3]int{0, 250, 1}, 0, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			batch, m, n, k := test.batch, test.m, test.n, test.k
			rnd := rand.New(rand.NewPCG(5, 6))
			random := func(n int) []float32 {
				x := make([]float32, n)
				for i := range x {
					x[i] = float32(rnd.NormFloat64())
				}
				return x
			}
			length := func(off int, rows, cols int, strides [3]int) int {
				return off + 1 + max(strides[0], 0)*(batch-1) + max(strides[1], 0)*max(rows-1, 0) + max(strides[2], 0)*max(cols-1, 0)
			}
			a, b, vector := random(length(test.offA, m, k, test.a)), random(length(test.offB, k, n, test.b)), random(n)
			compute := func(m int) []float32 {
				got := make([]float32, batch*m*n)
				c := device.Command{Kernel: test.kernel, N: len(got), Off: [4]int{0, test.offA, test.offB},
					Args: &device.Args{Shape: device.Shape{batch}, Ints: []int{m, n, k}, Strides: [4][]int{1: test.a[:], 2: test.b[:]}}}
				c.Buf = [4]*device.Buffer{put(t, dev, got), put(t, dev, a), put(t, dev, b), put(t, dev, vector)}
				if test.kernel == plain {
					c.Buf[3] = nil
				}
				run(t, dev, c)
				get(t, dev, c.Buf[0], got)
				return got
			}
			few := min(m, 13)
			got, some := compute(m), compute(few)
			for i, g := range got {
				x, r, c := i/n/m, i/n%m, i%n
				want := float32(0)
				for q := range k {
					want = kernel.MulAdd(a[test.offA+x*test.a[0]+r*test.a[1]+q*test.a[2]], b[test.offB+x*test.b[0]+q*test.b[1]+c*test.b[2]], want)
				}
				if test.kernel == relu {
					want = max(want+vector[c], 0)
				}
				if math.Float32bits(g) != math.Float32bits(want) {
					t.Fatalf("element %d, %d, %d is %v, want %v", x, r, c, g, want)
				}
				if r < few && some[(x*few+r)*n+c] != want {
					t.Fatalf("element %d, %d, %d is %v, want %v, if there are fewer rows", x, r, c, some[(x*few+r)*n+c], want)
				}
			}
		})
	}
}
