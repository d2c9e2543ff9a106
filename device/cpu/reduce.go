package cpu

import (
	"math/bits"
	"sync"
	"unsafe"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/cpu/internal/vec"
	"github.com/asyncgen/asyncgen/device/kernel"
	"github.com/asyncgen/asyncgen/device/pool"
)

func newReduce(k *device.Kernel) (runner, error) {
	if f, ok := k.Body.(kernel.FoldOf); ok {
		return newFoldOf(k, f)
	}
	r, ok := k.Body.(kernel.Reducer)
	if !ok || len(k.In) != 1 || k.In[0] != k.Out || r.Prim().Func(k.Out) == nil {
		return nil, unsupported(k)
	}
	switch k.Out {
	case device.Float32:
		return newFolder[float32](r).run, nil
	case device.Float64:
		return newFolder[float64](r).run, nil
	case device.Int64:
		return newFolder[int64](r).run, nil
	}
	return newFolder[bool](r).run, nil
}

// A folder reduces by the tree of kernel.Fold. Where the reduced elements lie
// together, a result is folded alone. Elsewhere its unit of work is a vector of
// neighbouring results: each lane of the tree, and each block's result,
// is a vector of width w, and one loop combines two of them.
type folder[T device.Element] struct {
	identity T
	block    vec.Fold
	rows     vec.RowFold
	combine  func(dst, x, y []T) // element by element
	pair     func(x, y T) T      // of one pair
}

func newFolder[T device.Element](r kernel.Reducer) *folder[T] {
	dt := device.DTypeOf[T]()
	loop := vec.PrimLoop(r.Prim(), dt, vec.NoScalar)
	combine := func(dst, x, y []T) {
		loop(start(dst), start(x), start(y), nil, 0, len(dst))
	}
	pair := r.Prim().Func(dt).(func(x, y T) T)
	return &folder[T]{kernel.Value[T](r.Identity(dt)), vec.FoldOf(r.Prim(), dt), vec.RowFoldOf(r.Prim(), dt), combine, pair}
}

// start is where the elements of x lie.
func start[T any](x []T) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(x)) }

// columns is how many neighbouring results are computed together. Each row then has that many elements
// side by side, which is worth the access to another page, and lanes of float32 take 32 KiB.
// (With twice as many, sums of 256 rows took 1.05 to 1.3 times as long on Zen 3, those of 1024 as long as with these.)
const columns = 2 * vec.Columns

// rowsAtATime is how many rows one call of a loop gets: four for each lane, which are added to it at a time, as lanes
// do not fit into the innermost cache. Calls of assembly stay short.
const rowsAtATime = 4 * kernel.Lanes

// blockCost is what a block of contiguous elements costs, in simple operations: half of what adding
// as many elements costs, as nothing is written (BenchmarkShare: 0.04 ns an element, and 0.08 to
// 0.15 for add, on a busy Zen 4).
const blockCost = kernel.Block / 2

// blocksOf is how many blocks n elements make.
func blocksOf(n int) int { return (n + kernel.Block - 1) / kernel.Block }

// foldScratch is the memory of one run, in words.
type foldScratch struct {
	lanes   []uint64
	results []uint64
	block   [kernel.Block]uint64
}

// grow makes room for results of vectors of width w, each of the given number of blocks.
func (s *foldScratch) grow(w, blocks int) {
	if n := kernel.Lanes * w; len(s.lanes) < n {
		s.lanes = make([]uint64, n)
	}
	if n := (bits.Len(uint(blocks)) + 1) * w; len(s.results) < n {
		s.results = make([]uint64, n)
	}
}

var foldScratches = sync.Pool{New: func() any { return new(foldScratch) }}

// run executes a Reduce command.
func (f *folder[T]) run(c *device.Command) error {
	if c.N <= 0 {
		return nil
	}
	if c.Args.Strides[1] == nil {
		f.inOrder(c)
		return nil
	}
	return f.inAnyOrder(c)
}

