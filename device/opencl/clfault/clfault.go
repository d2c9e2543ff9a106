// Package clfault injects failures into the driver calls of package opencl, for tests. It makes
// chosen calls fail without making them, and counts the objects that are created and not released.
// It does not know what a program should do then; its users do. Package fault is one level higher:
// it makes whole commands fail.
//
//	calls := clfault.New()
//	b, err := opencl.New(0, calls)
//	calls.Fail(17, clfault.OutOfMemory)
package clfault

import (
	"strings"
	"sync"
	"unsafe"

	"github.com/asyncgen/asyncgen/device/internal/cl"
	"github.com/asyncgen/asyncgen/device/internal/ffi"
)

// Codes that calls fail with.
const (
	OutOfMemory = cl.OutOfHostMemory
	Lost        = cl.DeviceNotAvailable
	Invalid     = cl.Code(-30) // CL_INVALID_VALUE: the driver rejects an argument
)

// Calls are the driver calls of one device. Several goroutines may make them.
type Calls struct {
	mu   sync.Mutex      // guards the rest
	by   map[cl.Fn]int   // how many calls of a function there were
	made map[uintptr]int // references to an object that are not released
	next int             // the number of the next call that can fail, from 1
	fail int             // the number of the call that fails; 0: none
	code cl.Code
	hit  []string // the functions that have failed
}

// New returns Calls that never fail.
func New() *Calls { return &Calls{by: map[cl.Fn]int{}, made: map[uintptr]int{}, next: 1} }

// Fail makes the n-th call from now on, from 1, fail with code. With n = 0 no call fails. Calls
// that release something are not counted and don't fail: the caller could do nothing about it.
func (c *Calls) Fail(n int, code cl.Code) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fail, c.code = 0, code
	if n > 0 {
		c.fail = c.next + n - 1
	}
}

// Failed lists the functions whose calls have failed.
func (c *Calls) Failed() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.hit
}

// Count returns how many calls of f there were.
func (c *Calls) Count(f cl.Fn) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.by[f]
}

// Left returns how many references to objects were not released. One released too often counts as
// well.
func (c *Calls) Left() (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, left := range c.made {
		n += max(left, -left)
	}
	return n
}

func releases(f cl.Fn) bool {
	return strings.HasPrefix(f.String(), "clRelease") || f == cl.EnqueueUnmapMemObject
}

// Before implements [cl.Hook].
func (c *Calls) Before(f cl.Fn) cl.Code {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.by[f]++
	if releases(f) {
		return cl.Success
	}
	c.next++
	if c.next-1 != c.fail {
		return cl.Success
	}
	c.hit = append(c.hit, f.String())
	return c.code
}

// After implements [cl.Hook].
func (c *Calls) After(f cl.Fn, args *[ffi.MaxArgs]uintptr, result uintptr) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case f == cl.EnqueueMapBuffer || strings.HasPrefix(f.String(), "clCreate"):
		if result != 0 {
			c.made[result]++
		}
	case f == cl.EnqueueUnmapMemObject:
		c.made[args[2]]--
	case releases(f):
		c.made[args[0]]--
	case f == cl.EnqueueMarkerWithWaitList && result == 0:
		event := args[3]
		c.made[**(**uintptr)(unsafe.Pointer(&event))]++
	}
}
