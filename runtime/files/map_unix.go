//go:build linux || darwin

package files

import (
	"math"
	"os"
	"syscall"
)

// mapped returns the first size bytes of f, which are read when they are looked at.
func mapped(f *os.File, size int64) ([]byte, error) {
	if size <= 0 || size > math.MaxInt {
		return nil, syscall.EINVAL
	}
	return syscall.Mmap(int(f.Fd()), 0, int(size), syscall.PROT_READ, syscall.MAP_SHARED)
}

func unmap(b []byte) error { return syscall.Munmap(b) }
