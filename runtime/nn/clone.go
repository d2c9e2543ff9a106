package nn

import (
	"reflect"
)

// A Cloner is a module that can be cloned. All modules of this package can, and one of the
// program's own clones its parts, parameters and buffers with the [Cloning] that it is given:
//
//	func (n *net) Clone(c *nn.Cloning) nn.Module {
//		return &net{body: c.Module(n.body), scale: c.Param(n.scale)}
//	}
//
// Clones share their generators.
type Cloner interface {
	Module
	// Clone returns the result of the function Clone.
	//
	//asyncgen:api value
	Clone(c *Cloning) Module
}

// Clone returns a copy of m with parameters and buffers of its own. They hold the same values as
// those of m, or none yet, as in m. No element is copied, as tensors never change, and Clone doesn't
// wait. It panics if m, or a part of m, is no [Cloner].
//
//asyncgen:api value 0
func Clone(m Module) Module { return new(Cloning).Module(m) }

// A Cloning is one call of [Clone]. It remembers what it has cloned, so a weight that two layers
// share is shared in the clone as well.
type Cloning struct {
	params  map[*Param]*Param
	buffers map[*Buffer]*Buffer
	modules map[Module]Module // those that are pointers
}

// Module returns the clone of a part of the module.
//
//asyncgen:api value 0
func (c *Cloning) Module(m Module) Module {
	cloner, ok := m.(Cloner)
	if !ok {
		wrong("Clone", "%T has no method Clone(*nn.Cloning) nn.Module", m)
	}
	if reflect.TypeOf(m).Kind() != reflect.Pointer {
		return cloner.Clone(c)
	}
	return once(&c.modules, m, func() Module { return cloner.Clone(c) })
}

// Param returns the clone of a parameter.
//
//asyncgen:api value 0
func (c *Cloning) Param(p *Param) *Param { return once(&c.params, p, p.Clone) }

// Buffer returns the clone of a buffer.
//
//asyncgen:api value 0
func (c *Cloning) Buffer(b *Buffer) *Buffer { return once(&c.buffers, b, b.Clone) }

// once returns what clone has returned when it was called for x.
func once[T comparable](clones *map[T]T, x T, clone func() T) T {
	if have, ok := (*clones)[x]; ok {
		return have
	}
	if *clones == nil {
		*clones = map[T]T{}
	}
	y := clone()
	(*clones)[x] = y
	return y
}
