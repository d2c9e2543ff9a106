package devicetest

import (
	"math"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/kernel"
)

// reduction is a random Reduce command without its kernel and output, and the elements of each result.
func reduction[T device.Element](s *suite, values func(*suite, int) []T) (c device.Command, elements [][]T) {
	shape := s.shape()
	if s.rnd.IntN(6) == 0 {
		shape = device.Shape{1 + s.rnd.IntN(3), kernel.Block*s.rnd.IntN(3) + s.rnd.IntN(100)}
	}
	kept := s.rnd.IntN(len(shape) + 1)
	strides, span := s.view(shape)
	switch s.rnd.IntN(3) {
	case 0:
		strides, span = nil, shape.Size()
	case 1: // the kept axes are the inner ones in memory, as in a sum over the first axis
		strides = append(shape[:kept].Strides(), shape[kept:].Strides()...)
		for axis := kept; axis < len(shape); axis++ {
			strides[axis] *= shape[:kept].Size()
		}
		span = shape.Size()
	}
	c = device.Command{N: shape[:kept].Size(), Args: &device.Args{Shape: shape, Kept: kept}, Off: [4]int{1: s.rnd.IntN(5)}}
	data := values(s, c.Off[1]+span)
	c.Args.Strides[1], c.Buf[1] = strides, put(s, data)
	if strides == nil {
		strides = shape.Strides()
	}
	walk(shape[:kept], func(outer []int) {
		var x []T
		walk(shape[kept:], func(inner []int) {
			x = append(x, data[c.Off[1]+at(outer, strides[:kept])+at(inner, strides[kept:])])
		})
		elements = append(elements, x)
	})
	return c, elements
}

func reducer[T device.Element](r kernel.Reducer) *device.Kernel {
	dt := device.DTypeOf[T]()
	return device.NewKernel(r.String(), device.Reduce, r, dt, dt)
}

func testReduce(s *suite) {
	reduceFloats[float32](s)
	reduceFloats[float64](s)
	exactly(s, kernel.ReduceSum, ordinary[int64], 0, func(x, y int64) int64 { return x + y })
	exactly(s, kernel.ReduceProd, ordinary[int64], 1, func(x, y int64) int64 { return x * y })
	exactly(s, kernel.ReduceMax, ordinary[int64], math.MinInt64, func(x, y int64) int64 { return max(x, y) })
	exactly(s, kernel.ReduceMin, ordinary[int64], math.MaxInt64, func(x, y int64) int64 { return min(x, y) })
	exactly(s, kernel.ReduceAll, bools, true, func(x, y bool) bool { return x && y })
	exactly(s, kernel.ReduceAny, bools, false, func(x, y bool) bool { return x || y })
}

func reduceFloats[T float32 | float64](s *suite) {
	if lacks[T](s) {
		return
	}
	inf := T(math.Inf(1))
	exactly(s, kernel.ReduceMax, ordinary[T], -inf, func(x, y T) T { return max(x, y) })
	exactly(s, kernel.ReduceMin, ordinary[T], inf, func(x, y T) T { return min(x, y) })
	exactly(s, kernel.ReduceMax, floats[T], -inf, func(x, y T) T { return max(x, y) }) // with NaN
	sum, prod := reducer[T](kernel.ReduceSum), reducer[T](kernel.ReduceProd)
	for range 30 {
		c, elements := reduction(s, ordinary[T])
		c.Kernel = sum
		for i, got := range compute[T](s, c) {
			want, size := 0.0, 0.0
			for _, v := range elements[i] {
				want += float64(v)
				size += math.Abs(float64(v))
			}
			// This bound holds for any order of summation.
			if bound := float64(len(elements[i])) * (epsilon[T]() + 0x1p-53) * size; math.Abs(float64(got)-want) > bound {
				s.Fatalf("sum of %d elements is %v, want %v within %v", len(elements[i]), got, want, bound)
			}
		}
		c, elements = reduction(s, func(s *suite, n int) []T {
			x := make([]T, n)
			for i := range x {
				x[i] = T(math.Exp(s.rnd.NormFloat64() / 5000)) // even its power, by broadcasting, stays in range
			}
			return x
		})
		c.Kernel = prod
		for i, got := range compute[T](s, c) {
			want := 1.0
			for _, v := range elements[i] {
				want *= float64(v)
			}
			if bound := float64(len(elements[i])+1) * 1.1 * (epsilon[T]() + 0x1p-53) * want; math.Abs(float64(got)-want) > bound {
				s.Fatalf("product of %d elements is %v, want %v within %v", len(elements[i]), got, want, bound)
			}
		}
	}
}

