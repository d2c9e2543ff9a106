package cpu

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/cpu/internal/vec"
	"github.com/asyncgen/asyncgen/device/kernel"
)

var seedFlag = flag.Uint64("seed", 0, "seed of the randomised tests; 0 picks one")

// everySplit runs a test with commands whole and with the loops of each ISA, and
// with commands cut into small parts and written past the caches, as big ones are.
func everySplit(t *testing.T, test func(t *testing.T)) {
	for _, a := range vec.Has() {
		t.Run(a.String(), func(t *testing.T) {
			withISA(t, a)
			test(t)
		})
	}
	t.Run("split", func(t *testing.T) {
		defer func(g, u, f, b int) { grain, unit, fewestAcross, bandBytes = g, u, f, b }(grain, unit, fewestAcross, bandBytes)
		grain, unit, fewestAcross, bandBytes = 8, 1, 1, 100
		test(t)
	})
	t.Run("past the caches", func(t *testing.T) {
		defer func(old int) { large = old }(large)
		large = 100
		test(t)
	})
}

// withISA makes the loops of a be used until the test ends.
func withISA(t *testing.T, a vec.ISA) {
	use := func(a vec.ISA) {
		vec.Use(a)
		compiled.mu.Lock()
		defer compiled.mu.Unlock()
		compiled.runners.Store(nil) // kernels are compiled to the loops of the current ISA
	}
	old := vec.Current()
	t.Cleanup(func() { use(old) })
	use(a)
}

func newRand(t *testing.T) *rand.Rand {
	seed := *seedFlag
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 1))
}

// load returns the Bits of element i of b.
func load(b *device.Buffer, dt device.DType, i int) uint64 {
	p := unsafe.Add(b.Ptr, i*dt.Size())
	switch dt.Size() {
	case 1:
		return uint64(*(*uint8)(p))
	case 2:
		return uint64(*(*uint16)(p))
	case 4:
		return uint64(*(*uint32)(p))
	}
	return *(*uint64)(p)
}

func store(b *device.Buffer, dt device.DType, i int, bits uint64) {
	vec.Fill(unsafe.Add(b.Ptr, i*dt.Size()), dt.Size(), bits, 1)
}

// randomBits is a value of type dt, often a special one.
func randomBits(rnd *rand.Rand, dt device.DType) uint64 {
	special := []float64{0, math.Copysign(0, -1), 1, -1, math.Inf(1), math.Inf(-1), math.NaN(), 1e-45, 3e38}
	switch {
	case dt == device.Bool:
		return rnd.Uint64N(2)
	case dt == device.Int64:
		return uint64(1 + rnd.Int64N(9)) // not 0: it may divide
	case dt.IsStorage():
		return rnd.Uint64() & (1<<(8*dt.Size()) - 1)
	case rnd.IntN(4) == 0:
		return kernel.BitsOf(special[rnd.IntN(len(special))], dt)
	}
	return kernel.BitsOf(rnd.NormFloat64(), dt)
}

func randomBuffer(rnd *rand.Rand, dt device.DType, n int) *device.Buffer {
	b := device.HostBuffer(int64(n * dt.Size()))
	for i := range n {
		store(b, dt, i, randomBits(rnd, dt))
	}
	return b
}

func sameBits(dt device.DType, x, y uint64) bool {
	switch dt {
	case device.Float32:
		a, b := kernel.Value[float32](x), kernel.Value[float32](y)
		return x == y || a != a && b != b
	case device.Float64:
		a, b := kernel.Value[float64](x), kernel.Value[float64](y)
		return x == y || a != a && b != b
	case device.Float16:
		a, b := kernel.Value[device.Float16Bits](x).Float32(), kernel.Value[device.Float16Bits](y).Float32()
		return x == y || a != a && b != b
	case device.BFloat16:
		a, b := kernel.Value[device.BFloat16Bits](x).Float32(), kernel.Value[device.BFloat16Bits](y).Float32()
		return x == y || a != a && b != b
	}
	return x == y
}

func randomShape(rnd *rand.Rand) device.Shape {
	shape := make(device.Shape, rnd.IntN(4))
	for i := range shape {
		shape[i] = rnd.IntN(5)
		if rnd.IntN(4) == 0 {
			shape[i] = 1 + rnd.IntN(300/(1+i*i*20))
		}
	}
	return shape
}

// randomView returns strides over shape, permuted, broadcast or with gaps,
// and how many elements the buffer needs.
func randomView(rnd *rand.Rand, shape device.Shape) (strides []int, size int) {
	strides = make([]int, len(shape))
	size = 1
	for _, axis := range rnd.Perm(len(shape)) {
		if rnd.IntN(4) == 0 {
			continue // broadcast
		}
		strides[axis] = size
		size *= max(1, shape[axis])
		if rnd.IntN(4) == 0 {
			size += rnd.IntN(3)
		}
	}
	return strides, size
}

// randomExpr grows an expression of any type.
func randomExpr(rnd *rand.Rand, in []device.DType) *kernel.Expr {
	var pool []*kernel.Expr
	for i, dt := range in {
		pool = append(pool, kernel.Arg(i, dt))
	}
	pool = append(pool, kernel.Imm(0, device.Float32), kernel.Imm(1, device.Float64), kernel.Const(2.5, device.Float32), kernel.Const(-1.5, device.Float64),
		kernel.Const(3, device.Int64), kernel.Const(1, device.Bool))
	last := pool[rnd.IntN(len(pool))]
	prims := kernel.Prims()
	for steps := rnd.IntN(12); steps > 0; {
		p := prims[rnd.IntN(len(prims))]
		if rnd.IntN(2) == 0 { // products and sums, which share steps
			p = []kernel.Prim{kernel.PrimAdd, kernel.PrimSub, kernel.PrimMul}[rnd.IntN(3)]
		}
		if p == kernel.PrimCast {
			dts := device.DTypes()
			last = kernel.Cast(pool[rnd.IntN(len(pool))], dts[rnd.IntN(len(dts))])
			pool = append(pool, last)
			steps--
			continue
		}
		args := make([]*kernel.Expr, p.Arity())
		dt := pool[rnd.IntN(len(pool))].DType()
		if p.Func(dt) == nil || dt == device.Int64 && p == kernel.PrimPow {
			continue
		}
		for i := range args {
			want := dt
			if p == kernel.PrimWhere && i == 0 {
				want = device.Bool
			}
			for args[i] == nil || args[i].DType() != want {
				args[i] = pool[max(rnd.IntN(len(pool)), rnd.IntN(len(pool)))] // what is new rather than what is old
			}
		}
		if dt == device.Int64 && p == kernel.PrimDiv {
			args[1] = kernel.Const(3, dt) // a divisor could be 0
		}
		last = kernel.Apply(p, args...)
		pool = append(pool, last)
		steps--
	}
	return last
}

