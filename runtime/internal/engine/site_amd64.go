package engine

// framePCs stores the return addresses of the callers of its caller into pcs, leaving out
// the first skip, and returns how many there were room for. It follows frame pointers,
// like the runtime's own tracer, which takes a nanosecond or two for each.
//
//go:noescape
func framePCs(pcs *[8]uintptr, skip int) int

// goroutine returns where the runtime's record of the calling goroutine is. Records are never
// freed: when a goroutine has ended, its becomes another's.
//
//go:noescape
func goroutine() uintptr

// word returns the word at an address in such a record.
//
//go:noescape
func word(at uintptr) uintptr

// pause tells the processor n times that it waits for another.
//
//go:noescape
func pause(n int)
