//go:build (linux || darwin || freebsd || netbsd || openbsd || dragonfly) && !race

package device

import (
	"fmt"
	"syscall"
	"unsafe"
)

func (hostMemorySource) Map(bytes int64) (Region, error) {
	// The rest before and behind the aligned part costs addresses, not memory.
	raw, err := syscall.Mmap(-1, 0, int(bytes)+hugePage, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		return Region{}, fmt.Errorf("device: map %d bytes: %w", bytes, err)
	}
	mem := aligned(raw)
	adviseHuge(mem)
	return Region{Ptr: unsafe.Pointer(unsafe.SliceData(mem)), Bytes: bytes, base: raw}, nil
}

func (hostMemorySource) Unmap(r Region) error { return syscall.Munmap(r.base.([]byte)) }

func (hostMemorySource) Discard(r Region, offset, bytes int64) error {
	return discardPages(unsafe.Slice((*byte)(unsafe.Add(r.Ptr, offset)), bytes))
}
