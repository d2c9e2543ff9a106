//go:build !windows && !((linux || darwin) && (amd64 || arm64) && !android && !ios && !faketime)

package ffi

// callOne is never called: no library can be opened here, so no function has an address.
func callOne(uintptr, *[MaxArgs]uintptr) uintptr {
	panic("ffi: functions of C can't be called on this system")
}
