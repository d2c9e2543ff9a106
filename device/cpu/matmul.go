package cpu

import (
	"runtime"
	"slices"
	"sync"
	"unsafe"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/cpu/internal/vec"
	"github.com/asyncgen/asyncgen/device/pool"
)

func newMatMul(k *device.Kernel) (runner, error) {
	isOther := func(dt device.DType) bool { return dt != k.Out }
	if slices.ContainsFunc(k.In, isOther) || k.Body == nil && len(k.In) != 2 {
		return nil, unsupported(k)
	}
	e, err := newEpilogue(k)
	if err != nil {
		return nil, err
	}
	switch k.Out {
	case device.Float32:
		return matMulWith[float32](e), nil
	case device.Float64:
		return matMulWith[float64](e), nil
	case device.Int64:
		return matMulWith[int64](e), nil
	}
	return nil, unsupported(k)
}

// matMulWith returns matMul, followed by e unless it is nil.
func matMulWith[T number](e *epilogue) runner {
	if e == nil {
		return func(c *device.Command) error { return matMul[T](c, nil) }
	}
	return func(c *device.Command) error {
		f := e.of(c, c.Args.Ints[1])
		defer f.giveBack()
		if c.N > 0 && f.hasVector { // what is wrong with the command is found before anything is written
			v := whole[T](c, 3)
			_, _ = v[c.Off[3]], v[c.Off[3]+(f.n-1)*f.step]
		}
		if err := matMul[T](c, f); err != nil || f.done {
			return err
		}
		return f.all()
	}
}

// Every element is 0 + a0*b0 + a1*b1 + ..., from the left and each product rounded, whatever the
// sizes and strides are: a piece of the sum begins with what the piece before has left in the
// output. Portable Go has no vector registers. So two things count: how many loads and stores a
// product costs, and that neighbouring products do not wait for each other.
const (
	unroll               = 8   // rows of B that are added to a row of the output at once
	blockK               = 128 // rows of B in a block
	blockCols            = 512 // columns of B in a block, which stays in the second cache
	productsPerOperation = 4   // how many take as long as a simple operation, see grain
	few                  = 8   // up to this many columns or rows, and more of the other, dot products are faster
)

// A matrix is an operand: element i,j is data[off+i*row+j*col].
type matrix[T number] struct {
	data          []T
	off, row, col int
}

// packed is memory for a block of B, or for a vector.
type packed [blockK * blockCols]uint64

var packPool = sync.Pool{New: func() any { return new(packed) }}

// matMul computes products. It may do what f says with them, and says so there.
func matMul[T number](c *device.Command, f *finish) error {
	m, n, k := c.Args.Ints[0], c.Args.Ints[1], c.Args.Ints[2]
	batch := c.Args.Shape.Size()
	out := operand[T](c, 0, batch*m*n)
	if len(out) == 0 || k == 0 {
		clear(out)
		return nil
	}
	a, b := newMatrix[T](c, 1, k), newMatrix[T](c, 2, n)
	if batch == 1 {
		product(out, a, b, m, n, k, f)
		return nil
	}
	s := series[T]{out: out, a: a, b: b, m: m, n: n, k: k, each: productsPerOperation}
	if vec.ProductsOf(c.Kernel.Out) != nil {
		s.each = vectorProducts
	}
	if !makeBatch(&s.aBatch, c, 1, m*k) || !makeBatch(&s.bBatch, c, 2, k*n) {
		return errRank(c.Args.Shape)
	}
	areMany := batch >= 4*runtime.GOMAXPROCS(0) || !pool.Worth(m*n*k, s.each*grain) // else they are split one by one
	if areMany && pool.Worth(batch*m*n*k, s.each*grain) {
		s.split(batch)
	} else {
		s.run(0, batch)
	}
	return nil
}

// product sets out to a times b. It may do what f says with it, and says so there.
func product[T number](out []T, a, b matrix[T], m, n, k int, f *finish) {
	if p := vec.ProductsOf(device.DTypeOf[T]()); p != nil {
		tiledProduct(p, unsafe.Pointer(&out[0]), a.side(m, k), b.side(k, n), m, n, k, f)
		return
	}
	clear(out)
	if n == 1 { // a column is a row of the transposed product
		a, b, m, n = b.transposed(), a.transposed(), 1, m
	}
	if pool.Worth(m*n*k, productsPerOperation*grain) {
		split(out, a, b, m, n, k)
	} else {
		multiplyAny(out, n, a, b, m, n, k)
	}
}

