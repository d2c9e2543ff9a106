package cpu

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"unsafe"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/cpu/internal/vec"
	"github.com/asyncgen/asyncgen/device/kernel"
)

// everyISA runs a test with the loops for each instruction set that the machine has.
func everyISA(t *testing.T, test func(t *testing.T)) {
	for _, isa := range vec.Has() {
		t.Run(isa.String(), func(t *testing.T) {
			withISA(t, isa)
			test(t)
		})
	}
}

func TestMatMulIsThreeLoops(t *testing.T) { everySplit(t, testMatMulIsThreeLoops) }

func testMatMulIsThreeLoops(t *testing.T) {
	rnd := newRand(t)
	testMatMul[float32](t, rnd)
	testMatMul[float64](t, rnd)
	testMatMul[int64](t, rnd)
}

func testMatMul[T number](t *testing.T, rnd *rand.Rand) {
	dt := device.DTypeOf[T]()
	k := device.NewKernel("matmul", device.MatMul, nil, dt, dt, dt)
	length := func(most int) int {
		if rnd.IntN(3) == 0 {
			return rnd.IntN(4)
		}
		return rnd.IntN(most)
	}
	for range 40 {
		m, n, depth := length(40), length(40), length(600)
		if rnd.IntN(10) == 0 {
			m, n, depth = 1+rnd.IntN(2), blockCols+rnd.IntN(5), 1+rnd.IntN(3)
		}
		if rnd.IntN(10) == 0 {
			m, n, depth = 70+rnd.IntN(5), 1+rnd.IntN(3), blockK+1
		}
		c := device.Command{Kernel: k, N: m * n, Args: &device.Args{Ints: []int{m, n, depth}}}
		view := func(rows, cols int) ([]int, int) {
			switch rnd.IntN(4) {
			case 0:
				return []int{1, rows + 1}, (rows+1)*cols + 1
			case 1:
				return []int{cols + 2, 1}, rows*(cols+2) + 1
			case 2:
				return []int{0, 1}, cols + 1
			}
			return nil, rows * cols
		}
		var sizeA, sizeB int
		c.Args.Strides[1], sizeA = view(m, depth)
		c.Args.Strides[2], sizeB = view(depth, n)
		c.Off[1], c.Off[2] = rnd.IntN(3), rnd.IntN(3)
		c.Buf[0], c.Buf[1], c.Buf[2] = randomBuffer(rnd, dt, m*n), randomBuffer(rnd, dt, sizeA+c.Off[1]), randomBuffer(rnd, dt, sizeB+c.Off[2])
		if err := Run(&c); err != nil {
			t.Fatal(err)
		}
		sa, sb := c.Args.Strides[1], c.Args.Strides[2]
		if sa == nil {
			sa = []int{depth, 1}
		}
		if sb == nil {
			sb = []int{n, 1}
		}
		for i := range m {
			for j := range n {
				var want T
				for p := range depth {
					a := kernel.Value[T](load(c.Buf[1], dt, c.Off[1]+i*sa[0]+p*sa[1]))
					b := kernel.Value[T](load(c.Buf[2], dt, c.Off[2]+p*sb[0]+j*sb[1]))
					if vec.ProductsOf(dt) != nil {
						want = kernel.MulAdd(a, b, want)
					} else {
						want += T(a * b)
					}
				}
				if got := load(c.Buf[0], dt, i*n+j); !sameBits(dt, got, kernel.Bits(want)) {
					t.Fatalf("%v %dx%dx%d, strides %v %v: element %d,%d is %v, want %v", dt, m, n, depth, sa, sb, i, j, kernel.Value[T](got), want)
				}
			}
		}
	}
}

// TestSmallProducts has every combination of a few lengths.
func TestSmallProducts(t *testing.T) {
	everyISA(t, func(t *testing.T) {
		rnd := newRand(t)
		lengths := []int{0, 1, 2, 3, 5, 8, 13, 14, 15, 16, 17, 28, 29, 31, 32, 33, 40}
		for _, m := range lengths {
			for _, n := range lengths {
				for _, k := range lengths {
					smallProduct32(t, rnd, m, n, k)
				}
			}
		}
	})
}

