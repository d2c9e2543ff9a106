package cpu

import (
	"runtime"
	"unsafe"

	"github.com/asyncgen/asyncgen/device/cpu/internal/vec"
	"github.com/asyncgen/asyncgen/device/pool"
)

// Products of matrices by tiles: a part of the product stays in vector registers while
// the inner length goes by, and each of its elements is
//
//	fma(a0, b0, 0), fma(a1, b1, that), ...
//
// whatever the tile is and whoever computes it. Where the inner length is cut, the
// second part begins with what the first has left in the output. So the bits do not
// depend on sizes, strides, cuts, nor on the instruction set.
//
// Large products copy their operands first, in the order in which tiles read them: see
// Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication" (2008). Rows are
// split into panels of nearly equal height, so that none is left over that would take as long as a whole one.
const (
	blockBytes     = 2048      // of the inner length: a panel of B stays in the second cache, part of it in the first
	blockOfA       = 384 << 10 // bytes of A that are copied at once, for the second cache
	blockOfB       = 8 << 20   // bytes of B that are copied at once, for the third
	mostDepth      = 16 << 10  // of the inner length at once, so that a block of B has some columns
	slack          = 256       // bytes behind a copy that its last vector may reach
	smallProduct   = 48 * 48 * 48
	vectorProducts = 16       // how many products take as long as a simple operation, see grain
	rowDepth       = 64       // rows of B that are read side by side
	columnDepth    = 16 << 10 // elements of long rows at once
)

// A side is an operand: element i,j is at p + i*row + j*col, in bytes.
type side struct {
	p        unsafe.Pointer
	row, col int
}

func (s side) at(i, j int) unsafe.Pointer { return unsafe.Add(s.p, i*s.row+j*s.col) }
func (s side) from(i, j int) side         { return side{s.at(i, j), s.row, s.col} }
func (s side) transposed() side           { return side{s.p, s.col, s.row} }

// A tiled is one product, by the loops of an instruction set.
type tiled struct {
	*vec.Products
	out     unsafe.Pointer // contiguous
	a, b    side
	m, n, k int // none is 0
}

// tiledProduct computes a times b. Out is not empty.
func tiledProduct(p *vec.Products, out unsafe.Pointer, a, b side, m, n, k int) {
	x := tiled{p, out, a, b, m, n, k}
	switch {
	case n == 1: // a column is a row of the transposed product
		x.a, x.b, x.m, x.n = b.transposed(), a.transposed(), 1, m
		x.row()
	case m == 1:
		x.row()
	case m*n*k <= smallProduct && b.col == p.Size:
		x.direct()
	default:
		x.blocked()
	}
}

// c is where element i,j of the product is.
func (x *tiled) c(i, j int) unsafe.Pointer { return unsafe.Add(x.out, (i*x.n+j)*x.Size) }

// panels is how many tiles are needed for so many rows, and cut where the i-th of them begins.
func (x *tiled) panels(rows int) int { return (rows + x.Rows - 1) / x.Rows }
func cut(length, parts, i int) int   { return length * i / parts }

// direct computes a small product from where the operands are.
func (x *tiled) direct() {
	n, width := x.panels(x.m), 2*x.Lanes
	for j := 0; j < x.n; j += width {
		cols := min(width, x.n-j)
		for p, i := 0, 0; p < n; p++ {
			end := cut(x.m, n, p+1)
			c := x.c(i, j)
			x.Tile(end-i, cols, x.k, x.a.at(i, 0), x.a.row, x.a.col, x.b.at(0, j), x.b.row, c, x.n*x.Size, false, c)
			i = end
		}
	}
}

// row computes a product of one row.
func (x *tiled) row() {
	switch {
	case x.b.col != x.Size && x.b.row != x.Size:
		x.blocked()
	case x.n*x.k > 2*productsPerOperation*grain:
		x.splitRow()
	default:
		x.rowPart(0, x.n)
	}
}

// splitRow is row on several cores. (It has an x of its own as that is shared: the others stay on the stack.)
func (x tiled) splitRow() {
	unit := max(x.Wide[0]*x.Lanes, x.ColumnRows())
	units := (x.n + unit - 1) / unit
	pool.Run(units, grainOf(unit*x.k/productsPerOperation), func(lo, hi int) { x.rowPart(lo*unit, min(hi*unit, x.n)) })
}

// rowPart computes the elements from lo to hi-1.
func (x *tiled) rowPart(lo, hi int) {
	if x.b.col != x.Size {
		x.columnPart(lo, hi)
		return
	}
	for p := 0; p < x.k; p += rowDepth {
		k := min(rowDepth, x.k-p)
		for j := lo; j < hi; {
			j += x.rowTile(j, hi-j, p, k)
		}
	}
}

