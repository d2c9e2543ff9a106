package tensor

import (
	"github.com/asyncgen/asyncgen/runtime/internal/engine"
	"github.com/asyncgen/asyncgen/runtime/op"
)

// A Cell is something that holds a tensor and can be given another: a
// parameter, running statistics, the state of a generator.
type Cell interface {
	// Value returns the tensor that the cell holds now. It does not wait.
	//
	//asyncgen:api value
	Value() *Tensor
	// Set makes the cell hold t. Nobody may call Value or Set at the same time: that is a data race,
	// as with a variable. What uses the values while they change gets a Frozen cell, or a frozen
	// model (nn.Frozen), before.
	//
	//asyncgen:api mutate
	Set(t *Tensor)
}

var (
	_ Cell = (*Param)(nil)
	_ Cell = (*Buffer)(nil)
	_ Cell = (*Generator)(nil)
)

// A Buffer is a Cell for what a model remembers beside its parameters, such as
// running statistics. Its value is never tracked, so gradients end there, and
// optimisers know nothing of it.
//
// A Buffer may be read by several goroutines. Set beside Value or another Set is a data race, as
// with a variable: a goroutine that uses the value while another one sets it takes it from a
// [Buffer.Frozen].
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
func (b *Buffer) IsSet() bool { return b.value != nil }

// Value returns the tensor that the Buffer holds now. It panics if there is none.
//
//asyncgen:api value
func (b *Buffer) Value() *Tensor {
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
	b.value = t.detached()
	old.letGo()
}

// Clone returns a Buffer of its own that holds the value that b holds now, if any.
//
//asyncgen:api value
func (b *Buffer) Clone() *Buffer { return &Buffer{value: b.value.another()} }

// Frozen returns a Buffer that holds the value that b holds now, for ever: it
// can't be Set. Any number of goroutines may use it, also while b changes. It
// panics if b has no value.
//
//asyncgen:api value
func (b *Buffer) Frozen() *Buffer {
	if b.value == nil {
		wrong("Frozen", op.MistakeNoBuffer)
	}
	return &Buffer{value: b.value.another(), frozen: true}
}

// A State is what some cells held at one time. It is made of handles: no element
// is copied, and whether it has been computed does not matter. It keeps the
// tensors alive.
type State struct{ kept []kept }

// kept is what one cell held.
type kept struct {
	cell        Cell
	value, grad *Tensor
	key, pos    uint64 // of a Generator
}

// Snapshot returns what cells hold now: of a [Param] its gradient as well, of
// one without a value that it has none. It enqueues nothing and does not wait.
// Cells of the types of other packages are kept by their Value.
//
//asyncgen:api value 0
func Snapshot(cells ...Cell) State {
	s := State{make([]kept, len(cells))}
	for i, c := range cells {
		k := kept{cell: c}
		switch c := c.(type) {
		case *Param:
			k.value, k.grad = c.value.another(), c.grad.another()
		case *Buffer:
			k.value = c.value.another()
		case *Generator:
			k.key, k.pos = c.advance(0)
		default:
			if v := c.Value(); v != nil {
				v.mustLive("Snapshot")
				k.value = v.another() // the cell may have that handle itself
			}
		}
		s.kept[i] = k
	}
	return s
}

// Restore makes the cells hold again what they held when the Snapshot was
// taken. It can be called any number of times, and does not wait. Cells of the
// types of other packages are given their value by Set.
//
//asyncgen:api mutate
func (s State) Restore() {
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
				c.value, c.grad = k.value.another(), k.grad.another()
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

// Tensors returns the tensors that the State keeps, cell after cell: for each its
// value, for a [Param] its gradient after that, nil where there is none. A
// [Generator] has none: its state is two numbers. Once one of them is declared
// Dead, Restore panics.
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

// Changing says that c is about to be given another value. A loop that runs past its end then gives
// back to c what it holds now (see asyncrt.Later.BreakIf). The cells of this library say so
// themselves. A type of one's own that is a Cell, and not made of others, calls it first in Set; it
// has to be comparable. It costs a load if no loop runs past its end.
//
//asyncgen:api mutate 0
func Changing(c Cell) {
	if g := engine.Default().Changing(c); g != nil {
		g.Save(c, saved{Snapshot(c)})
	}
}

// saved is what one cell held before a loop has run past its end.
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
