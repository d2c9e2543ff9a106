package device

import "unsafe"

// HostMemory is the Source of memory that the host computes in. This memory is not part of the Go heap:
// the collector neither moves, scans nor counts it, so no Go pointer may be stored there. There are two
// exceptions in which it is part of the Go heap: race builds, as the race detector looks at nothing
// else, and systems whose calls for memory we do not use.
var HostMemory Source = hostMemorySource{}

type hostMemorySource struct{}

// aligned returns the part of raw that begins at a multiple of hugePage. It is shorter than raw by hugePage.
func aligned(raw []byte) []byte {
	base := unsafe.Pointer(unsafe.SliceData(raw))
	skip := int(-uintptr(base) & (hugePage - 1))
	return raw[skip : skip+len(raw)-hugePage]
}

// addressable is more memory than a process of today's systems can have.
const addressable = 1 << 47
