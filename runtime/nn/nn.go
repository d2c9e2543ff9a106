// Package nn provides layers of neural networks and losses.
//
// A [Module] is a function with parameters. Modules call each other, and losses are ordinary functions
// of tensors; what makes a model learn is in package optim.
//
//	net := nn.Sequential(nn.Dense(512), nn.ReLU(), nn.Dense(1))
//	opt := optim.SGD(net.Params(), 0.005)
//	for _, b := range batches {
//		opt.Minimize(nn.MSELoss(net.Forward(b.X), b.Y))
//	}
//
// Modules of one's own are structs with modules in their fields, see [Module]. The names of their
// parameters follow from the fields, see [Named].
//
// A model in use is a [Frozen] one: today's weights, no gradients, no dropout, and safe for any number
// of goroutines while training goes on. [Snapshot] remembers what a model, its optimiser and generators
// hold, to go back to it. Both cost a few handles, as tensors never change.
//
// [DataParallel] trains one model on several devices at once, with results that don't depend on how
// many these are.
//
// A mistake in a layer, such as an input of another width, panics with a [tensor.Mistake] that says
// which layer it is: "(encoder.layers.0, Dense(64))". The name is that of [Named], once Named or [Params]
// was called for the model; before that it is the layer alone.
//
// Nothing in this package waits.
package nn