func TestMapIsEval(t *testing.T) { everySplit(t, testMapIsEval) }

func testMapIsEval(t *testing.T) {
	rnd := newRand(t)
	dts := device.DTypes()
	for range 200 {
		in := make([]device.DType, 1+rnd.IntN(3))
		for i := range in {
			in[i] = dts[rnd.IntN(len(dts))]
		}
		e := randomExpr(rnd, in)
		k := device.NewKernel("random", device.Map, e, e.DType(), in...)
		for range 3 {
			shape := randomShape(rnd)
			if rnd.IntN(10) == 0 {
				shape = device.Shape{3*tile + rnd.IntN(tile)}
			}
			n := shape.Size()
			c := device.Command{Kernel: k, N: n, Imm: [2]uint64{kernel.Bits(float32(rnd.NormFloat64())), kernel.Bits(rnd.NormFloat64())}}
			if rnd.IntN(3) > 0 {
				c.Args = &device.Args{Shape: shape}
			}
			for i, dt := range in {
				size := n
				if c.Args != nil && rnd.IntN(2) == 0 {
					c.Args.Strides[i+1], size = randomView(rnd, shape)
				}
				c.Off[i+1] = rnd.IntN(3)
				c.Buf[i+1] = randomBuffer(rnd, dt, size+c.Off[i+1])
			}
			c.Off[0] = rnd.IntN(3)
			c.Buf[0] = randomBuffer(rnd, k.Out, n+c.Off[0]+2)
			before, after := uint64(0), load(c.Buf[0], k.Out, c.Off[0]+n)
			if c.Off[0] > 0 {
				before = load(c.Buf[0], k.Out, c.Off[0]-1)
			}
			want := make([]uint64, n)
			for i := range want {
				var args [3]uint64
				for j, dt := range in {
					args[j] = load(c.Buf[j+1], dt, c.Off[j+1]+place(&c, j+1, i))
				}
				want[i] = e.Eval(args[:], c.Imm[:])
			}
			if err := Run(&c); err != nil {
				t.Fatal(err)
			}
			for i, w := range want {
				if got := load(c.Buf[0], k.Out, c.Off[0]+i); !sameBits(k.Out, got, w) {
					t.Fatalf("%v\nof %v: element %d of %v (args %+v) is %#x, want %#x", e, in, i, shape, c.Args, got, w)
				}
			}
			if load(c.Buf[0], k.Out, c.Off[0]+n) != after || c.Off[0] > 0 && load(c.Buf[0], k.Out, c.Off[0]-1) != before {
				t.Fatalf("%v of shape %v wrote outside of its output", e, shape)
			}
		}
	}
}

// TestDotsOfLongVectors gathers a vector that is longer than the memory for it.
func TestDotsOfLongVectors(t *testing.T) {
	m, n, k := 5, 2, len(packed{})+100
	c := device.Command{Kernel: device.NewKernel("matmul", device.MatMul, nil, device.Int64, device.Int64, device.Int64), N: m * n, Args: &device.Args{Ints: []int{m, n, k}}}
	c.Buf[0], c.Buf[1], c.Buf[2] = device.HostBuffer(int64(8*m*n)), device.HostBuffer(int64(8*m*k)), device.HostBuffer(int64(8*k*n))
	a, b := device.Slice[int64](c.Buf[1], 0, m*k), device.Slice[int64](c.Buf[2], 0, k*n)
	for i := range a {
		a[i] = int64(i % 7)
	}
	for i := range b {
		b[i] = int64(i % 5)
	}
	if err := Run(&c); err != nil {
		t.Fatal(err)
	}
	for i := range m {
		for j := range n {
			want := int64(0)
			for p := range k {
				want += a[i*k+p] * b[p*n+j]
			}
			if got := device.Slice[int64](c.Buf[0], 0, m*n)[i*n+j]; got != want {
				t.Errorf("element %d,%d is %d, want %d", i, j, got, want)
			}
		}
	}
}

// place is where element i of operand j lies, computed axis by axis.
func place(c *device.Command, j, i int) int {
	if c.Args == nil {
		return i
	}
	return inView(c.Args.Shape, c.Args.Strides[j], i)
}

func TestMapInPlace(t *testing.T) {
	x, y := kernel.Arg(0, device.Float32), kernel.Arg(1, device.Float32)
	k := device.NewKernel("axpy", device.Map, kernel.Add(kernel.Mul(x, kernel.Imm(0, device.Float32)), y), device.Float32, device.Float32, device.Float32)
	const n = 2*tile + 5
	a, b := device.HostBuffer(4*n), device.HostBuffer(4*n)
	as, bs := device.Slice[float32](a, 0, n), device.Slice[float32](b, 0, n)
	for i := range n {
		as[i], bs[i] = float32(i), 1
	}
	c := device.Command{Kernel: k, N: n, Imm: [2]uint64{kernel.Bits[float32](2)}}
	c.Buf[0], c.Buf[1], c.Buf[2] = a, a, b
	if err := Run(&c); err != nil {
		t.Fatal(err)
	}
	for i, got := range as {
		if got != float32(2*i+1) {
			t.Fatalf("element %d is %v, want %d", i, got, 2*i+1)
		}
	}
}