// exactly tests a reducer for which the order does not matter.
func exactly[T device.Element](s *suite, r kernel.Reducer, values func(*suite, int) []T, identity T, f func(x, y T) T) {
	k := reducer[T](r)
	for range 15 {
		c, elements := reduction(s, values)
		c.Kernel = k
		for i, got := range compute[T](s, c) {
			want := identity
			for _, v := range elements[i] {
				want = f(want, v)
			}
			if !same(got, want) {
				s.Fatalf("%v of %T %v is %v, want %v", r, want, elements[i], got, want)
			}
		}
	}
}

// testReduceTree compares with the defined order, to the last bit.
func testReduceTree(s *suite) {
	tree[float32](s)
	tree[float64](s)
}

func tree[T float32 | float64](s *suite) {
	if lacks[T](s) {
		return
	}
	for _, r := range []kernel.Reducer{kernel.ReduceSum, kernel.ReduceProd} {
		k := reducer[T](r)
		for _, n := range []int{1, 3, 60, 200, kernel.Block, 3*kernel.Block + 100} {
			x := ordinary[T](s, n)
			c := device.Command{Kernel: k, N: 1, Buf: [4]*device.Buffer{nil, put(s, x)}, Args: &device.Args{Shape: device.Shape{n}}}
			if got, want := compute[T](s, c)[0], kernel.Fold(r, x); !same(got, want) {
				s.Fatalf("%v of %d elements is %v, by the tree %v", r, n, got, want)
			}
		}
		for range 30 {
			c, elements := reduction(s, ordinary[T])
			c.Kernel = k
			for i, got := range compute[T](s, c) {
				if want := kernel.Fold(r, elements[i]); !same(got, want) {
					s.Fatalf("%v of %d elements of shape %v, %d kept, strides %v, is %v, by the tree %v", r, len(elements[i]), c.Args.Shape, c.Args.Kept, c.Args.Strides[1], got, want)
				}
			}
		}
	}
}

// A product is a random MatMul command without its output, and its operands.
type product[T number] struct {
	device.Command
	m, n, k int
	a, b    func(i, j int) T
}

func newProduct[T number](s *suite, m, n, k int, values func(*suite, int) []T) product[T] {
	p := product[T]{m: m, n: n, k: k}
	p.Kernel = kernelFor(device.MatMul, device.DTypeOf[T]())
	p.N = m * n
	p.Args = &device.Args{Ints: []int{m, n, k}}
	operand := func(i, rows, cols int) func(i, j int) T {
		strides, span := []int{cols, 1}, rows*cols
		switch s.rnd.IntN(3) {
		case 0: // transposed, with a gap
			strides, span = []int{1, rows + 1}, (rows+1)*cols
		case 1: // part of a wider matrix
			strides, span = []int{cols + 3, 1}, rows*(cols+3)
		}
		p.Off[i] = s.rnd.IntN(4)
		data := values(s, p.Off[i]+span)
		p.Buf[i], p.Args.Strides[i] = put(s, data), strides
		off := p.Off[i]
		return func(i, j int) T { return data[off+i*strides[0]+j*strides[1]] }
	}
	p.a, p.b = operand(1, m, k), operand(2, k, n)
	return p
}

func testMatMul(s *suite) {
	var single, double, integer roundings
	for range 12 {
		multiply[float32](s, &single)
		multiply[float64](s, &double)
		multiply[int64](s, &integer)
	}
	// A NaN stays in its row.
	const n = 9
	a := make([]float32, n*n)
	for i := range a {
		a[i] = 1
	}
	b := put(s, a)
	a[4*n+2] = float32(math.NaN())
	c := device.Command{Kernel: kernelFor(device.MatMul, device.Float32), N: n * n, Buf: [4]*device.Buffer{nil, put(s, a), b}, Args: &device.Args{Ints: []int{n, n, n}}}
	for i, got := range compute[float32](s, c) {
		if isNaN := got != got; isNaN != (i/n == 4) {
			s.Errorf("element %d,%d of a product with a NaN in row 4 is %v", i/n, i%n, got)
		}
	}
}

