//go:build !linux

package device

func adviseHuge([]byte) {}

// hostMemory is only a bound on how much memory the process may have: these systems are not asked.
func hostMemory() int64 { return addressable }
