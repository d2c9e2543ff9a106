package dl

import (
	"syscall"
	"unsafe"
)

// A sigaction is the kernel's record of a signal. Only the handler is used here.
type sigaction struct {
	handler uintptr
	rest    [15]uintptr // at least as long as any kernel writes
}

const (
	signals   = 64
	sigsetLen = 8
)

// KeepSignals calls f, and restores the handlers of signals that f has changed. Some drivers
// replace signal handlers when they are initialised. Go's runtime needs its own: to preempt
// goroutines and to notice nil pointers. A foreign handler that doesn't run on the signal stack
// ends the program at the next Ctrl-C.
//
// Other goroutines may use package os/signal meanwhile: their changes stay, since they only set
// Go's handler.
func KeepSignals(f func()) {
	var before [signals + 1]sigaction
	for n := range before {
		before[n] = handlerOf(n)
	}
	defer func() {
		ours := before[syscall.SIGURG].handler
		for n := range before {
			if now := handlerOf(n).handler; now != before[n].handler && now != ours {
				setHandler(n, &before[n])
			}
		}
	}()
	f()
}

// handlerOf returns the zero sigaction if signal is no signal.
func handlerOf(signal int) (a sigaction) {
	syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(signal), 0, uintptr(unsafe.Pointer(&a)), sigsetLen, 0, 0)
	return a
}

func setHandler(signal int, a *sigaction) {
	syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(signal), uintptr(unsafe.Pointer(a)), 0, sigsetLen, 0, 0)
}
