package cpu

import (
	"runtime"
	"sync/atomic"
	"unsafe"

	"github.com/asyncgen/asyncgen/device"
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
	vectorProducts = 4        // how many products take as long as a simple operation, see grain
	tasksEach      = 8        // of a product that several workers compute, for each of them
	mostCopied     = 4        // so many blocks of A, of the inner length one after the other, a worker keeps
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

// tiles is how many tiles are needed for so many rows, and cut where the i-th of them begins.
func (x *tiled) tiles(rows int) int { return (rows + x.Rows - 1) / x.Rows }
func cut(length, parts, i int) int  { return length * i / parts }

// direct computes a small product from where the operands are.
func (x *tiled) direct() {
	n, width := x.tiles(x.m), 2*x.Lanes
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
	case pool.Worth(x.n*x.k, grain):
		x.splitRow()
	default:
		x.rowPart(0, x.n)
	}
}

// splitRow is row on several cores. (It has an x of its own as that is shared: the others stay on the stack.)
func (x tiled) splitRow() {
	unit := max(x.Wide[0]*x.Lanes, x.ColumnRows())
	units := (x.n + unit - 1) / unit
	pool.Run(units, grainOf(unit*x.k), func(lo, hi int) { x.rowPart(lo*unit, min(hi*unit, x.n)) })
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

// A blocking is how a large product is cut. Its tasks are to compute some rows of the
// columns at hand, some columns each. Panels of B are copied by the first who needs them.
type blocking struct {
	tiled
	copyB       bool            // or read it where it is
	from, to    int             // the part of the inner length at hand
	depth       int             // blocks of it
	first, cols int             // the columns at hand
	copied      unsafe.Pointer  // B's part at hand, if it is copied: block by block, panel by panel
	states      []atomic.Uint32 // of these panels
	panels      int             // of columns
	rows        int             // blocks of rows
	whole       int             // so many of them, the first, are one task each
	parts       int             // the others are cut into so many tasks, of some columns each
}

// The states of a copied panel.
const (
	missing = iota
	underWay
	complete
)

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
			lo, hi := cut(all, wide, w), cut(all, wide, w+1)
			b.first, b.panels, b.cols = lo*panel, hi-lo, min(hi*panel, x.n)-lo*panel
			b.part()
		}
	}
}

// part adds what the inner length at hand gives to the columns at hand.
func (b *blocking) part() {
	k := b.to - b.from
	if b.copyB {
		copies, pieces := b.panels*2*b.Lanes*k*b.Size+slack, b.depth*b.panels
		mem := takeSpare(copies + pieces*4)
		defer giveSpare(mem)
		b.copied = mem.Ptr
		b.states = slice[atomic.Uint32](unsafe.Add(mem.Ptr, copies&^3), pieces)
		for i := range b.states {
			b.states[i].Store(missing)
		}
	}
	most := max(1, blockOfA/blockBytes/b.Rows) * b.Rows
	b.rows = (b.m + most - 1) / most
	b.whole, b.parts = b.rows, 1
	work := b.m * b.cols * k
	if workers := runtime.GOMAXPROCS(0); workers > 1 && pool.Worth(work, vectorProducts*grain) {
		b.split(work, workers)
		return
	}
	h := b.newHand()
	for t := range b.rows {
		b.compute(h, t)
	}
	h.giveBack()
}

// split is part on several cores.
func (b blocking) split(work, workers int) {
	// The first blocks of rows are one task each: A is copied once, and the panels of B that are in the cache
	// are met by many rows. At the end tasks are short, so that nobody waits long for the last one.
	enough := tasksEach * workers
	b.rows = max(b.rows, min((enough+b.panels-1)/b.panels, b.m/(2*b.Rows)))
	b.whole = max(0, b.rows/workers-1) * workers
	b.parts = min(b.panels, max(1, work/b.rows/(vectorProducts*grain)))
	var next atomic.Int64
	tasks := b.whole + (b.rows-b.whole)*b.parts
	helpers := workers // that are awake
	if work > vectorProducts*grain {
		helpers = 1 // or are woken
	}
	pool.Run(workers, helpers, func(_, _ int) {
		t := int(next.Add(1)) - 1
		if t >= tasks {
			return
		}
		h := b.newHand()
		defer h.giveBack()
		for ; t < tasks; t = int(next.Add(1)) - 1 {
			b.compute(h, t)
		}
	})
}

// block is where a block of the inner length begins.
func (b *blocking) block(i int) int {
	if i == b.depth {
		return b.to
	}
	return b.from + cut(b.to-b.from, b.depth, i)&^15
}

