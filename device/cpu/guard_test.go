//go:build unix

package cpu

import (
	"os"
	"testing"
	"unsafe"

	"github.com/asyncgen/asyncgen/device"
	"golang.org/x/sys/unix"
)

// guarded returns memory between two pages that can't be touched, and what gives it back: it ends where the
// second begins if atEnd, else it begins where the first ends.
func guarded(t *testing.T, bytes int64, atEnd bool) (b *device.Buffer, free func()) {
	page := int64(os.Getpagesize())
	inner := (max(bytes, 1) + page - 1) / page * page
	mem, err := unix.Mmap(-1, 0, int(inner+2*page), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	for _, guard := range [][]byte{mem[:page], mem[page+inner:]} {
		if err := unix.Mprotect(guard, unix.PROT_NONE); err != nil {
			t.Fatal(err)
		}
	}
	at := page
	if atEnd {
		at += inner - bytes
	}
	return &device.Buffer{Ptr: unsafe.Pointer(&mem[at]), Bytes: bytes}, func() {
		if err := unix.Munmap(mem); err != nil {
			t.Error(err)
		}
	}
}
