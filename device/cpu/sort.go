package cpu

import (
	"encoding/binary"
	"math"
	"math/bits"
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
	lanes, keys      []uint64 // see orderer.bound
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

// An orderer makes keys, and finds elements that come early.
type orderer[T number] struct {
	flip     uint64      // all ones to sort from the greatest to the least
	notAfter vec.Loop    // whether elements don't come behind a scalar that is a number
	first    vec.RowFold // of two elements the one that comes first, or NaN
}

func newOrderer[T number](descending bool) *orderer[T] {
	dt := device.DTypeOf[T]()
	if descending {
		return &orderer[T]{math.MaxUint64, vec.PrimLoop(kernel.PrimLe, dt, vec.FirstScalar), vec.RowFoldOf(kernel.PrimMax, dt)}
	}
	return &orderer[T]{0, vec.PrimLoop(kernel.PrimLe, dt, vec.SecondScalar), vec.RowFoldOf(kernel.PrimMin, dt)}
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

// candidates sets list to which of the elements of x, a tile of them at most, don't come behind limit, a number.
func (o *orderer[T]) candidates(list *[tile]bool, x []T, limit T) []bool {
	o.notAfter(start(list[:]), start(x), start(x), nil, kernel.Bits(limit), len(x))
	return list[:len(x)]
}

// bound returns a number such that at least k elements of x don't come after it. If the order of x is
// random, there are not many more than k. ok is false if it finds none.
func (o *orderer[T]) bound(s *sortScratch, x []T, k int) (limit T, ok bool) {
	// Element i belongs to lane i % lanes. The first element of each lane, in sorted order, is found;
	// then the k-th of these firsts is a bound, since k lanes have an element that doesn't come after
	// it.
	lanes := (2*k + vec.Columns - 1) / vec.Columns * vec.Columns
	rows := len(x) / lanes
	if rows < 2 {
		return 0, false
	}
	firsts := slice[T](start(resize(&s.lanes, lanes)), lanes)
	copy(firsts, x)
	size, most := device.DTypeOf[T]().Size(), 4*vec.Columns
	for at := 0; at < lanes; at += most {
		n := min(most, lanes-at)
		for row := 1; row < rows; row += rowsAtATime {
			o.first(start(firsts[at:]), start(x[row*lanes+at:]), min(rowsAtATime, rows-row), lanes*size, 1, n/vec.Columns)
		}
	}
	keys := resize(&s.keys, lanes)
	for i, v := range firsts {
		keys[i] = o.key(v)
	}
	keepFirst(keys, k, func(p, q uint64) bool { return p < q })
	for _, v := range firsts {
		if o.key(v) == keys[k-1] {
			return v, v == v
		}
	}
	return 0, false
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

// wordOf is what element i of a row is sorted as.
func wordOf(x float32, i int, flip uint32) uint64 {
	return uint64(key32(x, flip))<<32 | uint64(uint32(i))
}

// sortShort sets out to the indices of the first elements of x, in order.
func (s *sortScratch) sortShort(o *orderer[float32], x []float32, out []int64, selects bool) {
	var words []uint64
	if selects {
		word := func(i int) uint64 { return wordOf(x[i], i, uint32(o.flip)) }
		first := newSelecting(&s.words, len(out), func(p, q uint64) bool { return p < q }, word, func(w uint64) int { return int(uint32(w)) })
		words = selectFirst(&first, o, s, x)
		slices.Sort(words)
	} else {
		words = resize(&s.words, len(x))
		for i, v := range x {
			words[i] = wordOf(v, i, uint32(o.flip))
		}
		words = sortWords(words, resize(&s.moreWords, len(x)))
	}
	for i := range out {
		out[i] = int64(uint32(words[i]))
	}
}

// sortLong is sortShort for elements of 64 bits.
func sortLong[T number](s *sortScratch, o *orderer[T], x []T, out []int64, selects bool) {
	var pairs []pair
	if selects {
		pairOf := func(i int) pair { return pair{o.key(x[i]), uint64(i)} }
		isLess := func(p, q pair) bool { return p.key < q.key || p.key == q.key && p.index < q.index }
		first := newSelecting(&s.pairs, len(out), isLess, pairOf, func(p pair) int { return int(p.index) })
		pairs = selectFirst(&first, o, s, x)
		slices.SortFunc(pairs, comparePairs)
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

// A selecting is a search for the first k of some elements. P is what they are sorted as, words or pairs.
type selecting[P any] struct {
	k      int
	room   int // of list, at least twice k
	list   []P // candidates, fewer than there is room for: the first k so far are among them
	isLess func(p, q P) bool
	of     func(i int) P // element i
	index  func(p P) int // which element p is
	isFull bool          // there were at least k candidates, and limit was the k-th of them
	limit  P
}

// leastRoom is how many candidates are kept at least before it is decided which of them are the first.
const leastRoom = 64

func newSelecting[P any](memory *[]P, k int, isLess func(p, q P) bool, of func(i int) P, index func(p P) int) selecting[P] {
	room := max(2*k, leastRoom)
	return selecting[P]{k: k, room: room, list: resize(memory, room)[:0], isLess: isLess, of: of, index: index}
}

// selectFirst returns the first k elements of x, in any order. x has more than k. It goes through x
// in parts, and keeps as candidates only those that don't come after a limit. The first limit is
// the one that bound finds; if it finds none, all elements are candidates until there are enough.
func selectFirst[P any, T number](s *selecting[P], o *orderer[T], mem *sortScratch, x []T) []P {
	limit, ok := o.bound(mem, x, s.k)
	for from, n := 0, leastRoom; from < len(x); from, n = from+n, min(2*n, tile) {
		if ok {
			n = tile
		}
		n = min(n, len(x)-from)
		if s.isFull {
			limit = x[s.index(s.limit)]
			ok = limit == limit // NaN comes behind all that are not
		}
		if !ok {
			for i := range n {
				s.take(from + i)
			}
			continue
		}
		list := o.candidates(&mem.isBefore, x[from:from+n], limit)
		for i := next(list, 0); i < n; i = next(list, i+1) {
			s.take(from + i)
		}
	}
	s.shrink()
	return s.list
}

// take makes element i a candidate.
func (s *selecting[P]) take(i int) {
	p := s.of(i)
	if s.isFull && !s.isLess(p, s.limit) {
		return
	}
	if s.list = append(s.list, p); len(s.list) == s.room {
		s.shrink()
	}
}

// shrink leaves k candidates.
func (s *selecting[P]) shrink() {
	keepFirst(s.list, s.k, s.isLess)
	s.list = s.list[:s.k]
	s.limit, s.isFull = s.list[s.k-1], true
}

// keepFirst moves the k elements of list that come first to its beginning, the last of them to index
// k-1. It uses Hoare's algorithm FIND and, if that makes no headway, sorts.
func keepFirst[P any](list []P, k int, isLess func(p, q P) bool) {
	for tries := 2 * bits.Len(uint(len(list))); len(list) > 1; tries-- {
		if tries == 0 {
			slices.SortFunc(list, func(p, q P) int {
				switch {
				case isLess(p, q):
					return -1
				case isLess(q, p):
					return 1
				}
				return 0
			})
			return
		}
		at := partition(list, isLess)
		switch {
		case at == k-1:
			return
		case at > k-1:
			list = list[:at]
		default:
			list, k = list[at+1:], k-at-1
		}
	}
}

// partition chooses a pivot, moves the elements that are less than the pivot before it and the others behind it, and
// returns the pivot's index.
func partition[P any](list []P, isLess func(p, q P) bool) int {
	last := len(list) - 1
	// the median of these three to the end
	for _, pair := range [...][2]int{{last / 2, 0}, {last, 0}, {last / 2, last}} {
		if i, j := pair[0], pair[1]; isLess(list[i], list[j]) {
			list[i], list[j] = list[j], list[i]
		}
	}
	at, middle := 0, list[last]
	for i, p := range list[:last] {
		if isLess(p, middle) {
			list[i], list[at] = list[at], p
			at++
		}
	}
	list[at], list[last] = list[last], list[at]
	return at
}

// Fewer than fewest elements are not worth counting digits: a digit takes longer than a comparison.
const fewest = 96

// sortWords sorts words. Their lower halves are in order, so it sorts by the upper halves alone,
// and stably. The result is in words or in more.
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

// begin turns the number of elements with each digit into the index where the first of them goes. It
// reports false if all n elements have the same digit.
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
