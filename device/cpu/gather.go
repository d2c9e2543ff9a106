package cpu

import (
	"runtime"
	"slices"
	"sync"
	"unsafe"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/cpu/internal/vec"
	"github.com/asyncgen/asyncgen/device/kernel"
	"github.com/asyncgen/asyncgen/device/pool"
)

func newGather(k *device.Kernel) (runner, error) {
	if len(k.In) != 2 || k.In[0] != k.Out || k.In[1] != device.Int64 {
		return nil, unsupported(k)
	}
	switch k.Out.Size() {
	case 1:
		return takeRows[uint8], nil
	case 2:
		return takeRows[uint16], nil
	case 4:
		return takeRows[uint32], nil
	}
	return takeRows[uint64], nil
}

func newScatterAdd(k *device.Kernel) (runner, error) {
	if len(k.In) != 2 || k.In[0] != k.Out || k.In[1] != device.Int64 {
		return nil, unsupported(k)
	}
	switch k.Out {
	case device.Float32:
		return scatterAdd[float32](), nil
	case device.Float64:
		return scatterAdd[float64](), nil
	case device.Int64:
		return scatterAdd[int64](), nil
	}
	return nil, unsupported(k)
}

// A selection is what Gather and ScatterAdd iterate over: outer axes, along which the index varies, and inner axes,
// along which one index selects several elements.
type selection struct {
	index        view // the strides of the index over the outer axes
	outer, inner view // those of the operand that is selected from
	with, within view // those of the other, where it is not contiguous
	count, width int  // how many indices, how many elements each selects
	places       []int
	ends, order  []int // see sort
}

var selections = sync.Pool{New: func() any { return new(selection) }}

// newSelection splits the axes of c into outer and inner ones. It is given the strides of the operand that is selected
// from and those of the other operand; nil means contiguous.
func newSelection(c *device.Command, from, other []int) (*selection, error) {
	shape, index := c.Args.Shape, c.Args.Strides[2]
	split := len(shape)
	for split > 0 && (index[split-1] == 0 || shape[split-1] == 1) {
		split--
	}
	if other == nil {
		other = shape.Strides()
	}
	s := selections.Get().(*selection)
	if !makeView(&s.index, shape[:split], index[:split]) ||
		!makeView(&s.outer, shape[:split], from[:split]) || !makeView(&s.inner, shape[split:], from[split:]) ||
		!makeView(&s.with, shape[:split], other[:split]) || !makeView(&s.within, shape[split:], other[split:]) {
		selections.Put(s)
		return nil, errRank(shape)
	}
	s.count, s.width = shape[:split].Size(), shape[split:].Size()
	return s, nil
}

// find computes where what each of the indices from lo to hi selects begins, and checks the indices.
func (s *selection) find(c *device.Command, lo, hi int) error {
	s.places = s.places[:0]
	if s.width == 0 {
		return nil
	}
	s.places = slices.Grow(s.places, hi-lo)[:hi-lo]
	if s.index.rank <= 1 && s.outer.rank <= 1 {
		return s.findInLine(c, lo)
	}
	least, length, step, indices := c.Args.LeastIndex(), c.Args.Ints[0], c.Args.Ints[1], whole[int64](c, 2)
	for i := range s.places {
		at, err := indexIn(least, length, indices[c.Off[2]+s.index.offset(lo+i)])
		if err != nil {
			return err
		}
		s.places[i] = s.outer.offset(lo+i) + at*step
	}
	return nil
}

// findInLine is find, from lo on, for indices, and what is selected from, that lie equally far apart.
func (s *selection) findInLine(c *device.Command, lo int) error {
	least, length, step, indices := c.Args.LeastIndex(), c.Args.Ints[0], c.Args.Ints[1], whole[int64](c, 2)
	from, each := c.Off[2], 0
	if s.index.rank > 0 {
		each = s.index.strides[0]
	}
	outer, more := 0, 0
	if s.outer.rank > 0 {
		more = s.outer.strides[0]
	}
	from, outer = from+lo*each, lo*more
	for i := range s.places {
		at := indices[from]
		if uint64(at) >= uint64(length) { // or else it is as it should be
			k, err := indexIn(least, length, at)
			if err != nil {
				return err
			}
			at = int64(k)
		}
		s.places[i] = outer + int(at)*step
		from, outer = from+each, outer+more
	}
	return nil
}

