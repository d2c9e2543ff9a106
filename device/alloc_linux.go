package device

import (
	"os"
	"sync"
	"syscall"
)

// adviseHuge asks for pages of 2 MiB, which the first touch of a large block is several times faster with. The
// system may decline.
func adviseHuge(mem []byte) { _ = syscall.Madvise(mem, syscall.MADV_HUGEPAGE) }

// hostMemory is how much memory the process may have, in bytes: what the machine has, or its control groups allow.
var hostMemory = sync.OnceValue(func() int64 {
	most := int64(addressable)
	var info syscall.Sysinfo_t
	if err := syscall.Sysinfo(&info); err == nil {
		most = int64(min(uint64(info.Totalram)*uint64(info.Unit), addressable))
	}
	return cgroupLimit(os.DirFS("/"), most)
})
