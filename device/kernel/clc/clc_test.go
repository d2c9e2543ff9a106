package clc_test

import (
	"flag"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/devicetest"
	"github.com/asyncgen/asyncgen/device/kernel"
)

var (
	all  = flag.Bool("all", false, "run all of devicetest: with PoCL minutes, in which it compiles")
	seed = flag.Uint64("seed", 0, "of random numbers; 0: another one each time")
)

// The kernels pass what backends have to pass, with nothing of a backend around them.
func TestConformance(t *testing.T) {
	if !*all {
		t.Skip("compiling takes minutes: -all")
	}
	devicetest.TestBackend(t, newRunner(t), devicetest.Options{Seed: *seed})
}

// The functions that are not correctly rounded have the bits of package kernel's.
func TestBits(t *testing.T) {
	r := newRunner(t)
	if *seed == 0 {
		*seed = uint64(time.Now().UnixNano())
	}
	t.Logf("-seed=%d tests the same again", *seed)
	rnd := rand.New(rand.NewPCG(*seed, 0))
	bits(t, r, rnd, math.Float32frombits, func(v float32) uint64 { return uint64(math.Float32bits(v)) }, rnd.Uint32)
	bits(t, r, rnd, math.Float64frombits, math.Float64bits, rnd.Uint64)
}

var functions = []kernel.Prim{kernel.PrimExp, kernel.PrimExpm1, kernel.PrimLog, kernel.PrimLog1p, kernel.PrimSin, kernel.PrimCos, kernel.PrimTanh, kernel.PrimErf, kernel.PrimPow, kernel.PrimSqrt, kernel.PrimDiv}

// bits compares the functions for numbers of any bits and for ordinary ones. They are all in one expression, of which an immediate chooses one: compiling
// them takes less time so.
func bits[T float32 | float64, B uint32 | uint64](t *testing.T, r *runner, rnd *rand.Rand, from func(B) T, to func(T) uint64, any func() B) {
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
	c := device.Command{Kernel: k, N: n, Buf: [4]*device.Buffer{put(t, r, make([]T, n)), put(t, r, x), put(t, r, y)}}
	got := make([]T, n)
	for i, p := range functions {
		c.Imm[0] = uint64(i)
		if err := r.run(&c); err != nil {
			t.Fatal(err)
		}
		get(t, r, c.Buf[0], got)
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

// Convolutions of more channels and places than a tile has are what their definition says, to the last bit.
func TestConvolutions(t *testing.T) {
	r := newRunner(t)
	convolve(t, r, [3]int{2, 2, 5}, 3, [2]device.Window{
		{In: 6, Out: 6, Size: 3, Stride: 1, Pad: 1, Step: 1, Holes: 1},
		{In: 9, Out: 4, Size: 2, Stride: 2, Pad: 0, Step: 2, Holes: 1}})
	convolve(t, r, [3]int{3, 1, 70}, 7, [2]device.Window{
		{In: 5, Out: 5, Size: 3, Stride: 1, Pad: 1, Step: 1, Holes: 1},
		{In: 8, Out: 4, Size: 4, Stride: 2, Pad: 1, Step: 1, Holes: 1}})
	convolve(t, r, [3]int{1, 1, 20}, 2, [2]device.Window{
		{In: 3, Out: 5, Size: 3, Stride: 1, Pad: 1, Step: 1, Holes: 2},
		{In: 4, Out: 4, Size: 1, Stride: 1, Pad: 0, Step: 1, Holes: 1}})
}

func convolve(t *testing.T, r *runner, shape [3]int, channels int, ws [2]device.Window) {
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
	c := device.Command{Kernel: k, N: len(got), Buf: [4]*device.Buffer{put(t, r, got), put(t, r, a), put(t, r, b)},
		Args: &device.Args{Shape: device.Shape{n, g, o}, Ints: []int{channels}, Window: &ws}}
	if err := r.run(&c); err != nil {
		t.Fatal(err)
	}
	get(t, r, c.Buf[0], got)
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

// What an expression makes of a product and a vector in one kernel is what it makes of their elements.
func TestMadeOfProducts(t *testing.T) {
	r := newRunner(t)
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
	c.Buf = [4]*device.Buffer{put(t, r, got), put(t, r, a), put(t, r, b), put(t, r, vector)}
	if err := r.run(&c); err != nil {
		t.Fatal(err)
	}
	get(t, r, c.Buf[0], got)
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
