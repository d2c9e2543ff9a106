package ffi

import "unsafe"

// chunkWords is how many words an Arena gets at once, if they are enough.
const chunkWords = 1024

// An Arena hands out memory that C may be given the address of: it is on the heap, whatever the
// compiler knows, and does not move. The zero Arena is ready. What it has handed out is good until
// Reset, as long as the Arena is reachable.
type Arena struct {
	chunks [][]uint64
	chunk  int // the one in use
	used   int // words of it
}

// Words returns n words, which are zero, and their address.
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

// Bytes returns n bytes, which are zero, and their address, a multiple of 8.
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

// Reset takes back everything. The memory is kept for what is asked for next.
func (a *Arena) Reset() { a.chunk, a.used = 0, 0 }