// inOrder runs a command whose operand is contiguous, so that a result is made of neighbours.
func (f *folder[T]) inOrder(c *device.Command) {
	n := c.Args.Shape[c.Args.Kept:].Size()
	out, src := operand[T](c, 0, c.N), operand[T](c, 1, c.N*n)
	switch {
	case n == 0:
		fillSlice(out, f.identity)
	case n > kernel.Block:
		blocks := blocksOf(n)
		s := foldScratches.Get().(*foldScratch)
		if words := c.N * blocks; len(s.results) < words {
			s.results = make([]uint64, words)
		}
		results := slice[T](start(s.results), c.N*blocks)
		if pool.Worth(len(results), grainOf(blockCost)) {
			f.splitBlocks(results, src, n)
		} else {
			f.foldBlocks(results, src, n, 0)
		}
		for i := range out {
			out[i] = f.tree(results[i*blocks:][:blocks])
		}
		foldScratches.Put(s)
	case c.N*n > grain/finest && pool.Worth(c.N, grainOf(n)):
		f.splitRows(out, src, n)
	default:
		f.foldRows(out, src, n)
	}
}

func (f *folder[T]) splitRows(out, src []T, n int) {
	pool.Run(len(out), grainOf(n), func(lo, hi int) { f.foldRows(out[lo:hi], src[lo*n:hi*n], n) })
}

func (f *folder[T]) splitBlocks(results, src []T, n int) {
	pool.Run(len(results), grainOf(blockCost), func(lo, hi int) { f.foldBlocks(results[lo:hi], src, n, lo) })
}

// foldRows folds rows of n elements, at most kernel.Block.
func (f *folder[T]) foldRows(out, src []T, n int) {
	if n > 1 && n <= shortRow && len(out) >= fewestShort {
		f.foldShort(out, src, n)
		return
	}
	identity := kernel.Bits(f.identity)
	for i := range out {
		out[i] = kernel.Value[T](f.block(start(src[i*n:][:n]), n, identity))
	}
}

// fewestShort is how many short rows are worth being folded together.
const fewestShort = 8

// foldShort folds rows of n elements, at most shortRow, some at a time: it transposes them and folds columns, as a call
// for each row would take longer than its elements.
func (f *folder[T]) foldShort(out, src []T, n int) {
	s := foldScratches.Get().(*foldScratch)
	defer foldScratches.Put(s)
	s.grow(vec.Columns, 1)
	width, turns := kernel.LanesFor(n), turnsOf[T]()
	for len(out) > 0 {
		m := min(len(out), vec.Columns)
		w := turned(m)
		rows, lanes := slice[T](unsafe.Pointer(&s.block), n*w), slice[T](start(s.lanes), width*w)
		turnRows(turns, rows, w, src, n, m, n)
		repeat(lanes, f.identity)
		f.combine(lanes[:n*w], lanes[:n*w], rows)
		for half := width / 2; half > 0; half /= 2 {
			f.combine(lanes[:half*w], lanes[:half*w], lanes[half*w:2*half*w])
		}
		copy(out, lanes[:m])
		out, src = out[m:], src[m*n:]
	}
}

// turnsOf returns loops that transpose elements of the size of T, or nil.
func turnsOf[T any]() *vec.Products {
	var zero T
	switch unsafe.Sizeof(zero) {
	case 4:
		return vec.ProductsOf(device.Float32)
	case 8:
		return vec.ProductsOf(device.Float64)
	}
	return nil
}

// turned is how long the rows are that turnRows makes of the given number of rows.
func turned(rows int) int { return (rows + vec.TurnRows - 1) / vec.TurnRows * vec.TurnRows }

// turnRows transposes rows of n elements, which are from elements apart, to dst, where they are to elements apart.
func turnRows[T any](turns *vec.Products, dst []T, to int, src []T, from, rows, n int) {
	_, _ = src[(rows-1)*from:][:n], dst[:n*to]
	size := int(unsafe.Sizeof(src[0]))
	for j := 0; j < rows; j += vec.TurnRows {
		w := min(vec.TurnRows, rows-j)
		if turns != nil {
			turns.Turn(n, start(src[j*from:]), from*size, w, start(dst[j:]), to*size)
			continue
		}
		for i := range w {
			for k, v := range src[(j+i)*from:][:n] {
				dst[k*to+j+i] = v
			}
		}
	}
}

// foldBlocks folds the blocks of rows of n elements, from the given one on.
func (f *folder[T]) foldBlocks(results, src []T, n, from int) {
	identity, blocks := kernel.Bits(f.identity), blocksOf(n)
	for i := range results {
		row, first := (from+i)/blocks*n, (from+i)%blocks*kernel.Block
		m := min(kernel.Block, n-first)
		results[i] = kernel.Value[T](f.block(start(src[row+first:][:m]), m, identity))
	}
}

