package cpu

import (
	"sync"
	"unsafe"

	"github.com/asyncgen/asyncgen/device"
)

func newMatMul(k *device.Kernel) (runner, error) {
	if len(k.In) != 2 || k.In[0] != k.Out || k.In[1] != k.Out {
		return nil, unsupported(k)
	}
	switch k.Out {
	case device.Float32:
		return matMul[float32], nil
	case device.Float64:
		return matMul[float64], nil
	case device.Int64:
		return matMul[int64], nil
	}
	return nil, unsupported(k)
}

// The matrices are worked on in pieces that fit the caches. The accumulators
// of a piece of the output begin with what earlier pieces of k have left there,
// so every element is 0 + a0*b0 + a1*b1 + ..., from the left and each product rounded,
// whatever the sizes are.
const (
	microRows = 2 // accumulators are microRows*microCols registers
	microCols = 4
	blockK    = 256 // a packed column panel of B is blockK*microCols elements: in L1
	blockRows = 128 // a packed block of A is blockRows*blockK elements: in L2
	blockCols = 512 // a packed block of B
)

// A matrix is an operand: element i,j is data[off+i*row+j*col].
type matrix[T number] struct {
	data          []T
	off, row, col int
}

// packs is the memory into which blocks are packed.
type packs struct {
	a [blockRows * blockK]uint64
	b [blockCols * blockK]uint64
}

var packPool = sync.Pool{New: func() any { return new(packs) }}

func matMul[T number](c *device.Command) error {
	m, n, k := c.Args.Ints[0], c.Args.Ints[1], c.Args.Ints[2]
	out := operand[T](c, 0, m*n)
	clear(out)
	if len(out) == 0 || k == 0 {
		return nil
	}
	a := matrix[T]{whole[T](c, 1), c.Off[1], k, 1}
	if s := c.Args.Strides[1]; s != nil {
		a.row, a.col = s[0], s[1]
	}
	b := matrix[T]{whole[T](c, 2), c.Off[2], n, 1}
	if s := c.Args.Strides[2]; s != nil {
		b.row, b.col = s[0], s[1]
	}
	if m == 1 { // a row times a matrix is the transposed matrix times a column
		a, b, m, n = b.transposed(), a.transposed(), n, 1
	}
	switch {
	case n == 1 && a.row == 1:
		addColumns(out, a, b, k)
	case n == 1 && a.col == 1 && b.row == 1:
		dotRows(out, a, b.data[b.off:][:k])
	default:
		multiply(out, a, b, m, n, k)
	}
	return nil
}

func (a matrix[T]) transposed() matrix[T] { return matrix[T]{a.data, a.off, a.col, a.row} }

// addColumns adds the columns of a, which are contiguous, times the elements of
// the column b to out, four at a time.
func addColumns[T number](out []T, a, b matrix[T], k int) {
	column := func(p int) []T { return a.data[a.off+p*a.col:][:len(out)] }
	factor := func(p int) T { return b.data[b.off+p*b.row] }
	p := 0
	for ; p+4 <= k; p += 4 {
		a0, a1, a2, a3 := column(p), column(p+1), column(p+2), column(p+3)
		b0, b1, b2, b3 := factor(p), factor(p+1), factor(p+2), factor(p+3)
		a0, a1, a2, a3 = a0[:len(out)], a1[:len(out)], a2[:len(out)], a3[:len(out)]
		for i := range out {
			out[i] = out[i] + T(a0[i]*b0) + T(a1[i]*b1) + T(a2[i]*b2) + T(a3[i]*b3)
		}
	}
	for ; p < k; p++ {
		ap, bp := column(p), factor(p)
		for i := range out {
			out[i] += T(ap[i] * bp)
		}
	}
}

// dotRows adds the products of the rows of a, which are contiguous, with the
// column b to out. Four rows at a time hide each other's latency.
func dotRows[T number](out []T, a matrix[T], b []T) {
	row := func(i int) []T { return a.data[a.off+i*a.row:][:len(b)] }
	i := 0
	for ; i+4 <= len(out); i += 4 {
		a0, a1, a2, a3 := row(i), row(i+1), row(i+2), row(i+3)
		a0, a1, a2, a3 = a0[:len(b)], a1[:len(b)], a2[:len(b)], a3[:len(b)]
		c0, c1, c2, c3 := out[i], out[i+1], out[i+2], out[i+3]
		for p, v := range b {
			c0 += T(a0[p] * v)
			c1 += T(a1[p] * v)
			c2 += T(a2[p] * v)
			c3 += T(a3[p] * v)
		}
		out[i], out[i+1], out[i+2], out[i+3] = c0, c1, c2, c3
	}
	for ; i < len(out); i++ {
		ai, c := row(i), out[i]
		for p, v := range b {
			c += T(ai[p] * v)
		}
		out[i] = c
	}
}

