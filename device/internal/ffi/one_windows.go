package ffi

import "syscall"

func callOne(fn uintptr, args *[MaxArgs]uintptr) uintptr {
	result, _, _ := syscall.SyscallN(fn, args[:]...)
	return result
}
