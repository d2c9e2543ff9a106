package vec

import (
	"sync"
	"unsafe"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/kernel"
)

// Drawer returns kernel.Draw for the distribution d on elements of type T: the same bits, sooner.
func Drawer[T device.Element](d kernel.Distribution) func(key, pos uint64, lo, hi int64, dst []T) {
	dt := device.DTypeOf[T]()
	l, ok := drawLoops.get(drawKey{d, dt})
	if !ok {
		return func(key, pos uint64, lo, hi int64, dst []T) { kernel.Draw(d, key, pos, lo, hi, dst) }
	}
	tag := d.Tag(dt)
	return func(key, pos uint64, lo, hi int64, dst []T) {
		if len(dst) < fewDraws {
			kernel.Draw(d, key, pos, lo, hi, dst)
			return
		}
		s := drawScratches.Get().(*drawScratch)
		defer drawScratches.Put(s)
		for len(dst) > 0 {
			n := drawSome(l, s, tag, key, pos, lo, hi, dst)
			if n == 0 { // the counter's word 1 is about to change
				n = min(len(dst), l.blocks*blockBytes/dt.Size())
				kernel.Draw(d, key, pos, lo, hi, dst[:n])
			}
			dst, pos = dst[n:], pos+uint64(n)
		}
	}
}

// A drawLoop draws blocks of random numbers, from the given block on: n > 0 times as many as one round
// of the loop draws. Word 1 of the counter is the same for all of them. Ints are from lo to lo+span-1.
// The twin is kernel.Draw.
type drawLoop struct {
	loop   func(dst unsafe.Pointer, n int, block uint64, keys *[20]uint64, lo int64, span uint64)
	blocks int
}

type drawKey struct {
	d  kernel.Distribution
	dt device.DType
}

// drawLoops are those in assembly.
var drawLoops table[drawKey, drawLoop]

const (
	fewDraws   = 8    // elements that kernel.Draw draws faster
	blockBytes = 16   // of any type
	mostBlocks = 4096 // at once, in some 5 to 30 µs
)

// A drawScratch is what a loop reads and writes besides its result.
type drawScratch struct {
	keys   [20]uint64
	blocks [64]uint64 // of one turn of any loop
}

var drawScratches = sync.Pool{New: func() any { return new(drawScratch) }}

// drawSome draws the first elements of dst, as many as is convenient. It returns how many: 0 if it can draw none.
func drawSome[T device.Element](l drawLoop, s *drawScratch, tag uint32, key, pos uint64, lo, hi int64, dst []T) int {
	perBlock := uint64(blockBytes / unsafe.Sizeof(dst[0]))
	block, skip := pos/perBlock, pos%perBlock
	most := min(1<<32-block&(1<<32-1), mostBlocks) // the word 1 of the counter stays the same
	if most < uint64(l.blocks) {
		return 0
	}
	s.setKeys(key, tag, uint32(block>>32))
	span := uint64(hi) - uint64(lo)
	if skip == 0 {
		if n := min(int(most), len(dst)/int(perBlock)) / l.blocks; n > 0 {
			l.loop(unsafe.Pointer(&dst[0]), n, block, &s.keys, lo, span)
			return n * l.blocks * int(perBlock)
		}
	}
	l.loop(unsafe.Pointer(&s.blocks), 1, block, &s.keys, lo, span)
	return copy(dst, unsafe.Slice((*T)(unsafe.Pointer(&s.blocks)), l.blocks*int(perBlock))[skip:])
}

// setKeys sets the keys of the ten rounds of kernel.Philox, each round's first key and then its second.
// In all counters word 1 is high, word 2 is tag, and word 3 is 0. So some products of the first rounds
// are the same for all blocks, and are made part of the keys of the next rounds.
func (s *drawScratch) setKeys(key uint64, tag, high uint32) {
	const m0, m1, w0, w1 = 0xD2511F53, 0xCD9E8D57, 0x9E3779B9, 0xBB67AE85 // as in kernel.Philox
	k0, k1 := uint32(key), uint32(key>>32)
	for i := 0; i < len(s.keys); i += 2 {
		s.keys[i], s.keys[i+1] = uint64(k0), uint64(k1)
		k0 += w0
		k1 += w1
	}
	p1 := uint64(tag) * m1                                   // of round 0
	p0 := uint64(uint32(p1>>32)^high^uint32(s.keys[0])) * m0 // of round 1
	s.keys[2] ^= p1 & (1<<32 - 1)                            // as c1
	s.keys[3] ^= p0 >> 32                                    // for c2
	s.keys[5] ^= p0 & (1<<32 - 1)                            // as c3
}
