//go:build unix

package vec

import (
	"os"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// guarded returns memory of the given size between two pages that can't be touched: it ends where the second
// begins if atEnd, else it begins where the first ends.
func guarded(t testing.TB, bytes int, atEnd bool) unsafe.Pointer {
	page := os.Getpagesize()
	inner := (bytes + page - 1) / page * page
	mem, err := unix.Mmap(-1, 0, inner+2*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Munmap(mem); err != nil {
			t.Error(err)
		}
	})
	for _, guard := range [][]byte{mem[:page], mem[page+inner:]} {
		if err := unix.Mprotect(guard, unix.PROT_NONE); err != nil {
			t.Fatal(err)
		}
	}
	at := page
	if atEnd {
		at += inner - bytes
	}
	return unsafe.Pointer(&mem[at])
}
