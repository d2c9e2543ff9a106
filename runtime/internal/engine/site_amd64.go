package engine

// framePCs stores the return addresses of the callers of its caller into pcs, leaving out
// the first skip, and returns how many there were room for. It follows frame pointers,
// like the runtime's own tracer, which takes a nanosecond or two for each.
//
//go:noescape
func framePCs(pcs *[8]uintptr, skip int) int

// self identifies the calling goroutine among those that there are now.
//
//go:noescape
func self() uintptr

// pause tells the processor n times that it waits for another.
//
//go:noescape
func pause(n int)
