package device

import (
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// adviseHuge asks for pages of 2 MiB, which the first touch of a large block is several times faster with. The
// system may decline.
func adviseHuge(mem []byte) { _ = syscall.Madvise(mem, syscall.MADV_HUGEPAGE) }

// hostMemory is how much memory the process may have, in bytes: what the machine has, or its control group allows.
var hostMemory = sync.OnceValue(func() int64 {
	most := int64(addressable)
	var info syscall.Sysinfo_t
	if err := syscall.Sysinfo(&info); err == nil {
		most = int64(min(uint64(info.Totalram)*uint64(info.Unit), addressable))
	}
	for _, file := range []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		if n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && n > 0 { // else it is "max"
			most = min(most, n)
		}
	}
	return most
})
