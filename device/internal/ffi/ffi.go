// Package ffi calls C functions whose addresses are known, without cgo: a list of them in one crossing from Go
// to C, which costs more than most calls themselves, and without allocating.
//
// It converts nothing. Arguments are machine words, integers or addresses, and so is the result;
// floating-point numbers can't be passed. The memory that an address leads to is the caller's
// affair, as Go sees no pointer in a word: it must be on the heap, whose objects do not move, or
// C's, and something must keep it alive (runtime.KeepAlive) until C does not use it any more.
//
// On amd64, but for Windows, the calls are made by a piece of assembly of our own that Go's runtime runs on a stack
// that is large enough for C. Elsewhere each call is a crossing.
package ffi

import "sync"

// MaxArgs is how many arguments a Call has room for.
const MaxArgs = 12

// A Call is one call of a C function. Its layout is known to ffi_amd64.s.
type Call struct {
	Fn     uintptr
	Args   [MaxArgs]uintptr
	Result uintptr
}

// Status is the result of a function that returns a C int.
func (c *Call) Status() int32 { return int32(c.Result) }

// A List is calls to be made one after the other. The zero List is empty. A List must be on the
// heap; it is used by one goroutine at a time.
type List struct {
	crossing crossing
	calls    []Call
}

// A crossing is what the assembly reads and writes; its layout is known there.
type crossing struct {
	calls *Call
	n     uintptr // how many there are
	stop  uintptr // 1: behind the first whose Status is not 0
	done  uintptr // calls that were made
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

// Len is how many calls there are.
func (l *List) Len() int { return len(l.calls) }

// At returns call i.
func (l *List) At(i int) *Call { return &l.calls[i] }

// Reset removes all calls.
func (l *List) Reset() { l.calls = l.calls[:0] }

// Run makes the calls from the given one on. It stops when one has a Status other than 0, whose
// index it returns; Len means that there is none.
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

// Do makes one call, and returns its result.
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
