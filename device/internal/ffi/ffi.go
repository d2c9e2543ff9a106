// Package ffi calls C functions by their addresses, without cgo and without allocating. It makes a
// list of calls in one crossing from Go to C, as a crossing costs more than most calls.
//
// It converts nothing. Arguments and results are machine words: integers or addresses.
// Floating-point numbers can't be passed. Go sees no pointer in a word, so the caller is
// responsible for the memory at an address. It must be C's, or on the heap, whose objects do not
// move, and the caller must keep it alive (runtime.KeepAlive) as long as C uses it.
//
// On amd64, except on Windows, assembly of our own makes the calls; Go's runtime runs it on a stack
// that is large enough for C. Elsewhere each call is a crossing.
package ffi

import "sync"

// MaxArgs is the most arguments of a Call.
const MaxArgs = 12

// A Call is one call of a C function. ffi_amd64.s depends on its layout.
type Call struct {
	Fn     uintptr
	Args   [MaxArgs]uintptr
	Result uintptr
}

// Status returns the result of a function that returns a C int.
func (c *Call) Status() int32 { return int32(c.Result) }

// A List is calls that are made one after the other. The zero List is empty. A List must be on the
// heap. One goroutine at a time uses it.
type List struct {
	crossing crossing
	calls    []Call
}

// A crossing is what the assembly reads and writes. ffi_amd64.s depends on its layout.
type crossing struct {
	calls *Call
	n     uintptr // how many calls there are
	stop  uintptr // 1: stop after the first call whose Status is not 0
	done  uintptr // how many calls were made
}

// Add appends a call. The Call that it returns may be changed until the next Add.
func (l *List) Add(fn uintptr, args ...uintptr) *Call {
	if len(l.calls) < cap(l.calls) {
		l.calls = l.calls[:len(l.calls)+1]
	} else {
		l.calls = append(l.calls, Call{})
	}
	c := &l.calls[len(l.calls)-1]
	c.Fn = fn
	clear(c.Args[copy(c.Args[:], args):])
	return c
}

// Len returns how many calls there are.
func (l *List) Len() int { return len(l.calls) }

// At returns call i.
func (l *List) At(i int) *Call { return &l.calls[i] }

// Reset removes all calls.
func (l *List) Reset() { l.calls = l.calls[:0] }

// Run makes the calls from the given one on. It stops after the first whose Status is not 0, and
// returns its index, or Len if there is none.
func (l *List) Run(from int) int {
	if from == len(l.calls) {
		return from
	}
	l.crossing = crossing{calls: &l.calls[from], n: uintptr(len(l.calls) - from), stop: 1}
	l.cross()
	last := from + int(l.crossing.done) - 1
	if l.calls[last].Status() != 0 {
		return last
	}
	return last + 1
}

// cross makes the calls of l.crossing.
func (l *List) cross() { l.crossing.run() }

var lists = sync.Pool{New: func() any { return new(List) }}

// Do makes one call and returns its result.
func Do(fn uintptr, args ...uintptr) uintptr {
	l := lists.Get().(*List)
	l.Reset()
	c := l.Add(fn, args...)
	l.crossing = crossing{calls: c, n: 1}
	l.cross()
	result := c.Result
	lists.Put(l)
	return result
}
