package device

import (
	"math/bits"
	"slices"
	"sync"
)

const (
	pageBytes = 8 << 10
	hugePage  = 2 << 20
	// Blocks from here on begin at a huge page, which costs them an eighth at most. Where smaller ones did, the gaps
	// between the activations of a ResNet made a quarter of its memory.
	alignFrom = 8 * hugePage
	// A new region is half as large as all regions together, within these bounds. If the request is
	// larger, the region is as large as the request.
	minRegion = 8 << 20
	maxRegion = 64 << 20
)

// A pageHeap divides regions into spans of pages. A span that is put back is joined with the free ones
// beside it. So memory that served one size can serve another.
type pageHeap struct {
	src   Source
	limit int64

	mu       sync.Mutex // guards the rest, and all fields of spans that no class guards
	bins     [numBins]*span
	nonempty [numBins / 64]uint64 // bit i: bins[i] is not empty
	regions  []*region
	mapped   int64 // bytes of all regions
	// discarded is how many of these were given back to the system, see discard.
	discarded int64
	taken     int64 // how many spans are not free
	spare     *span // structs for reuse, linked by next

	spans   []*span // by number
	numbers []int32 // numbers that no span has
}

// A region is divided into spans without a gap.
type region struct {
	Region
	heap *pageHeap
	// at has, for the first and the last page of each span, the number of the span. They are not
	// pointers, as each collection would scan those: 0.5 ms for every GiB.
	at []int32
}

// spanAt is the span that begins or ends with the given page.
func (r *region) spanAt(page int32) *span { return r.heap.spans[r.at[page]] }

// A span is a run of pages.
type span struct {
	region   *region
	number   int32 // in pageHeap.spans
	first, n int32 // pages
	free     bool
	gone     int32 // how many of its pages were given back to the system, if it is free or a slab
	next     *span // in its bin, if it is free
	prev     *span
	lead     int64   // where its block begins, in bytes; 0 but in checked builds, see guarded
	tag      uintptr // of a span that is one block; 0: the span is free

	class *class    // of a slab, else nil; does not change while the span is taken
	used  int32     // slots in use; guarded by the class
	lost  uint16    // bit i: page i was given back to the system, and its slots are not free; guarded by the class
	tags  []uintptr // of the blocks in the slots, 0 where there is none; guarded by the class
}

// numBins is enough for 2^31 pages; a multiple of 64.
const numBins = 256

// binOf returns the bin of free spans of n pages. There are eight for every doubling: all spans of
// a bin are larger than those of the bins before.
func binOf(n int32) int {
	shift := max(bits.Len32(uint32(n))-4, 0)
	return shift*perDouble + int(n>>shift)
}

func (h *pageHeap) init(src Source, limit int64) { h.src, h.limit = src, limit }

// A growth says when a new region may be mapped.
type growth int8

const (
	cachedOnly growth = iota // never
	toLimit                  // within the limit
	beyond                   // within the limit and maxBeyond, for the one request
)

// maxBeyond is how far all regions may go beyond the limit together. It is room for a slab of each class, which
// may be there for a few bytes.
const maxBeyond = 6 << 20

