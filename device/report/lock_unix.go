//go:build darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd

package report

import (
	"errors"
	"os"
	"syscall"
)

// lockAlone locks f for this process alone if no other has a lock, and reports whether it did.
func lockAlone(f *os.File) bool { return flock(f, syscall.LOCK_EX|syscall.LOCK_NB) == nil }

// lockShared locks f together with other processes. It waits while one has locked f alone. It does nothing on file
// systems without locks.
func lockShared(f *os.File) error {
	if err := flock(f, syscall.LOCK_SH); err != nil && !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, syscall.ENOLCK) {
		return err
	}
	return nil
}

func unlock(f *os.File) { flock(f, syscall.LOCK_UN) }

func flock(f *os.File, how int) error {
	for {
		if err := syscall.Flock(int(f.Fd()), how); err != syscall.EINTR {
			return err
		}
	}
}
