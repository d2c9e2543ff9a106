// Package dl opens shared libraries of the system at run time: the drivers of devices. It calls
// nothing in them; package ffi does.
//
// A library is given by a name that the system's linker knows ("libOpenCL.so.1") or by an absolute
// path, never relative to the working directory. If no library can be opened, or a symbol is
// missing, the error names every library tried.
//
// A program that imports this package is linked dynamically, even without cgo.
package dl

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
)

// A Library is a shared library that is open. It is never closed, as drivers have threads of their
// own.
type Library struct {
	Name   string // as given to Open
	handle uintptr
}

// Open opens the first of the libraries that it can. The error has a line for each, with the
// reason.
func Open(names ...string) (*Library, error) {
	failed := errNoName
	for _, name := range names {
		handle, err := openNamed(name)
		if err == nil {
			return &Library{Name: name, handle: handle}, nil
		}
		if err = fmt.Errorf("open %s: %w", name, err); failed == errNoName {
			failed = err
		} else {
			failed = errors.Join(failed, err)
		}
	}
	return nil, failed
}

var (
	errNoName   = errors.New("no library is known for this system")
	errRelative = errors.New("neither a name that the system knows nor an absolute path")
)

func openNamed(name string) (uintptr, error) {
	if name == "" || strings.ContainsAny(name, `/\`) && !filepath.IsAbs(name) {
		return 0, errRelative
	}
	return open(name)
}

// Symbol returns the address of a function of l.
func (l *Library) Symbol(name string) (uintptr, error) {
	address, err := symbol(l.handle, name)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", l.Name, err)
	}
	if address == 0 {
		return 0, fmt.Errorf("%s: symbol %s is nothing", l.Name, name)
	}
	return address, nil
}
