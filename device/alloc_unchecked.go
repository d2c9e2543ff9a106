//go:build !asyncgen_checked

package device

import "time"

// maxCleanup is how long Collect waits for cleanups.
const maxCleanup = 100 * time.Millisecond

// The twins of alloc_checked.go, never called.

const checked = false

func (h *pageHeap) guarded(int64) (*span, error) { panic("device: not a checked build") }

func (b *Buffer) poison() {}
