package tensor

import (
	"github.com/asyncgen/asyncgen/runtime/internal/engine"
	"github.com/asyncgen/asyncgen/runtime/op"
)

// A Cell holds a tensor, which can be replaced by another: a parameter, running statistics, the state of a generator.
type Cell interface {
	// Value returns the tensor that the cell holds now. It does not wait.
	//
	//asyncgen:api value
	Value() *Tensor
	// Set makes the cell hold t. To call Value or Set at the same time in another goroutine is a data race, as with a
	// variable. A goroutine that uses values while others change takes them from a Frozen cell or a frozen model
	// (nn.Frozen), made before.
	//
	//asyncgen:api mutate
	Set(t *Tensor)
}

var (
	_ Cell = (*Param)(nil)
	_ Cell = (*Buffer)(nil)
	_ Cell = (*Generator)(nil)
)

// A Buffer is a Cell for state of a model that is not trained, such as running statistics. Its value is never tracked,
// so gradients end there, and optimisers do not change it.
//
// Several goroutines may call Value at the same time. To call Set at the same time as Value or Set is a data race, as
// with a variable. A goroutine that uses the value while another sets it takes it from a copy that [Buffer.Frozen]
// returned before.
type Buffer struct {
	value  *Tensor // untracked
	frozen bool
}

// NewBuffer returns a Buffer that holds t's elements, or nothing yet if t is nil.
//
//asyncgen:api pure
func NewBuffer(t *Tensor) *Buffer {
	b := &Buffer{}
	if t != nil {
		b.Set(t)
	}
	return b
}

// IsSet reports whether the Buffer has a value.
//
//asyncgen:api value
func (b *Buffer) IsSet() bool {
	see(b)
	return b.value != nil
}

// IsFrozen reports whether the Buffer can't be Set: see [Buffer.Frozen].
//
//asyncgen:api pure
func (b *Buffer) IsFrozen() bool { return b.frozen }

// Value returns the tensor that the Buffer holds now. It panics if there is none.
//
//asyncgen:api value
func (b *Buffer) Value() *Tensor {
	see(b)
	if b.value == nil {
		wrong("Value", op.MistakeNoBuffer)
	}
	return b.value.another()
}

// Set gives the Buffer the elements of t as its value. It panics if the Buffer
// is frozen.
//
//asyncgen:api mutate
func (b *Buffer) Set(t *Tensor) {
	if t == nil {
		wrong("Set", op.MistakeNil)
	}
	if b.frozen {
		wrong("Set", op.MistakeFrozen, t)
	}
	t.mustLive("Set")
	Changing(b)
	old := b.value
	b.value = t.eager()
	b.value.node = nil
	old.letGo()
}

// Clone returns a new Buffer that holds b's present value, if b has one.
//
//asyncgen:api value
func (b *Buffer) Clone() *Buffer {
	refuseCapture("Clone of a Buffer")
	return &Buffer{value: b.value.another()}
}

// Frozen returns a new Buffer that holds b's present value and can't be Set. Any number of goroutines may use it, even
// while b changes. Frozen panics if b has no value.
//
//asyncgen:api value
func (b *Buffer) Frozen() *Buffer {
	refuseCapture("Frozen of a Buffer")
	if b.value == nil {
		wrong("Frozen", op.MistakeNoBuffer)
	}
	return &Buffer{value: b.value.another(), frozen: true}
}

// A State records which tensors some cells held at one time. No element is copied, and the tensors need not have been
// computed. The State keeps them alive.
type State struct{ kept []kept }

// kept is what one cell held.
type kept struct {
	cell        Cell
	value, grad *Tensor
	elsewhere   bool   // of a Param: its owner has a gradient
	key, pos    uint64 // of a Generator
}

// Snapshot returns a State of what cells hold now. For a [Param] this includes the gradient; a cell without a value is
// recorded as such. Snapshot enqueues nothing and does not wait. Of cells whose types are not of this package it
// records what their Value method returns.
//
//asyncgen:api value 0
func Snapshot(cells ...Cell) State {
	refuseCapture("Snapshot")
	s := State{make([]kept, len(cells))}
	for i, c := range cells {
		k := kept{cell: c}
		switch c := c.(type) {
		case *Param:
			k.value, k.grad, k.elsewhere = c.value.another(), c.grad.another(), c.hasGradElsewhere
		case *Buffer:
			k.value = c.value.another()
		case *Generator:
			k.key, k.pos = c.advance(0)
		default:
			if v := c.Value(); v != nil {
				v.mustLive("Snapshot")
				k.value = v.eager() // the cell may have that handle itself
			}
		}
		s.kept[i] = k
	}
	return s
}

// Restore makes the cells hold again what they held when Snapshot was called. It can be called any number of times, and
// does not wait. Cells whose types are not of this package get their value by their Set method.
//
//asyncgen:api mutate
func (s State) Restore() {
	refuseCapture("Restore")
	for _, t := range s.Tensors() {
		if t != nil {
			t.mustLive("Restore")
		}
	}
	for _, k := range s.kept {
		Changing(k.cell)
	}
	s.restore()
}

func (s State) restore() {
	for _, k := range s.kept {
		switch c := k.cell.(type) {
		case *Param:
			if !c.frozen { // else it holds it still, and may be in use
				value, grad := c.value, c.grad
				c.value, c.grad, c.hasGradElsewhere = k.value.another(), k.grad.another(), k.elsewhere
				c.sets++
				value.letGo()
				grad.letGo()
			}
		case *Buffer:
			if !c.frozen {
				value := c.value
				c.value = k.value.another()
				value.letGo()
			}
		case *Generator:
			c.restore(k.key, k.pos)
		default:
			c.Set(k.value.another()) // the cell may keep that handle, and let go of it
		}
	}
}

// Tensors returns the tensors that the State keeps. For each cell, in order, it has the value, and for a [Param] then
// the gradient; either is nil if there is none. A [Generator] adds nothing, as its state is two numbers. If one of
// these tensors is declared Dead, Restore panics from then on.
//
//asyncgen:api value
func (s State) Tensors() []*Tensor {
	var ts []*Tensor
	for _, k := range s.kept {
		switch k.cell.(type) {
		case *Param:
			ts = append(ts, k.value, k.grad)
		case *Generator:
		default:
			ts = append(ts, k.value)
		}
	}
	return ts
}

// Changing records the present value of c, which is about to change. A loop that runs past its end can then restore it
// (see asyncrt.Later.BreakIf). The cells of this library call Changing themselves. If you write a type that implements
// Cell and stores a tensor, its Set must call Changing first, and the type must be comparable. A type that only passes
// Set on to other cells need not. While no loop runs past its end, Changing costs one load.
//
//asyncgen:api mutate 0
func Changing(c Cell) {
	if r := recording(); r != nil {
		r.changing(c)
	}
	if g := engine.Default().Changing(c); g != nil {
		g.Save(c, saved{Snapshot(c)})
	}
}

// saved is what one cell held before a loop ran past its end.
type saved struct{ State }

var _ engine.Saved = saved{}

// Restore implements engine.Saved.
func (s saved) Restore() { s.restore() }

// Forget implements engine.Saved.
func (s saved) Forget() {
	for _, t := range s.Tensors() {
		t.letGo()
	}
}

// Bytes implements engine.Saved.
func (s saved) Bytes() (n int64) {
	for _, t := range s.Tensors() {
		if t != nil {
			n += int64(t.size) * int64(t.dtype.Size())
		}
	}
	return n
}
