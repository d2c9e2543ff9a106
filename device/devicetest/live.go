package devicetest

import "github.com/asyncgen/asyncgen/device"

// Live returns the number of bytes of b's memory that are in use after garbage collections. It collects until there
// are no more than base, up to 50 times. One collection may not be enough: the memory that it frees may have held on
// to more.
func Live(b device.Backend, base int64) (live int64) {
	memory := device.MemoryOf(b)
	for range 50 {
		if live = memory.Stats().Live; live <= base {
			break
		}
		memory.Reclaim()
	}
	return live
}
