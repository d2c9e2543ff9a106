// Package dl opens shared libraries of the system at run time: the drivers of
// devices. It calls nothing in them, see package ffi.
//
// A library is named as the system's linker knows it ("libOpenCL.so.1") or by an absolute path,
// never relative to where the program happens to run. What could not be opened, or lacks a symbol,
// is an error that names every library tried.
//
// A program that imports this package is linked dynamically, even without cgo.
package dl

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
)

// A Library is one that was opened. It stays so: drivers have threads of their own, which nobody can call back.
type Library struct {
	Name   string // as Open was given it
	handle uintptr
}

// Open opens the first of the libraries that can be. The error has a line for each, and why it could not be.
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
