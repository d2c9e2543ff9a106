package device

import "unsafe"

// HostMemory is the Source of memory that the host computes in. It is not part of
// the Go heap: the collector neither moves, scans nor counts it, and what was
// written to it is not found by it, so no Go pointer may be stored there. (In race builds it is, as the race
// detector looks at nothing else; and on systems of which we don't know better.)
var HostMemory Source = hostMemorySource{}

type hostMemorySource struct{}

// aligned returns the part of raw, which is larger by hugePage, that begins at a multiple of hugePage.
func aligned(raw []byte) []byte {
	base := unsafe.Pointer(unsafe.SliceData(raw))
	skip := int(-uintptr(base) & (hugePage - 1))
	return raw[skip : skip+len(raw)-hugePage]
}

// addressable is more memory than a process of today's systems can have.
const addressable = 1 << 47
