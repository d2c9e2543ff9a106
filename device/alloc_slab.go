package device

import (
	"errors"
	"math/bits"
	"slices"
	"sync"
)

const (
	slabMost   = 64 << 10 // the largest class
	perDouble  = 8        // classes for every doubling
	numClasses = 64
)

var (
	errNoRoom   = errors.New("the limit is reached, which ASYNCGEN_MEMORY can set")
	errInPieces = errors.New("what is cached lies in pieces between blocks in use; with a higher ASYNCGEN_MEMORY there is more")
	errNoCached = errors.New("nothing that fits is cached")
)

// classOf returns the class of blocks of the given size, which is at most slabMost. The
// first 8 are 64 bytes apart, and so are the next 8; from then on the distance doubles every 8.
func classOf(bytes int64) int {
	n := uint64(max(bytes, 1) - 1)
	shift := max(bits.Len64(n)-4, 6)
	return (shift-6)*perDouble + int(n>>shift)
}

// A class hands out blocks of one size. They are slots of slabs; a slab is a span divided evenly into slots.
type class struct {
	bytes int64
	slots int32 // of a slab
	pages int32 // of a slab

	mu    sync.Mutex // guards the rest, and used and tags of the slabs; taken before pageHeap.mu
	free  []place    // a stack: the last one put back is most likely in a processor's cache
	slabs []*span
	_     [24]byte // so that two classes share no cache line
}

// init makes c class i, the inverse of classOf.
func (c *class) init(i int) {
	shift, q := 6, i
	if i >= 2*perDouble {
		shift, q = 6+i/perDouble-1, perDouble+i%perDouble
	}
	c.bytes, c.slots, c.pages = int64(q+1)<<shift, pageBytes>>shift, int32(q+1)
}

func (c *class) take(h *pageHeap, g growth) (place, error) {
	c.mu.Lock()
	if len(c.free) == 0 {
		if err := c.growLocked(h, g); err != nil {
			c.mu.Unlock()
			return place{}, err
		}
	}
	last := len(c.free) - 1
	p := c.free[last]
	c.free = c.free[:last]
	p.span.used++
	p.span.tags[p.slot] = untagged
	c.mu.Unlock()
	return p, nil
}

func (c *class) growLocked(h *pageHeap, g growth) error {
	s, err := h.take(int64(c.pages)*pageBytes, c, g)
	if err != nil {
		return err
	}
	s.used, s.tags = 0, slices.Grow(s.tags[:0], int(c.slots))[:c.slots]
	clear(s.tags)
	c.slabs = append(c.slabs, s)
	for i := c.slots - 1; i >= 0; i-- {
		c.free = append(c.free, place{s, i})
	}
	return nil
}

func (c *class) put(p place) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p.span.tags[p.slot] == 0 {
		panic("device: a block was put back twice")
	}
	p.span.tags[p.slot] = 0
	p.span.used--
	c.free = append(c.free, p)
}

// trim gives back the slabs that have no slot in use.
func (c *class) trim(h *pageHeap) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.free = slices.DeleteFunc(c.free, func(p place) bool { return p.span.used == 0 })
	c.slabs = slices.DeleteFunc(c.slabs, func(s *span) bool {
		if s.used > 0 {
			return false
		}
		h.put(s)
		return true
	})
}

func (c *class) stats() (s SizeStats, slabs int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	live := int64(0)
	for _, s := range c.slabs {
		live += int64(s.used)
	}
	return SizeStats{Bytes: c.bytes, Live: live, Cached: int64(len(c.free))}, len(c.slabs)
}

func (c *class) holders(add func(tag uintptr, bytes int64)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.slabs {
		for _, tag := range s.tags {
			if tag != 0 {
				add(tag, c.bytes)
			}
		}
	}
}