func TestReduceIsFold(t *testing.T) { everySplit(t, testReduceIsFold) }

func testReduceIsFold(t *testing.T) {
	rnd := newRand(t)
	type configuration struct {
		r  kernel.Reducer
		dt device.DType
	}
	kernels := map[configuration]*device.Kernel{}
	for range 200 {
		r := kernel.Reducers()[rnd.IntN(len(kernel.Reducers()))]
		dt := device.DTypes()[rnd.IntN(4)]
		if r.Prim().Func(dt) == nil {
			continue
		}
		k := kernels[configuration{r, dt}]
		if k == nil {
			k = device.NewKernel(r.String(), device.Reduce, r, dt, dt)
			kernels[configuration{r, dt}] = k
		}
		shape := randomShape(rnd)
		if rnd.IntN(8) == 0 {
			shape = device.Shape{1 + rnd.IntN(3), kernel.Block*rnd.IntN(4) + rnd.IntN(70)}
		}
		kept := rnd.IntN(len(shape) + 1)
		c := device.Command{Kernel: k, N: shape[:kept].Size(), Args: &device.Args{Shape: shape, Kept: kept}}
		size := shape.Size()
		switch rnd.IntN(3) {
		case 0:
			c.Args.Strides[1], size = randomView(rnd, shape)
		case 1: // the leading axes reduced
			strides, n := make([]int, len(shape)), 1
			for _, axes := range [][2]int{{kept - 1, 0}, {len(shape) - 1, kept}} {
				for axis := axes[0]; axis >= axes[1]; axis-- {
					strides[axis] = n
					n *= shape[axis]
				}
			}
			c.Args.Strides[1] = strides
		}
		c.Off[1] = rnd.IntN(3)
		c.Buf[0], c.Buf[1] = randomBuffer(rnd, dt, c.N), randomBuffer(rnd, dt, size+c.Off[1])
		if err := Run(&c); err != nil {
			t.Fatal(err)
		}
		length := shape[kept:].Size()
		for i := range c.N {
			elements := make([]uint64, length)
			for j := range elements {
				elements[j] = load(c.Buf[1], dt, c.Off[1]+place(&c, 1, i*length+j))
			}
			if got, want := load(c.Buf[0], dt, i), foldBits(r, dt, elements); !sameBits(dt, got, want) {
				t.Fatalf("%v of %v %v, %d kept, strides %v: element %d is %#x, want %#x", r, dt, shape, kept, c.Args.Strides[1], i, got, want)
			}
		}
	}
}

func foldBits(r kernel.Reducer, dt device.DType, x []uint64) uint64 {
	switch dt {
	case device.Float32:
		return foldValues[float32](r, x)
	case device.Float64:
		return foldValues[float64](r, x)
	case device.Int64:
		return foldValues[int64](r, x)
	}
	return foldValues[bool](r, x)
}

func foldValues[T device.Element](r kernel.Reducer, x []uint64) uint64 {
	values := make([]T, len(x))
	for i := range x {
		values[i] = kernel.Value[T](x[i])
	}
	return kernel.Bits(kernel.Fold(r, values))
}

func TestArgReduceIsArgFold(t *testing.T) { everySplit(t, testArgReduceIsArgFold) }

func testArgReduceIsArgFold(t *testing.T) {
	rnd := newRand(t)
	argReduceOf[float32](t, rnd)
	argReduceOf[float64](t, rnd)
	argReduceOf[int64](t, rnd)
}

// randomRows is a Reduce command without its kernel, and what lies in each row.
func randomRows[T device.Element](rnd *rand.Rand) (c device.Command, elements [][]T) {
	dt := device.DTypeOf[T]()
	shape := randomShape(rnd)
	if rnd.IntN(8) == 0 {
		shape = device.Shape{1 + rnd.IntN(3), kernel.Block*rnd.IntN(3) + rnd.IntN(70)}
	}
	kept := rnd.IntN(len(shape) + 1)
	c = device.Command{N: shape[:kept].Size(), Args: &device.Args{Shape: shape, Kept: kept}, Off: [4]int{1: rnd.IntN(3)}}
	size := shape.Size()
	switch rnd.IntN(3) {
	case 0:
		c.Args.Strides[1], size = randomView(rnd, shape)
	case 1: // the kept axes are the inner ones in memory
		strides := append(shape[:kept].Strides(), shape[kept:].Strides()...)
		for axis := kept; axis < len(shape); axis++ {
			strides[axis] *= max(1, shape[:kept].Size())
		}
		c.Args.Strides[1] = strides
	}
	c.Buf[1] = randomBuffer(rnd, dt, size+c.Off[1])
	length := shape[kept:].Size()
	for i := range c.N {
		row := make([]T, length)
		for j := range row {
			row[j] = kernel.Value[T](load(c.Buf[1], dt, c.Off[1]+place(&c, 1, i*length+j)))
		}
		elements = append(elements, row)
	}
	return c, elements
}

func argReduceOf[T number](t *testing.T, rnd *rand.Rand) {
	for _, r := range []kernel.Reducer{kernel.ReduceMax, kernel.ReduceMin} {
		k := device.NewKernel("arg", device.ArgReduce, r, device.Int64, device.DTypeOf[T]())
		for range 60 {
			c, elements := randomRows[T](rnd)
			c.Kernel, c.Buf[0] = k, device.HostBuffer(int64(8*c.N))
			if err := Run(&c); err != nil {
				t.Fatal(err)
			}
			for i, got := range device.Slice[int64](c.Buf[0], 0, c.N) {
				if want := kernel.ArgFold(r, elements[i]); got != int64(want) {
					t.Fatalf("arg%v of %v, %d kept, strides %v: element %d is %d, want %d", r, c.Args.Shape, c.Args.Kept, c.Args.Strides[1], i, got, want)
				}
			}
		}
	}
}

