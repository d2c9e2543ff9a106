//go:build (linux || darwin) && !android && !ios && !faketime

package ffi

import (
	"unsafe"

	// purego prepares the process for C without cgo: threads that C knows, with thread-local storage.
	_ "github.com/ebitengine/purego"
)

// cgocall runs a function in C's conventions on the system's stack of the thread, as a call that may block. The runtime
// promises to keep it for purego (go.dev/issue/67401).
//
//go:linkname cgocall runtime.cgocall
func cgocall(fn uintptr, arg unsafe.Pointer) int32

// callAll is the address of the assembly that makes the calls of a crossing.
var callAll uintptr

func (c *crossing) run() { cgocall(callAll, unsafe.Pointer(c)) }
