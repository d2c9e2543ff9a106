package report

import (
	"os"
	"syscall"
	"unsafe"
)

var (
	kernel32     = syscall.NewLazyDLL("kernel32.dll")
	lockFileEx   = kernel32.NewProc("LockFileEx")
	unlockFileEx = kernel32.NewProc("UnlockFileEx")
)

const (
	failAtOnce = 1 // LOCKFILE_FAIL_IMMEDIATELY
	exclusive  = 2 // LOCKFILE_EXCLUSIVE_LOCK
	// lockedAt is the upper half of the offset of the one byte that is locked. It is beyond the end of
	// the file, as other processes can't write to locked bytes.
	lockedAt = 1 << 30
)

// lockAlone locks f for this process alone if no other has a lock, and reports whether it did.
func lockAlone(f *os.File) bool {
	at := syscall.Overlapped{OffsetHigh: lockedAt}
	done, _, _ := lockFileEx.Call(f.Fd(), failAtOnce|exclusive, 0, 1, 0, uintptr(unsafe.Pointer(&at)))
	return done != 0
}

// lockShared locks f together with other processes. It waits while one has locked f alone.
func lockShared(f *os.File) error {
	at := syscall.Overlapped{OffsetHigh: lockedAt}
	if done, _, err := lockFileEx.Call(f.Fd(), 0, 0, 1, 0, uintptr(unsafe.Pointer(&at))); done == 0 {
		return err
	}
	return nil
}

func unlock(f *os.File) {
	at := syscall.Overlapped{OffsetHigh: lockedAt}
	unlockFileEx.Call(f.Fd(), 0, 1, 0, uintptr(unsafe.Pointer(&at)))
}

// isAlive reports whether there is a process with that number.
func isAlive(pid int) bool {
	p, err := os.FindProcess(pid)
	if err != nil {
		return false
	}
	p.Release()
	return true
}
