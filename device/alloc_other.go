//go:build !linux

package device

func adviseHuge([]byte) {}

// hostMemory would be how much memory the process may have; here it is only a bound.
func hostMemory() int64 { return addressable }
