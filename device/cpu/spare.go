package cpu

import (
	"runtime"
	"sync"

	"github.com/asyncgen/asyncgen/device"
)

// spare is memory for copies of operands. Memory that each command needs again is kept: fresh
// memory has to be cleared and mapped.
var spare struct {
	mu   sync.Mutex
	free []*device.Buffer
}

// spareMemory is the allocator of spare. Products have no other way to be computed, so it has no
// limit of its own.
var spareMemory = sync.OnceValue(func() *device.Allocator { return device.NewPool(device.HostMemory, 1<<40) })

// takeSpare returns memory with undefined contents. If there is none, it panics with an error, and
// the command fails with that. (Go's heap would end the program.)
func takeSpare(bytes int) *device.Buffer {
	spare.mu.Lock()
	best := -1
	for i, b := range spare.free {
		if b.Bytes >= int64(bytes) && (best < 0 || b.Bytes < spare.free[best].Bytes) {
			best = i
		}
	}
	if best >= 0 {
		defer spare.mu.Unlock()
		return removeSpare(best)
	}
	spare.mu.Unlock()
	b, err := spareMemory().Alloc(int64(bytes))
	if err != nil {
		panic(err)
	}
	return b
}

// giveSpare keeps b for the next who needs as much. The smallest goes if there are many.
func giveSpare(b *device.Buffer) {
	spare.mu.Lock()
	defer spare.mu.Unlock()
	spare.free = append(spare.free, b)
	if len(spare.free) <= 2*runtime.GOMAXPROCS(0) {
		return
	}
	smallest := 0
	for i, b := range spare.free {
		if b.Bytes < spare.free[smallest].Bytes {
			smallest = i
		}
	}
	spareMemory().Free(removeSpare(smallest))
}

// removeSpare takes the i-th out of the list. The caller holds the lock.
func removeSpare(i int) *device.Buffer {
	b, last := spare.free[i], len(spare.free)-1
	spare.free[i], spare.free[last] = spare.free[last], nil
	spare.free = spare.free[:last]
	return b
}
