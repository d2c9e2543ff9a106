//go:build !linux || (!amd64 && !arm64)

package engine

import (
	"sync/atomic"
	"time"
)

// futexes is false: there is no way to sleep in the kernel here, and nobody calls the functions
// below.
const futexes = false

func futexWait(*atomic.Uint32, uint32, time.Duration) {}
func futexWake(*atomic.Uint32)                        {}