// sizes are random lengths, some of them longer than any block.
func (s *suite) sizes() (m, n, k int) {
	side := func() int {
		if s.rnd.IntN(3) == 0 {
			return 1 + s.rnd.IntN(4)
		}
		return 1 + s.rnd.IntN(40)
	}
	m, n, k = side(), side(), side()
	switch s.rnd.IntN(4) {
	case 0:
		k = 250 + s.rnd.IntN(600)
	case 1:
		n, m = 500+s.rnd.IntN(50), min(m, 5)
	}
	return m, n, k
}

func multiply[T number](s *suite, rounding *roundings) {
	if lacks[T](s) {
		return
	}
	m, n, k := s.sizes()
	p := newProduct(s, m, n, k, ordinary[T])
	for i, got := range compute[T](s, p.Command) {
		var once, twice T
		want, size := 0.0, 0.0
		for q := range k {
			x, y := p.a(i/n, q), p.b(q, i%n)
			once, twice = kernel.MulAdd(x, y, once), twice+T(x*y)
			want += float64(x) * float64(y)
			size += math.Abs(float64(x) * float64(y))
		}
		rounding.note(got == once, got == twice)
		if rounding.none() {
			s.Fatalf("%v %dx%dx%d: element %d,%d is %v, want %v or, if products are rounded, %v", p.Kernel.Out, m, n, k, i/n, i%n, got, once, twice)
		}
		if p.Kernel.Out == device.Int64 {
			continue
		}
		if bound := float64(k+1) * (epsilon[T]() + 0x1p-53) * size; math.Abs(float64(got)-want) > bound {
			s.Fatalf("%dx%dx%d: element %d,%d is %v, want %v within %v", m, n, k, i/n, i%n, got, want, bound)
		}
	}
}

// roundings are the ways of rounding that some product seen so far rules out.
type roundings struct{ notOnce, notTwice bool }

func (r *roundings) note(isOnce, isTwice bool) {
	r.notOnce = r.notOnce || !isOnce
	r.notTwice = r.notTwice || !isTwice
}

func (r *roundings) none() bool { return r.notOnce && r.notTwice }

// testMatMulOrder checks that products are accumulated over k in increasing order. It adds ones and two
// big numbers that cancel; the ones between these are lost.
func testMatMulOrder(s *suite) {
	for _, size := range [][3]int{{1, 1, 600}, {1, 40, 600}, {40, 1, 600}, {7, 5, 600}, {64, 64, 300}} {
		m, n, k := size[0], size[1], size[2]
		big, back := k/3, 2*k/3
		value := func(q int) float32 {
			switch q {
			case big:
				return 1 << 30
			case back:
				return -1 << 30
			}
			return 1
		}
		a := make([]float32, m*k)
		for i := range a {
			a[i] = value(i % k)
		}
		b := make([]float32, k*n)
		for i := range b {
			b[i] = 1
		}
		c := device.Command{Kernel: kernelFor(device.MatMul, device.Float32), N: m * n, Buf: [4]*device.Buffer{nil, put(s, a), put(s, b)}, Args: &device.Args{Ints: []int{m, n, k}}}
		// At 2**30, neighbouring float32s are 128 apart. So adding a one changes nothing, and 2**30 plus the
		// ones before it is rounded.
		want := float32(0)
		for q := range k {
			want += value(q)
		}
		for i, got := range compute[float32](s, c) {
			if got != want {
				s.Fatalf("%dx%dx%d: element %d is %v, want %v in increasing order of k", m, n, k, i, got, want)
			}
		}
	}
}

func testBatchInvariance(s *suite) {
	if !s.b.Caps().BatchInvariant {
		s.Log("the backend does not promise it")
		return
	}
	for range 8 {
		productsAlone[float32](s)
		productsAlone[float64](s)
		rowsAlone[float32](s)
		rowsAlone[float64](s)
		piecesAlone[float32](s)
		piecesAlone[float64](s)
	}
}

