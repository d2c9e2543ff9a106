package device

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"sync/atomic"
	"unsafe"
)

// An Allocator hands out the memory of one device. It maps big regions from a Source, and caches
// blocks that are put back for later requests of the same size. Fresh memory is expensive: the
// first touch of 64 MiB costs ten times as much as writing them again, and a GPU stops while it maps.
//
//	up to 64 KiB   slots of slabs, one list of free slots for each of 64 sizes, eight for
//	               every doubling (alloc_slab.go)
//	beyond         runs of 8 KiB pages, the best fit, split and joined again (alloc_page.go)
//
// A request is refused when the blocks in use and its own would take more than the limit. Memory that is
// only cached is used for other sizes, or goes back to the Source, before that. What has to stay are free
// slots on pages with blocks in use or, if the Source takes no pages back, in slabs and regions with such
// blocks. Because of those, all regions together may take up to maxBeyond more than the limit, but no more.
//
// The Allocator writes nothing into the memory itself, which the host may not be able to reach. A
// block is at most an eighth and 63 bytes larger than the request. Blocks begin at multiples of 64
// bytes, and those of 16 MiB and more at multiples of 2 MiB. Their contents are undefined.
//
// In builds with the tag asyncgen_checked, undefined contents are NaN. Each block ends at a page
// that can't be touched, and memory that was put back can't be touched either. Such builds take time
// and whole pages, and cache nothing.
//
// All methods may be called from several goroutines.
type Allocator struct {
	src   Source
	limit int64 // of Live, and of all regions together unless they have to go beyond

	classes [numClasses]class
	heap    pageHeap

	allocated atomic.Int64 // bytes of all blocks handed out since the beginning
	freed     atomic.Int64 // bytes of those that were put back
	reused    atomic.Int64 // bytes of blocks that got another user without Free, see Reused
	peak      atomic.Int64 // the largest allocated - freed so far
	pressure  pressure
}

// A Source is where an Allocator gets its regions from: the system, or the driver of a GPU.
type Source interface {
	// Map returns fresh memory of the given size, a multiple of 8 KiB, at an address that is
	// a multiple of 2 MiB.
	Map(bytes int64) (Region, error)
	// Unmap gives a region back.
	Unmap(Region) error
}

// A Region is memory from a Source.
type Region struct {
	Ptr    unsafe.Pointer // host address; nil when the host can't reach the memory
	Bytes  int64
	Handle any // the backend's name for it; nil for host memory

	base any // of host memory: the system's name for it
}

// MemoryStats are the numbers of one Allocator, in bytes. Its regions have Live and Cached bytes
// together.
type MemoryStats struct {
	Live   int64 // in blocks that were handed out and not put back
	Cached int64 // in regions, but in no such block
	Peak   int64 // the largest Live so far
	Limit  int64 // the most that Live may be, see Allocator
	Sizes  []SizeStats
}

// SizeStats tell about the blocks of one size. Blocks above 64 KiB have no size classes: they are
// counted together, with a Bytes of 0.
type SizeStats struct {
	Bytes  int64 // of each block
	Live   int64 // how many blocks are handed out
	Cached int64 // how many are free
}

// NewAllocator returns an allocator whose blocks take no more than limit bytes together. If limit
// is 0, it is ASYNCGEN_MEMORY or, if that is not set, seven eighths of HostMemoryLimit. NewAllocator
// panics if it needs ASYNCGEN_MEMORY and that is not a positive number.
func NewAllocator(src Source, limit int64) *Allocator {
	if limit <= 0 {
		var err error
		if limit, err = limitFromEnv(); err != nil {
			panic("device: " + err.Error())
		}
	}
	a := &Allocator{src: src, limit: limit}
	for i := range a.classes {
		a.classes[i].init(i)
	}
	a.heap.init(src, limit)
	a.pressure.init()
	return a
}

// NewPool is NewAllocator for callers who put back all blocks by themselves. Their blocks are never garbage, so the
// Allocator calls no garbage collector.
func NewPool(src Source, limit int64) *Allocator {
	a := NewAllocator(src, limit)
	a.pressure.isOff = true
	a.pressure.due.Store(math.MaxInt64)
	return a
}

