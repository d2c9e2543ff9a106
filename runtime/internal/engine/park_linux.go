//go:build linux && (amd64 || arm64)

package engine

import (
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

// futexes reports whether futexWait and futexWake work on this system.
const futexes = true

// Operations of futex(2), on words that no other process shares.
const (
	futexWaitPrivate = 0 | 128
	futexWakePrivate = 1 | 128
)

// futexWait sleeps until somebody calls futexWake, but at most for atMost, and not at all if *word is
// not v. It may return early.
func futexWait(word *atomic.Uint32, v uint32, atMost time.Duration) {
	t := syscall.NsecToTimespec(int64(atMost))
	syscall.Syscall6(syscall.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexWaitPrivate, uintptr(v), uintptr(unsafe.Pointer(&t)), 0, 0)
}

// futexWake wakes one goroutine that sleeps in futexWait on word.
func futexWake(word *atomic.Uint32) {
	syscall.RawSyscall6(syscall.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexWakePrivate, 1, 0, 0, 0)
}
