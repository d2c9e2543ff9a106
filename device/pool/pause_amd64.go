package pool

// pause tells the processor n times that it waits for another.
//
//go:noescape
func pause(n int)