// indexIn is the place that an index means on an axis of the given length; a negative index counts from
// the end. It fails if the index is below least, or beyond the axis.
func indexIn(least int64, length int, at int64) (int, error) {
	if at < least || at >= int64(length) {
		return 0, &device.IndexError{Index: at, Length: length}
	}
	if at < 0 {
		at += int64(length)
	}
	return int(at), nil
}

// takeRows runs Gather for elements of the size of T.
func takeRows[T uint8 | uint16 | uint32 | uint64](c *device.Command) error {
	if c.N <= 0 {
		return nil
	}
	from := c.Args.Strides[1]
	if from == nil {
		from = c.Args.Shape.Strides()
	}
	s, err := newSelection(c, from, nil)
	if err != nil {
		return err
	}
	defer selections.Put(s)
	if err := s.find(c, 0, s.count); err != nil {
		return err
	}
	var zero T
	t := taking[T]{selection: s, src: whole[T](c, 1), off: c.Off[1], out: slice[T](pointer(c, 0, int(unsafe.Sizeof(zero)), c.N), c.N)}
	if !pool.Worth(s.count, t.grain()) {
		t.run(0, s.count)
	} else {
		t.split()
	}
	return nil
}

// indexCost is how many simple operations an index costs, apart from those on what it selects, which is
// rarely in the innermost cache. An index takes 1.4 ns if everything is in the second cache
// (BenchmarkGather, AMD EPYC, Zen 4).
const indexCost = 16

// An index into a source of more than nearBytes, which is in the third cache or beyond, costs farCost: 4.6 ns where it
// selects one of each 1024 elements (AMD EPYC, Zen 4).
const (
	nearBytes = 1 << 20
	farCost   = 56
)

// A taking is one Gather command.
type taking[T any] struct {
	*selection
	src, out []T
	off      int
}

func (t taking[T]) split() { pool.Run(t.count, t.grain(), t.run) }

// grain is how many indices are worth waking a helper for.
func (t *taking[T]) grain() int {
	var zero T
	size := int(unsafe.Sizeof(zero))
	cost := indexCost
	if len(t.src)*size > nearBytes {
		cost = farCost
	}
	return grainOf(cost + t.width + 2*t.width*size/bytesPerOperation)
}

func (t *taking[T]) run(lo, hi int) {
	switch {
	case t.width == 1:
		// The processor looks ahead a fixed number of instructions, and fetches all elements that
		// it sees there at once. So a loop of few instructions has more elements in flight.
		out, src, off := t.out[lo:hi], t.src, t.off
		for i, place := range t.places[lo:hi] {
			out[i] = src[off+place]
		}
	case t.inner.isContiguous():
		for _, place := range t.places[lo:hi] {
			_ = t.src[t.off+place:][:t.width] // it panics if the source is too small
		}
		out, src := unsafe.SliceData(t.out[lo*t.width:hi*t.width]), unsafe.SliceData(t.src[t.off:])
		vec.TakeRows(unsafe.Pointer(out), unsafe.Pointer(src), t.places[lo:hi], t.width, int(unsafe.Sizeof(*out)))
	default:
		for i := lo; i < hi; i++ {
			gather(t.out[i*t.width:][:t.width], t.src, t.off+t.places[i], &t.inner, 0)
		}
	}
}

// scatterAdd is the runner of ScatterAdd.
func scatterAdd[T number]() runner {
	add := vec.PrimLoop(kernel.PrimAdd, device.DTypeOf[T](), vec.NoScalar)
	return func(c *device.Command) error {
		if c.N <= 0 {
			return nil
		}
		out := operand[T](c, 0, c.N)
		s, err := newSelection(c, c.Args.Strides[0], c.Args.Strides[1])
		if err == nil {
			defer selections.Put(s)
			err = (&scattering[T]{selection: s, out: out, src: whole[T](c, 1), off: c.Off[1], add: add}).run(c)
		}
		if err != nil {
			clearAll(out)
		}
		return err
	}
}

func clearAll[T number](x []T) {
	if !pool.Worth(len(x), grainOf(1)) {
		clear(x)
		return
	}
	pool.Run(len(x), grainOf(1), func(lo, hi int) { repeat(x[lo:hi], 0) })
}

