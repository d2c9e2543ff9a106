package cpu

import (
	"math"
	"math/bits"
	"unsafe"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/cpu/internal/vec"
	"github.com/asyncgen/asyncgen/device/kernel"
	"github.com/asyncgen/asyncgen/device/pool"
)

// Functions of rows. A row stays in the caches from its first reading to its last, so that it comes from
// memory once. Columns, whose neighbours are neighbours in memory, are computed some at a time.

func newRowFunc(k *device.Kernel) (runner, error) {
	f, ok := k.Body.(kernel.RowFunc)
	most := 1
	if ok && f.Norms() {
		most = 3
	}
	if !ok || len(k.In) < 1 || len(k.In) > most {
		return nil, unsupported(k)
	}
	for _, dt := range k.In {
		if dt != k.Out {
			return nil, unsupported(k)
		}
	}
	switch k.Out {
	case device.Float32:
		return newRowLoops[float32](f, len(k.In)).command, nil
	case device.Float64:
		return newRowLoops[float64](f, len(k.In)).command, nil
	}
	return nil, unsupported(k)
}

type float interface{ float32 | float64 }

// rowLoops is a compiled function of rows with the given number of inputs.
type rowLoops[T float] struct {
	f        kernel.RowFunc
	inputs   int
	cost     int // of an element, in simple operations
	max, sum *folder[T]
	squares  vec.Squares
	rescaled vec.Norm

	// Of two rows, and of a row and a number.
	sub, mul, div           loopOf[T]
	plus, lessBy, times, by loopOf[T]
	exp, log                loopOf[T]
}

func newRowLoops[T float](f kernel.RowFunc, inputs int) *rowLoops[T] {
	dt := device.DTypeOf[T]()
	loop := func(p kernel.Prim, form vec.Form) loopOf[T] { return loopOf[T]{vec.PrimLoop(p, dt, form)} }
	l := &rowLoops[T]{
		f: f, inputs: inputs, cost: 8, max: newFolder[T](kernel.ReduceMax), sum: newFolder[T](kernel.ReduceSum),
		squares: vec.SquaresOf(dt), rescaled: vec.NormOf(dt, inputs-1),
		sub: loop(kernel.PrimSub, vec.NoScalar), mul: loop(kernel.PrimMul, vec.NoScalar), div: loop(kernel.PrimDiv, vec.NoScalar),
		plus: loop(kernel.PrimAdd, vec.SecondScalar), lessBy: loop(kernel.PrimSub, vec.SecondScalar), times: loop(kernel.PrimMul, vec.SecondScalar), by: loop(kernel.PrimDiv, vec.SecondScalar),
		exp: loop(kernel.PrimExp, vec.NoScalar), log: loop(kernel.PrimLog, vec.NoScalar),
	}
	if !f.Norms() {
		l.cost += vec.Cost(kernel.PrimExp, dt)
	}
	return l
}

// A loopOf is a loop on slices that are as long as dst, in parts that are not too long.
type loopOf[T float] struct{ loop vec.Loop }

// run is for operands that are slices; y is nil where there is but one.
func (l loopOf[T]) run(dst, x, y []T) {
	for i := 0; i < len(dst); i += long {
		var second unsafe.Pointer
		if y != nil {
			second = start(y[i:])
		}
		l.loop(start(dst[i:]), start(x[i:]), second, nil, 0, min(long, len(dst)-i))
	}
}

// with is for a second operand that is a number.
func (l loopOf[T]) with(dst, x []T, y T) {
	for i := 0; i < len(dst); i += long {
		l.loop(start(dst[i:]), start(x[i:]), nil, nil, kernel.Bits(y), min(long, len(dst)-i))
	}
}