func TestScanIsScan(t *testing.T) { everySplit(t, testScanIsScan) }

func testScanIsScan(t *testing.T) {
	rnd := newRand(t)
	k := device.NewKernel("scan", device.Scan, kernel.ReduceSum, device.Float32, device.Float32)
	for range 80 {
		c, elements := randomRows[float32](rnd)
		back := rnd.IntN(2)
		c.Kernel, c.N, c.Args.Ints = k, c.Args.Shape.Size(), []int{back}
		c.Buf[0] = device.HostBuffer(int64(4 * c.N))
		if err := Run(&c); err != nil {
			t.Fatal(err)
		}
		got := device.Slice[float32](c.Buf[0], 0, c.N)
		for _, x := range elements {
			want := make([]float32, len(x))
			kernel.Scan(kernel.ReduceSum, want, x, back == 1)
			for i := range want {
				if !sameBits(device.Float32, kernel.Bits(got[i]), kernel.Bits(want[i])) {
					t.Fatalf("scan of %v, back %d: %v, want %v", x, back, got[:len(x)], want)
				}
			}
			got = got[len(x):]
		}
	}
}

// TestSplitCommands has the commands that are split over the cores give what they give whole.
func TestSplitCommands(t *testing.T) {
	rnd := newRand(t)
	f32, i64 := device.Float32, device.Int64
	rows, width, batch := 50, 7, 12
	table, index := randomBuffer(rnd, f32, rows*width), device.HostBuffer(8*200)
	for i, v := 0, device.Slice[int64](index, 0, 200); i < len(v); i++ {
		v[i] = rnd.Int64N(int64(2*rows)) - int64(rows)
	}
	take := device.Command{Kernel: device.NewKernel("take", device.Gather, nil, f32, f32, i64), N: 200 * width, Buf: [4]*device.Buffer{1: table, 2: index},
		Args: &device.Args{Shape: device.Shape{200, width}, Ints: []int{rows, width}, Strides: [4][]int{1: {0, 1}, 2: {1, 0}}}}
	turned := take
	turned.Args = &device.Args{Shape: device.Shape{200, width}, Ints: []int{rows, 1}, Strides: [4][]int{1: {0, rows}, 2: {1, 0}}}
	one := take
	one.N, one.Args = 200, &device.Args{Shape: device.Shape{200}, Ints: []int{rows, width}, Strides: [4][]int{1: {0}, 2: {1}}}
	products := device.Command{Kernel: device.NewKernel("matmul", device.MatMul, nil, f32, f32, f32), N: batch * 3 * 4, Args: &device.Args{Shape: device.Shape{batch}, Ints: []int{3, 4, 5}}}
	products.Buf[1], products.Buf[2] = randomBuffer(rnd, f32, batch*15), randomBuffer(rnd, f32, batch*20)
	shared := products
	shared.Args = &device.Args{Shape: device.Shape{batch}, Ints: []int{3, 4, 5}, Strides: [4][]int{2: {0, 4, 1}}}
	for name, c := range map[string]device.Command{"rows": take, "columns": turned, "elements": one, "products": products, "products with one operand": shared} {
		var results [2][]float32
		for i, g := range []int{1 << 18, 4} {
			func() {
				defer func(old int) { grain = old }(grain)
				grain = g
				c.Buf[0] = device.HostBuffer(int64(4 * c.N))
				if err := Run(&c); err != nil {
					t.Fatal(err)
				}
				results[i] = device.Slice[float32](c.Buf[0], 0, c.N)
			}()
		}
		for i, v := range results[0] {
			if !sameBits(f32, kernel.Bits(v), kernel.Bits(results[1][i])) {
				t.Fatalf("%s: element %d is %v whole, %v in parts", name, i, v, results[1][i])
			}
		}
	}
}

func TestCopyOfViews(t *testing.T) {
	rnd := newRand(t)
	for _, dt := range device.DTypes() {
		k := device.NewKernel("copy", device.Copy, nil, dt, dt)
		for range 50 {
			shape := randomShape(rnd)
			strides, size := randomView(rnd, shape)
			c := device.Command{Kernel: k, N: shape.Size(), Args: &device.Args{Shape: shape}}
			c.Args.Strides[1] = strides
			c.Buf[0], c.Buf[1] = randomBuffer(rnd, dt, c.N), randomBuffer(rnd, dt, size)
			if err := Run(&c); err != nil {
				t.Fatal(err)
			}
			for i := range c.N {
				if got, want := load(c.Buf[0], dt, i), load(c.Buf[1], dt, place(&c, 1, i)); got != want {
					t.Fatalf("%v, strides %v: element %d is %#x, want %#x", shape, strides, i, got, want)
				}
			}
		}
	}
}

func TestFillIotaRandom(t *testing.T) { everySplit(t, testFillIotaRandom) }

