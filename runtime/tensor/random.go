package tensor

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/runtime/internal/engine"
	"github.com/asyncgen/asyncgen/runtime/op"
)

// A Generator is a source of random numbers. It has a stream, which depends on its seed alone (Philox4x32-10 with the
// seed as its key), and a position in the stream, which advances by the number of elements drawn. So the numbers do
// not depend on the device, on what else runs, or on whether they are drawn in one call or several.
//
// Draws are enqueued like any operation, while the position advances at once. Several goroutines may use a Generator;
// they share its stream.
type Generator struct {
	mu  sync.Mutex // guards key and pos
	key uint64
	pos uint64
}

// defaultGenerator is the Generator behind Rand, Randn, Uniform and RandInt.
var defaultGenerator = NewGenerator(0)

// NewGenerator returns a Generator at the beginning of the stream of a seed.
//
//asyncgen:api pure
func NewGenerator(seed uint64) *Generator { return &Generator{key: seed} }

// DefaultGenerator returns the Generator that [Rand], [Randn], [Uniform] and [RandInt] draw from.
//
//asyncgen:api pure
func DefaultGenerator() *Generator { return defaultGenerator }

// Cells returns g as the only cell, so that a Generator can be passed where a value with cells is expected.
//
//asyncgen:api meta
func (g *Generator) Cells() []Cell { return []Cell{g} }

// Seed puts the default generator at the beginning of the stream of a seed. A
// program that does not call it gets the stream of seed 0.
//
//asyncgen:api mutate none
func Seed(seed uint64) {
	refuseCapture("Seed")
	Changing(defaultGenerator)
	defaultGenerator.restore(seed, 0)
}

func (g *Generator) restore(key, pos uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.key, g.pos = key, pos
}

// advance returns the key, and the position before n elements are drawn.
func (g *Generator) advance(n int) (key, pos uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	pos = g.pos
	g.pos += uint64(n)
	return g.key, pos
}

// Value returns the state as an int64 tensor: seed and position. It never
// waits. With Set, the stream continues from there.
//
//asyncgen:api value
func (g *Generator) Value() *Tensor {
	refuseCapture("Value of a Generator")
	key, pos := g.advance(0)
	return upload(device.CPU(), []int64{int64(key), int64(pos)}, device.Shape{2})
}

// Set restores a state that Value returned. It waits until t is computed, which a result of Value always is. If a loop
// runs past its end, t may be cancelled there. Set then does nothing.
//
//asyncgen:api mutate
//go:noinline
func (g *Generator) Set(t *Tensor) {
	if t == nil {
		wrong("Set", op.MistakeNil)
	}
	if t.dtype != Int64 || t.size != 2 {
		wrong("Set", op.MistakeShape+" (the state of a generator is int64[2])", t)
	}
	state, err := sliceContext[int64](context.Background(), t, "Set")
	if errors.Is(err, engine.ErrDiscarded) {
		return
	}
	if err != nil {
		panic(err)
	}
	Changing(g)
	g.restore(uint64(state[0]), uint64(state[1]))
}

// Rand returns float32 numbers from [0, 1) on the default device.
//
//asyncgen:api draw
//go:noinline
func (g *Generator) Rand(shape ...int) *Tensor { return here().draw(g, "Rand", op.Uniform, shape) }

// Randn returns float32 numbers from the normal distribution with mean 0 and
// variance 1, on the default device.
//
//asyncgen:api draw
//go:noinline
func (g *Generator) Randn(shape ...int) *Tensor { return here().draw(g, "Randn", op.Normal, shape) }

// Uniform returns float32 numbers from [lo, hi) on the default device. Rounding may make a number equal to hi.
//
//asyncgen:api draw
//go:noinline
func (g *Generator) Uniform(lo, hi float64, shape ...int) *Tensor {
	return here().uniform(g, lo, hi, shape)
}

// RandInt returns int64 numbers from [lo, hi) on the default device. It panics unless lo < hi.
//
//asyncgen:api draw
//go:noinline
func (g *Generator) RandInt(lo, hi int, shape ...int) *Tensor { return here().ints(g, lo, hi, shape) }

