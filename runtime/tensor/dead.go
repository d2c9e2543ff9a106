package tensor

import (
	"fmt"
	"sync"

	"github.com/asyncgen/asyncgen/runtime/internal/engine"
	"github.com/asyncgen/asyncgen/runtime/op"
)

// Each handle is a holder of its storage, and so is each value that a gradient needs. The library lets go of the
// handles that only it has; the program lets go of its own by Dead. When no holder is left, the memory is given back
// behind the operations that use it. The collector finds handles that are dropped in any other way.

// Dead declares that the program will not use these handles again. Their memory is given back as soon as the operations
// enqueued so far have used it, rather than when the garbage collector finds the handles. Dead does not wait, and
// changes nothing but how much memory is in use. A later use of one of the handles, also in another call of Dead,
// panics with a [*Mistake] that names the line of the first call. Shape, DType and other methods that do not need the
// elements still work.
//
// To declare a handle dead while another goroutine uses it is a data race, like an assignment to a variable that
// another goroutine reads. Give that goroutine a handle of its own first, from Detach or from a frozen model
// (nn.Frozen).
//
// Other handles of the same elements stay alive and keep the memory: views, results of [Tensor.Detach], the value of a
// [Param] that was Set to it, a [State]. A gradient that needs the elements keeps them until Backward.
//
//	h := x.MatMul(w)
//	y := h.Add(b).ReLU()
//	tensor.Dead(h)
//
//asyncgen:api control
//go:noinline
func Dead(ts ...*Tensor) {
	for _, t := range ts {
		if t == nil {
			wrong("Dead", op.MistakeNil)
		}
		t.isRow("Dead") // rows can be declared dead
	}
	var here uint32
	for _, t := range ts {
		if t.isRow("Dead") { // or it may be there twice
			t.drop()
			continue
		}
		if !t.unhold() {
			continue // perhaps the program never gets here
		}
		if here == 0 {
			here = deaths.number(engine.Caller())
		}
		t.dead = here
	}
}

// another returns one more handle of the tensor that t is a handle of; nil for nil.
func (t *Tensor) another() *Tensor {
	if t == nil {
		return nil
	}
	t.hold()
	return t.copied()
}

// copied returns a handle that the caller has counted.
func (t *Tensor) copied() *Tensor {
	u := *t
	u.dead = 0
	return &u
}

// letGo drops a handle that the library has for itself. Nil is no handle.
func (t *Tensor) letGo() {
	switch {
	case t == nil:
	case t.dead&rowBit != 0:
		t.drop()
	default:
		t.unhold()
	}
}

// mustLive panics if the program has said that it does not use t any more, and uses it in name, or
// if t is the row of a VMap.
func (t *Tensor) mustLive(name string) {
	if t.dead != 0 {
		t.resurrected(name)
	}
}

func (t *Tensor) resurrected(name string) {
	if t.dead&rowBit != 0 {
		t.noRow(name)
	}
	text := op.MistakeDead
	if file, line := engine.Line(deaths.caller(t.dead)); line != 0 {
		text = fmt.Sprintf("%s at %s:%d", text, file, line)
	}
	wrong(name, text, t)
}

// deaths numbers the lines that have called Dead, from 1 on: there are few, and a handle has no room for an address.
var deaths callers

type callers struct {
	mu      sync.Mutex // guards the rest
	list    []uintptr
	numbers map[uintptr]uint32
}

func (c *callers) number(caller uintptr) uint32 {
	c.mu.Lock()
	defer c.mu.Unlock()
	n, ok := c.numbers[caller]
	if !ok {
		if c.numbers == nil {
			c.numbers = map[uintptr]uint32{}
		}
		c.list = append(c.list, caller)
		n = uint32(len(c.list))
		c.numbers[caller] = n
	}
	return n
}

func (c *callers) caller(n uint32) uintptr {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.list[n-1]
}
