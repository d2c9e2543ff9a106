//go:build linux && (amd64 || arm64) && !android && !faketime

package dl_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/asyncgen/asyncgen/device/internal/dl"
)

// libm returns the file of a library that can be opened.
func libm(t *testing.T) (file string) {
	t.Helper()
	if _, err := dl.Open("libm.so.6"); err != nil {
		t.Skipf("libm can't be opened here: %v", err)
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Skip(err)
	}
	for line := range bytes.Lines(maps) {
		if fields := strings.Fields(string(line)); len(fields) == 6 && strings.HasPrefix(filepath.Base(fields[5]), "libm") {
			return fields[5]
		}
	}
	t.Skip("libm is nowhere")
	return ""
}

// The linker touches the missing part of a truncated library, which would end the program.
func TestOpenFailsOnWhatWasCutOff(t *testing.T) {
	whole, err := os.ReadFile(libm(t))
	if err != nil {
		t.Fatal(err)
	}
	copied := func(size int) (file string) { // a new file each time, since an opened one stays mapped
		file = filepath.Join(t.TempDir(), "libOpenCL.so.1")
		if err := os.WriteFile(file, whole[:size], 0o644); err != nil {
			t.Fatal(err)
		}
		return file
	}
	for size := 64; size < len(whole); size += 1 + size/8 {
		copied := copied(size)
		if _, err := dl.Open(copied); err == nil || !strings.Contains(err.Error(), copied) {
			if size < len(whole)/2 {
				t.Errorf("with %d bytes of %d: error %v does not name %s", size, len(whole), err, copied)
			}
			break // what is missing now is at the end of the file, and not loaded
		}
	}
	if _, err := dl.Open(copied(len(whole))); err != nil {
		t.Errorf("all of it: %v", err)
	}
}

// The linker would wait forever for somebody to write into the pipe.
func TestOpenDoesNotWaitForAPipe(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "libOpenCL.so.1")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skip(err)
	}
	if _, err := dl.Open(pipe); err == nil || !strings.Contains(err.Error(), "is no file") {
		t.Errorf("error %v", err)
	}
}
