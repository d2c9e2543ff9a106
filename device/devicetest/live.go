package devicetest

import "github.com/asyncgen/asyncgen/device"

// Live is how many bytes of b's memory are in use once the collector has found what nothing refers
// to. It collects until there are no more than base, or often: one collection waits for the
// cleanups for a limited time only, and what they free may have held something else.
func Live(b device.Backend, base int64) (live int64) {
	for range 50 {
		device.Collect()
		if live = device.MemoryOf(b).Stats().Live; live <= base {
			break
		}
	}
	return live
}
