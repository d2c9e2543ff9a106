package files

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
)

// A source is the contents of a file.
type source interface {
	// bytes returns n bytes from at on, which are in the file. They are valid until close.
	bytes(at, n int64) ([]byte, error)
	size() int64
	close() error
}

// open opens a regular file, or a symbolic link to one, for reading.
func open(path string) (source, error) {
	// Opening something else, such as a pipe, could wait for ever.
	if info, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("files: %w", err)
	} else if !info.Mode().IsRegular() {
		return nil, &FormatError{path, "this is no regular file"}
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("files: %w", err)
	}
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("files: %w", err), f.Close())
	}
	if b, err := mapped(f, info.Size()); err == nil {
		return &mapping{b}, f.Close() // the mapping stays
	}
	return &plain{f, info.Size()}, nil
}

// A mapping is a file in memory.
type mapping struct{ b []byte }

func (m *mapping) bytes(at, n int64) ([]byte, error) { return m.b[at : at+n : at+n], nil }
func (m *mapping) size() int64                       { return int64(len(m.b)) }
func (m *mapping) close() error                      { return unmap(m.b) }

// A plain is a file that is read where it can't be mapped.
type plain struct {
	f      *os.File
	length int64
}

func (p *plain) bytes(at, n int64) ([]byte, error) {
	b := make([]byte, n)
	if _, err := p.f.ReadAt(b, at); err != nil && !(errors.Is(err, io.EOF) && n == 0) {
		return nil, fmt.Errorf("files: %w", err)
	}
	return b, nil
}
func (p *plain) size() int64  { return p.length }
func (p *plain) close() error { return p.f.Close() }

// guarded calls f, which looks at bytes of a source. If the file has become shorter since it was mapped, or can't be
// read, the processor says so in a way that ends programs; guarded returns an error.
func guarded(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			if _, ok := p.(interface {
				error
				Addr() uintptr
			}); !ok {
				panic(p)
			}
			err = malformed("the file has changed while it was read, or the disk has failed")
		}
	}()
	return f()
}