func smallProduct32(t *testing.T, rnd *rand.Rand, m, n, k int) {
	x := newProduct[float32](rnd, m, n, k)
	got := x.compute(t)
	for range min(4, len(got)) {
		i, j := rnd.IntN(m), rnd.IntN(n)
		if want := x.element(i, j); !sameValue(got[i*n+j], want) {
			t.Fatalf("%v: element %d,%d is %v, want %v", x, i, j, got[i*n+j], want)
		}
	}
}

// A randomProduct is a MatMul command without its output.
type randomProduct[T float32 | float64] struct {
	device.Command
	m, n, k int
}

var productKernels = map[device.DType]*device.Kernel{
	device.Float32: device.NewKernel("matmul", device.MatMul, nil, device.Float32, device.Float32, device.Float32),
	device.Float64: device.NewKernel("matmul", device.MatMul, nil, device.Float64, device.Float64, device.Float64),
}

// newProduct has operands with any strides.
func newProduct[T float32 | float64](rnd *rand.Rand, m, n, k int) *randomProduct[T] {
	return newProductIn[T](rnd, m, n, k, device.HostBuffer)
}

// newProductIn is newProduct in memory from alloc.
func newProductIn[T float32 | float64](rnd *rand.Rand, m, n, k int, alloc func(bytes int64) *device.Buffer) *randomProduct[T] {
	dt := device.DTypeOf[T]()
	x := &randomProduct[T]{device.Command{Kernel: productKernels[dt], N: m * n, Args: &device.Args{Ints: []int{m, n, k}}}, m, n, k}
	for i, size := range [][2]int{{m, k}, {k, n}} {
		rows, cols := size[0], size[1]
		strides, span := []int{cols, 1}, rows*cols
		switch rnd.IntN(6) {
		case 0:
			strides = []int{1, rows}
		case 1:
			strides, span = []int{cols + 5, 1}, rows*(cols+5)
		case 2:
			strides, span = []int{1, rows + 5}, (rows+5)*cols
		case 3:
			strides, span = []int{2*cols + 1, 2}, rows*(2*cols+1)
		case 4:
			strides, span = []int{0, 1}, cols
		}
		x.Off[1+i] = rnd.IntN(4)
		x.Buf[1+i] = alloc(int64((x.Off[1+i] + span) * dt.Size()))
		data := device.Slice[T](x.Buf[1+i], 0, x.Off[1+i]+span)
		for i := range data {
			data[i] = T(rnd.NormFloat64())
		}
		x.Args.Strides[1+i] = strides
	}
	return x
}

func (x *randomProduct[T]) String() string {
	return fmt.Sprintf("%v %dx%dx%d, strides %v %v", x.Kernel.Out, x.m, x.n, x.k, x.Args.Strides[1], x.Args.Strides[2])
}

// operand is element i,j of an operand.
func (x *randomProduct[T]) operand(which, i, j int) *T {
	s := x.Args.Strides[which]
	at := x.Off[which] + i*s[0] + j*s[1]
	return &device.Slice[T](x.Buf[which], 0, at+1)[at]
}

// element is what one of the product is.
func (x *randomProduct[T]) element(i, j int) T {
	var sum T
	for q := range x.k {
		a, b := *x.operand(1, i, q), *x.operand(2, q, j)
		if vec.ProductsOf(x.Kernel.Out) != nil {
			sum = kernel.MulAdd(a, b, sum)
		} else {
			sum += T(a * b)
		}
	}
	return sum
}

// compute returns the product. Nothing else is written.
func (x *randomProduct[T]) compute(t *testing.T) []T {
	t.Helper()
	const guard = 40
	c := x.Command
	c.Off[0] = guard
	c.Buf[0] = device.HostBuffer(int64((c.N + 2*guard) * x.Kernel.Out.Size()))
	out := device.Slice[T](c.Buf[0], 0, c.N+2*guard)
	for i := range out {
		out[i] = T(math.NaN())
	}
	if err := Run(&c); err != nil {
		t.Fatal(err)
	}
	for i := range guard {
		if out[i] == out[i] || out[guard+c.N+i] == out[guard+c.N+i] {
			t.Fatalf("%v wrote outside of its output", x)
		}
	}
	return out[guard : guard+c.N]
}

// part is the product of some rows and columns.
func (x *randomProduct[T]) part(i, j, m, n int) *randomProduct[T] {
	p := *x
	args := *x.Args
	args.Ints = []int{m, n, x.k}
	p.Args, p.N, p.m, p.n = &args, m*n, m, n
	p.Off[1] += i * args.Strides[1][0]
	p.Off[2] += j * args.Strides[2][1]
	return &p
}

