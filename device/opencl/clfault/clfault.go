// Package clfault lets tests see the calls that package opencl makes of a driver: it has chosen
// ones fail, without making them, and counts what is made and not released. It does not know what a
// program does then; whoever uses it does. Where package fault has whole commands fail, this is
// what is under them.
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
	Invalid     = cl.Code(-30) // CL_INVALID_VALUE, with which a driver finds fault with the call
)

// Calls are the calls of one device. They may be made by several goroutines.
type Calls struct {
	mu   sync.Mutex // guards the rest
	by   map[cl.Fn]int
	made map[uintptr]int
	next int // the number of the next call that can fail, from 1
	fail int // the one that does; 0: none
	code cl.Code
	hit  []string
}

// New returns calls of which none fails.
func New() *Calls { return &Calls{by: map[cl.Fn]int{}, made: map[uintptr]int{}, next: 1} }

// Fail has the n-th call from now on, from 1, fail with a code. Calls that release something are
// not counted and don't fail: nobody could do anything about it. With 0 none fails any more.
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

// Count is how many calls of f there were.
func (c *Calls) Count(f cl.Fn) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.by[f]
}

// Left is how many objects were made, or kept, and not released.
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
