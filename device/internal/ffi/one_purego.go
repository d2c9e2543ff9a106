//go:build (linux || darwin) && arm64 && !android && !ios && !faketime

package ffi

import "github.com/ebitengine/purego"

func callOne(fn uintptr, args *[MaxArgs]uintptr) uintptr {
	result, _, _ := purego.SyscallN(fn, args[:]...)
	return result
}
