package cpu

import (
	"unsafe"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/cpu/internal/vec"
	"github.com/asyncgen/asyncgen/device/kernel"
	"github.com/asyncgen/asyncgen/device/pool"
)

// What goes along the reduced axes element by element, one result after the
// other: the search for an extreme element, and running folds.

// rows is an operand of such a command: as many rows as there are results.
type rows[T device.Element] struct {
	src           []T
	off           int
	kept, reduced view
	n             int // how long a row is
}

// newRows is operand 1 of c over the axes of a Reduce command.
func newRows[T device.Element](c *device.Command) (rows[T], error) {
	return rowsOf[T](c, 1, c.Args.Shape)
}

// rowsOf is operand i of c over the given shape, whose first len(Args.Kept) axes are the kept ones.
func rowsOf[T device.Element](c *device.Command, i int, shape device.Shape) (rows[T], error) {
	kept, strides := c.Args.Kept, c.Args.Strides[i]
	if strides == nil {
		strides = shape.Strides()
	}
	x := rows[T]{off: c.Off[i], n: shape[kept:].Size()}
	if !makeView(&x.kept, shape[:kept], strides[:kept]) || !makeView(&x.reduced, shape[kept:], strides[kept:]) {
		return x, errRank(shape)
	}
	x.src = whole[T](c, i)
	return x, nil
}

// at is where row i begins.
func (x *rows[T]) at(i int) int { return x.off + x.kept.offset(i) }

// row is row i where its elements are neighbours.
func (x *rows[T]) row(i int) []T { return x.src[x.at(i):][:x.n] }

// read copies row i to dst.
func (x *rows[T]) read(dst []T, i int) {
	if x.reduced.isContiguous() {
		copy(dst, x.row(i))
		return
	}
	gather(dst, x.src, x.at(i), &x.reduced, 0)
}

// write copies src to row i.
func (x *rows[T]) write(src []T, i int) {
	if x.reduced.isContiguous() {
		copy(x.row(i), src)
		return
	}
	at := x.at(i)
	for k, v := range src {
		x.src[at+x.reduced.offset(k)] = v
	}
}

// areColumns reports whether the elements of a row are not neighbours, but rows are.
func (x *rows[T]) areColumns() bool {
	inner := x.kept.rank - 1
	return !x.reduced.isContiguous() && inner >= 0 && x.kept.strides[inner] == 1
}

// areSideBySide reports whether each row begins where the one before ends, and its elements are neighbours.
func (x *rows[T]) areSideBySide() bool {
	return x.reduced.isContiguous() && x.kept.rank <= 1 && x.step() == x.n
}

// step is how far rows are apart where they are evenly apart.
func (x *rows[T]) step() int {
	if x.kept.rank == 0 { // one row
		return x.n
	}
	return x.kept.strides[0]
}

// neighbours is how many rows, beginning with row i and up to the given number, are columns of the same rows of memory.
func (x *rows[T]) neighbours(i, most int) int {
	length := x.kept.dims[x.kept.rank-1]
	return min(most, length-i%length)
}

func newArgReduce(k *device.Kernel) (runner, error) {
	r, ok := k.Body.(kernel.Reducer)
	if !ok || r != kernel.ReduceMax && r != kernel.ReduceMin || len(k.In) != 1 || k.Out != device.Int64 {
		return nil, unsupported(k)
	}
	switch k.In[0] {
	case device.Float32:
		return argReduce[float32](r), nil
	case device.Float64:
		return argReduce[float64](r), nil
	case device.Int64:
		return argReduce[int64](r), nil
	}
	return nil, unsupported(k)
}

func argReduce[T number](r kernel.Reducer) runner {
	finder := newArgFinder[T](r)
	return func(c *device.Command) error {
		if c.N <= 0 {
			return nil
		}
		x, err := newRows[T](c)
		if err != nil {
			return err
		}
		s := argSearch[T]{rows: x, argFinder: finder, out: operand[int64](c, 0, c.N)}
		switch {
		case s.n == 0:
			fillSlice(s.out, -1)
		case !pool.Worth(c.N, grainOf(s.n)):
			s.run(0, c.N)
		default:
			s.split()
		}
		return nil
	}
}