func sameValue[T float32 | float64](x, y T) bool {
	return kernel.Bits(x) == kernel.Bits(y) || x != x && y != y
}

// sizesOfProducts are lengths of any kind: long and short, to either side.
func sizesOfProducts(rnd *rand.Rand) (m, n, k int) {
	m, n, k = 1+rnd.IntN(300), 1+rnd.IntN(300), 1+rnd.IntN(700)
	switch rnd.IntN(8) {
	case 6:
		m, n = 1+rnd.IntN(500), 1+rnd.IntN(15)
	case 0:
		m = 1
	case 1:
		n = 1
	case 2:
		m, n = 1+rnd.IntN(40), 1+rnd.IntN(600)
	case 3:
		m, n = 1+rnd.IntN(600), 1+rnd.IntN(40)
	case 4:
		m, n, k = 1+rnd.IntN(30), 1+rnd.IntN(30), 1+rnd.IntN(3000)
	case 5:
		m, n, k = 1+rnd.IntN(2), 1+rnd.IntN(70), 1+rnd.IntN(3*mostDepth)
	}
	return m, n, k
}

// TestProductsHaveTheSameBits computes products on any number of workers, by every
// instruction set that has the same loops, and in parts.
func TestProductsHaveTheSameBits(t *testing.T) {
	rnd := newRand(t)
	rounds := 20
	if raceEnabled {
		rounds = 5
	}
	for range rounds {
		sameProducts[float32](t, rnd)
		sameProducts[float64](t, rnd)
	}
}

func sameProducts[T float32 | float64](t *testing.T, rnd *rand.Rand) {
	defer vec.Use(vec.Current())
	m, n, k := sizesOfProducts(rnd)
	x := newProduct[T](rnd, m, n, k)
	var first []T
	for _, isa := range vec.Has()[1:] {
		vec.Use(isa)
		got := x.compute(t)
		x.bound(t, got)
		if first == nil {
			first = got
			for range 5 {
				i, j := rnd.IntN(m), rnd.IntN(n)
				if want := x.element(i, j); !sameValue(got[i*n+j], want) {
					t.Fatalf("%v, %v: element %d,%d is %v, want %v", isa, x, i, j, got[i*n+j], want)
				}
			}
		}
		x.same(t, isa.String(), got, first)
		x.spread(t, rnd, first)
	}
	vec.Use(vec.Go)
	got := x.compute(t)
	x.bound(t, got)
	x.spread(t, rnd, got)
}

func (x *randomProduct[T]) same(t *testing.T, how string, got, want []T) {
	t.Helper()
	for e := range want {
		if !sameValue(got[e], want[e]) {
			t.Fatalf("%v, %v, %s: element %d,%d is %v, want %v", vec.Current(), x, how, e/x.n, e%x.n, got[e], want[e])
		}
	}
}

// spread computes x on several workers, and parts of it.
func (x *randomProduct[T]) spread(t *testing.T, rnd *rand.Rand, want []T) {
	t.Helper()
	defer func(old int) { grain = old }(grain)
	grain = 64
	for _, workers := range []int{1, 2, 7} {
		old := runtime.GOMAXPROCS(workers)
		got := x.compute(t)
		runtime.GOMAXPROCS(old)
		x.same(t, fmt.Sprintf("%d workers", workers), got, want)
	}
	grain = 1 << 18
	for range 3 {
		i, j := rnd.IntN(x.m), rnd.IntN(x.n)
		m, n := 1+rnd.IntN(x.m-i), 1+rnd.IntN(x.n-j)
		switch rnd.IntN(4) {
		case 0:
			m = 1
		case 1:
			n = 1
		}
		p := x.part(i, j, m, n)
		for e, got := range p.compute(t) {
			if v := want[(i+e/n)*x.n+j+e%n]; !sameValue(got, v) {
				t.Fatalf("%v, %v: element %d,%d is %v, and %v in the product of %d rows and %d columns from %d,%d", vec.Current(), x, i+e/n, j+e%n, v, got, m, n, i, j)
			}
		}
	}
}