// multiply adds a times b to out, block by block.
func multiply[T number](out []T, a, b matrix[T], m, n, k int) {
	mem := packPool.Get().(*packs)
	defer packPool.Put(mem)
	for j := 0; j < n; j += blockCols {
		cols := min(blockCols, n-j)
		for p := 0; p < k; p += blockK {
			depth := min(blockK, k-p)
			bp := slice[[microCols]T](unsafe.Pointer(&mem.b), (cols+microCols-1)/microCols*depth)
			packCols(bp, b.at(p, j), depth, cols)
			for i := 0; i < m; i += blockRows {
				rows := min(blockRows, m-i)
				ap := slice[[microRows]T](unsafe.Pointer(&mem.a), (rows+microRows-1)/microRows*depth)
				packRows(ap, a.at(i, p), rows, depth)
				multiplyPacked(out[i*n+j:], n, ap, bp, rows, cols, depth)
			}
		}
	}
}

// at is the part of a that begins at row i, column j.
func (a matrix[T]) at(i, j int) matrix[T] {
	a.off += i*a.row + j*a.col
	return a
}

// packRows cuts a into panels of microRows rows, stored column by column. What
// a last panel lacks is left as it is: nothing that is kept is computed from it.
func packRows[T number](dst [][microRows]T, a matrix[T], rows, depth int) {
	for i := 0; i < rows; i += microRows {
		panel := dst[i/microRows*depth:][:depth]
		for r := range min(microRows, rows-i) {
			at := a.off + (i+r)*a.row
			for p := range panel {
				panel[p][r] = a.data[at]
				at += a.col
			}
		}
	}
}

// packCols cuts b into panels of microCols columns, stored row by row.
func packCols[T number](dst [][microCols]T, b matrix[T], depth, cols int) {
	for j := 0; j < cols; j += microCols {
		panel := dst[j/microCols*depth:][:depth]
		if b.col == 1 && cols-j >= microCols {
			at := b.off + j
			for p := range panel {
				panel[p] = [microCols]T(b.data[at : at+microCols])
				at += b.row
			}
			continue
		}
		for r := range min(microCols, cols-j) {
			at := b.off + (j+r)*b.col
			for p := range panel {
				panel[p][r] = b.data[at]
				at += b.row
			}
		}
	}
}

// multiplyPacked adds the product of packed blocks to the rows x cols part of
// out, whose rows are n apart.
func multiplyPacked[T number](out []T, n int, ap [][microRows]T, bp [][microCols]T, rows, cols, depth int) {
	for j := 0; j < cols; j += microCols {
		b := bp[j/microCols*depth:][:depth]
		for i := 0; i < rows; i += microRows {
			a := ap[i/microRows*depth:][:depth]
			if rows-i >= microRows && cols-j >= microCols {
				micro(out[i*n+j:][:microCols], out[(i+1)*n+j:][:microCols], a, b)
				continue
			}
			var edge [microRows][microCols]T
			for r := range min(microRows, rows-i) {
				copy(edge[r][:], out[(i+r)*n+j:][:min(microCols, cols-j)])
			}
			micro(edge[0][:], edge[1][:], a, b)
			for r := range min(microRows, rows-i) {
				copy(out[(i+r)*n+j:][:min(microCols, cols-j)], edge[r][:])
			}
		}
	}
}

// micro is
//
//	for p := range a {
//		c0[j] += a[p][0] * b[p][j]
//		c1[j] += a[p][1] * b[p][j]
//	}
//
// for j from 0 to 3, with the accumulators in registers.
func micro[T number](c0, c1 []T, a [][microRows]T, b [][microCols]T) {
	c0, c1, b = c0[:microCols], c1[:microCols], b[:len(a)]
	c00, c01, c02, c03 := c0[0], c0[1], c0[2], c0[3]
	c10, c11, c12, c13 := c1[0], c1[1], c1[2], c1[3]
	for p := range a {
		a0, a1 := a[p][0], a[p][1]
		bp := &b[p]
		c00 += T(a0 * bp[0])
		c01 += T(a0 * bp[1])
		c02 += T(a0 * bp[2])
		c03 += T(a0 * bp[3])
		c10 += T(a1 * bp[0])
		c11 += T(a1 * bp[1])
		c12 += T(a1 * bp[2])
		c13 += T(a1 * bp[3])
	}
	c0[0], c0[1], c0[2], c0[3] = c00, c01, c02, c03
	c1[0], c1[1], c1[2], c1[3] = c10, c11, c12, c13
}
