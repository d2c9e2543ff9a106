package engine

import (
	"sync"

	"github.com/asyncgen/asyncgen/device"
)

// A device with a queue gets its operations, and their memory, long before it runs them. It runs
// them in order, so operations behind a Release may use the memory that it gives back although those
// in front have not run. Otherwise the results of all operations handed over would be live at once.
// The Buffer itself passes to the new storage, because a backend tells by the Buffer which commands
// depend on each other.

// spares are released buffers of a queue that operations before the Release may still use.
type spares struct {
	mu sync.Mutex // guards the rest
	// of has the spares by size, each list in the order of their Releases.
	of map[int64][]spare
}

// A spare is a buffer whose Release is at seq. If no storage takes it before the Release retires, it
// is given back to the device then.
type spare struct {
	buf   *device.Buffer
	block *block
	seq   uint64
}

// put takes over the memory of s, which the operation at seq releases.
func (sp *spares) put(s *Storage, seq uint64) {
	buf, block := s.buf, s.block
	s.leave()
	if block == nil {
		return
	}
	s.block = nil
	sp.mu.Lock()
	defer sp.mu.Unlock()
	if sp.of == nil {
		sp.of = map[int64][]spare{}
	}
	sp.of[s.own.Bytes] = append(sp.of[s.own.Bytes], spare{buf, block, seq})
}

// take gives s the buffer of its size that was released last. It reports whether there was one.
func (sp *spares) take(s *Storage) bool {
	sp.mu.Lock()
	defer sp.mu.Unlock()
	list := sp.of[s.own.Bytes]
	if len(list) == 0 {
		return false
	}
	last := &list[len(list)-1]
	s.buf, s.block = last.buf, last.block
	*last = spare{}
	sp.of[s.own.Bytes] = list[:len(list)-1]
	return true
}

// giveBack gives the spare of the Release at seq, which has the given size, back to the device, unless
// somebody has taken it since. All operations before the Release have finished.
func (sp *spares) giveBack(bytes int64, seq uint64) {
	sp.mu.Lock()
	list := sp.of[bytes]
	var freed *block
	for i := range list {
		if list[i].seq == seq {
			freed = list[i].block
			copy(list[i:], list[i+1:])
			list[len(list)-1] = spare{}
			if list = list[:len(list)-1]; len(list) > 0 {
				sp.of[bytes] = list
			} else {
				delete(sp.of, bytes)
			}
			break
		}
	}
	sp.mu.Unlock()
	if freed != nil {
		freed.free()
	}
}
