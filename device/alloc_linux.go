package device

import (
	"errors"
	"os"
	"sync"
	"syscall"
)

// adviseHuge asks for pages of 2 MiB. They make the first touch of a large block several times faster. The system may
// decline.
func adviseHuge(mem []byte) { _ = syscall.Madvise(mem, syscall.MADV_HUGEPAGE) }

// discardPages gives the memory of pages back to the system. The next write to them gets fresh memory.
func discardPages(mem []byte) error {
	if os.Getpagesize() > pageBytes {
		return errors.ErrUnsupported
	}
	return syscall.Madvise(mem, syscall.MADV_DONTNEED)
}

// hostMemory is how much memory the process may have, in bytes: the machine's memory, or less if its control groups
// have a limit.
var hostMemory = sync.OnceValue(func() int64 {
	most := int64(addressable)
	var info syscall.Sysinfo_t
	if err := syscall.Sysinfo(&info); err == nil {
		most = int64(min(uint64(info.Totalram)*uint64(info.Unit), addressable))
	}
	return cgroupLimit(os.DirFS("/"), most)
})