// An argSearch is one ArgReduce command.
type argSearch[T number] struct {
	rows[T]
	*argFinder[T]
	out []int64
}

func (s argSearch[T]) split() {
	shareOut(len(s.out), columnsTogether(&s.kept, &s.reduced), s.n, s.run)
}

// run computes the results from lo to hi-1.
func (s *argSearch[T]) run(lo, hi int) {
	if s.areColumns() {
		s.columns(lo, hi)
		return
	}
	if s.n <= shortRow && s.reduced.isContiguous() {
		for i := lo; i < hi; i++ {
			s.out[i] = int64(s.short(s.src[s.at(i):][:s.n]))
		}
		return
	}
	mem := foldScratches.Get().(*foldScratch)
	defer foldScratches.Put(mem)
	for i := lo; i < hi; i++ {
		s.out[i] = int64(s.one(slice[T](unsafe.Pointer(&mem.block), kernel.Block), s.at(i)))
	}
}

// short searches a row of a few elements.
func (s *argSearch[T]) short(row []T) (best int) {
	found := row[0]
	for k, v := range row {
		if beats(v, found, s.isMin) {
			best, found = k, v
		}
	}
	return best
}

// one searches the row that begins at src[at], block by block.
func (s *argSearch[T]) one(mem []T, at int) int {
	if s.reduced.isContiguous() {
		return s.find(s.src[at:][:s.n])
	}
	best := -1
	var value T
	for start := 0; start < s.n; start += len(mem) {
		block := mem[:min(len(mem), s.n-start)]
		gather(block, s.src, at, &s.reduced, start)
		i := s.find(block)
		if best < 0 || beats(block[i], value, s.isMin) {
			best, value = start+i, block[i]
		}
		if value != value {
			break
		}
	}
	return best
}

// columns searches rows that are neighbours in memory together.
func (s *argSearch[T]) columns(lo, hi int) {
	length := s.kept.dims[s.kept.rank-1]
	var values [columns]T
	for i := lo; i < hi; {
		w := min(columns, length-i%length, hi-i)
		at, best, out := s.at(i), values[:w], s.out[i:][:w]
		copy(best, s.src[at:])
		clear(out)
		for k := 1; k < s.n; k++ {
			for j, v := range s.src[at+s.reduced.offset(k):][:w] {
				if beats(v, best[j], s.isMin) {
					best[j], out[j] = v, int64(k)
				}
			}
		}
		i += w
	}
}

// beats reports whether v replaces found, an earlier element, as minimum or maximum. The first NaN wins.
func beats[T number](v, found T, isMin bool) bool {
	return found == found && (v != v || isMin && v < found || !isMin && v > found)
}

// An argFinder finds extreme elements by folding blocks and searching one of them for the result.
type argFinder[T number] struct {
	isMin    bool
	identity T
	extreme  vec.Fold
	index    vec.Find
}

func newArgFinder[T number](r kernel.Reducer) *argFinder[T] {
	dt := device.DTypeOf[T]()
	return &argFinder[T]{r == kernel.ReduceMin, kernel.Value[T](r.Identity(dt)), vec.FoldOf(r.Prim(), dt), vec.FindOf(dt)}
}

// find is kernel.ArgFold of x, which is not empty.
func (f *argFinder[T]) find(x []T) int {
	best, value := 0, T(0)
	for first := 0; first < len(x) && value == value; first += kernel.Block {
		block := x[first:min(first+kernel.Block, len(x))]
		v := kernel.Value[T](f.extreme(start(block), len(block), kernel.Bits(f.identity)))
		if first == 0 || beats(v, value, f.isMin) {
			best, value = first, v
		}
	}
	block := x[best:min(best+kernel.Block, len(x))]
	return best + f.index(start(block), len(block), kernel.Bits(value))
}

