package ffi

import "unsafe"

// chunkWords is the least size of a chunk of an Arena.
const chunkWords = 1024

// An Arena hands out memory whose address may be passed to C: it is on the heap, whatever the
// compiler's escape analysis finds, and does not move. The zero Arena is ready. The memory is valid
// until Reset, as long as the Arena is reachable.
type Arena struct {
	chunks [][]uint64
	chunk  int // the chunk in use
	used   int // words of it in use
}

// Words returns n zero words and their address.
func (a *Arena) Words(n int) ([]uint64, uintptr) {
	for {
		if a.chunk < len(a.chunks) {
			if c := a.chunks[a.chunk]; n <= len(c)-a.used {
				words := c[a.used : a.used+n : a.used+n]
				a.used += n
				clear(words)
				return words, uintptr(unsafe.Pointer(unsafe.SliceData(words)))
			}
			a.chunk++
		}
		if a.used = 0; a.chunk == len(a.chunks) {
			a.grow(max(n, chunkWords))
		}
	}
}

// grow is not inlined, so that what it makes is never on a stack.
//
//go:noinline
func (a *Arena) grow(words int) { a.chunks = append(a.chunks, make([]uint64, words)) }

// Bytes returns n zero bytes and their address, a multiple of 8.
func (a *Arena) Bytes(n int) ([]byte, uintptr) {
	words, address := a.Words(max((n+7)/8, 1))
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), n), address
}

// String returns the address of a C string with the text of s.
func (a *Arena) String(s string) uintptr {
	text, address := a.Bytes(len(s) + 1)
	copy(text, s)
	return address
}

// Reset takes all memory back, and keeps it for later calls.
func (a *Arena) Reset() { a.chunk, a.used = 0, 0 }