// A series is a command of several products, one for each index of the batch.
type series[T number] struct {
	out            []T
	a, b           matrix[T] // of the first
	aBatch, bBatch view      // where the others begin
	m, n, k        int
	each           int // how many products take as long as a simple operation
}

// makeBatch sets v to the view of the matrices of operand i of c, which have the given size.
func makeBatch(v *view, c *device.Command, i, size int) bool {
	shape := c.Args.Shape
	if s := c.Args.Strides[i]; s != nil {
		return makeView(v, shape, s[:len(shape)])
	}
	*v = view{rank: 1, dims: [maxRank]int{shape.Size()}, strides: [maxRank]int{size}}
	return true
}

func (s series[T]) split(batch int) {
	pool.Run(batch, grainOf(s.m*s.n*s.k/s.each), s.run)
}

// run computes the products from lo to hi-1.
func (s *series[T]) run(lo, hi int) {
	for i := lo; i < hi; i++ {
		a, b := s.a, s.b
		a.off += s.aBatch.offset(i)
		b.off += s.bBatch.offset(i)
		product(s.out[i*s.m*s.n:][:s.m*s.n], a, b, s.m, s.n, s.k, nil)
	}
}

// split is multiplyAny with the rows of out, or the columns of its only row, split over the cores.
func split[T number](out []T, a, b matrix[T], m, n, k int) {
	if m == 1 {
		pool.Run(n, grainOf(k/productsPerOperation), func(lo, hi int) { multiplyAny(out[lo:], n, a, b.at(0, lo), 1, hi-lo, k) })
		return
	}
	pool.Run(m, grainOf(n*k/productsPerOperation), func(lo, hi int) { multiplyAny(out[lo*n:], n, a.at(lo, 0), b, hi-lo, n, k) })
}

// multiplyAny adds a times b to out, in the way that is fastest for their sizes and strides. The
// rows of out are ld apart.
func multiplyAny[T number](out []T, ld int, a, b matrix[T], m, n, k int) {
	switch {
	case m <= few && m < n && b.row == 1 && b.col != 1:
		for i := range m {
			dots(out[i*ld:], 1, b.transposed(), n, a.at(i, 0), k)
		}
	case n <= few && n < m && a.col == 1:
		for j := range n {
			dots(out[j:], ld, a, m, b.at(0, j).transposed(), k)
		}
	default:
		multiply(out, ld, a, b, m, n, k)
	}
}

// newMatrix is operand i of c, whose rows are cols long if it is contiguous.
func newMatrix[T number](c *device.Command, i, cols int) matrix[T] {
	x := matrix[T]{whole[T](c, i), c.Off[i], cols, 1}
	if s := c.Args.Strides[i]; s != nil {
		x.row, x.col = s[len(s)-2], s[len(s)-1]
	}
	return x
}

// side is x for tiles, which don't check: all of its elements are in its buffer.
func (x matrix[T]) side(rows, cols int) side {
	down, right := (rows-1)*x.row, (cols-1)*x.col
	_ = x.data[x.off+min(0, down)+min(0, right)]
	_ = x.data[x.off+max(0, down)+max(0, right)]
	size := int(unsafe.Sizeof(x.data[0]))
	return side{unsafe.Pointer(&x.data[x.off]), x.row * size, x.col * size}
}

func (x matrix[T]) transposed() matrix[T] { return matrix[T]{x.data, x.off, x.col, x.row} }

// at is the part of x that begins at row i, column j.
func (x matrix[T]) at(i, j int) matrix[T] {
	x.off += i*x.row + j*x.col
	return x
}

// dots adds k products to each of m sums: element i of the sums is element i*step of out, and its
// products are those of row i of a with the row v. The rows of a are contiguous.
func dots[T number](out []T, step int, a matrix[T], m int, v matrix[T], k int) {
	if v.col == 1 {
		dotRows(out, step, a, m, v.data[v.off:][:k])
		return
	}
	mem := packPool.Get().(*packed)
	defer packPool.Put(mem)
	for p := 0; p < k; p += len(mem) {
		x := slice[T](unsafe.Pointer(mem), min(len(mem), k-p))
		pack(x, v.at(0, p), 1, len(x))
		dotRows(out, step, a.at(0, p), m, x)
	}
}

