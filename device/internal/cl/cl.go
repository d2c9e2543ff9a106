// Package cl is the part of OpenCL 1.2 that the backend uses: its functions by name, its objects as
// types, and its codes as errors. It makes no decisions: the backend decides what is created, and
// in which order.
//
// All calls go through a Driver, one by one or as a [Batch] in one crossing into C. A test can
// watch each call and make it fail, see [Hook].
package cl

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"unsafe"

	"github.com/asyncgen/asyncgen/device/internal/dl"
	"github.com/asyncgen/asyncgen/device/internal/ffi"
)

// A Driver is an OpenCL library that is open. Several goroutines may use it.
type Driver struct {
	Name    string // of the library
	Hook    Hook   // nil: none; set before the first call
	address [numFns]uintptr
}

// A Hook sees every call of a Driver. It is for tests.
type Hook interface {
	// Before is called before each call of f. If it returns a code other than 0, the call is not made
	// and fails with the code.
	Before(f Fn) Code
	// After gets the arguments and the result of each call that was made.
	After(f Fn, args *[ffi.MaxArgs]uintptr, result uintptr)
}

// Libraries lists the names that Open tries: ASYNCGEN_LIBOPENCL, or else the names of the library
// on this system.
func Libraries() []string {
	if path := os.Getenv("ASYNCGEN_LIBOPENCL"); path != "" {
		return []string{path}
	}
	switch runtime.GOOS {
	case "linux":
		return []string{"libOpenCL.so.1", "libOpenCL.so"}
	case "darwin":
		return []string{"/System/Library/Frameworks/OpenCL.framework/OpenCL"}
	case "windows":
		return []string{"OpenCL.dll"}
	}
	return nil
}

// Open opens the first of Libraries that it can, and finds its functions. The error names all
// libraries tried, or the missing function.
func Open() (*Driver, error) {
	var d *Driver
	var err error
	dl.KeepSignals(func() { d, err = open(Libraries()) })
	return d, err
}

func open(libraries []string) (*Driver, error) {
	if unsafe.Sizeof(uintptr(0)) != 8 {
		return nil, errors.New("OpenCL is used by 64-bit programs only")
	}
	library, err := dl.Open(libraries...)
	if err != nil {
		return nil, err
	}
	d := &Driver{Name: library.Name}
	for f := range numFns {
		if d.address[f], err = library.Symbol(f.String()); err != nil {
			return nil, fmt.Errorf("%s is no library of OpenCL 1.2: %w", library.Name, err)
		}
	}
	return d, nil
}

// do makes one call.
func (d *Driver) do(f Fn, args ...uintptr) uintptr {
	if d.Hook != nil {
		return d.watch(f, args)
	}
	return ffi.Do(d.address[f], args...)
}

// status makes a call of a function that returns a code.
func (d *Driver) status(f Fn, args ...uintptr) error {
	return errorOf(f, Code(int32(d.do(f, args...))))
}

// watch makes a call under the eyes of the hook.
func (d *Driver) watch(f Fn, args []uintptr) uintptr {
	var all [ffi.MaxArgs]uintptr
	copy(all[:], args)
	if code := d.Hook.Before(f); code != 0 {
		if !f.makes() {
			return uintptr(uint32(code))
		}
		*(*Code)(pointer(args[len(args)-1])) = code
		return 0
	}
	result := ffi.Do(d.address[f], args...)
	d.Hook.After(f, &all, result)
	return result
}

// pointer converts an address in C memory or in an Arena to a pointer.
func pointer(address uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&address)) }

// A Batch is a list of calls that are made in one crossing. All are of functions that return a
// code. A Batch must be on the heap. One goroutine at a time uses it.
type Batch struct {
	Driver *Driver
	list   ffi.List
	fns    []Fn
}

// Add appends a call.
func (b *Batch) Add(f Fn, args ...uintptr) {
	b.list.Add(b.Driver.address[f], args...)
	b.fns = append(b.fns, f)
}

// Len returns how many calls there are.
func (b *Batch) Len() int { return len(b.fns) }

// Arg returns argument i of a call.
func (b *Batch) Arg(call, i int) uintptr { return b.list.At(call).Args[i] }

// Fn returns the function of a call.
func (b *Batch) Fn(call int) Fn { return b.fns[call] }

// Set replaces a call.
func (b *Batch) Set(call int, f Fn, args ...uintptr) {
	c := b.list.At(call)
	c.Fn = b.Driver.address[f]
	clear(c.Args[copy(c.Args[:], args):])
	b.fns[call] = f
}

// Reset removes all calls.
func (b *Batch) Reset() {
	b.list.Reset()
	b.fns = b.fns[:0]
}

// Run makes the calls from the given one on, and stops at the first that fails. It returns the
// index of that call and its error, or Len and nil.
func (b *Batch) Run(from int) (int, error) {
	if b.Driver.Hook != nil {
		return b.runSingly(from)
	}
	stopped := b.list.Run(from)
	if stopped == len(b.fns) {
		return stopped, nil
	}
	return stopped, errorOf(b.fns[stopped], Code(b.list.At(stopped).Status()))
}

func (b *Batch) runSingly(from int) (int, error) {
	for i := from; i < len(b.fns); i++ {
		if err := b.Driver.status(b.fns[i], b.list.At(i).Args[:]...); err != nil {
			return i, err
		}
	}
	return len(b.fns), nil
}

// arenas hold the arguments of single calls.
var arenas = sync.Pool{New: func() any { return new(ffi.Arena) }}

// with calls f with an arena for arguments to C. Its memory is valid until f returns.
func with(f func(a *ffi.Arena)) {
	a := arenas.Get().(*ffi.Arena)
	f(a)
	a.Reset()
	arenas.Put(a)
}