// panel is where panel j of B's columns at hand can be read, of the block d of the inner length, and how far apart its rows are.
// If somebody else copies it just now, h gets a copy of its own: nobody waits.
func (b *blocking) panel(h *hand, j, d int) (unsafe.Pointer, int) {
	lo, hi := b.block(d), b.block(d+1)
	first := j * 2 * b.Lanes
	from := b.b.from(lo, b.first+first)
	if !b.copyB {
		return from.p, from.row
	}
	cols := min(2*b.Lanes, b.cols-first)
	to := unsafe.Add(b.copied, ((lo-b.from)*b.panels+j*(hi-lo))*2*b.Lanes*b.Size)
	switch state := &b.states[d*b.panels+j]; {
	case state.Load() == complete:
	case state.CompareAndSwap(missing, underWay):
		b.copyPanel(to, from, hi-lo, cols)
		state.Store(complete)
	default:
		to = h.panel
		b.copyPanel(to, from, hi-lo, cols)
	}
	return to, b.stepOf(cols)
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

// A hand is the memory that a worker has for copies.
type hand struct {
	mem    *device.Buffer
	copies [mostCopied]struct { // of rows of A, of a block of the inner length
		p    unsafe.Pointer
		i, d int // the block of rows and that of the inner length
	}
	rows  unsafe.Pointer // the one of the copies that is needed now
	panel unsafe.Pointer // of B
}

func (b *blocking) newHand() *hand {
	// Blocks of the inner length have equal lengths but for what makes these a multiple of 16.
	depth := (b.to-b.from)/b.depth + 16
	rows := ((b.m+b.rows-1)/b.rows*depth*b.Size + slack + 63) &^ 63
	copies := 1
	if b.whole < b.rows {
		copies = min(b.depth, mostCopied)
	}
	h := &hand{mem: takeSpare(copies*rows + 2*b.Lanes*depth*b.Size + slack)}
	for i := range copies {
		h.copies[i].p, h.copies[i].d = unsafe.Add(h.mem.Ptr, i*rows), -1
	}
	h.panel = unsafe.Add(h.mem.Ptr, copies*rows)
	return h
}

func (h *hand) giveBack() { giveSpare(h.mem) }

// compute does task t.
func (b *blocking) compute(h *hand, t int) {
	i, lo, hi, copies := t, 0, b.panels, 1
	if t >= b.whole {
		t -= b.whole
		i, t = b.whole+t/b.parts, t%b.parts
		lo, hi = cut(b.panels, b.parts, t), cut(b.panels, b.parts, t+1)
		copies = min(b.depth, mostCopied) // the next task may need the same
	}
	for d := range b.depth {
		b.copyBlock(h, i, d, d%copies)
		for j := lo; j < hi; j++ {
			b.add(h, i, j, d, hi)
		}
	}
}

// copyBlock has h hold the block i of A's rows, of the block d of the inner length, tile by tile, as the copy of the given number.
func (b *blocking) copyBlock(h *hand, i, d, number int) {
	c := &h.copies[number]
	h.rows = c.p
	if c.i == i && c.d == d {
		return
	}
	c.i, c.d = i, d
	lo, k := b.block(d), b.block(d+1)-b.block(d)
	first, rows := cut(b.m, b.rows, i), cut(b.m, b.rows, i+1)-cut(b.m, b.rows, i)
	tiles := b.tiles(rows)
	for p := range tiles {
		from, to := cut(rows, tiles, p), cut(rows, tiles, p+1)
		b.copyRows(unsafe.Add(h.rows, from*k*b.Size), b.a.from(first+from, lo), to-from, k)
	}
}

// add adds what the block d of the inner length gives to the block i of the rows, which h holds, of panel j. The panel before end is the last.
func (b *blocking) add(h *hand, i, j, d, end int) {
	panel, step := b.panel(h, j, d)
	k := b.block(d+1) - b.block(d)
	first, rows := cut(b.m, b.rows, i), cut(b.m, b.rows, i+1)-cut(b.m, b.rows, i)
	col, cols := b.first+j*2*b.Lanes, min(2*b.Lanes, b.cols-j*2*b.Lanes)
	tiles := b.tiles(rows)
	for p := range tiles {
		from, to := cut(rows, tiles, p), cut(rows, tiles, p+1)
		next := b.c(first+to, col)
		if p == tiles-1 {
			next = b.c(first, col)
			if j+1 < end {
				next = b.c(first, col+2*b.Lanes)
			}
		}
		b.Tile(to-from, cols, k, unsafe.Add(h.rows, from*k*b.Size), b.Size, (to-from)*b.Size, panel, step,
			b.c(first+from, col), b.n*b.Size, b.from+d > 0, next)
	}
}
