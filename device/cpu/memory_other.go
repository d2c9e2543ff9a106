//go:build !linux

package cpu

// physicalMemory would be the size of the machine's memory; here it is only a bound.
func physicalMemory() int64 { return addressable }