func newScan(k *device.Kernel) (runner, error) {
	r, ok := k.Body.(kernel.Reducer)
	if !ok || len(k.In) != 1 || k.In[0] != k.Out || r.Prim().Func(k.Out) == nil {
		return nil, unsupported(k)
	}
	switch k.Out {
	case device.Float32:
		return scan[float32](r, sumRows[float32]), nil
	case device.Float64:
		return scan[float64](r, sumRows[float64]), nil
	case device.Int64:
		return scan[int64](r, sumRows[int64]), nil
	}
	return scan[bool](r, nil), nil
}

// scan is the runner for r; sums is sumRows for the type.
func scan[T device.Element](r kernel.Reducer, sums func(a, b, c, d []T, back bool)) runner {
	dt := device.DTypeOf[T]()
	loop, identity := vec.PrimLoop(r.Prim(), dt, vec.NoScalar), kernel.Value[T](r.Identity(dt))
	if r != kernel.ReduceSum {
		sums = nil
	}
	return func(c *device.Command) error {
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
		s := runningFold[T]{rows: x, out: out, r: r, back: c.Args.Ints[0] == 1, loop: loop, sums: sums, identity: identity}
		if !pool.Worth(c.N/s.n, grainOf(scanCost*s.n)) {
			s.run(0, c.N/s.n)
		} else {
			s.split(c.N / s.n)
		}
		return nil
	}
}

// scanCost is how many simple operations a step of a running fold is worth.
const scanCost = 4

// A runningFold is one Scan command.
type runningFold[T device.Element] struct {
	rows[T]
	out      rows[T]
	r        kernel.Reducer
	back     bool
	loop     vec.Loop // combines
	sums     func(a, b, c, d []T, back bool)
	identity T
}

func (s runningFold[T]) split(n int) {
	together := columnsTogether(&s.kept, &s.reduced)
	if s.sums != nil && together == 1 {
		together = rowsAbreast
	}
	shareOut(n, together, scanCost*s.n, s.run)
}

// run computes the rows from lo to hi-1.
func (s *runningFold[T]) run(lo, hi int) {
	if s.areColumns() && s.out.areColumns() {
		s.columns(lo, hi)
		return
	}
	if s.sums != nil && s.out.reduced.isContiguous() {
		for ; hi-lo >= rowsAbreast; lo += rowsAbreast {
			var list [rowsAbreast][]T
			for i := range list {
				list[i] = s.out.row(lo + i)
				s.read(list[i], lo+i)
			}
			s.sums(list[0], list[1], list[2], list[3], s.back)
		}
	}
	var row []T
	for i := lo; i < hi; i++ {
		if s.out.reduced.isContiguous() {
			row = s.out.row(i)
		} else if row == nil {
			row = make([]T, s.n)
		}
		s.read(row, i)
		kernel.Scan(s.r, row, row, s.back)
		if !s.out.reduced.isContiguous() {
			s.out.write(row, i)
		}
	}
}

// columns is run where neighbouring rows are neighbours in memory, in both operands: a step is one for all of them.
func (s *runningFold[T]) columns(lo, hi int) {
	for i := lo; i < hi; {
		w := min(s.neighbours(i, hi-i), s.out.neighbours(i, long))
		from, to := s.at(i), s.out.at(i)
		var last []T
		for k := range s.n {
			if s.back {
				k = s.n - 1 - k
			}
			x, dst := s.src[from+s.reduced.offset(k):][:w], s.out.src[to+s.out.reduced.offset(k):][:w]
			if last == nil {
				repeat(dst, s.identity)
				last = dst
			}
			s.loop(start(dst), start(last), start(x), nil, 0, w)
			last = dst
		}
		i += w
	}
}

// rowsAbreast is how many rows sumRows adds up at a time: a sum waits for the one before it, but
// not for those of other rows.
const rowsAbreast = 4

// sumRows replaces the elements of each of four rows, all of the same length, by the sums up to them.
func sumRows[T number](a, b, c, d []T, back bool) {
	b, c, d = b[:len(a)], c[:len(a)], d[:len(a)]
	var s0, s1, s2, s3 T
	for i := range a {
		if back {
			i = len(a) - 1 - i
		}
		s0, s1, s2, s3 = s0+a[i], s1+b[i], s2+c[i], s3+d[i]
		a[i], b[i], c[i], d[i] = s0, s1, s2, s3
	}
}