// command runs a Rows command.
func (l *rowLoops[T]) command(c *device.Command) error {
	if c.N <= 0 {
		return nil
	}
	x, err := newRows[T](c)
	if err != nil {
		return err
	}
	out, err := rowsOf[T](c, 0, c.Args.Shape)
	if err != nil {
		return err
	}
	r := rowCommand[T]{rowLoops: l, rows: x, out: out, eps: kernel.Value[T](c.Imm[0])}
	if l.inputs > 1 {
		if r.gain, err = vectorOf[T](c, 2); err != nil {
			return err
		}
	}
	if l.inputs > 2 {
		if r.bias, err = vectorOf[T](c, 3); err != nil {
			return err
		}
	}
	if n := c.N / x.n; !pool.Worth(n, grainOf(l.cost*x.n)) {
		r.run(0, n)
	} else {
		r.split(n)
	}
	return nil
}

// vectorOf is operand i of c over the reduced axes: the same for all rows.
func vectorOf[T float](c *device.Command, i int) ([]T, error) {
	shape := c.Args.Shape[c.Args.Kept:]
	if c.Args.Strides[i] == nil {
		return operand[T](c, i, shape.Size()), nil
	}
	var v view
	if !makeView(&v, shape, c.Args.Strides[i]) {
		return nil, errRank(shape)
	}
	list := make([]T, shape.Size())
	gather(list, whole[T](c, i), c.Off[i], &v, 0)
	return list, nil
}

// A rowCommand is one Rows command.
type rowCommand[T float] struct {
	*rowLoops[T]
	rows[T]
	out        rows[T]
	eps        T
	gain, bias []T // nil if there is none
}

func (r rowCommand[T]) split(n int) {
	shareOut(n, columnsTogether(&r.kept, &r.reduced), r.cost*r.n, r.run)
}

// run computes the rows from lo to hi-1.
func (r *rowCommand[T]) run(lo, hi int) {
	s := foldScratches.Get().(*foldScratch)
	defer foldScratches.Put(s)
	s.grow(1, blocksOf(r.n))
	if r.areColumns() && r.out.areColumns() {
		r.columns(s, lo, hi)
		return
	}
	if r.f.Norms() && r.reduced.isContiguous() && r.out.reduced.isContiguous() {
		r.norms(s, lo, hi)
		return
	}
	if !r.f.Norms() && r.n <= shortRow && r.reduced.isContiguous() && r.kept.rank <= 1 && r.out.areSideBySide() {
		r.softmaxes(s, lo, hi)
		return
	}
	var row, copied []T
	if !r.out.reduced.isContiguous() {
		row = make([]T, r.n)
	}
	if !r.reduced.isContiguous() {
		copied = make([]T, r.n)
	}
	for i := lo; i < hi; i++ {
		x := copied
		if x == nil {
			x = r.row(i)
		} else {
			r.read(x, i)
		}
		if r.out.reduced.isContiguous() {
			row = r.out.row(i)
		}
		if r.f.Norms() {
			r.norm(s, row, x)
		} else {
			r.softmax(s, row, x)
		}
		if !r.out.reduced.isContiguous() {
			r.out.write(row, i)
		}
	}
}

// shortRow is the length of the longest rows that are computed many at a time, transposed: calls of loops take longer
// than the elements of such a row. Softmax of 1024 rows of 10 took 120 to 200 µs with calls for each row, and takes 30
// to 50 (a busy AMD EPYC, Zen 3).
const shortRow = 32