import (
	"fmt"
	"slices"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// A Module is a part of a model. Any struct with parts in its fields is one if it has these two
// methods; the second one takes a line. [Named], [Cells], [Snapshot], [Frozen] and [Clone] look at its
// fields and need no more.
//
//	type residual struct{ norm, up, down nn.Module }
//
//	func (r *residual) Forward(x *tensor.Tensor) *tensor.Tensor {
//		return x.Add(r.down.Forward(r.up.Forward(r.norm.Forward(x)).GELU()))
//	}
//
//	func (r *residual) Params() []*nn.Param { return nn.Params(r) }
//
// A model whose Forward takes or returns more than one tensor is no Module, but all these functions
// take it as well.
type Module interface {
	// Forward returns the output for a batch of inputs, whose first axis numbers the samples. It
	// enqueues work and does not wait.
	//
	//asyncgen:api op recv
	Forward(x *tensor.Tensor) *tensor.Tensor
	// Params lists the parameters, in an order that never changes, each once, also those that get their
	// value at the first Forward. See the function [Params].
	//
	//asyncgen:api meta
	Params() []*Param
}

// A Param is a weight of a model.
type Param = tensor.Param

// NewParam returns a Param that holds t's elements, for modules of one's own.
//
//asyncgen:api pure
func NewParam(t *tensor.Tensor) *Param { return tensor.NewParam(t) }

// A Buffer is what a model remembers beside its weights.
type Buffer = tensor.Buffer

// NewBuffer returns a Buffer that holds t's elements, for modules of one's own.
//
//asyncgen:api pure
func NewBuffer(t *tensor.Tensor) *Buffer { return tensor.NewBuffer(t) }

// Dense returns a layer that computes x·W + b along the last axis: its input has the shape [... in],
// with any number of axes before the last or none, and its output [... out]. The first input of
// Forward decides how long in is. W, of shape (in, out), is then drawn by [XavierUniform] from the
// default generator, on the device and in the element type of that input; b is 0. An [Init] changes
// this.
//
// The parameters are called weight and bias. PyTorch's weight of a Linear has the shape (out, in): take
// its T().
//
//asyncgen:api pure
func Dense(out int, how ...Init) Module {
	if out < 0 {
		wrong("Dense", "%d outputs", out)
	}
	init := optional("Dense", how)
	weight, bias := init.params([]int{-1, out}, []int{out})
	return &dense{out: out, init: init, weight: weight, bias: bias}
}

type dense struct {
	place
	out          int
	init         Init
	weight, bias *Param // bias is nil if there is none
	relu         bool   // negative numbers of the result are replaced by 0
}

// Forward implements Module.
//
//go:noinline
func (d *dense) Forward(x *tensor.Tensor) *tensor.Tensor {
	defer inLayer(d)
	if !areSet(d.weight, d.bias) {
		d.begin(x)
	}
	w := d.weight.Value()
	defer tensor.Dead(w)
	if d.bias == nil {
		y := x.MatMul(w)
		if d.relu {
			defer tensor.Dead(y)
			y = y.ReLU()
		}
		return y
	}
	b := d.bias.Value()
	defer tensor.Dead(b)
	if d.relu {
		return x.LinearReLU(w, b)
	}
	return x.Linear(w, b)
}

// String is the call that makes such a layer.
func (d *dense) String() string { return fmt.Sprintf("Dense(%d%s)", d.out, d.init.words()) }

func (d *dense) isDiscreet() bool { return true }

// begin draws the weights for inputs like x.
func (d *dense) begin(x *tensor.Tensor) {
	if x.Rank() == 0 {
		wrong("Dense", "the input is a number, want a vector for each sample")
	}
	in := x.Dim(-1)
	set(d.weight, d.init.Weight, XavierUniform(), likeInput(x), in, d.out, in, d.out)
	set(d.bias, d.init.Bias, Zeros(), likeInput(x), in, d.out, d.out)
}

// Params implements Module.
func (d *dense) Params() []*Param { return Params(d) }

// stateless is embedded by layers that consist of nothing but a function of their input.
type stateless struct{}

// Params implements Module.
func (stateless) Params() []*Param { return nil }

func (stateless) isDiscreet() bool { return true }

// ReLU returns a layer without parameters that replaces negative numbers by 0.
//
//asyncgen:api pure
func ReLU() Module { return relu{} }

type relu struct{ stateless }

// Forward implements Module.
//
//go:noinline
func (l relu) Forward(x *tensor.Tensor) *tensor.Tensor {
	defer inLayer(l)
	return x.ReLU()
}

// String is the call that makes such a layer.
func (relu) String() string { return "ReLU()" }

// Sequential returns a Module in which each of ms gets the output of the one before. A mistake of one
// of them names it. Printed, it is a tree of its modules and of the shapes of their parameters.
//
//asyncgen:api pure
func Sequential(ms ...Module) Module { return inTurn("Sequential", ms) }

type sequential []Module

// inTurn returns a sequential of ms for the function with the given name.
func inTurn(name string, ms []Module) sequential {
	for i, m := range ms {
		if m == nil {
			wrong(name, "layer %d is nil", i)
		}
	}
	return append(sequential(nil), ms...)
}

// Forward implements Module.
//
//go:noinline
func (s sequential) Forward(x *tensor.Tensor) *tensor.Tensor {
	isOurs := false // nobody else has x
	at := 0
	defer inPart(s, s, &at)
	for i, m := range s {
		if _, ok := m.(merged); ok {
			continue
		}
		at = i
		y := m.Forward(x)
		isPrivate := isDiscreet(m)
		if isOurs && isPrivate {
			tensor.Dead(x)
		}
		x, isOurs = y, isPrivate
	}
	return x
}

// String draws the modules as a tree, with the shapes of the parameters that have a value.
func (s sequential) String() string { return tree(s) }

func (s sequential) isDiscreet() bool {
	return len(s) > 0 && !slices.ContainsFunc(s, func(m Module) bool { return !isDiscreet(m) })
}

// isDiscreet reports whether Forward of m returns a handle that is new and that nobody else has, and
// whether m neither keeps that of its input nor gives it to others.
func isDiscreet(m Module) bool {
	d, ok := m.(interface{ isDiscreet() bool })
	return ok && d.isDiscreet()
}

// Params implements Module.
func (s sequential) Params() []*Param {
	var all []*Param
	for _, m := range s {
		for _, p := range m.Params() {
			if !slices.Contains(all, p) {
				all = append(all, p)
			}
		}
	}
	return all
}

// mergeReLUs makes dense layers do what the ReLU after them does. Nothing needs to know what a result
// was before: s is frozen, and no gradients are asked for. Each part keeps its place, and so its name.
func (s sequential) mergeReLUs() {
	for i := range len(s) - 1 {
		d, isDense := s[i].(*dense)
		r, isReLU := s[i+1].(relu)
		if isDense && isReLU {
			with := *d // the layer may be in other places, too
			with.relu = true
			s[i], s[i+1] = &with, merged{r}
		}
	}
}

// merged is a ReLU that the layer before it computes.
type merged struct{ relu }
