//go:build !linux

package dl

// KeepSignals calls f. On Linux it gives signals their handlers back.
func KeepSignals(f func()) { f() }
