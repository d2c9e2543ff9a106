//go:build unix

package vec

import (
	"os"
	"syscall"
	"testing"
	"unsafe"
)

// guarded returns memory of the given size between two pages that can't be touched: it ends where the second
// begins if atEnd, else it begins where the first ends.
func guarded(t testing.TB, bytes int, atEnd bool) unsafe.Pointer {
	page := os.Getpagesize()
	inner := (bytes + page - 1) / page * page
	mem, err := syscall.Mmap(-1, 0, inner+2*page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Munmap(mem); err != nil {
			t.Error(err)
		}
	})
	for _, guard := range [][]byte{mem[:page], mem[page+inner:]} {
		if err := syscall.Mprotect(guard, syscall.PROT_NONE); err != nil {
			t.Fatal(err)
		}
	}
	at := page
	if atEnd {
		at += inner - bytes
	}
	return unsafe.Pointer(&mem[at])
}