// bound compares with gonum: the error is no larger than it may be for any order of summation.
func (x *randomProduct[T]) bound(t *testing.T, got []T) {
	t.Helper()
	a, b := blas64.General{Rows: x.m, Cols: x.k, Stride: x.k}, blas64.General{Rows: x.k, Cols: x.n, Stride: x.n}
	absA, absB := a, b
	for which, g := range map[int][2]*blas64.General{1: {&a, &absA}, 2: {&b, &absB}} {
		for i := range g[0].Rows {
			for j := range g[0].Cols {
				v := float64(*x.operand(which, i, j))
				g[0].Data, g[1].Data = append(g[0].Data, v), append(g[1].Data, math.Abs(v))
			}
		}
	}
	want := blas64.General{Rows: x.m, Cols: x.n, Stride: x.n, Data: make([]float64, x.m*x.n)}
	size := want
	size.Data = make([]float64, x.m*x.n)
	blas64.Gemm(blas.NoTrans, blas.NoTrans, 1, a, b, 0, want)
	blas64.Gemm(blas.NoTrans, blas.NoTrans, 1, absA, absB, 0, size)
	epsilon := 0x1p-53
	if x.Kernel.Out == device.Float32 {
		epsilon += 0x1p-24
	} else {
		epsilon *= 2 // gonum's own
	}
	for e, v := range got {
		if most := float64(x.k+1) * epsilon * size.Data[e]; !(math.Abs(float64(v)-want.Data[e]) <= most) {
			t.Fatalf("%v, %v: element %d,%d is %v, want %v within %v", vec.Current(), x, e/x.n, e%x.n, v, want.Data[e], most)
		}
	}
}

// TestLargeProduct is cut in every way that there is.
func TestLargeProduct(t *testing.T) {
	if raceEnabled || testing.Short() {
		t.Skip("takes long")
	}
	rnd := newRand(t)
	x := newProduct[float32](rnd, 300, 400, 3000)
	x.bound(t, x.compute(t))
}

// Products have the same bits on machines with other caches, which cut them elsewhere.
func TestBlockSizes(t *testing.T) {
	if got, want := blockSizesFor(vec.Caches{First: 32 << 10, Second: 1 << 20, Last: 32 << 20}), (blockSizes{2048, 384 << 10, 8 << 20}); got != want {
		t.Errorf("AMD Zen 4: %v, want %v", got, want)
	}
	if got, want := blockSizesFor(vec.Caches{First: 48 << 10, Second: 2 << 20, Last: 300 << 20}), (blockSizes{3072, 768 << 10, 8 << 20}); got != want {
		t.Errorf("Intel: %v, want %v", got, want)
	}
	old := sizes
	defer func() { sizes = old }()
	rnd := newRand(t)
	m, n, k := 150+rnd.IntN(200), 150+rnd.IntN(200), 1500+rnd.IntN(2000)
	c := device.Command{Kernel: productKernels[device.Float32], N: m * n, Args: &device.Args{Ints: []int{m, n, k}}}
	for i, length := range []int{m * n, m * k, n * k} {
		c.Buf[i] = device.HostBuffer(int64(4 * length))
		values := device.Slice[float32](c.Buf[i], 0, length)
		for j := range values {
			values[j] = float32(rnd.NormFloat64())
		}
	}
	product := func() []float32 {
		if _, err := New().Submit([]device.Command{c}); err != nil {
			t.Fatal(err)
		}
		return slices.Clone(device.Slice[float32](c.Buf[0], 0, m*n))
	}
	want := product()
	for _, c := range []vec.Caches{{First: 1, Second: 1, Last: 1}, {First: 32 << 10, Second: 512 << 10, Last: 8 << 20}, {First: 48 << 10, Second: 2 << 20, Last: 300 << 20}, {First: 128 << 10, Second: 12 << 20, Last: 12 << 20}} {
		if sizes = blockSizesFor(c); !slices.Equal(product(), want) {
			t.Errorf("%d x %d x %d: other bits for %+v", m, n, k, c)
		}
	}
	sizes = blockSizes{depth: 512, a: 8 << 10, b: 16 << 10}
	if !slices.Equal(product(), want) {
		t.Errorf("%d x %d x %d: other bits in small blocks", m, n, k)
	}
}

