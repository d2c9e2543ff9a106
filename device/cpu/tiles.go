package cpu

import (
	"fmt"
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
// whatever the tile is and whoever computes it. Where the inner length is cut, the second part
// begins with the sum that the first part has left in the output. So the bits depend neither on
// sizes, strides and cuts nor on the instruction set.
//
// Large products copy their operands first, in the order in which tiles read them: see
// Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication" (2008). Rows are
// split into panels of nearly equal height: a short last panel would take as long as a whole one.
const (
	mostDepth      = 16 << 10 // of the inner length at once, so that a block of B has some columns
	slack          = 256      // bytes behind a copy that its last vector may reach
	smallProduct   = 128 * 128 * 128
	smallColliding = 48 * 48 * 48 // with rows that collide
	vectorProducts = 4            // how many products take as long as a simple operation, see grain
	tasksEach      = 8            // of a product that several workers compute, for each of them
	mostCopied     = 4            // how many copied blocks of A, neighbours along the inner length, a worker keeps
	rowDepth       = 64           // rows of B that are read side by side
	turnDepth      = 64           // of rows that are turned into columns at once, for the first cache
	columnDepth    = 16 << 10     // the longest part of rows for which a column is computed at once
	leastTurned    = 64 * 64      // elements of a matrix that are worth it
	// panels of the product that are finished at once: rows of them are as long as a tile of a Map
	finished = 32
)

// A blockSizes says how large products are cut, in bytes.
type blockSizes struct {
	depth int // of the inner length at once: a panel of B stays in the second cache, part of it in the first
	a     int // of A that are copied at once, for the second cache
	b     int // of B that are copied at once, for the last
}

// blockSizesFor derives the sizes from those of the caches. The rows of A that a tile reads, 12 of them with AVX-512,
// take up to three quarters of the first cache. A copied block of A leaves room in the second cache for panels of B.
// On an Intel server (48 KiB, 2 MiB) a product of 2048 took 7 % less time than with the sizes that suit 32 KiB and 1
// MiB. With a second cache of 512 KiB (Zen 3), less of A was no faster. BenchmarkBlockSizes measures others.
func blockSizesFor(c vec.Caches) blockSizes {
	return blockSizes{
		depth: min(max(c.First/16&^255, 1<<10), mostDepthBytes),
		a:     min(max(c.Second/8*3, 384<<10), 1<<20),
		b:     min(max(c.Last/2, 2<<20), 8<<20),
	}
}

const mostDepthBytes = 4 << 10

// String describes s and the caches for people.
func (s blockSizes) String() string {
	c := vec.CachesOf()
	return fmt.Sprintf("products of matrices go %d bytes deep, with %d KiB of the left one and %d of the right one at once, for caches of %d, %d and %d KiB",
		s.depth, s.a>>10, s.b>>10, c.First>>10, c.Second>>10, c.Last>>10)
}

var sizes = blockSizesFor(vec.CachesOf())

// A side is an operand: element i,j is at p + i*row + j*col, in bytes.
type side struct {
	p        unsafe.Pointer
	row, col int
}

func (s side) at(i, j int) unsafe.Pointer { return unsafe.Add(s.p, i*s.row+j*s.col) }
func (s side) from(i, j int) side         { return side{s.at(i, j), s.row, s.col} }
func (s side) transposed() side           { return side{s.p, s.col, s.row} }

// rowsCollide reports whether only few rows fit into the first cache side by side. Rows a multiple of 4
// KiB apart share the same sets of the cache, and a set has 8 or 12 lines.
func (s side) rowsCollide() bool { return s.row%(4<<10) == 0 }

// A tiled is one product, by the loops of an instruction set.
type tiled struct {
	*vec.Products
	out     unsafe.Pointer // contiguous
	a, b    side
	m, n, k int // none is 0
}

// tiledProduct computes a times b. Out is not empty. It may do what f says with it, and says so there.
func tiledProduct(p *vec.Products, out unsafe.Pointer, a, b side, m, n, k int, f *finish) {
	x := tiled{p, out, a, b, m, n, k}
	switch {
	case m == 1 && b.col == p.Size:
		x.row()
	case n == 1 && a.row == p.Size: // a column is a row of the transposed product
		x.a, x.b, x.m, x.n = b.transposed(), a.transposed(), 1, m
		x.row()
	case m == 1 && b.row == p.Size:
		x.a, x.b, x.m, x.n = b.transposed(), a.transposed(), n, 1
		x.narrow()
	case n == 1 && a.col == p.Size, n <= p.Rows && 2*n <= m && m*k >= leastTurned && (a.col == p.Size || a.row == p.Size):
		x.narrow()
	case b.col == p.Size && (m*n*k <= smallColliding || m*n*k <= smallProduct && !a.rowsCollide() && !b.rowsCollide()):
		x.direct()
	default:
		x.blocked(f)
	}
}

// c is where element i,j of the product is.
func (x *tiled) c(i, j int) unsafe.Pointer { return unsafe.Add(x.out, (i*x.n+j)*x.Size) }

// tiles is how many tiles the given number of rows needs, and cut where the i-th of them begins.
func (x *tiled) tiles(rows int) int { return (rows + x.Rows - 1) / x.Rows }
func cut(length, parts, i int) int  { return length * i / parts }

// tilesAcross is how many tiles are needed for the columns.
func (x *tiled) tilesAcross() int { return (x.n + 2*x.Lanes - 1) / (2 * x.Lanes) }

// direct computes a small product from where the operands are.
func (x *tiled) direct() {
	if pool.Worth(x.m*x.n*x.k, vectorProducts*grain) {
		x.splitDirect()
	} else {
		x.directPart(0, x.tiles(x.m)*x.tilesAcross())
	}
}

func (x tiled) splitDirect() {
	tiles := x.tiles(x.m) * x.tilesAcross()
	pool.Run(tiles, grainOf(x.m*x.n*x.k/tiles/vectorProducts), x.directPart)
}

// directPart computes some tiles. They are numbered panel by panel.
func (x *tiled) directPart(lo, hi int) {
	n, width := x.tiles(x.m), 2*x.Lanes
	j, p := lo/n*width, lo%n
	for range hi - lo {
		i, end := cut(x.m, n, p), cut(x.m, n, p+1)
		c := x.c(i, j)
		x.Tile(end-i, min(width, x.n-j), x.k, x.a.at(i, 0), x.a.row, x.a.col, x.b.at(0, j), x.b.row, c, x.n*x.Size, false, c)
		if p++; p == n {
			j, p = j+width, 0
		}
	}
}

// row computes a product of one row. The rows of B are contiguous.
func (x *tiled) row() {
	if pool.Worth(x.n*x.k, grain) {
		x.splitRow()
	} else {
		x.rowPart(0, x.n)
	}
}

// splitRow is row on several cores. (It has an x of its own as that is shared: the others stay on the stack.)
func (x tiled) splitRow() {
	unit := x.Wide[0] * x.Lanes
	units := (x.n + unit - 1) / unit
	pool.Run(units, grainOf(unit*x.k), func(lo, hi int) { x.rowPart(lo*unit, min(hi*unit, x.n)) })
}

// rowPart computes the elements from lo to hi-1.
func (x *tiled) rowPart(lo, hi int) {
	for p := 0; p < x.k; p += rowDepth {
		k := min(rowDepth, x.k-p)
		for j := lo; j < hi; {
			j += x.rowTile(j, hi-j, p, k)
		}
	}
}

// rowTile adds the products of k elements of the row from p on to some elements from j on, at most
// n. It returns how many.
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

// narrow computes a product with few columns, at most Rows. The rows of A are contiguous, or its
// columns are. Tiles of some rows and a few columns would use only a part of their vectors, so it
// computes tiles of the transposed product.
func (x *tiled) narrow() {
	each := x.k * (1 + x.n/4) // operations for a row: at first it has to be read
	if pool.Worth(x.m, grainOf(each)) {
		x.splitNarrow(each)
	} else {
		x.narrowPart(0, x.m)
	}
}

func (x tiled) splitNarrow(each int) {
	unit := x.stripRows()
	units := (x.m + unit - 1) / unit
	pool.Run(units, grainOf(unit*each), func(lo, hi int) { x.narrowPart(lo*unit, min(hi*unit, x.m)) })
}

// stripRows is how many rows of A narrow handles at a time. There are so many that the processor always
// has a sum to add to, and doesn't wait for the one before.
func (x *tiled) stripRows() int {
	if x.n == 1 {
		return x.Wide[len(x.Wide)-1] * x.Lanes
	}
	return 2 * x.Lanes
}

// narrowPart computes the rows from lo to hi-1.
func (x *tiled) narrowPart(lo, hi int) {
	if x.n == 1 && x.b.row == x.Size && x.a.col == x.Size && !x.isScattered() {
		for ; lo+x.ColumnRows() <= hi; lo += x.ColumnRows() {
			x.columns(lo)
		}
	}
	if lo < hi {
		x.strips(lo, hi)
	}
}

// strips is narrowPart by strips of rows.
func (x *tiled) strips(lo, hi int) {
	unit := x.stripRows()
	mem := takeSpare((turnDepth + x.n) * unit * x.Size)
	defer giveSpare(mem)
	turned, sums := mem.Ptr, unsafe.Add(mem.Ptr, turnDepth*unit*x.Size)
	for i := lo; i < hi; {
		rows := min(unit, hi-i)
		if rows < unit {
			rows = min(2*x.Lanes, rows)
		}
		if x.n == 1 {
			x.strip(i, rows, turned, x.c(i, 0))
		} else {
			x.strip(i, rows, turned, sums)
			x.turnBack(i, rows, sums)
		}
		i += rows
	}
}

// isScattered reports whether A's rows collide and A fits into the caches. Then it is faster to
// read more of each row at once.
func (x *tiled) isScattered() bool { return x.a.rowsCollide() && x.m*x.a.row < vec.CachesOf().Last/2 }

// columns computes ColumnRows elements of the only column, from i on.
func (x *tiled) columns(i int) {
	clear(slice[byte](x.c(i, 0), x.ColumnRows()*x.Size))
	for p := 0; p < x.k; p += columnDepth {
		x.Columns(min(columnDepth, x.k-p), x.a.at(i, p), x.a.row, x.b.at(p, 0), x.c(i, 0))
	}
}

// strip computes the given number of rows of the product, from row i on, and writes them as columns:
// rows of sums. turned is memory for a part of these rows of A, as columns.
func (x *tiled) strip(i, rows int, turned, sums unsafe.Pointer) {
	unit := x.stripRows() * x.Size
	for p := 0; p < x.k; p += turnDepth {
		k := min(turnDepth, x.k-p)
		from, step := turned, unit
		if x.a.row == x.Size {
			from, step = x.a.at(i, p), x.a.col
		} else {
			for r := 0; r < rows; r += vec.TurnRows {
				x.Turn(k, x.a.at(i+r, p), x.a.row, min(vec.TurnRows, rows-r), unsafe.Add(turned, r*x.Size), unit)
			}
		}
		if rows > 2*x.Lanes {
			x.Row(len(x.Wide)-1, k, x.b.at(p, 0), x.b.row, from, step, sums, p > 0)
		} else {
			x.Tile(x.n, rows, k, x.b.at(p, 0), x.b.col, x.b.row, from, step, sums, unit, p > 0, sums)
		}
	}
}

// turnBack writes what strip has computed.
func (x *tiled) turnBack(i, rows int, sums unsafe.Pointer) {
	unit := x.stripRows() * x.Size
	done := 0
	if x.n <= vec.TurnRows {
		// Turn writes beside each row, which the next ones overwrite.
		beside := (vec.TurnRows - 1) / x.n
		if done = max(0, rows-beside); done > 0 {
			x.Turn(done, sums, unit, x.n, x.c(i, 0), x.n*x.Size)
		}
	}
	x.copyAny(x.c(i+done, 0), side{unsafe.Add(sums, done*x.Size), x.Size, unit}, rows-done, x.n, x.n*x.Size)
}

// A blocking says how a large product is cut. A task computes some rows of the columns at hand, for all
// or some of these columns. A panel of B is copied by the first worker that needs it.
type blocking struct {
	tiled
	finish      *finish         // of parts of the product while they are in a cache, or nil
	copyB       bool            // or read it where it is
	from, to    int             // the part of the inner length at hand
	depth       int             // blocks of it
	first, cols int             // the columns at hand
	copied      unsafe.Pointer  // B's part at hand, if it is copied: block by block, panel by panel
	states      []atomic.Uint32 // of these panels
	panels      int             // of columns
	rows        int             // blocks of rows
	whole       int             // the first of these blocks, as many as whole, are one task each
	parts       int             // each other block is cut into this many tasks, by columns
	workers     int             // that begin with different columns, so that each copies panels for the others
}

// The states of a copied panel.
const (
	missing = iota
	underWay
	complete
)

func (x *tiled) blocked(f *finish) {
	b := blocking{tiled: *x, copyB: x.b.col != x.Size || x.m > 2*x.Rows}
	if f.inParts() {
		b.finish, f.done = f, true
	}
	panel := 2 * x.Lanes
	deep := (x.k + mostDepth - 1) / mostDepth
	for d := range deep {
		b.from, b.to = cut(x.k, deep, d), cut(x.k, deep, d+1)
		b.depth = ((b.to-b.from)*x.Size + sizes.depth - 1) / sizes.depth
		all := x.tilesAcross() // of these, wide are copied at once
		wide := 1
		if b.copyB {
			wide = min(all, (all*panel*(b.to-b.from)*x.Size+sizes.b-1)/sizes.b)
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
	most := max(1, sizes.a/sizes.depth/b.Rows) * b.Rows
	b.rows = (b.m + most - 1) / most
	b.whole, b.parts, b.workers = b.rows, 1, 1
	work := b.m * b.cols * k
	if workers := runtime.GOMAXPROCS(0); workers > 1 && pool.Worth(work, vectorProducts*grain) {
		b.split(work, workers)
		return
	}
	h := b.newHand()
	for t := range b.rows {
		b.compute(h, t, 0, 0, b.panels, 1)
	}
	h.giveBack()
}

// split is part on several cores.
func (b blocking) split(work, workers int) {
	// The first blocks of rows are one task each: A is copied once, and the panels of B that are in the cache
	// are met by many rows. The last blocks, one for each worker or two, are cut, for whoever is ready first.
	enough := tasksEach * workers
	b.rows = max(b.rows, min((enough+b.panels-1)/b.panels, b.m/(2*b.Rows)))
	if even := (b.rows + workers - 1) / workers * workers; even <= b.m/(2*b.Rows) {
		b.rows = even
	}
	b.workers = workers
	b.whole = max(0, b.rows/workers-1) * workers
	b.parts = min(b.panels, max(1, work/b.rows/(vectorProducts*grain)))
	s := sharing{blocking: b, taken: make([]atomic.Int64, b.rows-b.whole)}
	helpers := workers // that are awake
	if work > vectorProducts*grain {
		helpers = 1 // or are woken
	}
	pool.Run(workers, helpers, func(_, _ int) { s.work() })
}

// A sharing is a blocking and what is left of it to do.
type sharing struct {
	blocking
	begun atomic.Int64   // blocks of rows that somebody has begun
	taken []atomic.Int64 // of each of the blocks that are cut: how many tasks somebody has begun
}

// work does tasks until none is left: blocks that nobody has begun, and then what is left of the others.
func (s *sharing) work() {
	i := int(s.begun.Add(1)) - 1
	if i >= s.rows && !s.isLeft() {
		return
	}
	h := s.newHand()
	defer h.giveBack()
	for ; i < s.rows; i = int(s.begun.Add(1)) - 1 {
		if i < s.whole {
			s.compute(h, i, 0, cut(s.panels, s.workers, i%s.workers), s.panels, 1)
		} else {
			s.finishBlock(h, i)
		}
	}
	for i := s.whole; i < s.rows; i++ {
		s.finishBlock(h, i)
	}
}

// isLeft reports whether a block that is cut has tasks that nobody has begun.
func (s *sharing) isLeft() bool {
	for i := range s.taken {
		if int(s.taken[i].Load()) < s.parts {
			return true
		}
	}
	return false
}

// finishBlock does the tasks of block i that nobody has begun.
func (s *sharing) finishBlock(h *hand, i int) {
	taken := &s.taken[i-s.whole]
	copies := min(s.depth, mostCopied) // the next task may need the same
	first := cut(s.parts, s.workers, i%s.workers)
	for t := int(taken.Add(1)) - 1; t < s.parts; t = int(taken.Add(1)) - 1 {
		t = (first + t) % s.parts
		lo, hi := cut(s.panels, s.parts, t), cut(s.panels, s.parts, t+1)
		s.compute(h, i, lo, lo, hi, copies)
	}
}

// block is where a block of the inner length begins.
func (b *blocking) block(i int) int {
	if i == b.depth {
		return b.to
	}
	return b.from + cut(b.to-b.from, b.depth, i)&^15
}

// panel returns where panel j of the columns of B at hand can be read, for block d of the inner length,
// and how far apart its rows are. If another worker is copying the panel, h gets a copy of its own, so
// that nobody waits.
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
	rows   unsafe.Pointer // the one of the copies that is needed now
	panel  unsafe.Pointer // of B
	finish device.Command // see finishPart
}

func (b *blocking) newHand() *hand {
	// The blocks of the inner length are equally long, but for rounding to multiples of 16.
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

// compute computes block i of the rows for the panels from lo to hi-1. It begins with panel first, and
// after the last one goes on with lo. h keeps the given number of copies of A.
func (b *blocking) compute(h *hand, i, lo, first, hi, copies int) {
	for d := range b.depth {
		b.copyBlock(h, i, d, d%copies)
		b.addAll(h, i, d, first, hi)
		b.addAll(h, i, d, lo, first)
	}
}

// addAll is add for the panels from lo to hi-1.
func (b *blocking) addAll(h *hand, i, d, lo, hi int) {
	isLast := b.finish != nil && d == b.depth-1 && b.to == b.k
	from := lo // the panels from here on are not finished
	for j := lo; j < hi; j++ {
		b.add(h, i, j, d, hi)
		if isLast && (j+1 == from+finished || j+1 == hi) {
			b.finishPart(h, i, from, j+1)
			from = j + 1
		}
	}
}

// finishPart finishes the block i of the rows, of the panels from lo to hi-1.
func (b *blocking) finishPart(h *hand, i, lo, hi int) {
	width := 2 * b.Lanes
	row, col := cut(b.m, b.rows, i), b.first+lo*width
	b.finish.part(&h.finish, row, cut(b.m, b.rows, i+1)-row, col, min(hi*width, b.cols)-lo*width)
}

// copyBlock makes h hold a copy of A: block i of the rows, for block d of the inner length, tile by
// tile. number says which of h's copies it is.
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

// add adds products to the part of the result that is in block i of the rows and in panel j: those of
// block d of the inner length. h holds the copy of A for block i. Panels end at end.
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
