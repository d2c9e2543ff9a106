package cpu

import (
	"encoding/binary"
	"math"
	"slices"
	"sync"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/cpu/internal/vec"
	"github.com/asyncgen/asyncgen/device/kernel"
	"github.com/asyncgen/asyncgen/device/pool"
)

// Sorting. An element becomes a key, an unsigned number that is greater the later the
// element comes, and is sorted together with its index: as no two such pairs are equal, any way to sort
// them is stable. Many are sorted digit by digit, the last digit first, by counting; see
// Knuth, "The Art of Computer Programming", volume 3, 5.2.5.

func newArgSort(k *device.Kernel) (runner, error) {
	if len(k.In) != 1 || k.Out != device.Int64 {
		return nil, unsupported(k)
	}
	switch k.In[0] {
	case device.Float32:
		return argSort[float32], nil
	case device.Float64:
		return argSort[float64], nil
	case device.Int64:
		return argSort[int64], nil
	}
	return nil, unsupported(k)
}

// sortCost and selectCost are how many simple operations an element is worth.
const (
	sortCost   = 128
	selectCost = 8
)

func argSort[T number](c *device.Command) error {
	if c.N <= 0 {
		return nil
	}
	x, err := newRows[T](c)
	if err != nil {
		return err
	}
	kept, k := c.Args.Kept, c.Args.Ints[0]
	out, err := rowsOf[int64](c, 0, append(c.Args.Shape[:kept:kept], k))
	if err != nil {
		return err
	}
	s := sorting[T]{rows: x, out: out, descending: c.Args.Ints[1] == 1, cost: sortCost * x.n}
	if s.selects() {
		s.cost = selectCost * x.n
	}
	if n := c.N / k; !pool.Worth(n, grainOf(s.cost)) {
		s.run(0, n)
	} else {
		s.split(n)
	}
	return nil
}

// A sorting is one ArgSort command.
type sorting[T number] struct {
	rows[T]
	out        rows[int64]
	descending bool
	cost       int // of a row
}

// selects reports whether so few places are asked for that it pays to find their elements before they are sorted.
func (s *sorting[T]) selects() bool { return 8*s.out.n <= s.n }

func (s sorting[T]) split(n int) { pool.Run(n, grainOf(s.cost), s.run) }

// run finds the orders of the rows from lo to hi-1.
func (s *sorting[T]) run(lo, hi int) {
	mem := sortScratches.Get().(*sortScratch)
	defer sortScratches.Put(mem)
	o := newOrderer[T](s.descending)
	var copied []T
	if !s.reduced.isContiguous() {
		copied = make([]T, s.n)
	}
	indices := resize(&mem.indices, s.out.n)
	for i := lo; i < hi; i++ {
		row := copied
		if row == nil {
			row = s.row(i)
		} else {
			s.read(row, i)
		}
		if s.out.reduced.isContiguous() {
			indices = s.out.row(i)
		}
		if short, ok := any(row).([]float32); ok && len(row) <= math.MaxUint32 {
			mem.sortShort(any(o).(*orderer[float32]), short, indices, s.selects())
		} else {
			sortLong(mem, o, row, indices, s.selects())
		}
		if !s.out.reduced.isContiguous() {
			s.out.write(indices, i)
		}
	}
}

// A pair is the key of an element of 64 bits and its index. Those of float32 are one word: the key above the index.
type pair struct{ key, index uint64 }

func comparePairs(p, q pair) int {
	switch {
	case p.key < q.key || p.key == q.key && p.index < q.index:
		return -1
	case p == q:
		return 0
	}
	return 1
}

// sortScratch is the memory of one run.
type sortScratch struct {
	words, moreWords []uint64
	pairs, morePairs []pair
	indices          []int64
	isBefore         [tile]bool
}

var sortScratches = sync.Pool{New: func() any { return new(sortScratch) }}

// resize makes *p as long as n, and returns it. What was in it is lost.
func resize[T any](p *[]T, n int) []T {
	if cap(*p) < n {
		*p = make([]T, n)
	}
	return (*p)[:n]
}

// An orderer makes keys, and finds elements that come before others.
type orderer[T number] struct {
	flip   uint64   // all ones to sort from the greatest to the least
	before vec.Loop // whether elements come before a scalar that is a number
}

func newOrderer[T number](descending bool) *orderer[T] {
	o := &orderer[T]{before: vec.PrimLoop(kernel.PrimLt, device.DTypeOf[T](), vec.SecondScalar)}
	if descending {
		o.flip = math.MaxUint64
		o.before = vec.PrimLoop(kernel.PrimLt, device.DTypeOf[T](), vec.FirstScalar)
	}
	return o
}

// key is the key of x. That of NaN is that of no number, and the greatest.
func (o *orderer[T]) key(x T) uint64 {
	switch x := any(x).(type) {
	case float32:
		return uint64(key32(x, uint32(o.flip)))
	case float64:
		if x != x {
			return math.MaxUint64
		}
		b := math.Float64bits(x + 0) // not -0
		return b ^ (uint64(int64(b)>>63) | 1<<63) ^ o.flip
	case int64:
		return uint64(x) ^ 1<<63 ^ o.flip
	}
	return 0
}

func key32(x float32, flip uint32) uint32 {
	if x != x {
		return math.MaxUint32
	}
	b := math.Float32bits(x + 0) // not -0
	return b ^ (uint32(int32(b)>>31) | 1<<31) ^ flip
}

// candidates sets isBefore to which of the elements of x, a tile of them at most, come before limit, a number.
func candidates[T number](o *orderer[T], isBefore *[tile]bool, x []T, limit T) []bool {
	o.before(start(isBefore[:]), start(x), start(x), nil, kernel.Bits(limit), len(x))
	return isBefore[:len(x)]
}

