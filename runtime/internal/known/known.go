// Package known keeps numbers that a device may still be computing, for what shows or records them when they are
// known. Nothing in it waits but [Number.Wait].
package known

import (
	"context"
	"fmt"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// A Number is a number of the program, or one that a device may still be computing. It is used by one goroutine at a
// time.
type Number struct {
	t       *tensor.Tensor // a handle of its own; nil if the number is known
	fetched bool           // t is a copy in memory that the host reaches
	v       float64
	single  bool // it was computed as a float of at most 32 bits
	err     error
}

// Of returns the number that v is: a tensor with one element, or a number of Go. It keeps a handle of its own of a
// tensor, without its history, so that the program may declare its handle dead. Of panics with a [tensor.Mistake] of
// the package and function with the given names if v is nothing of these. It enqueues nothing.
func Of(pkg, fn string, v any) Number {
	switch v := v.(type) {
	case *tensor.Tensor:
		if v == nil {
			wrong(pkg, fn, "the tensor is nil")
		}
		v.Ready() // panics if the handle is dead, or that of a row of a batch
		if v.Size() != 1 {
			panic(&tensor.Mistake{Package: pkg, Op: fn, Text: "a tensor with one element is needed", Shapes: []device.Shape{v.Shape()}, DTypes: []device.DType{v.DType()}})
		}
		return Number{t: v.Detach(), single: v.DType().IsFloat() && v.DType() != tensor.Float64}
	case float64:
		return Number{v: v}
	case float32:
		return Number{v: float64(v), single: true}
	case int:
		return Number{v: float64(v)}
	case int64:
		return Number{v: float64(v)}
	case int32:
		return Number{v: float64(v)}
	}
	wrong(pkg, fn, fmt.Sprintf("%T is neither a tensor nor a float64, float32, int, int64 or int32", v))
	panic("unreachable")
}

func wrong(pkg, fn, text string) { panic(&tensor.Mistake{Package: pkg, Op: fn, Text: text}) }

// Fetch enqueues a copy of a number that is in memory which the host can't reach, if there is none yet.
func (n *Number) Fetch() {
	if n.t == nil || n.fetched || n.t.Device().Caps().HostMemory {
		return
	}
	c := n.t.To(device.CPU())
	tensor.Dead(n.t)
	n.t, n.fetched = c, true
}

// Known reports whether the number is known, or will never be because its operation failed. It never waits. If the
// number has to be fetched first, and is computed, Known does that.
func (n *Number) Known() bool {
	if n.t == nil {
		return true
	}
	if !n.t.Ready() {
		return false
	}
	if n.Fetch(); !n.t.Ready() {
		return false
	}
	n.Wait()
	return true
}

// Wait waits until the number is known.
func (n *Number) Wait() {
	if n.t == nil {
		return
	}
	n.v, n.err = n.t.ItemContext(context.Background())
	n.Drop()
}

// Value returns the number, or the error of the operation that should have computed it. The number is known.
func (n *Number) Value() (float64, error) { return n.v, n.err }

// Bits is the number of bits that the number was computed in, 32 or 64, as strconv.FormatFloat takes it.
func (n *Number) Bits() int {
	if n.single {
		return 32
	}
	return 64
}

// Drop forgets the handle of a number that nobody will ask for.
func (n *Number) Drop() {
	if n.t != nil {
		tensor.Dead(n.t)
		n.t = nil
	}
}
