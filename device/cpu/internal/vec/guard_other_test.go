//go:build !unix

package vec

import (
	"testing"
	"unsafe"
)

// guarded returns memory of the given size. There are no guard pages here.
func guarded(t testing.TB, bytes int, atEnd bool) unsafe.Pointer {
	return unsafe.Pointer(unsafe.SliceData(make([]uint64, bytes/8+1)))
}