// rowTile adds the products of k elements of the row from p on to some elements from j on, at most n. It returns how many.
func (x *tiled) rowTile(j, n, p, k int) int {
	c := x.c(0, j)
	for i, vectors := range x.Wide {
		if cols := vectors * x.Lanes; cols <= n {
			x.Row(i, k, x.a.at(0, p), x.a.col, x.b.at(p, j), x.b.row, c, p > 0)
			return cols
		}
	}
	cols := min(n, 2*x.Lanes)
	x.Tile(1, cols, k, x.a.at(0, p), 0, x.a.col, x.b.at(p, j), x.b.row, c, 0, p > 0, c)
	return cols
}

// columnPart is rowPart for a B whose columns are contiguous, and not its rows.
func (x *tiled) columnPart(lo, hi int) {
	a := x.a.p
	if x.a.col != x.Size {
		mem := takeSpare(columnDepth * x.Size)
		defer giveSpare(mem)
		a = mem.Ptr
	}
	for p := 0; p < x.k; p += columnDepth {
		k := min(columnDepth, x.k-p)
		if x.a.col != x.Size {
			x.copyAny(a, x.a.from(0, p).transposed(), k, 1, x.Size)
		} else {
			a = x.a.at(0, p)
		}
		j := lo
		for ; j+x.ColumnRows() <= hi; j += x.ColumnRows() {
			if p == 0 {
				clear(slice[byte](x.c(0, j), x.ColumnRows()*x.Size))
			}
			x.Columns(k, x.b.at(p, j), x.b.col, a, x.c(0, j))
		}
		for ; j < hi; j += x.Rows { // the others: tiles of the transposed product
			x.Tile(min(x.Rows, hi-j), 1, k, x.b.at(p, j), x.b.col, x.Size, a, x.Size, x.c(0, j), x.Size, p > 0, x.c(0, j))
		}
	}
}

// A blocking is how a large product is cut.
type blocking struct {
	tiled
	copyB       bool           // or read it where it is
	from, to    int            // the part of the inner length at hand
	depth       int            // blocks of it
	first, cols int            // the columns at hand
	copied      unsafe.Pointer // B's part at hand, if it is copied: block by block, panel by panel
	width       int            // of all panels together
	parts       [2]int         // how many parts workers compute, of rows and of columns
}

func (x *tiled) blocked() {
	b := blocking{tiled: *x, copyB: x.b.col != x.Size || x.m > 2*x.Rows}
	panel := 2 * x.Lanes
	deep := (x.k + mostDepth - 1) / mostDepth
	for d := range deep {
		b.from, b.to = cut(x.k, deep, d), cut(x.k, deep, d+1)
		b.depth = ((b.to-b.from)*x.Size + blockBytes - 1) / blockBytes
		all := (x.n + panel - 1) / panel // panels, of which so many parts are copied at once
		wide := 1
		if b.copyB {
			wide = min(all, (all*panel*(b.to-b.from)*x.Size+blockOfB-1)/blockOfB)
		}
		for w := range wide {
			lo, hi := cut(all, wide, w)*panel, cut(all, wide, w+1)*panel
			b.first, b.width, b.cols = lo, hi-lo, min(hi, x.n)-lo
			b.part()
		}
	}
}

// part adds what the inner length at hand gives to the columns at hand.
func (b *blocking) part() {
	panels := b.width / (2 * b.Lanes)
	k := b.to - b.from
	isWhole := b.m*b.cols*k <= 2*vectorProducts*grain
	if b.copyB {
		mem := takeSpare(b.width*k*b.Size + slack)
		defer giveSpare(mem)
		b.copied = mem.Ptr
		if pieces := b.depth * panels; isWhole {
			b.copyPanels(0, pieces)
		} else {
			b.splitCopy(pieces)
		}
	}
	most := max(1, blockOfA/blockBytes/b.Rows) * b.Rows
	rows, cols := (b.m+most-1)/most, 1
	if isWhole {
		b.parts = [2]int{rows, cols}
		b.compute(0, rows)
		return
	}
	workers := runtime.GOMAXPROCS(0)
	many := 4 * workers // some are slower than others
	rows = max(rows, min(many, b.m/(4*b.Rows)))
	if rows > workers {
		rows = (rows + workers - 1) / workers * workers
	}
	if rows < many {
		cols = max(1, min((many+rows-1)/rows, panels/4))
	}
	b.parts = [2]int{rows, cols}
	b.split()
}

func (b blocking) splitCopy(pieces int) {
	pool.Run(pieces, grainOf(b.width*(b.to-b.from)/pieces), b.copyPanels)
}

func (b blocking) split() { pool.Run(b.parts[0]*b.parts[1], 1, b.compute) }

// block is where a block of the inner length begins.
func (b *blocking) block(i int) int {
	if i == b.depth {
		return b.to
	}
	return b.from + cut(b.to-b.from, b.depth, i)&^15
}

// panel is where the copy of the columns from j on is, of the block of the inner length from lo to hi.
func (b *blocking) panel(j, lo, hi int) unsafe.Pointer {
	return unsafe.Add(b.copied, ((lo-b.from)*b.width+j*(hi-lo))*b.Size)
}

