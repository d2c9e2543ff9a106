//go:build unix && !linux

package compare

import (
	"os"
	"runtime"
	"syscall"
)

// watchPeak returns a function that returns the largest resident size, in
// bytes, of a process that has ended.
func watchPeak(pid int) func(*os.ProcessState) int64 {
	return func(state *os.ProcessState) int64 {
		if state == nil {
			return 0
		}
		usage, ok := state.SysUsage().(*syscall.Rusage)
		if !ok {
			return 0
		}
		if runtime.GOOS == "darwin" || runtime.GOOS == "ios" {
			return int64(usage.Maxrss)
		}
		return int64(usage.Maxrss) << 10
	}
}