// softmaxes is run for short rows whose elements are neighbours, in both operands. Rows of the result are, too, and
// those of the operand are evenly apart. It computes columns of transposed rows.
func (r *rowCommand[T]) softmaxes(s *foldScratch, lo, hi int) {
	const most, together, tile = vec.Columns, 4, shortRow * vec.Columns
	var zero T
	n, size := r.n, int(unsafe.Sizeof(zero))
	mem := takeSpare((3*tile + (2*together+2)*most) * size)
	defer giveSpare(mem)
	all := slice[T](mem.Ptr, 3*tile+(2*together+2)*most)
	columns, back, numbers := all[:tile], all[tile:2*tile], all[3*tile:]
	t := *r
	t.src, t.reduced.rank, t.reduced.dims[0] = columns, min(n-1, 1), n
	p := panel[T]{rowCommand: &t, s: s, made: all[2*tile : 3*tile], first: numbers[:together*most], second: numbers[together*most : 2*together*most], tree: numbers[2*together*most:]}
	turns, step := turnsOf[T](), turned(n)
	for ; lo < hi; lo += most {
		w := min(hi-lo, most)
		p.w = turned(w)
		p.together = together * most / p.w
		t.reduced.strides[0] = p.w
		t.out = t.rows
		turnRows(turns, columns, p.w, r.src[r.at(lo):], r.step(), w, n)
		p.softmax()
		turnRows(turns, back, step, columns, p.w, n, w)
		out := r.out.src[r.out.at(lo):][:w*n]
		for j := range w {
			copy(out[j*n:][:n], back[j*step:][:n])
		}
	}
}

// softmax is kernel.Row of Softmax and LogSoftmax.
func (r *rowCommand[T]) softmax(s *foldScratch, dst, x []T) {
	shift := finite(r.max.foldRow(s, x, nil))
	if r.f == kernel.LogSoftmax {
		powers := slice[T](unsafe.Pointer(&s.block), kernel.Block)
		sum := r.sum.foldRow(s, x, func(lo, hi int) []T {
			r.lessBy.with(dst[lo:hi], x[lo:hi], shift)
			r.exp.run(powers[:hi-lo], dst[lo:hi], nil)
			return powers[:hi-lo]
		})
		logs := []T{sum}
		r.log.run(logs, logs, nil)
		r.lessBy.with(dst, dst, logs[0])
		return
	}
	sum := r.sum.foldRow(s, x, func(lo, hi int) []T {
		part := dst[lo:hi]
		r.lessBy.with(part, x[lo:hi], shift)
		r.exp.run(part, part, nil)
		return part
	})
	r.by.with(dst, dst, sum)
}

// finite is x, or 0 where that is infinite or NaN.
func finite[T float](x T) T {
	if x-x != 0 {
		return 0
	}
	return x
}

// abreast is the number of short rows that are normed at a time. Steps on one row wait for each other, and steps on
// different rows don't.
const abreast = 8

// norms is run where the elements of a row are neighbours, in both operands, of LayerNorm and RMSNorm.
func (r *rowCommand[T]) norms(s *foldScratch, lo, hi int) {
	var means, scales [abreast]T
	for lo < hi {
		w := min(hi-lo, abreast, max(1, kernel.Block/r.n))
		for j := range w {
			means[j] = r.mean(s, r.row(lo+j))
		}
		for j := range w {
			scales[j] = r.scaleOf(s, r.row(lo+j), means[j])
		}
		for j := range w {
			r.rescale(r.out.row(lo+j), r.row(lo+j), means[j], scales[j])
		}
		lo += w
	}
}

// norm is kernel.Row of LayerNorm and RMSNorm.
func (r *rowCommand[T]) norm(s *foldScratch, dst, x []T) {
	mean := r.mean(s, x)
	r.rescale(dst, x, mean, r.scaleOf(s, x, mean))
}

// mean returns the number that is subtracted from the elements of x.
func (r *rowCommand[T]) mean(s *foldScratch, x []T) T {
	if r.f != kernel.LayerNorm {
		return 0
	}
	return r.sum.foldRow(s, x, nil) / T(len(x))
}

// scaleOf returns the number that the elements of x less their mean are multiplied by.
func (r *rowCommand[T]) scaleOf(s *foldScratch, x []T, mean T) T {
	if len(x) <= kernel.Block {
		return r.scale(kernel.Value[T](r.squares(start(x), len(x), kernel.Bits(mean))), T(len(x)))
	}
	return r.scale(r.sum.foldParts(s, len(x), func(lo, hi int) T {
		return kernel.Value[T](r.squares(start(x[lo:hi]), hi-lo, kernel.Bits(mean)))
	}), T(len(x)))
}