// next is the first place from i on with true, or the length of the list.
func next(list []bool, i int) int {
	bytes := slice[byte](start(list), len(list))
	for ; i+8 <= len(bytes) && binary.LittleEndian.Uint64(bytes[i:]) == 0; i += 8 {
	}
	for i < len(bytes) && bytes[i] == 0 {
		i++
	}
	return i
}

// sortShort sets out to the indices of the first elements of x, in order.
func (s *sortScratch) sortShort(o *orderer[float32], x []float32, out []int64, selects bool) {
	var words []uint64
	if selects {
		words = s.selectShort(o, x, len(out))
	} else {
		words = resize(&s.words, len(x))
		for i, v := range x {
			words[i] = uint64(key32(v, uint32(o.flip)))<<32 | uint64(uint32(i))
		}
		words = sortWords(words, resize(&s.moreWords, len(x)))
	}
	for i := range out {
		out[i] = int64(uint32(words[i]))
	}
}

// selectShort returns the words of the first k elements of x, in order.
func (s *sortScratch) selectShort(o *orderer[float32], x []float32, k int) []uint64 {
	most := max(2*k, 64)
	words := resize(&s.words, most)[:0]
	shrink := func() { // keeps the first k
		slices.Sort(words)
		words = words[:k]
	}
	take := func(i int) {
		if len(words) == most {
			shrink()
		}
		words = append(words, uint64(key32(x[i], uint32(o.flip)))<<32|uint64(uint32(i)))
	}
	first := min(most, len(x))
	for i := range first {
		take(i)
	}
	for first < len(x) {
		shrink()
		limit := words[k-1]
		part := x[first:min(first+tile, len(x))]
		if uint32(limit>>32) == math.MaxUint32 { // NaN
			for i := range part {
				take(first + i)
			}
		} else {
			list := candidates(o, &s.isBefore, part, x[uint32(limit)])
			for i := next(list, 0); i < len(list); i = next(list, i+1) {
				take(first + i)
			}
		}
		first += len(part)
	}
	shrink()
	return words
}

// sortLong is sortShort for elements of 64 bits.
func sortLong[T number](s *sortScratch, o *orderer[T], x []T, out []int64, selects bool) {
	var pairs []pair
	if selects {
		pairs = selectLong(s, o, x, len(out))
	} else {
		pairs = resize(&s.pairs, len(x))
		for i, v := range x {
			pairs[i] = pair{o.key(v), uint64(i)}
		}
		pairs = sortPairs(pairs, resize(&s.morePairs, len(x)))
	}
	for i := range out {
		out[i] = int64(pairs[i].index)
	}
}

// selectLong is selectShort for elements of 64 bits.
func selectLong[T number](s *sortScratch, o *orderer[T], x []T, k int) []pair {
	most := max(2*k, 64)
	pairs := resize(&s.pairs, most)[:0]
	shrink := func() { // keeps the first k
		slices.SortFunc(pairs, comparePairs)
		pairs = pairs[:k]
	}
	take := func(i int) {
		if len(pairs) == most {
			shrink()
		}
		pairs = append(pairs, pair{o.key(x[i]), uint64(i)})
	}
	first := min(most, len(x))
	for i := range first {
		take(i)
	}
	for first < len(x) {
		shrink()
		limit := x[pairs[k-1].index]
		part := x[first:min(first+tile, len(x))]
		if limit != limit {
			for i := range part {
				take(first + i)
			}
		} else {
			list := candidates(o, &s.isBefore, part, limit)
			for i := next(list, 0); i < len(list); i = next(list, i+1) {
				take(first + i)
			}
		}
		first += len(part)
	}
	shrink()
	return pairs
}

// fewest is how many elements are worth counting digits for, each of which takes longer than a comparison.
const fewest = 96

// sortWords sorts words by their upper halves and then by their lower ones, in which they are sorted. The result is in words or in more.
func sortWords(words, more []uint64) []uint64 {
	if len(words) < fewest {
		slices.Sort(words)
		return words
	}
	var counts [4][256]int
	for _, w := range words {
		counts[0][uint8(w>>32)]++
		counts[1][uint8(w>>40)]++
		counts[2][uint8(w>>48)]++
		counts[3][w>>56]++
	}
	for d := range counts {
		shift, places := 32+8*d, &counts[d]
		if !begin(places, len(words)) {
			continue
		}
		more = more[:len(words)]
		for _, w := range words {
			digit := uint8(w >> shift)
			more[places[digit]] = w
			places[digit]++
		}
		words, more = more, words
	}
	return words
}

// sortPairs is sortWords for pairs, which are sorted by their indices.
func sortPairs(pairs, more []pair) []pair {
	if len(pairs) < fewest {
		slices.SortFunc(pairs, comparePairs)
		return pairs
	}
	var counts [8][256]int
	for _, p := range pairs {
		for d := range counts {
			counts[d][uint8(p.key>>(8*d))]++
		}
	}
	for d := range counts {
		shift, places := 8*d, &counts[d]
		if !begin(places, len(pairs)) {
			continue
		}
		more = more[:len(pairs)]
		for _, p := range pairs {
			digit := uint8(p.key >> shift)
			more[places[digit]] = p
			places[digit]++
		}
		pairs, more = more, pairs
	}
	return pairs
}

// begin turns how often each digit is there into where the first of it goes. It reports whether there are different ones among n.
func begin(counts *[256]int, n int) bool {
	at := 0
	for digit, count := range counts {
		if count == n {
			return false
		}
		counts[digit] = at
		at += count
	}
	return true
}