func testFillIotaRandom(t *testing.T) {
	c := device.Command{Kernel: device.NewKernel("fill", device.Fill, nil, device.Bool), N: 5, Imm: [2]uint64{1}}
	c.Buf[0] = device.HostBuffer(5)
	check(t, &c, []bool{true, true, true, true, true})

	c = device.Command{Kernel: device.NewKernel("iota", device.Iota, nil, device.Int64), N: 4, Imm: [2]uint64{kernel.Bits[int64](5), kernel.Bits[int64](-2)}}
	c.Buf[0] = device.HostBuffer(32)
	check(t, &c, []int64{5, 3, 1, -1})

	c = device.Command{Kernel: device.NewKernel("iota", device.Iota, nil, device.Float32), N: 3, Imm: [2]uint64{kernel.Bits[float32](0.5), kernel.Bits[float32](0.1)}}
	c.Buf[0] = device.HostBuffer(12)
	step := float32(0.1)
	check(t, &c, []float32{0.5, 0.5 + step, 0.5 + 2*step})

	c = device.Command{Kernel: device.NewKernel("random", device.Random, kernel.Ints, device.Int64), N: 3, Imm: [2]uint64{3, 7}, Args: &device.Args{Ints: []int{-2, 9}}}
	c.Buf[0] = device.HostBuffer(24)
	want := make([]int64, 3)
	kernel.Draw(kernel.Ints, 3, 7, -2, 9, want)
	check(t, &c, want)

	c = device.Command{Kernel: device.NewKernel("random", device.Random, kernel.Normal, device.Float64), N: 3, Imm: [2]uint64{3, 7}}
	c.Buf[0] = device.HostBuffer(24)
	floats := make([]float64, 3)
	kernel.Draw(kernel.Normal, 3, 7, 0, 0, floats)
	check(t, &c, floats)

	big := device.Command{Kernel: c.Kernel, N: 3 * tile, Imm: c.Imm}
	big.Buf[0] = device.HostBuffer(8 * 3 * tile)
	floats = make([]float64, 3*tile)
	kernel.Draw(kernel.Normal, 3, 7, 0, 0, floats)
	check(t, &big, floats)
}

func check[T device.Element](t *testing.T, c *device.Command, want []T) {
	t.Helper()
	if err := Run(c); err != nil {
		t.Fatal(err)
	}
	if got := device.Slice[T](c.Buf[0], 0, c.N); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s gives %v, want %v", c.Kernel.Name, got, want)
	}
}

func TestUnsupportedKernelsSayWhy(t *testing.T) {
	x := kernel.Arg(0, device.Float32)
	var computing []*device.Kernel // with types for storage
	for _, dt := range device.DTypes() {
		if dt.IsStorage() {
			computing = append(computing,
				device.NewKernel("k", device.Reduce, kernel.ReduceSum, dt, dt),
				device.NewKernel("k", device.Reduce, kernel.FoldOf{By: kernel.ReduceSum, Expr: kernel.Arg(0, dt)}, dt, dt),
				device.NewKernel("k", device.ArgReduce, kernel.ReduceMax, device.Int64, dt),
				device.NewKernel("k", device.Scan, kernel.ReduceSum, dt, dt),
				device.NewKernel("k", device.ArgSort, nil, device.Int64, dt),
				device.NewKernel("k", device.Rows, kernel.Softmax, dt, dt),
				device.NewKernel("k", device.MatMul, nil, dt, dt, dt),
				device.NewKernel("k", device.Conv, nil, dt, dt, dt),
				device.NewKernel("k", device.Pool, kernel.ReduceMax, dt, dt),
				device.NewKernel("k", device.ArgPool, kernel.ReduceMax, device.Int64, dt),
				device.NewKernel("k", device.ScatterAdd, nil, dt, dt, device.Int64),
				device.NewKernel("k", device.Iota, nil, dt),
				device.NewKernel("k", device.Random, kernel.Normal, dt))
		}
	}
	for _, k := range append(computing,
		device.NewKernel("k", device.Map, kernel.ReduceSum, device.Float32, device.Float32),
		device.NewKernel("k", device.Map, x, device.Float64, device.Float32),
		device.NewKernel("k", device.Map, x, device.Float32, device.Float64),
		device.NewKernel("k", device.Map, x, device.Float32),
		device.NewKernel("k", device.Reduce, kernel.ReduceSum, device.Bool, device.Bool),
		device.NewKernel("k", device.Reduce, nil, device.Float32, device.Float32),
		device.NewKernel("k", device.MatMul, nil, device.Bool, device.Bool, device.Bool),
		device.NewKernel("k", device.Conv, nil, device.Int64, device.Int64, device.Int64),
		device.NewKernel("k", device.Conv, nil, device.Float32, device.Float32, device.Float64),
		device.NewKernel("k", device.Pool, kernel.ReduceProd, device.Float32, device.Float32),
		device.NewKernel("k", device.Pool, kernel.ReduceMax, device.Int64, device.Int64),
		device.NewKernel("k", device.ArgPool, kernel.ReduceMin, device.Int64, device.Float32),
		device.NewKernel("k", device.ArgPool, kernel.ReduceMax, device.Int64, device.Int64),
		device.NewKernel("k", device.Copy, nil, device.Float32, device.Int64),
		device.NewKernel("k", device.ArgReduce, kernel.ReduceSum, device.Int64, device.Float32),
		device.NewKernel("k", device.ArgReduce, kernel.ReduceMax, device.Int64, device.Bool),
		device.NewKernel("k", device.Scan, kernel.ReduceSum, device.Bool, device.Bool),
		device.NewKernel("k", device.Gather, nil, device.Float32, device.Float32, device.Float32),
		device.NewKernel("k", device.ScatterAdd, nil, device.Float32, device.Float32),
		device.NewKernel("k", device.ScatterAdd, nil, device.Bool, device.Bool, device.Int64),
		device.NewKernel("k", device.Iota, nil, device.Bool),
		device.NewKernel("k", device.Random, kernel.Normal, device.Int64),
		device.NewKernel("k", device.Math, kernel.MathExp, device.Float32, device.Float32),
		device.NewKernel("k", device.Math, kernel.MathExp, device.Float64, device.Float32),
		device.NewKernel("k", device.Math, kernel.MathPow, device.Float64, device.Float64),
		device.NewKernel("k", device.Math, kernel.ReduceSum, device.Float64, device.Float64),
		device.NewKernel("k", device.Code(200), nil, device.Int64),
	) {
		for range 2 {
			err := Run(&device.Command{Kernel: k})
			if !errors.Is(err, device.ErrUnsupported) || !strings.Contains(err.Error(), "kernel k: ") {
				t.Errorf("code %d, body %v: got error %v", k.Code, k.Body, err)
			}
		}
	}
}

