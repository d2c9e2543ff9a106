package cpu

import (
	"sync"
	"syscall"
)

// physicalMemory is the size of the machine's memory, in bytes.
var physicalMemory = sync.OnceValue(func() int64 {
	var info syscall.Sysinfo_t
	if err := syscall.Sysinfo(&info); err != nil {
		return addressable
	}
	return int64(min(uint64(info.Totalram)*uint64(info.Unit), addressable))
})
