//go:build (linux || darwin) && !race

package device

import (
	"syscall"
	"unsafe"
)

// Protect makes memory untouchable.
func (hostMemorySource) Protect(p unsafe.Pointer, bytes int64) error {
	return syscall.Mprotect(unsafe.Slice((*byte)(p), bytes), syscall.PROT_NONE)
}