func limitFromEnv() (int64, error) {
	v := os.Getenv("ASYNCGEN_MEMORY")
	if v == "" {
		return hostMemory() / 8 * 7, nil
	}
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil || n <= 0 {
		return 0, fmt.Errorf("ASYNCGEN_MEMORY=%s: want a number of bytes", v)
	}
	return n, nil
}

// Alloc returns a buffer of the given size, or an error that wraps ErrOutOfMemory. The block
// belongs to the caller until Free.
func (a *Allocator) Alloc(bytes int64) (*Buffer, error) {
	b := new(Buffer)
	if err := a.Get(b, bytes); err != nil {
		return nil, err
	}
	return b, nil
}

// Get is Alloc into an existing Buffer. If it fails, b is unchanged.
func (a *Allocator) Get(b *Buffer, bytes int64) error {
	p, err := a.place(bytes)
	if err == nil && !a.count(p.size()) {
		a.putBack(p)
		err = errNoRoom
	}
	if err != nil {
		return a.refusal(bytes, err)
	}
	b.Ptr, b.Bytes, b.Handle, b.at = p.pointer(), bytes, p.span.region.Handle, p
	if checked {
		b.poison()
	}
	return nil
}

// refusal is the error of a request that finds no room.
func (a *Allocator) refusal(bytes int64, err error) error {
	s := a.Stats()
	return fmt.Errorf("%w: %d bytes asked for, %d in use and %d cached of at most %d: %w",
		ErrOutOfMemory, bytes, s.Live, s.Cached, s.Limit, err)
}

// Free puts the block of b back. The block may be handed out again at once, so nothing may use it any more. b may be a
// copy of the Buffer that Alloc returned. To free a block twice is a mistake, and panics if Free can see it.
func (a *Allocator) Free(b *Buffer) {
	if b.at.span == nil {
		return // memory of the Go heap
	}
	if checked {
		b.poison()
	}
	size := b.at.size()
	a.putBack(b.at)
	a.freed.Add(size)
}

// putBack undoes place.
func (a *Allocator) putBack(p place) {
	if c := p.span.class; c != nil {
		c.put(p)
	} else {
		a.heap.put(p.span)
	}
}

// Tag notes who holds the block of b. Callers choose what the numbers mean; see Holders.
func (b *Buffer) Tag(tag uintptr) {
	switch s := b.at.span; {
	case s == nil:
	case s.class != nil:
		s.class.mu.Lock()
		s.tags[b.at.slot] = max(tag, untagged)
		s.class.mu.Unlock()
	default:
		s.region.heap.mu.Lock()
		s.tag = max(tag, untagged)
		s.region.heap.mu.Unlock()
	}
}

// Offset is where the buffer begins in the memory that Handle names, in bytes.
func (b *Buffer) Offset() int64 {
	if b.at.span == nil {
		return 0
	}
	return b.at.offset()
}

// A place is where a block is: a slot of a slab, or a span of its own.
type place struct {
	span *span
	slot int32
}

// size is how many bytes the block takes.
func (p place) size() int64 {
	if c := p.span.class; c != nil {
		return c.bytes
	}
	return int64(p.span.n) * pageBytes
}

// offset is where the block begins in its region.
func (p place) offset() int64 {
	at := int64(p.span.first) * pageBytes
	if c := p.span.class; c != nil {
		at += int64(p.slot) * c.bytes
	}
	return at + p.span.lead
}

func (p place) pointer() unsafe.Pointer {
	base := p.span.region.Ptr
	if base == nil {
		return nil
	}
	return unsafe.Add(base, p.offset())
}

// maxBlock is the most bytes of a block. Its 2**29 pages leave room for sums of page numbers in an int32.
const maxBlock = 1 << 42

// place finds room for a block: in cached memory; in what a collection of garbage frees, if that is
// cheap; in a new region; in pages of slabs that are free, or a new region after cached regions went back
// to the system; in a new region after all cached pages went back, and then pages of slabs; or in a new
// region beyond the limit, because blocks in use hold back the rest.
func (a *Allocator) place(bytes int64) (place, error) {
	if bytes < 0 || bytes > maxBlock || bytes > a.limit-a.Live() {
		return place{}, errNoRoom
	}
	p, err := a.tryPlace(bytes, cachedOnly)
	if err == nil {
		return p, nil
	}
	if a.collectInstead(bytes) {
		if p, err = a.tryPlace(bytes, cachedOnly); err == nil {
			return p, nil
		}
	}
	if p, err = a.tryPlace(bytes, toLimit); err == nil {
		return p, nil
	}
	for _, makeRoom := range []func(){func() { a.Trim() }, a.heap.discard, a.discardInSlabs} {
		makeRoom()
		if p, err = a.tryPlace(bytes, toLimit); err == nil {
			return p, nil
		}
	}
	return a.tryPlace(bytes, beyond)
}