// copyPanels copies some panels of B. They are numbered block by block.
func (b *blocking) copyPanels(from, to int) {
	panel := 2 * b.Lanes
	each := b.width / panel
	for i := from; i < to; i++ {
		lo, hi := b.block(i/each), b.block(i/each+1)
		j := i % each * panel
		b.copyPanel(b.panel(j, lo, hi), b.b.from(lo, b.first+j), hi-lo, min(panel, b.cols-j))
	}
}

// stepOf is the distance of rows in the copy of a panel of B.
func (x *tiled) stepOf(cols int) int {
	if cols <= x.Lanes {
		return x.Lanes * x.Size
	}
	return 2 * x.Lanes * x.Size
}

// copyPanel copies k rows of some columns, row by row.
func (x *tiled) copyPanel(dst unsafe.Pointer, src side, k, cols int) {
	switch step := x.stepOf(cols); {
	case src.col == x.Size:
		x.Copy(k, cols, src.p, src.row, dst, step)
	case src.row == x.Size:
		for j := 0; j < cols; j += vec.TurnRows {
			x.Turn(k, src.at(0, j), src.col, min(vec.TurnRows, cols-j), unsafe.Add(dst, j*x.Size), step)
		}
	default:
		x.copyAny(dst, src, k, cols, step)
	}
}

// copyRows copies k columns of some rows of A, column by column.
func (x *tiled) copyRows(dst unsafe.Pointer, src side, rows, k int) {
	switch step := rows * x.Size; {
	case src.row == x.Size:
		x.Copy(k, rows, src.p, src.col, dst, step)
	case src.col == x.Size:
		// From the last rows to the first: what Turn writes beside the last is overwritten.
		for i := (rows - 1) / vec.TurnRows * vec.TurnRows; i >= 0; i -= vec.TurnRows {
			x.Turn(k, src.at(i, 0), src.row, min(vec.TurnRows, rows-i), unsafe.Add(dst, i*x.Size), step)
		}
	default:
		x.copyAny(dst, src.transposed(), k, rows, step)
	}
}

// copyAny is copyPanel for rows whose elements are not neighbours.
func (x *tiled) copyAny(dst unsafe.Pointer, src side, k, cols, step int) {
	for i := range k {
		from, to := src.at(i, 0), unsafe.Add(dst, i*step)
		for j := range cols {
			if x.Size == 4 {
				*(*uint32)(unsafe.Add(to, 4*j)) = *(*uint32)(unsafe.Add(from, j*src.col))
			} else {
				*(*uint64)(unsafe.Add(to, 8*j)) = *(*uint64)(unsafe.Add(from, j*src.col))
			}
		}
	}
}

// compute computes some of the parts. They are numbered by columns, then by rows.
func (b *blocking) compute(from, to int) {
	mem := takeSpare(blockOfA + blockBytes*b.Rows + slack)
	defer giveSpare(mem)
	panels := b.width / (2 * b.Lanes)
	for part := from; part < to; part++ {
		i, j := part%b.parts[0], part/b.parts[0]
		i0, i1 := cut(b.m, b.parts[0], i), cut(b.m, b.parts[0], i+1)
		j0, j1 := cut(panels, b.parts[1], j)*2*b.Lanes, cut(panels, b.parts[1], j+1)*2*b.Lanes
		for d := range b.depth {
			b.add(mem.Ptr, i0, i1, j0, min(j1, b.cols), b.block(d), b.block(d+1))
		}
	}
}

// add adds what the inner length from lo to hi gives to the rows from i0 to i1 of the columns at hand from j0 to j1. Mem is for A.
func (b *blocking) add(mem unsafe.Pointer, i0, i1, j0, j1, lo, hi int) {
	k, rows := hi-lo, i1-i0
	panels := b.panels(rows)
	for p := range panels {
		from, to := cut(rows, panels, p), cut(rows, panels, p+1)
		b.copyRows(unsafe.Add(mem, from*k*b.Size), b.a.from(i0+from, lo), to-from, k)
	}
	for j := j0; j < j1; j += 2 * b.Lanes {
		cols := min(2*b.Lanes, j1-j)
		panel, step := b.b.at(lo, b.first+j), b.b.row
		if b.copyB {
			panel, step = b.panel(j, lo, hi), b.stepOf(cols)
		}
		for p := range panels {
			from, to := cut(rows, panels, p), cut(rows, panels, p+1)
			next := b.c(i0+to, b.first+j)
			if p == panels-1 {
				next = b.c(i0, b.first+min(j+2*b.Lanes, j1-1))
			}
			b.Tile(to-from, cols, k, unsafe.Add(mem, from*k*b.Size), b.Size, (to-from)*b.Size, panel, step,
				b.c(i0+from, b.first+j), b.n*b.Size, lo > 0, next)
		}
	}
}
