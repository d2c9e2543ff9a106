//go:build !race

package device

import (
	"fmt"
	"syscall"
	"unsafe"
)

var (
	kernel32     = syscall.NewLazyDLL("kernel32.dll")
	virtualAlloc = kernel32.NewProc("VirtualAlloc")
	virtualFree  = kernel32.NewProc("VirtualFree")
)

// Constants of the Windows API.
const (
	memCommit     = 0x1000
	memReserve    = 0x2000
	memRelease    = 0x8000
	pageReadWrite = 0x04
)

func (hostMemorySource) Map(bytes int64) (Region, error) {
	// Only committed memory counts, so the alignment costs nothing but addresses.
	base, _, err := virtualAlloc.Call(0, uintptr(bytes)+hugePage, memReserve, pageReadWrite)
	if base == 0 {
		return Region{}, fmt.Errorf("device: reserve %d bytes: %w", bytes, err)
	}
	start := (base + hugePage - 1) &^ (hugePage - 1)
	p, _, err := virtualAlloc.Call(start, uintptr(bytes), memCommit, pageReadWrite)
	if p == 0 {
		virtualFree.Call(base, 0, memRelease)
		return Region{}, fmt.Errorf("device: commit %d bytes: %w", bytes, err)
	}
	// The address of memory that Go knows nothing of: vet would take unsafe.Pointer(p) for a mistake.
	return Region{Ptr: *(*unsafe.Pointer)(unsafe.Pointer(&p)), Bytes: bytes, base: base}, nil
}

func (hostMemorySource) Unmap(r Region) error {
	if ok, _, err := virtualFree.Call(r.base.(uintptr), 0, memRelease); ok == 0 {
		return fmt.Errorf("device: release %d bytes: %w", r.Bytes, err)
	}
	return nil
}
