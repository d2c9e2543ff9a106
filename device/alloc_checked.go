//go:build asyncgen_checked

package device

import (
	"os"
	"time"
	"unsafe"
)

// maxCleanup is how long Collect waits for cleanups. It is longer than in other builds: each cleanup unmaps a region.
const maxCleanup = 10 * time.Second

// checked says that this build looks for mistakes in the use of memory, whatever it costs.
const checked = true

// A protector is a Source that can make memory untouchable.
type protector interface {
	Protect(p unsafe.Pointer, bytes int64) error
}

// guarded returns a span in a region of its own, with a block of the given size between two guards:
//
//	| guard | unused | block | guard |
func (h *pageHeap) guarded(bytes int64) (*span, error) {
	page := max(int64(os.Getpagesize()), pageBytes)
	block := (max(bytes, 1) + 63) &^ 63
	data := (block + page - 1) / page * page
	h.mu.Lock()
	defer h.mu.Unlock()
	if data+2*page > h.limit-h.mapped {
		return nil, errNoRoom
	}
	mem, err := h.src.Map(data + 2*page)
	if err != nil {
		return nil, err
	}
	s := h.addLocked(mem)
	s.lead = page + data - block
	s.tag = untagged
	h.taken++
	if src, ok := h.src.(protector); ok {
		for _, guard := range []int64{0, page + data} {
			if err := src.Protect(unsafe.Add(mem.Ptr, guard), page); err != nil {
				h.taken--
				h.unmapLocked(s)
				return nil, err
			}
		}
	}
	return s, nil
}

// poison sets all bits of b. That is NaN in each floating-point type.
func (b *Buffer) poison() {
	if b.Ptr == nil {
		return
	}
	all := unsafe.Slice((*byte)(b.Ptr), b.Bytes)
	for i := range all {
		all[i] = 0xff
	}
}