// A scattering is one ScatterAdd command. An element of the output may be added to often, in an order that
// is defined: that of the indices.
type scattering[T number] struct {
	*selection
	out, src []T
	off      int
	add      vec.Loop
}

const (
	scatterCost  = 2         // how many simple operations an element is worth
	shortestAdd  = 8         // how many neighbours are worth a loop of package vec
	scatterBytes = 256 << 10 // of the output stay in the second cache while they are added to
	scatterAhead = 2048      // indices are looked at before what they select is added: places for the first cache
)

func (s *scattering[T]) run(c *device.Command) error {
	isPlain := s.inner.isContiguous() && s.within.isContiguous()
	if isPlain && s.width >= shortestAdd && runtime.GOMAXPROCS(0) > 1 && pool.Worth(len(s.out)+scatterCost*s.count*s.width, grainOf(1)) {
		if err := s.find(c, 0, s.count); err != nil {
			return err
		}
		s.inParts()
		return nil
	}
	clearAll(s.out)
	for lo := 0; lo < s.count; lo += scatterAhead {
		if err := s.find(c, lo, min(lo+scatterAhead, s.count)); err != nil {
			return err
		}
		switch {
		case !isPlain:
			s.oneByOne(lo)
		case s.width < shortestAdd:
			s.few(lo)
		default:
			for i, place := range s.places {
				s.neighbours(lo+i, place)
			}
		}
	}
	return nil
}

// inParts divides the output among the cores by whole rows. A core clears its rows and then adds to them, while they
// are in its cache. As a row has one core, each element is added to in the order of the indices. (Where
// each core had some columns of all rows, two cores took longer than one.)
func (s scattering[T]) inParts() {
	var zero T
	each := max(1, min(scatterBytes/(s.width*int(unsafe.Sizeof(zero))), len(s.out)/s.width/maxParts)) * s.width
	parts := (len(s.out) + each - 1) / each
	s.sort(each, parts)
	pool.Run(parts, grainOf(each+scatterCost*s.count*s.width/parts), func(lo, hi int) {
		for part := lo; part < hi; part++ {
			clear(s.out[part*each : min((part+1)*each, len(s.out))])
			for _, i := range s.order[s.ends[part]:s.ends[part+1]] {
				s.neighbours(i, s.places[i])
			}
		}
	})
}

// maxParts is the number of parts of a small output. There are enough for all cores, even if one part takes longer
// than others.
const maxParts = 64

// sort groups the indices by the part of the output that they select from. Each part has the given
// number of elements, each, which is a multiple of what one index selects. The indices of part p are
// order[ends[p]:ends[p+1]], in their original order.
func (s *selection) sort(each, parts int) {
	s.ends = slices.Grow(s.ends[:0], parts+2)[:parts+2]
	clear(s.ends)
	s.order = slices.Grow(s.order[:0], len(s.places))[:len(s.places)]
	for _, place := range s.places {
		s.ends[place/each+2]++
	}
	for part := range parts {
		s.ends[part+2] += s.ends[part+1] // where the next one goes of the part after it, for now
	}
	for i, place := range s.places {
		next := &s.ends[place/each+1]
		s.order[*next] = i
		*next++
	}
}

// neighbours adds the elements that index i selects to those of the output from place on.
func (s *scattering[T]) neighbours(i, place int) {
	out, src := s.out[place:][:s.width], s.src[s.off+s.with.offset(i):][:s.width]
	for at := 0; at < len(out); at += long {
		s.add(start(out[at:]), start(out[at:]), start(src[at:]), nil, 0, min(long, len(out)-at))
	}
}

// few adds neighbours that are too few for loops of their own. The first of places is that of index lo.
func (s *scattering[T]) few(lo int) {
	if s.width == 1 {
		for i, place := range s.places {
			s.out[place] += s.src[s.off+s.with.offset(lo+i)]
		}
		return
	}
	for i, place := range s.places {
		out := s.out[place:]
		for j, v := range s.src[s.off+s.with.offset(lo+i):][:s.width] {
			out[j] += v
		}
	}
}

// oneByOne adds neighbours that are not contiguous. The first of places is that of index lo.
func (s *scattering[T]) oneByOne(lo int) {
	for i, place := range s.places {
		at := s.off + s.with.offset(lo+i)
		for j := range s.width {
			s.out[place+s.inner.offset(j)] += s.src[at+s.within.offset(j)]
		}
	}
}