// TestPanelUnderWay: a panel of B that somebody else is copying is copied once more, and not waited for.
func TestPanelUnderWay(t *testing.T) {
	defer vec.Use(vec.Current())
	rnd := newRand(t)
	for _, isa := range vec.Has()[1:] {
		vec.Use(isa)
		p := vec.ProductsOf(device.Float32)
		k, n := 1+rnd.IntN(1000), 1+rnd.IntN(200)
		values := device.HostBuffer(int64(4 * k * n))
		b := device.Slice[float32](values, 0, k*n)
		for i := range b {
			b[i] = rnd.Float32()
		}
		x := tiled{Products: p, b: side{values.Ptr, 4 * n, 4}, m: 1, n: n, k: k}
		part := blocking{tiled: x, copyB: true, to: k, depth: (4*k + sizes.depth - 1) / sizes.depth, cols: n, rows: 1, whole: 1}
		part.panels = (n + 2*p.Lanes - 1) / (2 * p.Lanes)
		part.copied = device.HostBuffer(int64(4*k*part.panels*2*p.Lanes + slack)).Ptr
		part.states = make([]atomic.Uint32, part.depth*part.panels)
		h := part.newHand()
		for j := range part.panels {
			for d := range part.depth {
				state := &part.states[d*part.panels+j]
				for _, s := range []uint32{underWay, missing, complete} {
					state.Store(s)
					got, step := part.panel(h, j, d)
					if (got == h.panel) != (s == underWay) {
						t.Fatalf("state %d: the copy is %p, the own one would be %p", s, got, h.panel)
					}
					lo, hi := part.block(d), part.block(d+1)
					for q := lo; q < hi; q++ {
						want := b[q*n+j*2*p.Lanes : q*n+min(n, (j+1)*2*p.Lanes)]
						if row := slice[float32](unsafe.Add(got, (q-lo)*step), len(want)); !slices.Equal(row, want) {
							t.Fatalf("%v, state %d, panel %d, row %d is %v, want %v", isa, s, j, q, row, want)
						}
					}
				}
			}
		}
		h.giveBack()
	}
}

// TestOperandsBesideGuards reads operands and writes results at the ends of what can be touched.
func TestOperandsBesideGuards(t *testing.T) {
	everyISA(t, func(t *testing.T) {
		rnd := newRand(t)
		for range 150 {
			besideGuards[float32](t, rnd)
			besideGuards[float64](t, rnd)
		}
	})
}

func besideGuards[T float32 | float64](t *testing.T, rnd *rand.Rand) {
	m, n, k := 1+rnd.IntN(40), 1+rnd.IntN(70), 1+rnd.IntN(40)
	switch rnd.IntN(4) {
	case 0:
		m, k = 1, 1+rnd.IntN(300)
	case 1:
		n, k = 1, 1+rnd.IntN(300)
	case 2:
		m, k = 1+rnd.IntN(100), 1+rnd.IntN(700)
	}
	var done []func()
	defer func() {
		for _, f := range done {
			f()
		}
	}()
	alloc := func(bytes int64) *device.Buffer {
		b, free := guarded(t, bytes, rnd.IntN(2) == 0)
		done = append(done, free)
		return b
	}
	x := newProductIn[T](rnd, m, n, k, alloc)
	want := x.compute(t)
	c := x.Command
	c.Buf[0] = alloc(int64(c.N * c.Kernel.Out.Size()))
	if err := Run(&c); err != nil {
		t.Fatal(err)
	}
	x.same(t, "beside guards", device.Slice[T](c.Buf[0], 0, c.N), want)
}

// TestNoNumbersStay: what is not finite in a row of A or a column of B shows there and nowhere else.
func TestNoNumbersStay(t *testing.T) {
	everyISA(t, func(t *testing.T) {
		rnd := newRand(t)
		for range 20 {
			m, n, k := 1+rnd.IntN(70), 1+rnd.IntN(70), 1+rnd.IntN(70)
			if rnd.IntN(2) == 0 {
				k += 700
			}
			x := newProduct[float32](rnd, m, n, k)
			if x.Args.Strides[1][0] == 0 || x.Args.Strides[2][0] == 0 {
				continue // a row for all
			}
			row, col := rnd.IntN(m), rnd.IntN(n)
			*x.operand(1, row, rnd.IntN(k)) = float32(math.NaN())
			*x.operand(2, rnd.IntN(k), col) = float32(math.Inf(1))
			for e, v := range x.compute(t) {
				isFinite := !math.IsNaN(float64(v)) && !math.IsInf(float64(v), 0)
				if isFinite == (e/n == row || e%n == col) {
					t.Fatalf("%v with a NaN in row %d and an infinity in column %d: element %d,%d is %v", x, row, col, e/n, e%n, v)
				}
			}
		}
	})
}