func TestTooManyAxes(t *testing.T) {
	shape, strides := make(device.Shape, maxRank+1), make([]int, maxRank+1)
	for i := range shape {
		shape[i], strides[i] = 2, 1<<i // the first axis is the innermost in memory: no two can be walked as one
	}
	x := kernel.Arg(0, device.Bool)
	for _, k := range []*device.Kernel{
		device.NewKernel("not", device.Map, kernel.Not(x), device.Bool, device.Bool),
		device.NewKernel("copy", device.Copy, nil, device.Bool, device.Bool),
		device.NewKernel("any", device.Reduce, kernel.ReduceAny, device.Bool, device.Bool),
		device.NewKernel("scan", device.Scan, kernel.ReduceAny, device.Bool, device.Bool),
		device.NewKernel("argmax", device.ArgReduce, kernel.ReduceMax, device.Int64, device.Float32),
		device.NewKernel("take", device.Gather, nil, device.Bool, device.Bool, device.Int64),
		device.NewKernel("add", device.ScatterAdd, nil, device.Float32, device.Float32, device.Int64),
	} {
		c := device.Command{Kernel: k, N: shape.Size(), Args: &device.Args{Shape: shape, Kept: len(shape), Ints: []int{0, 0}}}
		c.Args.Strides = [4][]int{strides, strides, strides}
		c.Buf[0], c.Buf[1], c.Buf[2] = device.HostBuffer(int64(8*c.N)), device.HostBuffer(int64(8*c.N)), device.HostBuffer(int64(8*c.N))
		if err := Run(&c); !errors.Is(err, device.ErrUnsupported) || !strings.Contains(err.Error(), "more than 16 independent axes") {
			t.Errorf("%s: error %v", k.Name, err)
		}
	}
}

func TestWrongOperandsPanicBeforeAnythingIsWritten(t *testing.T) {
	x := kernel.Arg(0, device.Float32)
	k := device.NewKernel("exp", device.Map, kernel.Exp(x), device.Float32, device.Float32)
	for name, c := range map[string]device.Command{
		"short output": {Kernel: k, N: 3, Buf: [4]*device.Buffer{device.HostBuffer(8), device.HostBuffer(12)}},
		"short input":  {Kernel: k, N: 3, Buf: [4]*device.Buffer{device.HostBuffer(12), device.HostBuffer(8)}},
		"offset":       {Kernel: k, N: 3, Buf: [4]*device.Buffer{device.HostBuffer(12), device.HostBuffer(12)}, Off: [4]int{0, 1}},
		"negative":     {Kernel: k, N: 3, Buf: [4]*device.Buffer{device.HostBuffer(12), device.HostBuffer(12)}, Off: [4]int{0, -1}},
		"strides": {Kernel: k, N: 3, Buf: [4]*device.Buffer{device.HostBuffer(12), device.HostBuffer(12)},
			Args: &device.Args{Shape: device.Shape{3}, Strides: [4][]int{1: {2}}}},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			Run(&c)
		}()
	}
}

// ASYNCGEN_ISA chooses the loops of a process, which says so; a word that is none fails when a
// device is opened, and each command.
func TestISAFromEnvironment(t *testing.T) {
	if word, ok := os.LookupEnv("CPU_TEST_ISA"); ok {
		if _, err := device.Open("cpu"); err != nil {
			fmt.Println("open:", err)
		}
		fmt.Println("description:", New().Caps().Description)
		x := kernel.Arg(0, device.Float32)
		k := device.NewKernel("neg", device.Map, kernel.Neg(x), device.Float32, device.Float32)
		c := device.Command{Kernel: k, N: 2, Buf: [4]*device.Buffer{device.HostBuffer(8), device.HostBuffer(8)}}
		fmt.Println("run:", Run(&c))
		fmt.Println("word:", word)
		return
	}
	best, second := "go", "go" // that are known here, whatever the machine has
	switch runtime.GOARCH {
	case "amd64":
		best, second = "avx512", "avx2"
	case "arm64":
		best, second = "neon", "neon"
	}
	for _, test := range []struct{ word, want string }{
		{"", "kernels: " + vec.Machine().String()},
		{"go", "kernels: go,"},
		{"avx", "open: device: open cpu: ASYNCGEN_ISA=avx: want "},
		{"avx", "run: cpu: kernel neg: ASYNCGEN_ISA=avx: want "},
		{"go", "run: <nil>"},
		{best, "kernels: " + vec.Machine().String() + ","},
		{second, "kernels: " + min(vec.AVX2, vec.Machine()).String() + ","},
	} {
		cmd := exec.Command(os.Args[0], "-test.run", "TestISAFromEnvironment$", "-test.v")
		cmd.Env = append(os.Environ(), "ASYNCGEN_ISA="+test.word, "CPU_TEST_ISA="+test.word,
			"GORACE=atexit_sleep_ms=0") // with the race detector each would wait for a second at its end
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), test.want) {
			t.Errorf("ASYNCGEN_ISA=%s: %v, and\n%swithout %q", test.word, err, out, test.want)
		}
	}
}

