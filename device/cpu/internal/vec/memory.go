package vec

import "unsafe"

// The loops in assembly. The key of these tables is 0.
var (
	streams table[int, func(dst, src unsafe.Pointer, n int)]
	fills   table[int, func(dst unsafe.Pointer, word uint64, n int)]
)

// someCache is what the largest cache of a processor that tells nothing is taken to have.
const someCache = 32 << 20

// shortest is how many bytes the loops in assembly that move bytes move, at least.
const shortest = 64

// Fill sets n elements at dst, of the given size, to the value with the Bits s.
func Fill(dst unsafe.Pointer, size int, s uint64, n int) {
	if f, ok := fills.get(0); ok && n*size >= shortest {
		switch size {
		case 1:
			s = s & 0xff * 0x0101010101010101
		case 4:
			s = s<<32 | s&0xffffffff
		}
		f(dst, s, n*size)
		return
	}
	switch size {
	case 1:
		fillSlice(slice[uint8](dst, n), uint8(s))
	case 4:
		fillSlice(slice[uint32](dst, n), uint32(s))
	default:
		fillSlice(slice[uint64](dst, n), s)
	}
}

func fillSlice[T any](dst []T, v T) {
	for i := range dst {
		dst[i] = v
	}
}

// Stream copies n bytes that do not overlap, and where the machine can, it writes past the caches: that saves
// reading what is overwritten from memory, and pays where the result is too large to be found in a cache
// later. Other goroutines see the result after a [Fence] only.
func Stream(dst, src unsafe.Pointer, n int) {
	if f, ok := streams.get(0); ok && n >= shortest {
		f(dst, src, n)
		return
	}
	copy(slice[byte](dst, n), slice[byte](src, n))
}
