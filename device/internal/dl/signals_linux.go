package dl

import (
	"syscall"
	"unsafe"
)

// A sigaction is what the kernel has for a signal, of which only the handler is looked at here.
type sigaction struct {
	handler uintptr
	rest    [15]uintptr // more than any kernel writes
}

const (
	signals   = 64
	sigsetLen = 8
)

// KeepSignals calls f, and gives the signals whose handlers f has changed their handlers back. Some
// drivers take signals over when they are initialised, which Go's runtime does not survive: it
// needs its own handlers, to interrupt goroutines and to notice nil pointers, and any other that is
// not for a stack of its own ends the program at the next Ctrl-C.
//
// What other goroutines do meanwhile about signals (package os/signal) stands: they set no handlers but Go's.
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

// handlerOf is zero for what is no signal.
func handlerOf(signal int) (a sigaction) {
	syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(signal), 0, uintptr(unsafe.Pointer(&a)), sigsetLen, 0, 0)
	return a
}

func setHandler(signal int, a *sigaction) {
	syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(signal), uintptr(unsafe.Pointer(a)), 0, sigsetLen, 0, 0)
}
