package nn

import (
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// Stateful is what has cells beside its fields: an optimiser, a generator.
type Stateful interface {
	// Cells lists all that its results depend on and that changes, in an order that never changes.
	//
	//asyncgen:api meta
	Cells() []tensor.Cell
}

// Cells lists the cells of m and of its parts: parameters and buffers in the order of [Named], and
// among them others in its fields, such as generators. It does not call their methods Cells, so that
// such a method may call it.
//
// Cells panics if the method Params of m lists a parameter that is in no field.
//
//asyncgen:api meta 0
func Cells(m any) []tensor.Cell {
	if r, ok := m.(*Replicas); ok {
		return r.Cells()
	}
	list := mustFind("Cells", m)
	cells := make([]tensor.Cell, 0, len(list))
	for _, p := range list {
		cells = append(cells, p.value.(tensor.Cell))
	}
	return cells
}

// A State is what the cells of a model held at one time. Restore makes them hold it again.
type State = tensor.State

// Snapshot returns what the cells of m, a module, and of more, hold now: parameters with their
// gradients, buffers, the settings of an optimiser, the position of a generator
// ([tensor.DefaultGenerator] is what layers draw from). It costs a few handles: nothing is copied,
// enqueued or waited for.
//
//	best := nn.Snapshot(net, opt)
//	...
//	best.Restore()
//
//asyncgen:api value 0
func Snapshot(m any, more ...Stateful) State {
	cells := Cells(m)
	for _, s := range more {
		cells = append(cells[:len(cells):len(cells)], s.Cells()...)
	}
	return tensor.Snapshot(cells...)
}