// tree combines the results of blocks, which it overwrites, in neighbouring pairs.
func (f *folder[T]) tree(x []T) T {
	for len(x) > 1 {
		n := len(x) / 2
		for i := range n {
			x[i] = f.pair(x[2*i], x[2*i+1])
		}
		if len(x)%2 == 1 {
			x[n] = x[len(x)-1]
			n++
		}
		x = x[:n]
	}
	return x[0]
}

// inAnyOrder runs a command whose operand is a view.
func (f *folder[T]) inAnyOrder(c *device.Command) error {
	shape, strides := c.Args.Shape, c.Args.Strides[1]
	var kept, reduced view
	if !makeView(&kept, shape[:c.Args.Kept], strides[:c.Args.Kept]) || !makeView(&reduced, shape[c.Args.Kept:], strides[c.Args.Kept:]) {
		return errRank(shape)
	}
	n := shape[c.Args.Kept:].Size()
	out := operand[T](c, 0, c.N)
	if n == 0 {
		fillSlice(out, f.identity)
		return nil
	}
	r := reduction[T]{folder: f, out: out, src: whole[T](c, 1), off: c.Off[1], kept: kept, reduced: reduced, n: n}
	if !pool.Worth(c.N, grainOf(n)) {
		r.run(0, c.N)
	} else {
		r.split()
	}
	return nil
}

// A reduction is one command.
type reduction[T device.Element] struct {
	folder        *folder[T]
	out, src      []T
	off           int
	kept, reduced view
	n             int // how many elements a result is made of
}

func (r reduction[T]) split() {
	shareOut(len(r.out), columnsTogether(&r.kept, &r.reduced), r.n, r.run)
}

// columnsTogether is how many results, one after the other, a goroutine should compute together: those of neighbouring
// columns, as loops are fast on whole vectors of them and each column for itself would read every row's cache line
// again. It is 1 where the elements of a result are neighbours.
func columnsTogether(kept, reduced *view) int {
	inner := kept.rank - 1
	if reduced.isContiguous() || inner < 0 || kept.strides[inner] != 1 {
		return 1
	}
	if length := kept.dims[inner]; length < vec.Columns || length < columns && length%vec.Columns != 0 {
		return length
	}
	return vec.Columns
}

// shareOut shares n results among the workers: run computes those from lo to hi-1. A result takes the given number of
// operations. Workers get whole units of results; only the last unit may be shorter.
func shareOut(n, unit, operations int, run func(lo, hi int)) {
	pool.Run((n+unit-1)/unit, grainOf(operations*unit), func(lo, hi int) { run(lo*unit, min(hi*unit, n)) })
}

// run computes the results from lo to hi-1.
func (r *reduction[T]) run(lo, hi int) {
	s := foldScratches.Get().(*foldScratch)
	defer foldScratches.Put(s)
	inner := r.kept.rank - 1
	if !r.reduced.isContiguous() && inner >= 0 && r.kept.strides[inner] == 1 {
		r.foldColumns(s, lo, hi)
		return
	}
	for i := lo; i < hi; i++ {
		r.out[i] = r.folder.foldOne(s, r.src, r.off+r.kept.offset(i), &r.reduced, r.n)
	}
}

// foldOne reduces the n elements of one result, which begin at src[at].
func (f *folder[T]) foldOne(s *foldScratch, src []T, at int, v *view, n int) T {
	if n <= kernel.Block {
		return f.foldBlock(s, src, at, v, 0, n)
	}
	s.grow(1, blocksOf(n))
	t := tree[T]{folder: f, results: slice[T](start(s.results), len(s.results)), width: 1}
	result := slice[T](start(s.lanes), 1)
	for first := 0; first < n; first += kernel.Block {
		result[0] = f.foldBlock(s, src, at, v, first, min(kernel.Block, n-first))
		t.push(result)
	}
	return t.finish()[0]
}

// foldBlock folds the n elements, at most kernel.Block, that follow the first ones of the view.
func (f *folder[T]) foldBlock(s *foldScratch, src []T, at int, v *view, first, n int) T {
	var block []T
	if v.isContiguous() {
		block = src[at+first : at+first+n]
	} else {
		block = slice[T](unsafe.Pointer(&s.block), n)
		gather(block, src, at, v, first)
	}
	return kernel.Value[T](f.block(start(block), n, kernel.Bits(f.identity)))
}

