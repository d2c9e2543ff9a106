//go:build !linux

package dl

// KeepSignals calls f. On Linux it also restores signal handlers.
func KeepSignals(f func()) { f() }