// rescale sets dst to x less the mean, multiplied by scale and the gain, plus the bias.
func (r *rowCommand[T]) rescale(dst, x []T, mean, scale T) {
	for lo := 0; lo < len(dst); lo += long {
		var gain, bias unsafe.Pointer
		if r.gain != nil {
			gain = start(r.gain[lo:])
		}
		if r.bias != nil {
			bias = start(r.bias[lo:])
		}
		r.rescaled(start(dst[lo:]), start(x[lo:]), gain, bias, kernel.Bits(mean), kernel.Bits(scale), min(long, len(dst)-lo))
	}
}

// scale is what a row is multiplied by whose squares have the given sum.
func (r *rowCommand[T]) scale(sum, n T) T {
	return 1 / T(math.Sqrt(float64(T(sum/n)+r.eps)))
}

// foldRow folds a row x block by block. If part isn't nil, it folds what part returns for each block
// instead. s has room for the results of the blocks.
func (f *folder[T]) foldRow(s *foldScratch, x []T, part func(lo, hi int) []T) T {
	if part == nil && len(x) <= kernel.Block {
		return kernel.Value[T](f.block(start(x), len(x), kernel.Bits(f.identity)))
	}
	return f.foldParts(s, len(x), func(lo, hi int) T {
		block := x[lo:hi]
		if part != nil {
			block = part(lo, hi)
		}
		return kernel.Value[T](f.block(start(block), len(block), kernel.Bits(f.identity)))
	})
}

// foldParts combines the results that fold has for the blocks of a row of n elements. S has room for them.
func (f *folder[T]) foldParts(s *foldScratch, n int, fold func(lo, hi int) T) T {
	if n <= kernel.Block {
		return fold(0, n)
	}
	t := tree[T]{folder: f, results: slice[T](start(s.results), len(s.results)), width: 1}
	for lo := 0; lo < n; lo += kernel.Block {
		t.push([]T{fold(lo, min(lo+kernel.Block, n))})
	}
	return t.finish()[0]
}

// panelBytes is the size of a panel, neighbouring columns that are worked on together: it stays in
// the second cache. Long columns take more.
const panelBytes = 256 << 10

// columns is run where neighbouring rows are neighbours in memory, in both operands.
func (r *rowCommand[T]) columns(s *foldScratch, lo, hi int) {
	var zero T
	size := int(unsafe.Sizeof(zero))
	most := max(vec.Columns, min(columns, panelBytes/(r.n*size)/vec.Columns*vec.Columns))
	rows := min(r.n, kernel.Block)
	blocks := bits.Len(uint(blocksOf(r.n))) + 1
	mem := takeSpare((2 + rows + blocks) * most * size)
	defer giveSpare(mem)
	all := slice[T](mem.Ptr, (2+rows+blocks)*most)
	p := panel[T]{rowCommand: r, s: s, first: all[:most], second: all[most : 2*most], made: all[2*most : (2+rows)*most], tree: all[(2+rows)*most:]}
	for i := lo; i < hi; i += p.w {
		p.w = min(r.neighbours(i, hi-i), r.out.neighbours(i, most))
		p.from, p.to, p.together = r.at(i), r.out.at(i), 1
		if isNextRow(&r.reduced, p.w) && isNextRow(&r.out.reduced, p.w) {
			p.together = most / p.w
		}
		if r.f.Norms() {
			p.norm()
		} else {
			p.softmax()
		}
	}
}

// A panel is some neighbouring columns of a command.
type panel[T float] struct {
	*rowCommand[T]
	s             *foldScratch
	w             int // how many columns
	together      int // how many rows are computed at a time: more than one only if they are neighbours
	from, to      int // where they begin
	first, second []T // a number for each, as often as rows are computed at a time
	made          []T // rows that are added up
	tree          []T // its results
}

