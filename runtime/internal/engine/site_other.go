//go:build !amd64

package engine

import "runtime"

// framePCs stores the return addresses of its caller's callers into pcs, without the first skip, and
// returns how many it has stored.
func framePCs(pcs *[8]uintptr, skip int) int {
	return runtime.Callers(skip+3, pcs[:])
}

// pause passes a little time, n times.
func pause(n int) {
	for range n * 8 {
	}
}

// goroutine returns 0: the address of the runtime's record is not known here.
func goroutine() uintptr { return 0 }

// word is never called.
func word(uintptr) uintptr { return 0 }