// Rand returns numbers from [0, 1), drawn from the default generator. A float16 or bfloat16 is a float32 that has been
// rounded, which may give 1.
//
//asyncgen:api draw none
//go:noinline
func (m Maker) Rand(shape ...int) *Tensor { return m.draw(defaultGenerator, "Rand", op.Uniform, shape) }

// Randn returns numbers from the normal distribution with mean 0 and variance
// 1, drawn from the default generator.
//
//asyncgen:api draw none
//go:noinline
func (m Maker) Randn(shape ...int) *Tensor {
	return m.draw(defaultGenerator, "Randn", op.Normal, shape)
}

// Uniform returns numbers from [lo, hi), drawn from the default generator. Rounding may make a number equal to hi.
//
//asyncgen:api draw none
//go:noinline
func (m Maker) Uniform(lo, hi float64, shape ...int) *Tensor {
	return m.uniform(defaultGenerator, lo, hi, shape)
}

// RandInt returns int64 numbers from [lo, hi), drawn from the default generator. It panics unless lo < hi.
//
//asyncgen:api draw none
//go:noinline
func (m Maker) RandInt(lo, hi int, shape ...int) *Tensor {
	return m.ints(defaultGenerator, lo, hi, shape)
}

// Rand returns float32 numbers from [0, 1) on the default device, drawn from
// the default generator.
//
//asyncgen:api draw none
//go:noinline
func Rand(shape ...int) *Tensor { return here().draw(defaultGenerator, "Rand", op.Uniform, shape) }

// Randn returns float32 numbers from the normal distribution with mean 0 and
// variance 1 on the default device, drawn from the default generator.
//
//asyncgen:api draw none
//go:noinline
func Randn(shape ...int) *Tensor { return here().draw(defaultGenerator, "Randn", op.Normal, shape) }

// Uniform returns float32 numbers from [lo, hi) on the default device, drawn from the default generator. Rounding may
// make a number equal to hi.
//
//asyncgen:api draw none
//go:noinline
func Uniform(lo, hi float64, shape ...int) *Tensor {
	return here().uniform(defaultGenerator, lo, hi, shape)
}

// RandInt returns int64 numbers from [lo, hi) on the default device, drawn from the default generator. It panics
// unless lo < hi.
//
//asyncgen:api draw none
//go:noinline
func RandInt(lo, hi int, shape ...int) *Tensor { return here().ints(defaultGenerator, lo, hi, shape) }

func (m Maker) draw(g *Generator, name string, d *op.Def, shape []int) *Tensor {
	a := op.Attr{Shape: checked(name, shape), DType: m.dtype.Wide()}
	if !d.Types.Has(m.dtype) {
		wrong(name, op.MistakeType+" (it takes "+d.Types.String()+")")
	}
	Changing(g)
	a.Key, a.Pos = g.advance(a.Shape.Size())
	return m.convert(g.drawn(create(d, a, m.dev)))
}

// drawn returns t, which was drawn from g. A step that is captured draws anew in each run.
func (g *Generator) drawn(t *Tensor) *Tensor {
	if c := eng().Capturing(); c != nil {
		n := t.size
		c.Live(func() [2]uint64 {
			Changing(g)
			key, pos := g.advance(n)
			return [2]uint64{key, pos}
		})
	}
	return t
}

func (m Maker) uniform(g *Generator, lo, hi float64, shape []int) *Tensor {
	wide := Maker{m.dev, m.dtype}
	if m.dtype.IsFloat() {
		wide.dtype = m.dtype.Wide() // so that it is rounded once
	}
	u := wide.draw(g, "Uniform", op.Uniform, shape)
	defer u.letGo()
	return m.convert(elementwise(op.Scale, [2]float64{hi - lo, lo}, operands{u}, false))
}

func (m Maker) ints(g *Generator, lo, hi int, shape []int) *Tensor {
	a := op.Attr{Shape: checked("RandInt", shape), DType: Int64, From: lo, To: hi}
	if lo >= hi {
		panic(&Mistake{Op: "RandInt", Text: fmt.Sprintf("%s: from %d to %d", op.MistakeRange, lo, hi)})
	}
	Changing(g)
	a.Key, a.Pos = g.advance(a.Shape.Size())
	return g.drawn(create(op.Ints, a, m.dev))
}