func TestBackend(t *testing.T) {
	b := New()
	if caps := b.Caps(); !caps.Synchronous || !caps.HostMemory || !caps.BatchInvariant || caps.Workers < 1 {
		t.Errorf("Caps() = %+v", caps)
	}
	buf, err := b.Alloc(16)
	if err != nil {
		t.Fatal(err)
	}
	fill := device.Command{Kernel: device.NewKernel("fill", device.Fill, nil, device.Int64), N: 2, Imm: [2]uint64{7}}
	fill.Buf[0] = buf
	bad := device.Command{Kernel: device.NewKernel("bad", device.Map, nil, device.Int64)}
	ticket, err := b.Submit([]device.Command{fill, fill})
	if err != nil || ticket != 2 || !b.Done(2) || b.Done(3) || b.Wait(context.Background(), 2) != nil || b.Failure(2) != nil {
		t.Errorf("Submit: ticket %d, error %v", ticket, err)
	}
	if _, err := b.Submit([]device.Command{fill, bad, fill}); !errors.Is(err, device.ErrUnsupported) {
		t.Errorf("Submit of a bad command: error %v", err)
	}
	b.Free(buf)
	for _, bytes := range []int64{-1, math.MaxInt64, 1 << 50} {
		if _, err := b.Alloc(bytes); !errors.Is(err, device.ErrOutOfMemory) {
			t.Errorf("Alloc(%d): error %v", bytes, err)
		}
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	if _, err := b.Submit([]device.Command{fill}); !errors.Is(err, device.ErrClosed) {
		t.Errorf("Submit after Close: %v", err)
	}
}

// TestCompilingConcurrently has goroutines meet kernels that nobody has compiled.
func TestCompilingConcurrently(t *testing.T) {
	x := kernel.Arg(0, device.Int64)
	kernels := make([]*device.Kernel, 50)
	for i := range kernels {
		kernels[i] = device.NewKernel("add", device.Map, kernel.Add(x, kernel.Const(float64(i), device.Int64)), device.Int64, device.Int64)
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			c := device.Command{N: 1, Buf: [4]*device.Buffer{device.HostBuffer(8), device.HostBuffer(8)}}
			for i, k := range kernels {
				c.Kernel = k
				if err := Run(&c); err != nil || load(c.Buf[0], device.Int64, 0) != uint64(i) {
					t.Errorf("kernel %d: %d, %v", i, load(c.Buf[0], device.Int64, 0), err)
				}
			}
		})
	}
	wg.Wait()
}