// take returns a span of at least the given size. It becomes a slab of c, or one block if c is nil. take
// maps a new region only if g allows that.
func (h *pageHeap) take(bytes int64, c *class, g growth) (*span, error) {
	n := int32((bytes + pageBytes - 1) / pageBytes)
	align := int32(1)
	if bytes >= alignFrom {
		align = hugePage / pageBytes
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.fitLocked(n, align)
	if s == nil && g == cachedOnly {
		return nil, errNoCached
	}
	if s == nil {
		if err := h.growLocked(int64(n)*pageBytes, g); err != nil {
			return nil, err
		}
		s = h.fitLocked(n, align)
	}
	if !h.reviveLocked(s, n, g) {
		return nil, errInPieces
	}
	h.removeLocked(s)
	if skip := alignUp(s.first, align) - s.first; skip > 0 {
		rest := h.splitLocked(s, skip)
		h.insertLocked(s)
		s = rest
	}
	if s.n > n {
		h.insertLocked(h.splitLocked(s, n))
	}
	h.discarded -= int64(s.gone) * pageBytes
	s.gone, s.tag, s.class = 0, untagged, c
	h.taken++
	return s, nil
}

func alignUp(x, align int32) int32 { return (x + align - 1) &^ (align - 1) }

// maxLook bounds how many spans of one bin fitLocked looks at.
const maxLook = 32

// fitLocked returns the smallest free span with room for n aligned pages, among the first maxLook
// spans of each bin; nil if there is none.
func (h *pageHeap) fitLocked(n, align int32) *span {
	for bin := h.nextBin(binOf(n)); bin >= 0; bin = h.nextBin(bin + 1) {
		var best *span
		look := 0
		for s := h.bins[bin]; s != nil && look < maxLook; s = s.next {
			look++
			if alignUp(s.first, align)+n <= s.first+s.n && (best == nil || s.n < best.n) {
				best = s
				if s.n == n {
					break
				}
			}
		}
		if best != nil {
			return best
		}
	}
	return nil
}

// nextBin returns the first bin from the given one on that is not empty, or -1.
func (h *pageHeap) nextBin(bin int) int {
	for word := bin / 64; word < len(h.nonempty); word++ {
		set := h.nonempty[word]
		if word == bin/64 {
			set &= ^uint64(0) << (bin % 64)
		}
		if set != 0 {
			return word*64 + bits.TrailingZeros64(set)
		}
	}
	return -1
}

// growLocked maps a region with room for a span of the given size.
func (h *pageHeap) growLocked(need int64, g growth) error {
	room := h.roomLocked(g)
	if need > room {
		return errInPieces
	}
	want := (max(need, min(max(h.mapped/2, minRegion), maxRegion)) + hugePage - 1) &^ (hugePage - 1)
	want = max(need, min(want, h.roomLocked(toLimit)))
	mem, err := h.src.Map(want)
	if err != nil && want > need {
		mem, err = h.src.Map(need)
	}
	if err != nil {
		return err
	}
	h.insertLocked(h.addLocked(mem))
	return nil
}

// addLocked makes mem a region, of one span.
func (h *pageHeap) addLocked(mem Region) *span {
	pages := int32(mem.Bytes / pageBytes)
	r := &region{Region: mem, heap: h, at: make([]int32, pages)}
	s := h.spanLocked(r, 0, pages)
	h.regions = append(h.regions, r)
	h.mapped += mem.Bytes
	return s
}

// spanLocked returns a span of these pages, in no bin.
func (h *pageHeap) spanLocked(r *region, first, n int32) *span {
	s := h.spare
	if s == nil {
		s = h.newSpanLocked()
	} else {
		h.spare = s.next
	}
	*s = span{region: r, number: s.number, tags: s.tags}
	s.coverLocked(first, n)
	return s
}

// newSpanLocked returns a span with a number, and nothing else.
func (h *pageHeap) newSpanLocked() *span {
	if last := len(h.numbers) - 1; last >= 0 {
		s := &span{number: h.numbers[last]}
		h.numbers = h.numbers[:last]
		h.spans[s.number] = s
		return s
	}
	s := &span{number: int32(len(h.spans))}
	h.spans = append(h.spans, s)
	return s
}

// coverLocked makes s the span of the given pages.
func (s *span) coverLocked(first, n int32) {
	s.first, s.n = first, n
	s.region.at[first], s.region.at[first+n-1] = s.number, s.number
}

// splitLocked leaves n pages to s, and returns a span of the others. Neither is in a bin. All pages of s were given
// back, or none.
func (h *pageHeap) splitLocked(s *span, n int32) *span {
	rest := h.spanLocked(s.region, s.first+n, s.n-n)
	s.coverLocked(s.first, n)
	if s.gone > 0 {
		s.gone, rest.gone = s.n, rest.n
	}
	return rest
}

func (h *pageHeap) insertLocked(s *span) {
	bin := binOf(s.n)
	s.free, s.prev, s.next = true, nil, h.bins[bin]
	if s.next != nil {
		s.next.prev = s
	}
	h.bins[bin] = s
	h.nonempty[bin/64] |= 1 << (bin % 64)
}

func (h *pageHeap) removeLocked(s *span) {
	bin := binOf(s.n)
	if s.next != nil {
		s.next.prev = s.prev
	}
	if s.prev != nil {
		s.prev.next = s.next
	} else if h.bins[bin] = s.next; s.next == nil {
		h.nonempty[bin/64] &^= 1 << (bin % 64)
	}
	s.free, s.prev, s.next = false, nil, nil
}

// put takes back a span that take returned.
func (h *pageHeap) put(s *span) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s.free || s.tag == 0 {
		panic("device: a block was put back twice")
	}
	h.taken--
	s.tag, s.class, s.lost = 0, nil, 0
	if checked {
		h.unmapLocked(s)
		return
	}
	if s.first > 0 {
		s = h.joinLocked(s.region.spanAt(s.first-1), s)
	}
	if end := s.first + s.n; int(end) < len(s.region.at) {
		s = h.joinLocked(s.region.spanAt(end), s)
	}
	h.insertLocked(s)
}

// joinLocked returns s together with the span beside it, if that is free.
func (h *pageHeap) joinLocked(beside, s *span) *span {
	if !beside.free {
		return s
	}
	h.removeLocked(beside)
	s.coverLocked(min(s.first, beside.first), s.n+beside.n)
	s.gone += beside.gone
	// It keeps the memory of its tags for the next slab.
	*beside = span{number: beside.number, next: h.spare, tags: beside.tags}
	h.spare = beside
	return s
}

// trim unmaps the regions that are one free span. It returns how many bytes these were.
func (h *pageHeap) trim() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	before := h.mapped - h.discarded
	for _, r := range slices.Clone(h.regions) {
		if s := r.spanAt(0); s.free && int(s.n) == len(r.at) {
			h.removeLocked(s)
			h.unmapLocked(s)
		}
	}
	return before - (h.mapped - h.discarded)
}

// unmapLocked gives back the region whose only span is s. If the Source can't take it, the memory is
// lost; no program can do anything about it.
func (h *pageHeap) unmapLocked(s *span) {
	r := s.region
	h.spans[s.number] = nil
	h.numbers = append(h.numbers, s.number)
	h.regions = slices.DeleteFunc(h.regions, func(have *region) bool { return have == r })
	h.mapped -= r.Bytes
	h.discarded -= int64(s.gone) * pageBytes
	_ = h.src.Unmap(r.Region)
}

func (h *pageHeap) stats() (mapped, taken int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.mapped - h.discarded, h.taken
}

func (h *pageHeap) holders(add func(tag uintptr, bytes int64)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, r := range h.regions {
		for page := int32(0); int(page) < len(r.at); page += r.spanAt(page).n {
			if s := r.spanAt(page); s.tag != 0 && s.class == nil {
				add(s.tag, int64(s.n)*pageBytes)
			}
		}
	}
}
