//go:build (linux || darwin) && (amd64 || arm64) && !android && !ios && !faketime

package dl

import (
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/ebitengine/purego"
)

func open(name string) (uintptr, error) {
	if filepath.IsAbs(name) {
		if err := check(name); err != nil {
			return 0, err
		}
	}
	return purego.Dlopen(name, purego.RTLD_NOW|purego.RTLD_LOCAL)
}

func symbol(handle uintptr, name string) (uintptr, error) { return purego.Dlsym(handle, name) }

// check returns an error for files that would crash or block the program in the system's linker.
// The linker opens anything, even a pipe, and it maps and touches the missing end of a truncated
// library. The linker itself reports other mistakes.
func check(name string) error {
	info, err := os.Stat(name)
	if err != nil {
		return nil
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is no file", name)
	}
	f, err := os.Open(name)
	if err != nil {
		return nil
	}
	defer f.Close()
	if end := endOf(f); end > uint64(info.Size()) {
		return fmt.Errorf("%s was cut off: it has %d bytes of %d", name, info.Size(), end)
	}
	return nil
}

// endOf returns where the loaded part of an ELF file ends, by its program headers, or 0 for files
// of other kinds. See the System V ABI, chapter 5.
func endOf(f io.ReaderAt) (end uint64) {
	const loaded = 1
	var header [64]byte
	if n, _ := f.ReadAt(header[:], 0); n < len(header) || string(header[:6]) != "\x7fELF\x02\x01" {
		return 0
	}
	le := binary.LittleEndian
	table, size, count := le.Uint64(header[32:]), uint64(le.Uint16(header[54:])), uint64(le.Uint16(header[56:]))
	for i := range count {
		var segment [56]byte
		if _, err := f.ReadAt(segment[:], int64(table+i*size)); err != nil {
			return table + count*size
		}
		if le.Uint32(segment[:]) == loaded {
			end = max(end, le.Uint64(segment[8:])+le.Uint64(segment[32:]))
		}
	}
	return end
}
