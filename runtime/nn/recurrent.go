package nn

import (
	"fmt"
	"math"
	"strconv"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/kernel"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// LSTM returns layers with a long short-term memory of hidden elements (Hochreiter and Schmidhuber
// 1997; Gers, Schmidhuber and Cummins 2000). Each layer gets the outputs of the one before. Sequences
// are [N T C]: N samples, T steps, C features.
//
//	i, f, o = σ(x·W + b + h·U + d)   of each gate
//	g       = tanh(x·W + b + h·U + d)
//	c       = f·c + i·g
//	h       = o·tanh(c)
//
// The parameters of layer l are called weight_ih_l0, weight_hh_l0, bias_ih_l0 and bias_hh_l0, with l
// for the 0, as in PyTorch, and have the gates i, f, g and o side by side. The weights W and U have the
// shapes (in, 4·hidden) and (hidden, 4·hidden), and PyTorch's the transposed ones. At the first Forward
// all are drawn from the default generator, uniformly from -r to r with r = 1/sqrt(hidden). An [Init]
// may draw them otherwise, each by itself.
//
//asyncgen:api pure
func LSTM(hidden, layers int, how ...Init) *Recurrent {
	return newRecurrent("LSTM", 4, hidden, layers, how)
}

// GRU is [LSTM] with gated recurrent units (Cho et al. 2014), and the gates r, z and n side by side:
//
//	r, z = σ(x·W + b + h·U + d)   of each gate
//	n    = tanh(x·W + b + r·(h·U + d))
//	h    = (1-z)·n + z·h
//
//asyncgen:api pure
func GRU(hidden, layers int, how ...Init) *Recurrent {
	return newRecurrent("GRU", 3, hidden, layers, how)
}

// RNN is [LSTM] with the simplest units (Elman 1990): h = tanh(x·W + b + h·U + d).
//
//asyncgen:api pure
func RNN(hidden, layers int, how ...Init) *Recurrent {
	return newRecurrent("RNN", 1, hidden, layers, how)
}

// Bidirectional returns layers such as those of r, with parameters of their own, that go over sequences
// in both directions (Schuster and Paliwal 1997). Each layer has two halves: one begins with the first
// step, the other with the last. Their outputs lie side by side, as [N T 2·hidden]. Parameters of the
// other half are called weight_ih_l0_reverse and so on. A [Hidden] has rows for both halves of the
// first layer, then for those of the second.
//
//	nn.Bidirectional(nn.LSTM(128, 2))
//
//asyncgen:api pure
func Bidirectional(r *Recurrent) *Recurrent {
	both := newRecurrent(r.name, r.gates, r.hidden, r.layers, []Init{r.init})
	both.halves = 2
	both.cells = cells{}
	both.add("")
	both.add("_reverse")
	return both
}

func newRecurrent(name string, gates, hidden, layers int, how []Init) *Recurrent {
	if hidden < 1 || layers < 1 {
		wrong(name, "%d elements in each of %d layers", hidden, layers)
	}
	r := &Recurrent{name: name, gates: gates, hidden: hidden, layers: layers, halves: 1, init: optional(name, how), cells: cells{}}
	r.add("")
	return r
}

// add adds the parameters of one half of each layer, whose names end so.
func (r *Recurrent) add(end string) {
	in, out := -1, r.gates*r.hidden
	for l := range r.layers {
		at := strconv.Itoa(l) + end
		r.cells["weight_ih_l"+at], r.cells["bias_ih_l"+at] = r.init.params([]int{in, out}, []int{out})
		r.cells["weight_hh_l"+at], r.cells["bias_hh_l"+at] = r.init.params([]int{r.hidden, out}, []int{out})
		in = r.halves * r.hidden
	}
}

// A Recurrent consists of layers of [LSTM], [GRU] or [RNN].
type Recurrent struct {
	place
	name          string
	gates, hidden int
	layers        int
	halves        int // of each layer: 2 if it is bidirectional
	init          Init
	cells
}

// cells are parameters by their names.
type cells map[string]*Param

// A Hidden is the state of a [Recurrent] after a step. H has the last outputs of each layer, and C the
// memory of an LSTM, both of shape [layers N hidden]; for other kinds of layers C is nil. The zero
// Hidden is the state at the beginning, which is all 0. [Bidirectional] layers have two rows each.
type Hidden struct{ H, C *tensor.Tensor }

// Forward implements [Module]: it returns the outputs [N T hidden] of the last layer, or
// [N T 2·hidden] if it is [Bidirectional], for sequences x of shape [N T C].
//
//asyncgen:api op recv
//go:noinline
func (r *Recurrent) Forward(x *tensor.Tensor) *tensor.Tensor {
	y, end := r.Run(x, Hidden{})
	end.dead()
	return y
}

// Run returns the outputs of the last layer for sequences x of shape [N T C], which begin in the given
// state, and the state at their end. Gradients go through states: a program that goes on from state to
// state without end detaches them.
//
//	state = nn.Hidden{H: state.H.Detach(), C: state.C.Detach()}
//
//asyncgen:api op recv
//go:noinline
func (r *Recurrent) Run(x *tensor.Tensor, from Hidden) (y *tensor.Tensor, end Hidden) {
	defer inLayer(r)
	r.mustRun(x, from)
	hs, cs := make([]*tensor.Tensor, r.layers*r.halves), make([]*tensor.Tensor, r.layers*r.halves)
	y = x
	for l := range r.layers {
		outputs := make([]*tensor.Tensor, r.halves)
		for half := range outputs {
			i := l*r.halves + half
			h, c := r.initial(from.H, x, i), (*tensor.Tensor)(nil)
			if r.gates == 4 {
				c = r.initial(from.C, x, i)
			}
			outputs[half], hs[i], cs[i] = r.half(l, half == 1, y, h, c)
		}
		if l > 0 {
			tensor.Dead(y)
		}
		y = outputs[0]
		if r.halves == 2 {
			y = tensor.Concat(-1, outputs...)
			tensor.Dead(outputs...)
		}
	}
	end.H = tensor.Stack(0, hs...)
	tensor.Dead(hs...)
	if r.gates == 4 {
		end.C = tensor.Stack(0, cs...)
		tensor.Dead(cs...)
	}
	r.saw(y)
	return y, end
}

// mustRun panics unless x and from fit the layers.
func (r *Recurrent) mustRun(x *tensor.Tensor, from Hidden) {
	if x.Rank() != 3 || x.Dim(1) == 0 {
		wrong(r.name, "the input has shape %v, want [N T C], with a step at least", x.Shape())
	}
	for _, s := range []*tensor.Tensor{from.H, from.C} {
		if want := (device.Shape{r.layers * r.halves, x.Dim(0), r.hidden}); s != nil && !s.Shape().Equal(want) {
			wrong(r.name, "the state has shape %v, want %v", s.Shape(), want)
		}
	}
}

// initial returns row i of the state at the beginning.
func (r *Recurrent) initial(s, x *tensor.Tensor, i int) *tensor.Tensor {
	if s == nil {
		return tensor.On(x.Device()).As(x.DType()).Zeros(x.Dim(0), r.hidden)
	}
	return s.Row(i)
}

// half returns the outputs of one half of layer l, and the state after its last step. If back is set,
// it goes from the last step to the first. It lets go of h and c.
func (r *Recurrent) half(l int, back bool, x, h, c *tensor.Tensor) (y, lastH, lastC *tensor.Tensor) {
	w, u, b, d := r.params(l, back, x)
	inputs := affineOf(x, w, b) // of all steps at once
	ys := make([]*tensor.Tensor, x.Dim(1))
	for i := range ys {
		t := i
		if back {
			t = len(ys) - 1 - i
		}
		step := inputs.Slice(1, t, t+1)
		in := step.Squeeze(1)
		again := affineOf(h, u, d)
		nextH, nextC := r.step(in, again, h, c)
		tensor.Dead(step, in, again)
		if i == 0 {
			tensor.Dead(h)
		}
		if c != nil {
			tensor.Dead(c)
		}
		h, c, ys[t] = nextH, nextC, nextH
	}
	y, lastH = tensor.Stack(1, ys...), h.As(h.DType())
	tensor.Dead(ys...)
	tensor.Dead(inputs)
	for _, p := range []*tensor.Tensor{w, u, b, d} {
		if p != nil {
			tensor.Dead(p)
		}
	}
	return y, lastH, c
}

// affineOf returns x·w + b, where b may be nil.
func affineOf(x, w, b *tensor.Tensor) *tensor.Tensor {
	if b == nil {
		return x.MatMul(w)
	}
	return x.Linear(w, b)
}

// step returns the state after a step, from what the input and the state before give for each gate.
func (r *Recurrent) step(in, back, h, c *tensor.Tensor) (nextH, nextC *tensor.Tensor) {
	switch r.gates {
	case 1:
		return tanhOfSum.Of(in, back), nil
	case 3:
		x, b := r.split(in), r.split(back)
		defer dead(x, b)
		reset := sigmoidOfSum.Of(x[0], b[0])
		update := sigmoidOfSum.Of(x[1], b[1])
		candidate := gruCandidate.Of(x[2], reset, b[2])
		defer tensor.Dead(reset, update, candidate)
		return gruMix.Of(update, candidate, h), nil
	}
	sum := in.Add(back)
	defer tensor.Dead(sum)
	gates := r.split(sum)
	defer dead(gates)
	added := lstmAdded.Of(gates[0], gates[2])
	nextC = lstmMemory.Of(gates[1], c, added)
	tensor.Dead(added)
	return lstmAdded.Of(gates[3], nextC), nextC
}

// split returns views of the gates that lie side by side in x.
func (r *Recurrent) split(x *tensor.Tensor) []*tensor.Tensor {
	gates := make([]*tensor.Tensor, r.gates)
	for i := range gates {
		gates[i] = x.Slice(-1, i*r.hidden, (i+1)*r.hidden)
	}
	return gates
}

func dead(lists ...[]*tensor.Tensor) {
	for _, ts := range lists {
		tensor.Dead(ts...)
	}
}

func (s Hidden) dead() {
	for _, t := range []*tensor.Tensor{s.H, s.C} {
		if t != nil {
			tensor.Dead(t)
		}
	}
}

// What units compute from element to element.
var (
	// tanhOfSum is h of an RNN, of what the input and the state give.
	tanhOfSum = tensor.Fuse("RNN", 2, func(x ...*kernel.Expr) *kernel.Expr { return kernel.Tanh(kernel.Add(x[0], x[1])) })
	// sigmoidOfSum is a gate of what the input and the state give for it.
	sigmoidOfSum = tensor.Fuse("gate", 2, func(x ...*kernel.Expr) *kernel.Expr { return sigmoid(kernel.Add(x[0], x[1])) })
	// gruCandidate is n of the inputs, r, and the state's.
	gruCandidate = tensor.Fuse("GRU", 3, func(x ...*kernel.Expr) *kernel.Expr {
		return kernel.Tanh(kernel.Add(x[0], kernel.Mul(x[1], x[2])))
	})
	// gruMix is h of z, n and the h before.
	gruMix = tensor.Fuse("GRU", 3, func(x ...*kernel.Expr) *kernel.Expr {
		return kernel.Add(kernel.Mul(kernel.Sub(number(1, x[0]), x[0]), x[1]), kernel.Mul(x[0], x[2]))
	})
	// lstmAdded is σ(i)·tanh(g), and h of o and c.
	lstmAdded = tensor.Fuse("LSTM", 2, func(x ...*kernel.Expr) *kernel.Expr {
		return kernel.Mul(sigmoid(x[0]), kernel.Tanh(x[1]))
	})
	// lstmMemory is c of f, the c before, and what is added.
	lstmMemory = tensor.Fuse("LSTM", 3, func(x ...*kernel.Expr) *kernel.Expr {
		return kernel.Add(kernel.Mul(sigmoid(x[0]), x[1]), x[2])
	})
)

// sigmoid is 1 / (1 + exp(-x)), by a tangent, whose derivative is finite everywhere.
func sigmoid(x *kernel.Expr) *kernel.Expr {
	half := number(0.5, x)
	return kernel.Add(half, kernel.Mul(half, kernel.Tanh(kernel.Mul(half, x))))
}

// params returns the values of the parameters of one half of layer l, whose input is x. Those of biases
// are nil if there are none.
func (r *Recurrent) params(l int, back bool, x *tensor.Tensor) (w, u, b, d *tensor.Tensor) {
	at := strconv.Itoa(l)
	if back {
		at += "_reverse"
	}
	of := [4]*Param{r.cells["weight_ih_l"+at], r.cells["weight_hh_l"+at], r.cells["bias_ih_l"+at], r.cells["bias_hh_l"+at]}
	if !areSet(of[:]...) {
		bound := 1 / math.Sqrt(float64(r.hidden))
		all, in, out := Uniform(-bound, bound), x.Dim(-1), r.gates*r.hidden
		set(of[0], r.init.Weight, all, likeInput(x), in, r.hidden, in, out)
		set(of[1], r.init.Weight, all, likeInput(x), r.hidden, r.hidden, r.hidden, out)
		set(of[2], r.init.Bias, all, likeInput(x), in, r.hidden, out)
		set(of[3], r.init.Bias, all, likeInput(x), r.hidden, r.hidden, out)
	}
	var values [4]*tensor.Tensor
	for i, p := range of {
		if p != nil {
			values[i] = p.Value()
		}
	}
	return values[0], values[1], values[2], values[3]
}

// String is the call that makes such layers.
//
//asyncgen:api meta
func (r *Recurrent) String() string {
	call := fmt.Sprintf("%s(%d, %d%s)", r.name, r.hidden, r.layers, r.init.words())
	if r.halves == 2 {
		call = "Bidirectional(" + call + ")"
	}
	return call
}

func (r *Recurrent) isDiscreet() bool { return true }

// Params implements [Module].
//
//asyncgen:api meta
func (r *Recurrent) Params() []*Param { return Params(r) }
