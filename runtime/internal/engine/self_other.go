//go:build !amd64

package engine

import "runtime"

// self identifies the calling goroutine among those that there are now. It takes the number
// from a stack trace, as there is no other way in Go.
func self() uintptr {
	var text [64]byte // "goroutine 123 [running]:..."
	n := uintptr(0)
	for _, c := range text[len("goroutine "):runtime.Stack(text[:], false)] {
		if c < '0' || c > '9' {
			break
		}
		n = n*10 + uintptr(c-'0')
	}
	return n
}