// productsAlone computes a product, and its rows, columns and elements in commands of their own. The
// bits must be the same.
func productsAlone[T number](s *suite) {
	if lacks[T](s) {
		return
	}
	m, n, k := s.sizes()
	p := newProduct(s, m, n, k, ordinary[T])
	full := compute[T](s, p.Command)
	part := func(i, j, rows, cols int) {
		args := *p.Args
		args.Ints = []int{rows, cols, k}
		c := p.Command
		c.N, c.Args = rows*cols, &args
		c.Off[1] += i * args.Strides[1][0]
		c.Off[2] += j * args.Strides[2][1]
		for e, got := range compute[T](s, c) {
			if want := full[(i+e/cols)*n+j+e%cols]; !same(got, want) {
				s.Fatalf("%dx%dx%d, strides %v %v: element %d,%d is %v in the full product, %v in one of %dx%d from %d,%d",
					m, n, k, args.Strides[1], args.Strides[2], i+e/cols, j+e%cols, want, got, rows, cols, i, j)
			}
		}
	}
	i, j := s.rnd.IntN(m), s.rnd.IntN(n)
	part(i, 0, 1, n)
	part(0, j, m, 1)
	part(i, j, 1, 1)
	part(i, j, 1+s.rnd.IntN(m-i), 1+s.rnd.IntN(n-j))
}

// rowsAlone reduces rows together, as columns of the transposed matrix, and one by one. The bits must be
// the same.
func rowsAlone[T float32 | float64](s *suite) {
	if lacks[T](s) {
		return
	}
	rows, length := 1+s.rnd.IntN(70), 1+s.rnd.IntN(300)
	if s.rnd.IntN(4) == 0 {
		rows, length = 3, kernel.Block+s.rnd.IntN(kernel.Block)
	}
	data := ordinary[T](s, rows*length)
	turned := make([]T, len(data))
	for i := range rows {
		for j := range length {
			turned[j*rows+i] = data[i*length+j]
		}
	}
	k := reducer[T](kernel.ReduceSum)
	together := device.Command{Kernel: k, N: rows, Buf: [4]*device.Buffer{nil, put(s, data)}, Args: &device.Args{Shape: device.Shape{rows, length}, Kept: 1}}
	want := compute[T](s, together)
	columns := together
	columns.Buf[1] = put(s, turned)
	columns.Args = &device.Args{Shape: device.Shape{rows, length}, Kept: 1, Strides: [4][]int{1: {1, rows}}}
	for i, got := range compute[T](s, columns) {
		if !same(got, want[i]) {
			s.Fatalf("the sum of row %d of %dx%d is %v, and %v when it is a column", i, rows, length, want[i], got)
		}
	}
	i := s.rnd.IntN(rows)
	alone := together
	alone.N, alone.Off[1] = 1, i*length
	alone.Args = &device.Args{Shape: device.Shape{length}}
	if got := compute[T](s, alone)[0]; !same(got, want[i]) {
		s.Fatalf("the sum of row %d of %dx%d is %v, and %v alone", i, rows, length, want[i], got)
	}
}

// piecesAlone computes an element-wise operation as a whole and in pieces. The bits must be the same.
func piecesAlone[T float32 | float64](s *suite) {
	if lacks[T](s) {
		return
	}
	dt := device.DTypeOf[T]()
	x, y := kernel.Arg(0, dt), kernel.Arg(1, dt)
	k := mapKernel(kernel.Tanh(kernel.Add(kernel.Exp(x), kernel.Mul(kernel.Sin(y), kernel.Erf(x)))))
	n := 1 + s.rnd.IntN(4000)
	c := device.Command{Kernel: k, N: n, Buf: [4]*device.Buffer{nil, put(s, ordinary[T](s, n)), put(s, ordinary[T](s, n))}}
	want := compute[T](s, c)
	for range 3 {
		from := s.rnd.IntN(n)
		c.N, c.Off = 1+s.rnd.IntN(n-from), [4]int{1: from, 2: from}
		for i, got := range compute[T](s, c) {
			if !same(got, want[from+i]) {
				s.Fatalf("%s: element %d of %d is %v, and %v in a piece of %d from %d", k.Name, from+i, n, want[from+i], got, c.N, from)
			}
		}
	}
}