// in and result are row k of the operand and of the result.
func (p *panel[T]) in(k int) []T { return p.ins(k, 1) }

func (p *panel[T]) result(k int) []T { return p.results(k, 1) }

// ins and results are n rows, from row k on; no more than are computed at a time.
func (p *panel[T]) ins(k, n int) []T { return p.src[p.from+p.reduced.offset(k):][:n*p.w] }

func (p *panel[T]) results(k, n int) []T { return p.out.src[p.to+p.out.reduced.offset(k):][:n*p.w] }

// some returns a number for each column, which lie in x, as often as rows are computed at a time.
func (p *panel[T]) some(x []T) []T {
	x = x[:p.together*p.w]
	for n := p.w; n < len(x); n *= 2 {
		copy(x[n:], x[:n])
	}
	return x
}

// foldIn reduces the columns of the operand to dst.
func (p *panel[T]) foldIn(f *folder[T], dst []T) {
	x := reduction[T]{folder: f, out: dst, src: p.src, off: p.from, reduced: p.reduced, n: p.n}
	x.kept.rank, x.kept.dims[0], x.kept.strides[0] = 1, p.w, 1
	x.foldColumns(p.s, 0, p.w)
}

// addUp adds up columns to dst. rows delivers n of their rows, from row k on.
func (p *panel[T]) addUp(dst []T, rows func(k, n int, to []T)) {
	t := tree[T]{folder: p.sum, results: p.tree, width: p.w}
	for lo := 0; lo < p.n; lo += kernel.Block {
		m := min(kernel.Block, p.n-lo)
		for k := 0; k < m; k += p.together {
			n := min(p.together, m-k)
			rows(lo+k, n, p.made[k*p.w:][:n*p.w])
		}
		x := reduction[T]{folder: p.sum, out: dst, src: p.made, n: m}
		x.kept.rank, x.kept.dims[0], x.kept.strides[0] = 1, p.w, 1
		x.reduced.rank, x.reduced.dims[0], x.reduced.strides[0] = 1, m, p.w
		x.foldColumns(p.s, 0, p.w)
		t.push(dst)
	}
	copy(dst, t.finish())
}

func (p *panel[T]) softmax() {
	shift, sums := p.first[:p.w], p.second[:p.w]
	p.foldIn(p.max, shift)
	for j, v := range shift {
		shift[j] = finite(v)
	}
	isLog := p.f == kernel.LogSoftmax
	shift = p.some(p.first)
	p.addUp(sums, func(k, n int, to []T) {
		y := p.results(k, n)
		p.sub.run(y, p.ins(k, n), shift)
		p.exp.run(to, y, nil)
		if !isLog {
			copy(y, to)
		}
	})
	last := p.div
	if isLog {
		last = p.sub
		p.log.run(sums, sums, nil)
	}
	sums = p.some(p.second)
	for k := 0; k < p.n; k += p.together {
		y := p.results(k, min(p.together, p.n-k))
		last.run(y, y, sums)
	}
}

func (p *panel[T]) norm() {
	p.together = 1
	n, mean, scale := T(p.n), p.first[:p.w], p.second[:p.w]
	x := p.in
	if p.f == kernel.LayerNorm {
		p.foldIn(p.sum, mean)
		for j, v := range mean {
			mean[j] = v / n
		}
		x = p.result
	}
	p.addUp(scale, func(k, _ int, to []T) {
		if p.f == kernel.LayerNorm {
			p.sub.run(x(k), p.in(k), mean)
		}
		p.mul.run(to, x(k), x(k))
	})
	for j, v := range scale {
		scale[j] = p.scale(v, n)
	}
	for k := range p.n {
		y := p.result(k)
		p.mul.run(y, x(k), scale)
		if p.gain != nil {
			p.times.with(y, y, p.gain[k])
		}
		if p.bias != nil {
			p.plus.with(y, y, p.bias[k])
		}
	}
}