// dotRows is dots for a contiguous v. Four rows at a time hide each other's latency.
func dotRows[T number](out []T, step int, a matrix[T], m int, v []T) {
	row := func(i int) []T { return a.data[a.off+i*a.row:][:len(v)] }
	i := 0
	for ; i+4 <= m; i += 4 {
		a0, a1, a2, a3 := row(i), row(i+1), row(i+2), row(i+3)
		a0, a1, a2, a3 = a0[:len(v)], a1[:len(v)], a2[:len(v)], a3[:len(v)]
		o := out[i*step:]
		c0, c1, c2, c3 := o[0], o[step], o[2*step], o[3*step]
		for p, x := range v {
			c0 += T(a0[p] * x)
			c1 += T(a1[p] * x)
			c2 += T(a2[p] * x)
			c3 += T(a3[p] * x)
		}
		o[0], o[step], o[2*step], o[3*step] = c0, c1, c2, c3
	}
	for ; i < m; i++ {
		ai, c := row(i), out[i*step]
		for p, x := range v {
			c += T(ai[p] * x)
		}
		out[i*step] = c
	}
}

// multiply is multiplyAny by adding rows of b. A block of b meets all rows of a before the next one.
func multiply[T number](out []T, ld int, a, b matrix[T], m, n, k int) {
	var mem *packed
	if b.col != 1 {
		mem = packPool.Get().(*packed)
		defer packPool.Put(mem)
	}
	for j := 0; j < n; j += blockCols {
		cols := min(blockCols, n-j)
		for p := 0; p < k; p += blockK {
			depth := min(blockK, k-p)
			block := b.at(p, j)
			if mem != nil {
				block = matrix[T]{slice[T](unsafe.Pointer(mem), depth*cols), 0, cols, 1}
				pack(block.data, b.at(p, j), depth, cols)
			}
			for i := range m {
				addRows(out[i*ld+j:][:cols], a.at(i, p), block, depth)
			}
		}
	}
}

// pack copies the first rows and columns of x to dst, row by row.
func pack[T number](dst []T, x matrix[T], rows, cols int) {
	// Along the smaller of x's strides: it is the one that reads whole cache lines.
	if x.row < x.col {
		for j := range cols {
			from := x.off + j*x.col
			for i := range rows {
				dst[i*cols+j] = x.data[from]
				from += x.row
			}
		}
		return
	}
	for i := range rows {
		from := x.off + i*x.row
		for j := range cols {
			dst[i*cols+j] = x.data[from]
			from += x.col
		}
	}
}

// addRows adds rows of b to out, from the first to the last, each times an element of the row a. The
// rows of b are contiguous.
func addRows[T number](out []T, a, b matrix[T], k int) {
	row := func(p int) []T { return b.data[b.off+p*b.row:][:len(out)] }
	factor := func(p int) T { return a.data[a.off+p*a.col] }
	p := 0
	for ; p+unroll <= k; p += unroll {
		a0, a1, a2, a3 := factor(p), factor(p+1), factor(p+2), factor(p+3)
		a4, a5, a6, a7 := factor(p+4), factor(p+5), factor(p+6), factor(p+7)
		b0, b1, b2, b3 := row(p), row(p+1), row(p+2), row(p+3)
		b4, b5, b6, b7 := row(p+4), row(p+5), row(p+6), row(p+7)
		b0, b1, b2, b3 = b0[:len(out)], b1[:len(out)], b2[:len(out)], b3[:len(out)]
		b4, b5, b6, b7 = b4[:len(out)], b5[:len(out)], b6[:len(out)], b7[:len(out)]
		for i, c := range out {
			c += T(a0 * b0[i])
			c += T(a1 * b1[i])
			c += T(a2 * b2[i])
			c += T(a3 * b3[i])
			c += T(a4 * b4[i])
			c += T(a5 * b5[i])
			c += T(a6 * b6[i])
			c += T(a7 * b7[i])
			out[i] = c
		}
	}
	for ; p < k; p++ {
		ap, bp := factor(p), row(p)
		for i, c := range out {
			out[i] = c + T(ap*bp[i])
		}
	}
}
