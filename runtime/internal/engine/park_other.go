//go:build !linux || (!amd64 && !arm64)

package engine

import "sync/atomic"

const futexes = false

func futexWait(*atomic.Uint32, uint32) {}
func futexWake(*atomic.Uint32)         {}
