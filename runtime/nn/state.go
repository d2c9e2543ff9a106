package nn

import (
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// Stateful is what has cells: a module with more than parameters, an optimiser,
// a generator.
type Stateful interface {
	// Cells lists all that its results depend on and that changes, in an order
	// that never changes.
	//
	//asyncgen:api meta
	Cells() []tensor.Cell
}

// Cells lists the cells of a module: what its method Cells says, or, if it
// has none, its parameters. So a module with a [Buffer], or with parts that may
// have one, needs the method; a [Sequential] has it.
//
//asyncgen:api meta 0
func Cells(m Module) []tensor.Cell {
	if s, ok := m.(Stateful); ok {
		return s.Cells()
	}
	ps := m.Params()
	cells := make([]tensor.Cell, len(ps))
	for i, p := range ps {
		cells[i] = p
	}
	return cells
}

// A State is what the cells of a model held at one time. Restore makes them hold
// it again.
type State = tensor.State

// Snapshot returns what the cells of m, and of more, hold now: parameters with
// their gradients, buffers, the settings of an optimiser, the position of a
// generator ([tensor.DefaultGenerator] is what layers draw from). It costs a few
// handles: nothing is copied, enqueued or waited for.
//
//	best := nn.Snapshot(net, opt)
//	...
//	best.Restore()
//
//asyncgen:api value 0
func Snapshot(m Module, more ...Stateful) State {
	cells := Cells(m)
	for _, s := range more {
		cells = append(cells[:len(cells):len(cells)], s.Cells()...)
	}
	return tensor.Snapshot(cells...)
}

// A Freezer is a module that can be frozen. All modules of this package can, and
// one of the program's own that has parts freezes them with [Frozen], its
// parameters and buffers with their methods Frozen.
type Freezer interface {
	Module
	// Freeze returns what Frozen is to return.
	//
	//asyncgen:api value
	Freeze() Module
}

// Frozen returns m as it is now and as it is used when nothing is to be learnt: its
// parameters and buffers have today's values, for ever and untracked; layers that
// behave differently in training don't. Any number of goroutines may use it,
// also while m is trained further. It costs a few handles, and does not wait.
//
// To use m itself while another goroutine trains it is a data race: Set of a parameter beside its
// Value. So the goroutine that trains m makes the frozen one, and hands it to those that use it:
//
//	var serving atomic.Pointer[nn.Module] // read by handlers of requests
//	...
//	opt.Minimize(loss)
//	now := nn.Frozen(net)
//	serving.Store(&now)
//
// It panics if m, or a part of it, is no [Freezer], or has a parameter without a
// value: call Forward once before.
//
//asyncgen:api value 0
func Frozen(m Module) Module {
	f, ok := m.(Freezer)
	if !ok {
		wrong("Frozen", "%T has no method Freeze() nn.Module", m)
	}
	return f.Freeze()
}
