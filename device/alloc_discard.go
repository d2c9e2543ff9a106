package device

import (
	"math"
	"slices"
)

// Near the limit, much memory can be free in many small spans that are no use to a large block. Then the pages of these
// spans go back to the system, and the limit has room for a new region. The spans keep their addresses, as there are
// enough of those. If that is not enough, pages of slabs go back on which no block in use lies.

// A discarder is a Source that can take back the memory of a part of a region. Whoever writes there later gets fresh
// memory.
type discarder interface {
	// Discard gives back the memory of bytes bytes from offset on, both multiples of 8 KiB.
	Discard(r Region, offset, bytes int64) error
}

// discard gives the pages of all free spans back.
func (h *pageHeap) discard() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, first := range h.bins {
		for s := first; s != nil; s = s.next {
			h.discardLocked(s)
		}
	}
}

// discardLocked gives the pages of the free span s back, unless the Source can't take them.
func (h *pageHeap) discardLocked(s *span) {
	src, ok := h.src.(discarder)
	if !ok || s.gone == s.n || src.Discard(s.region.Region, int64(s.first)*pageBytes, int64(s.n)*pageBytes) != nil {
		return
	}
	h.discarded += int64(s.n-s.gone) * pageBytes
	s.gone = s.n
}

// reviveLocked prepares the free span s for n of its pages to be taken. It reports whether the limit has room for those
// of them that were given back.
func (h *pageHeap) reviveLocked(s *span, n int32, g growth) bool {
	if s.gone == 0 {
		return true
	}
	h.discardLocked(s) // all or none: nobody knows which they are
	return h.roomLocked(g) >= int64(n)*pageBytes
}

// roomLocked is how many more bytes of memory may be mapped.
func (h *pageHeap) roomLocked(g growth) int64 {
	room := h.limit - h.mapped + h.discarded
	if g == beyond {
		room += min(maxBeyond, math.MaxInt64-h.limit)
	}
	return room &^ (pageBytes - 1)
}

// discard gives back the pages of c's slabs on which no block in use lies, with the slots there. The slots come back
// when the whole slab was free.
func (c *class) discard(h *pageHeap) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.slabs {
		var keep uint16
		for slot, tag := range s.tags {
			if tag != 0 {
				keep |= c.pagesOf(int32(slot))
			}
		}
		h.discardInSlab(s, keep)
	}
	c.free = slices.DeleteFunc(c.free, func(p place) bool { return p.span.lost&c.pagesOf(p.slot) != 0 })
}

// pagesOf is the set of pages of a slab on which the given slot lies.
func (c *class) pagesOf(slot int32) uint16 {
	from, to := int64(slot)*c.bytes, int64(slot+1)*c.bytes
	return 1<<((to+pageBytes-1)/pageBytes) - 1<<(from/pageBytes)
}

// discardInSlab gives back the pages of the slab s that are not in keep, unless the Source can't take them. The
// mutex of the class is held.
func (h *pageHeap) discardInSlab(s *span, keep uint16) {
	src, ok := h.src.(discarder)
	if !ok {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range s.n {
		page := uint16(1) << i
		if (keep|s.lost)&page != 0 || src.Discard(s.region.Region, int64(s.first+i)*pageBytes, pageBytes) != nil {
			continue
		}
		s.lost |= page
		s.gone++
		h.discarded += pageBytes
	}
}
