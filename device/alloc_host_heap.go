//go:build race || !(linux || darwin || freebsd || netbsd || openbsd || dragonfly || windows)

package device

import "unsafe"

func (hostMemorySource) Map(bytes int64) (Region, error) {
	mem := aligned(make([]byte, bytes+hugePage))
	return Region{Ptr: unsafe.Pointer(unsafe.SliceData(mem)), Bytes: bytes}, nil
}

func (hostMemorySource) Unmap(Region) error { return nil } // nothing refers to it any more
