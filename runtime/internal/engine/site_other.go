//go:build !amd64

package engine

import "runtime"

// framePCs stores the return addresses of the callers of its caller into pcs, leaving out
// the first skip, and returns how many there were room for.
func framePCs(pcs *[8]uintptr, skip int) int {
	return runtime.Callers(skip+3, pcs[:])
}

// pause passes a little time, n times.
func pause(n int) {
	for range n * 8 {
	}
}

// goroutine returns 0: where the runtime's record of the calling goroutine is, is not known.
func goroutine() uintptr { return 0 }

// word is not called.
func word(uintptr) uintptr { return 0 }
