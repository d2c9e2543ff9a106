package device

// Near the limit, much memory can be free in many small spans that are no use to a large block. Then the pages of these
// spans go back to the system, and the limit has room for a new region. The spans keep their addresses, as there are
// enough of those.

// A discarder is a Source that can take back the memory of a part of a region. Whoever writes there later gets fresh
// memory.
type discarder interface {
	// Discard gives back the memory of bytes bytes from offset on, both multiples of 8 KiB.
	Discard(r Region, offset, bytes int64) error
}

// discard gives the pages of all free spans back. It returns how many bytes these were.
func (h *pageHeap) discard() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	before := h.discarded
	for _, first := range h.bins {
		for s := first; s != nil; s = s.next {
			h.discardLocked(s)
		}
	}
	return h.discarded - before
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
func (h *pageHeap) reviveLocked(s *span, n int32) bool {
	if s.gone == 0 {
		return true
	}
	h.discardLocked(s) // all or none: nobody knows which they are
	return h.roomLocked() >= int64(n)*pageBytes
}

// roomLocked is how many more bytes of memory the limit allows.
func (h *pageHeap) roomLocked() int64 {
	return (h.limit - h.mapped + h.discarded) &^ (pageBytes - 1)
}