func TestNothingIsAllocatedPerCommand(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector makes sync.Pool forget on purpose")
	}
	x, y, z := kernel.Arg(0, device.Float32), kernel.Arg(1, device.Float32), kernel.Arg(2, device.Float32)
	k := device.NewKernel("muladd", device.Map, kernel.Add(kernel.Mul(x, y), z), device.Float32, device.Float32, device.Float32, device.Float32)
	c := device.Command{Kernel: k, N: 4}
	for i := range c.Buf {
		c.Buf[i] = device.HostBuffer(16)
	}
	sum := device.Command{Kernel: device.NewKernel("sum", device.Reduce, kernel.ReduceSum, device.Float32, device.Float32), N: 2, Args: &device.Args{Shape: device.Shape{2, 2}, Kept: 1}}
	product := device.Command{Kernel: device.NewKernel("matmul", device.MatMul, nil, device.Float32, device.Float32, device.Float32), N: 4, Args: &device.Args{Ints: []int{2, 2, 2}}}
	normal := device.Command{Kernel: device.NewKernel("normal", device.Random, kernel.Normal, device.Float32), N: 4}
	view := device.Command{Kernel: device.NewKernel("copy", device.Copy, nil, device.Float32, device.Float32), N: 4, Args: &device.Args{Shape: device.Shape{2, 2}, Strides: [4][]int{1: {1, 2}}}}
	argmax := device.Command{Kernel: device.NewKernel("argmax", device.ArgReduce, kernel.ReduceMax, device.Int64, device.Float32), N: 2, Args: sum.Args}
	scan := device.Command{Kernel: device.NewKernel("scan", device.Scan, kernel.ReduceSum, device.Float32, device.Float32), N: 4, Args: &device.Args{Shape: device.Shape{2, 2}, Kept: 1, Ints: []int{0}}}
	products := device.Command{Kernel: product.Kernel, N: 4, Args: &device.Args{Shape: device.Shape{4}, Ints: []int{1, 1, 1}}}
	take := device.Command{Kernel: device.NewKernel("take", device.Gather, nil, device.Float32, device.Float32, device.Int64), N: 4,
		Args: &device.Args{Shape: device.Shape{2, 2}, Ints: []int{2, 2}, Strides: [4][]int{1: {0, 1}, 2: {1, 0}}}}
	sum.Buf, product.Buf, normal.Buf, view.Buf, argmax.Buf, scan.Buf, products.Buf, take.Buf = c.Buf, c.Buf, c.Buf, c.Buf, c.Buf, c.Buf, c.Buf, c.Buf
	take.Buf[2] = device.HostBuffer(16)
	add := take
	add.Kernel, add.Args = device.NewKernel("add", device.ScatterAdd, nil, device.Float32, device.Float32, device.Int64), &device.Args{Shape: device.Shape{2, 2}, Ints: []int{2, 2}, Strides: [4][]int{0: {0, 1}, 2: {1, 0}}}
	b, cmds := New(), []device.Command{c, sum, product, normal, view, argmax, scan, products, take, add}
	if n := testing.AllocsPerRun(100, func() { b.Submit(cmds) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestScatterOfManyIndices adds by more indices than scatterAdd looks at together: in planes, as the gradient of a
// pool does, and in rows.
func TestScatterOfManyIndices(t *testing.T) {
	everySplit(t, func(t *testing.T) {
		rnd := newRand(t)
		for _, width := range []int{1, 3, shortestAdd} {
			for _, gap := range []int{1, 2} { // between neighbours in the output
				const planes, each, length = 5, scatterAhead/2 + 7, 20
				row := width * gap
				c := device.Command{Kernel: device.NewKernel("add", device.ScatterAdd, nil, device.Float32, device.Float32, device.Int64), N: planes * length * row}
				c.Args = &device.Args{Shape: device.Shape{planes, each, width}, Ints: []int{length, row}}
				c.Args.Strides[0], c.Args.Strides[2] = []int{length * row, 0, gap}, []int{1, planes, 0}
				indices, want := make([]int64, planes*each), make([]float32, c.N)
				src := make([]float32, planes*each*width)
				for i := range src {
					src[i] = float32(rnd.NormFloat64())
				}
				c.Buf = [4]*device.Buffer{device.HostBuffer(int64(4 * c.N)), bufferOf(src)}
				for p := range planes {
					for i := range each {
						at := rnd.IntN(length)
						indices[p+i*planes] = int64(at)
						for k := range width {
							want[(p*length+at)*row+k*gap] += src[(p*each+i)*width+k]
						}
					}
				}
				c.Buf[2] = bufferOf(indices)
				got := device.Slice[float32](c.Buf[0], 0, c.N)
				if err := Run(&c); err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(got, want) {
					t.Errorf("%d neighbours, %d apart: the sums are other ones", width, gap)
				}
				indices[len(indices)-1] = length // the last that is looked at
				c.Buf[2] = bufferOf(indices)
				var at *device.IndexError
				if err := Run(&c); !errors.As(err, &at) || slices.ContainsFunc(got, func(v float32) bool { return v != 0 }) {
					t.Errorf("%d neighbours, %d apart: error %v, want one of an index and zeros", width, gap, err)
				}
			}
		}
	})
}

// TestSumsOfManyColumns folds more neighbours and more rows than one call does.
func TestSumsOfManyColumns(t *testing.T) {
	everySplit(t, func(t *testing.T) {
		rnd := newRand(t)
		k := device.NewKernel("sum", device.Reduce, kernel.ReduceSum, device.Float32, device.Float32)
		shapes := []device.Shape{{300, 70}, {64, kernel.Block + 100}, {columns + 1, rowsAtATime + 3}, {2*columns + 65, 33}, {10, kernel.Block + 70}, {100, 150}, {vec.Columns, 130}}
		for i := range 2 * len(shapes) {
			shape, gap := shapes[i/2], i%2 // with and without something between rows
			kept, n := shape[0], shape[1]
			stride := kept + gap
			c := device.Command{Kernel: k, N: kept, Args: &device.Args{Shape: shape, Kept: 1, Strides: [device.MaxOperands][]int{1: {1, stride}}}}
			c.Buf[0], c.Buf[1] = device.HostBuffer(int64(4*kept)), device.HostBuffer(int64(4*n*stride))
			x := device.Slice[float32](c.Buf[1], 0, n*stride)
			for i := range x {
				x[i] = float32(rnd.NormFloat64())
			}
			if err := Run(&c); err != nil {
				t.Fatal(err)
			}
			column := make([]float32, n)
			for i, got := range device.Slice[float32](c.Buf[0], 0, kept) {
				for j := range column {
					column[j] = x[j*stride+i]
				}
				if want := kernel.Fold(kernel.ReduceSum, column); got != want {
					t.Fatalf("%v: result %d is %v, want %v", shape, i, got, want)
				}
			}
		}
	})
}

// TestShortRows: many rows at a time have the bits of kernel.Row, whatever numbers lie in them.
func TestShortRows(t *testing.T) {
	everySplit(t, func(t *testing.T) {
		rnd := newRand(t)
		shortRows[float32](t, rnd)
		shortRows[float64](t, rnd)
	})
}

func shortRows[T float](t *testing.T, rnd *rand.Rand) {
	odd := []T{T(math.NaN()), T(math.Inf(1)), T(math.Inf(-1)), 0, T(math.Copysign(0, -1)), -1e4}
	dt := device.DTypeOf[T]()
	for _, f := range []kernel.RowFunc{kernel.Softmax, kernel.LogSoftmax} {
		k := device.NewKernel("rows", device.Rows, f, dt, dt)
		for n := 1; n <= shortRow+1; n++ {
			rows := []int{1, 2, kernel.Lanes, kernel.Lanes + 1, 2*kernel.Lanes + 5}[rnd.IntN(5)]
			gap := rnd.IntN(2)
			c := device.Command{Kernel: k, N: rows * n, Args: &device.Args{Shape: device.Shape{rows, n}, Kept: 1, Strides: [device.MaxOperands][]int{1: {n + gap, 1}}}}
			c.Buf[0], c.Buf[1] = device.HostBuffer(int64(rows*n*dt.Size())), device.HostBuffer(int64(rows*(n+gap)*dt.Size()))
			x := device.Slice[T](c.Buf[1], 0, rows*(n+gap))
			for i := range x {
				if x[i] = T(rnd.NormFloat64()); rnd.IntN(3*n) == 0 {
					x[i] = odd[rnd.IntN(len(odd))]
				}
			}
			if err := Run(&c); err != nil {
				t.Fatal(err)
			}
			want := make([]T, n)
			for i := range rows {
				kernel.Row(f, want, x[i*(n+gap):][:n], 0, nil, nil)
				for j, got := range device.Slice[T](c.Buf[0], i*n, n) {
					if !sameBits(dt, kernel.Bits(got), kernel.Bits(want[j])) {
						t.Fatalf("%v of %v, row %d: element %d is %v, want %v", f, x[i*(n+gap):][:n], i, j, got, want[j])
					}
				}
			}
		}
	}
}

// TestCopyOfManyBytes copies more than one part.
func TestCopyOfManyBytes(t *testing.T) {
	everySplit(t, func(t *testing.T) {
		rnd := newRand(t)
		k := device.NewKernel("copy", device.Copy, nil, device.Float32, device.Float32)
		for _, n := range []int{part/4 + 1, 17*part/4 + 3, 40 * part / 4} {
			c := device.Command{Kernel: k, N: n}
			c.Off[0], c.Off[1] = 1+rnd.IntN(20), rnd.IntN(20)
			c.Buf[0], c.Buf[1] = device.HostBuffer(int64(4*(n+c.Off[0]+1))), device.HostBuffer(int64(4*(n+c.Off[1])))
			dst, src := device.Slice[float32](c.Buf[0], 0, n+c.Off[0]+1), device.Slice[float32](c.Buf[1], 0, n+c.Off[1])
			for i := range src {
				src[i] = float32(i)
			}
			if err := Run(&c); err != nil {
				t.Fatal(err)
			}
			for i, got := range dst {
				want := float32(0)
				if from := i - c.Off[0]; from >= 0 && from < n {
					want = src[from+c.Off[1]]
				}
				if got != want {
					t.Fatalf("%d elements to %d: element %d is %v, want %v", n, c.Off[0], i, got, want)
				}
			}
		}
	})
}
