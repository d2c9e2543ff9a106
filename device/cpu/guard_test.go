//go:build unix

package cpu

import (
	"os"
	"syscall"
	"testing"
	"unsafe"

	"github.com/asyncgen/asyncgen/device"
)

// guarded returns memory between two pages that can't be touched, and what gives it back: it ends where the
// second begins if atEnd, else it begins where the first ends.
func guarded(t *testing.T, bytes int64, atEnd bool) (b *device.Buffer, free func()) {
	page := int64(os.Getpagesize())
	inner := (max(bytes, 1) + page - 1) / page * page
	mem, err := syscall.Mmap(-1, 0, int(inner+2*page), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	for _, guard := range [][]byte{mem[:page], mem[page+inner:]} {
		if err := syscall.Mprotect(guard, syscall.PROT_NONE); err != nil {
			t.Fatal(err)
		}
	}
	at := page
	if atEnd {
		at += inner - bytes
	}
	return &device.Buffer{Ptr: unsafe.Pointer(&mem[at]), Bytes: bytes}, func() {
		if err := syscall.Munmap(mem); err != nil {
			t.Error(err)
		}
	}
}