// tryPlace finds room in cached memory or, if g allows that, in a new region.
func (a *Allocator) tryPlace(bytes int64, g growth) (place, error) {
	if checked {
		s, err := a.heap.guarded(bytes)
		return place{span: s}, err
	}
	if bytes <= slabMost {
		return a.classes[classOf(bytes)].take(&a.heap, g)
	}
	s, err := a.heap.take(bytes, nil, g)
	return place{span: s}, err
}

// count notes that a block was handed out. It reports false, and notes nothing, if the limit has no room for it.
func (a *Allocator) count(bytes int64) bool {
	var live int64
	for {
		allocated := a.allocated.Load()
		if live = allocated + bytes - a.freed.Load(); live > a.limit {
			return false
		}
		if a.allocated.CompareAndSwap(allocated, allocated+bytes) {
			break
		}
	}
	for top := a.peak.Load(); live > top && !a.peak.CompareAndSwap(top, live); top = a.peak.Load() {
	}
	a.pressIfDue()
	return true
}

// Reused notes that the block of b got another user without Free and Alloc. It counts for the next
// garbage collection as Free and Alloc would: a program that uses so much memory makes other garbage,
// too.
func (a *Allocator) Reused(b *Buffer) {
	if b.at.span == nil {
		return // memory of the Go heap
	}
	a.reused.Add(b.at.size())
	a.pressIfDue()
}

// Limit is the most that Live may be.
func (a *Allocator) Limit() int64 { return a.limit }

// Live is how many bytes are in blocks that were handed out and not put back.
func (a *Allocator) Live() int64 { return a.allocated.Load() - a.freed.Load() }

// Peak is the largest Live so far.
func (a *Allocator) Peak() int64 { return a.peak.Load() }

// Trim gives all regions without a live block back to the Source. It returns how many bytes these had.
func (a *Allocator) Trim() int64 {
	for i := range a.classes {
		a.classes[i].trim(&a.heap)
	}
	return a.heap.trim()
}

// discardInSlabs gives the pages of slabs back on which no block in use lies, where the Source can take them.
func (a *Allocator) discardInSlabs() {
	for i := range a.classes {
		a.classes[i].discard(&a.heap)
	}
}

// Stats returns the numbers as of now.
func (a *Allocator) Stats() MemoryStats {
	s := MemoryStats{Live: a.Live(), Peak: a.Peak(), Limit: a.limit}
	large := SizeStats{}
	for i := range a.classes {
		size, slabs := a.classes[i].stats()
		large.Live -= int64(slabs)
		if slabs > 0 {
			s.Sizes = append(s.Sizes, size)
		}
	}
	mapped, taken := a.heap.stats()
	if large.Live += taken; large.Live > 0 {
		s.Sizes = append(s.Sizes, large)
	}
	s.Cached = max(mapped-s.Live, 0)
	return s
}

// A Holder sums up the live blocks with one tag.
type Holder struct {
	Tag    uintptr // see Tag; 0: the blocks have none
	Bytes  int64
	Blocks int64
}

// untagged is the tag of a live block that Tag was not called for. A free block has 0.
const untagged = 1

// Holders returns who holds the live blocks, the largest holder first.
func (a *Allocator) Holders() []Holder {
	by := map[uintptr]*Holder{}
	add := func(tag uintptr, bytes int64) {
		h := by[tag]
		if h == nil {
			h = &Holder{Tag: tag}
			by[tag] = h
		}
		h.Bytes += bytes
		h.Blocks++
	}
	for i := range a.classes {
		a.classes[i].holders(add)
	}
	a.heap.holders(add)
	var all []Holder
	for _, h := range by {
		if h.Tag == untagged {
			h.Tag = 0
		}
		all = append(all, *h)
	}
	slices.SortFunc(all, func(a, b Holder) int { return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Tag, b.Tag)) })
	return all
}

// Close gives all memory back to the Source. No block may be in use.
func (a *Allocator) Close() { a.Trim() }
