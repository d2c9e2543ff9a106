package engine

// framePCs stores the return addresses of its caller's callers into pcs, without the first skip, and
// returns how many it has stored. It follows frame pointers, like the runtime's own tracer, which
// takes a nanosecond or two for each.
//
//go:noescape
func framePCs(pcs *[8]uintptr, skip int) int

// goroutine returns the address of the runtime's record of the calling goroutine. Records are never
// freed: when a goroutine has ended, another one uses its record.
//
//go:noescape
func goroutine() uintptr

// word returns the word at an address in a goroutine's record.
//
//go:noescape
func word(at uintptr) uintptr

// pause executes n PAUSE instructions.
//
//go:noescape
func pause(n int)