// foldColumns computes results that are neighbours in memory together.
func (r *reduction[T]) foldColumns(s *foldScratch, lo, hi int) {
	f := r.folder
	length := r.kept.dims[r.kept.rank-1]
	for i := lo; i < hi; {
		w := min(columns, length-i%length, hi-i)
		if w > vec.Columns && !r.areSideBySide(w) {
			w -= w % vec.Columns
		}
		at := r.off + r.kept.offset(i)
		s.grow(w, blocksOf(r.n))
		t := tree[T]{folder: f, results: slice[T](start(s.results), len(s.results)), width: w}
		for first := 0; first < r.n; first += kernel.Block {
			m := min(kernel.Block, r.n-first)
			width := kernel.LanesFor(m)
			lanes := slice[T](start(s.lanes), width*w)
			half := width / 2
			if 1 < m && m <= width && w >= vec.Columns {
				r.pairRows(lanes, at, first, m, half, w)
				half /= 2
			} else {
				repeat(lanes, f.identity)
				r.addRows(lanes, at, first, m, width, w)
			}
			for ; half > 0; half /= 2 {
				f.combine(lanes[:half*w], lanes[:half*w], lanes[half*w:2*half*w])
			}
			t.push(lanes[:w])
		}
		copy(r.out[i:], t.finish())
		i += w
	}
}

// pairRows combines row k with row k+half, for each k below half, in lane k: that is where m rows of w elements, one
// for each lane at most, are after the first step. The rows begin with number first; row 0 is at at.
func (r *reduction[T]) pairRows(lanes []T, at, first, m, half, w int) {
	row := func(k int) []T { return r.src[at+r.reduced.offset(first+k):][:w] }
	for k := range half {
		lane := lanes[k*w:][:w]
		if k+half < m {
			r.folder.combine(lane, row(k), row(k+half))
		} else { // what the identity takes is as in any other lane
			repeat(lane, r.folder.identity)
			r.folder.combine(lane, lane, row(k))
		}
	}
}

// addRows folds m rows of w elements into lanes: the k-th row into lane k modulo width. The rows begin
// with number first; row 0 is at at.
func (r *reduction[T]) addRows(lanes []T, at, first, m, width, w int) {
	if w%vec.Columns == 0 && r.reduced.rank == 1 {
		from, stride := at+first*r.reduced.strides[0], r.reduced.strides[0]
		to := from + (m-1)*stride
		_, _ = r.src[min(from, to):][:w], r.src[max(from, to):][:w] // inside the buffer
		var zero T
		size := int(unsafe.Sizeof(zero))
		for ; m > 0; m -= rowsAtATime {
			r.folder.rows(start(lanes), start(r.src[from:]), min(m, rowsAtATime), stride*size, width, w/vec.Columns)
			from += rowsAtATime * stride
		}
		return
	}
	if r.areSideBySide(w) { // then the rows of all lanes are neighbours, too
		for k := 0; k < m; k += width {
			n := min(width, m-k) * w
			r.folder.combine(lanes[:n], lanes[:n], r.src[at+(first+k)*w:][:n])
		}
		return
	}
	for k := range m {
		lane := lanes[k%width*w:][:w]
		r.folder.combine(lane, lane, r.src[at+r.reduced.offset(first+k):][:w])
	}
}

// areSideBySide reports whether each row begins where the w elements of the row before end.
func (r *reduction[T]) areSideBySide(w int) bool { return isNextRow(&r.reduced, w) }

// isNextRow reports whether each step along v leads w elements on.
func isNextRow(v *view, w int) bool { return v.rank == 1 && v.strides[0] == w }

// A tree combines the results of blocks in neighbouring pairs; each result is a vector of the same
// width. Like a binary counter, it holds one result for each bit that is set in count, the number of
// blocks so far. The result of the most blocks comes first.
type tree[T device.Element] struct {
	folder  *folder[T]
	results []T
	width   int
	held    int // how many results
	count   int // how many blocks they are of
}

func (t *tree[T]) result(i int) []T { return t.results[i*t.width:][:t.width] }

func (t *tree[T]) push(x []T) {
	copy(t.result(t.held), x)
	t.held++
	t.count++
	for n := t.count; n%2 == 0; n /= 2 {
		t.pair()
	}
}

// pair combines the last two results.
func (t *tree[T]) pair() {
	t.held--
	left := t.result(t.held - 1)
	t.folder.combine(left, left, t.result(t.held))
}

// finish combines what is left, the odd ones, from the right.
func (t *tree[T]) finish() []T {
	for t.held > 1 {
		t.pair()
	}
	return t.result(0)
}
