package devicetest

import "github.com/asyncgen/asyncgen/device"

// Live returns the number of bytes of b's memory that are in use once the garbage collector has found everything that
// nothing refers to. It collects until there are no more than base, but not for ever: one collection waits for the
// cleanups for a limited time, and what they free may have held something else.
func Live(b device.Backend, base int64) (live int64) {
	for range 50 {
		device.Collect()
		if live = device.MemoryOf(b).Stats().Live; live <= base {
			break
		}
	}
	return live
}
