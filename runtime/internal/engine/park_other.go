//go:build !linux || (!amd64 && !arm64)

package engine

import (
	"sync/atomic"
	"time"
)

const futexes = false

func futexWait(*atomic.Uint32, uint32, time.Duration) {}
func futexWake(*atomic.Uint32)                        {}
