// Package optim provides optimisers, which give the parameters of a model their next values; schedules of learning
// rates; clipping; averages of weights.
//
//	opt := optim.AdamW(net.Params(), 1e-3, optim.AdamOptions{Decay: 0.1})
//	opt.Schedule = optim.Warmup(100, optim.Cosine(10_000, 0.1))
//	opt.Guard = true
//	for _, b := range batches {
//		opt.ZeroGrad()
//		nn.CrossEntropy(net.Forward(b.X), b.Y).Backward()
//		optim.ClipNorm(net.Params(), 1)
//		opt.Step()
//	}
//
// Options are structs. A field that is 0 stands for its default, and [None] for the number 0.
//
// Nothing in this package waits: updates are enqueued like any operation. What depends on values, such as a norm, a
// gradient that is NaN or a loss that no longer falls, is decided on the device.
package optim

import (
	"fmt"
	"iter"
	"math"
	"slices"
	"strconv"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/runtime/internal/engine"
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// None is the value of an option that is to be 0 although 0 stands for another default:
// optim.AdamOptions{Decay: optim.None}.
const None = -1

// An Optimizer changes parameters along their gradients. It is for one goroutine at a time. Its fields may be set at
// any time before a Step; each is nothing if it is zero.
//
// Backward adds to gradients until ZeroGrad. So the gradients of several batches are accumulated by one Backward for
// each of them, before one Step:
//
//	opt.ZeroGrad()
//	for _, b := range parts {
//		loss := nn.MSELoss(net.Forward(b.X), b.Y)
//		loss.MulScalar(1 / float64(len(parts))).Backward()
//	}
//	opt.Step()
//
// A parameter without a gradient is left as it is, with all that the optimiser remembers about it. So a part of a model
// is not trained if it is frozen (nn.Frozen), if the loss doesn't depend on it, or if its parameters are not among
// those of the optimiser.
type Optimizer struct {
	// Schedule gives the number by which the rate is multiplied in each Step, from the number of Steps before.
	Schedule Schedule
	// Plateau multiplies the rate by a number that it holds on the device.
	Plateau *Plateau
	// Guard makes a Step change no parameter, and nothing that the optimiser remembers on the device, if one of the
	// gradients has an element that is NaN or infinite. It changes no bit of other Steps. The device decides; what
	// the host counts goes on: the number of Steps, on which Schedule and the corrections of Adam depend. The guard
	// reads all gradients once more, and a Step takes one pass more over each parameter.
	Guard bool

	parts  []*Optimizer // of Group; then there is nothing below but counts
	params []*nn.Param
	rule   rule
	rate   tensor.F64
	state  [slots][]tensor.Buffer // nil: the rule has no use for it; else one for each parameter
	counts []int64                // how many Steps there were, and how many of them changed each parameter
}

var _ nn.Stateful = (*Optimizer)(nil)

// A rule says how a step changes a parameter.
type rule interface {
	// uses lists the state that the rule has for each parameter.
	uses() []slot
	// next returns the value of u.x after the step, and sets the state.
	next(u *update) *tensor.Tensor
}

// A slot is a kind of state.
type slot int

const (
	momentum slot = iota // the sum of steps that fades
	mean                 // an average of gradients
	square               // an average of their squares
	change               // an average of the squares of steps
	slots
)

func (s slot) String() string { return [...]string{"momentum", "mean", "square", "change"}[s] }

// newOptimizer returns an Optimizer of the named function. A parameter that is listed twice counts once.
func newOptimizer(name string, params []*nn.Param, rate float64, r rule) *Optimizer {
	mustRate(name, rate)
	if len(params) == 0 {
		wrong(name, "there are no parameters to optimise: a module of one's own has those that nn.Params finds in its fields")
	}
	o := &Optimizer{rule: r, rate: tensor.Const(rate), params: distinct(name, params)}
	for _, s := range r.uses() {
		o.state[s] = make([]tensor.Buffer, len(o.params))
	}
	o.counts = make([]int64, 1+len(o.params))
	return o
}

// distinct returns the parameters, each once. It panics, about the function with the given name, if one is nil.
func distinct(name string, params []*nn.Param) (once []*nn.Param) {
	seen := make(map[*nn.Param]bool, len(params))
	for i, p := range params {
		if p == nil {
			wrong(name, "parameter %d is nil", i)
		}
		if !seen[p] {
			once = append(once, p)
		}
		seen[p] = true
	}
	return once
}

// Group returns one optimiser of several, for parameters that are trained in different ways. Its Step is a Step of each
// part, with the part's own rule, rate and fields; the fields of the group hold for all parts. With Guard, one
// gradient that is not finite stops all of them.
//
//	opt := optim.Group(
//		optim.AdamW(weights, 1e-3),
//		optim.AdamW(biases, 1e-3, optim.AdamOptions{Decay: optim.None}),
//	)
//
// [Split] makes such lists. Group panics with a [tensor.Mistake] if two parts have a parameter in common, or if a part
// is nil.
//
//asyncgen:api pure
func Group(parts ...*Optimizer) *Optimizer {
	for i, part := range parts {
		if part == nil {
			wrong("Group", "part %d is nil", i)
		}
	}
	o := &Optimizer{parts: slices.Clone(parts), counts: make([]int64, 1)}
	seen := make(map[*nn.Param]bool)
	for p := range o.all() {
		if seen[p] {
			wrong("Group", "two parts have a parameter in common")
		}
		seen[p] = true
	}
	return o
}

// Split returns the parameters of m, a module as [nn.Named] takes it, for which is reports true, and the others. is
// gets the name of each. If is is nil, it asks for two axes or more: weights of products, convolutions and embeddings,
// which usually decay, and not biases and gains.
//
//	weights, others := optim.Split(net, nil)
//	opt := optim.Group(
//		optim.AdamW(weights, 1e-3, optim.AdamOptions{Decay: 0.1}),
//		optim.AdamW(others, 1e-3, optim.AdamOptions{Decay: optim.None}),
//	)
//
// It panics with a [tensor.Mistake] if is is nil and a parameter has no value yet: call Forward once before.
//
//asyncgen:api meta 0
func Split(m any, is func(name string, p *nn.Param) bool) (those, others []*nn.Param) {
	for name, c := range nn.Named(m) {
		p, ok := c.(*nn.Param)
		if !ok {
			continue
		}
		if is == nil && !p.IsSet() {
			wrong("Split", "%s has no value yet, and so no axes: layers give theirs a value at their first Forward", name)
		}
		if is == nil && hasAxes(p, 2) || is != nil && is(name, p) {
			those = append(those, p)
		} else {
			others = append(others, p)
		}
	}
	return those, others
}

func hasAxes(p *nn.Param, n int) bool {
	v := p.Value()
	defer tensor.Dead(v)
	return v.Rank() >= n
}

// all is the sequence of parameters.
func (o *Optimizer) all() iter.Seq[*nn.Param] {
	return func(yield func(*nn.Param) bool) {
		for _, p := range o.params {
			if !yield(p) {
				return
			}
		}
		for _, part := range o.parts {
			for p := range part.all() {
				if !yield(p) {
					return
				}
			}
		}
	}
}

// Rate returns the learning rate, without what Schedule and Plateau make of it. That of a Group is the rate of
// its first part. Rate waits if the rate is a number that has not been computed yet: see [Optimizer.SetRateF64].
//
//asyncgen:api value f64=RateF64
func (o *Optimizer) Rate() float64 { return o.RateF64().Item() }

// RateF64 returns what Rate does, as a number that may not have been computed yet.
//
//asyncgen:api value
func (o *Optimizer) RateF64() tensor.F64 {
	if len(o.parts) > 0 {
		return o.parts[0].RateF64()
	}
	return o.rate
}

// Rates returns the learning rates of all parts of a Group, in order, and else the one rate.
//
//asyncgen:api value
func (o *Optimizer) Rates() (all []tensor.F64) {
	if len(o.parts) == 0 {
		return []tensor.F64{o.rate}
	}
	for _, part := range o.parts {
		all = append(all, part.Rates()...)
	}
	return all
}

// wrong panics with a [tensor.Mistake] about the function with the given name.
func wrong(name, format string, args ...any) {
	panic(&tensor.Mistake{Package: "optim", Op: name, Text: fmt.Sprintf(format, args...)})
}

// mustRate panics unless parameters can move against their gradients by rate.
func mustRate(name string, rate float64) {
	if !(rate >= 0) || math.IsInf(rate, 1) {
		wrong(name, "the learning rate is %v, want a number from 0 on", rate)
	}
}

// SetRate gives the optimiser another learning rate, from the next Step on; all parts of a Group get it. It panics with
// a [tensor.Mistake] if that is negative, infinite or NaN.
//
//asyncgen:api mutate f64=SetRateF64
func (o *Optimizer) SetRate(to float64) { o.SetRateF64(tensor.Const(to)) }

// SetRateF64 is SetRate with a number that may not have been computed yet, so that nothing waits where the rate depends
// on a loss:
//
//	now := loss.F64()
//	rate = now.Lt(before).ChooseF64(rate, rate.Mul(tensor.Const(0.5)))
//	opt.SetRateF64(rate)
//
// Steps have the bits of those with SetRate, and take a pass more over each parameter. A number that is not known yet
// can't be refused at the call: nothing does if it is negative, infinite or NaN, unless the program calls
// [Optimizer.CheckRate] when it knows the number.
//
//asyncgen:api mutate
func (o *Optimizer) SetRateF64(to tensor.F64) {
	if v, ok := to.Known(); ok {
		mustRate("SetRate", v)
	}
	for _, part := range o.parts {
		part.SetRateF64(to)
	}
	if len(o.parts) == 0 {
		tensor.Changing(rate{o})
		o.rate = to
	}
}

// SetRates gives the parts of a Group the learning rates that [Optimizer.Rates] has returned, and else the one rate.
// [tensor.Either] calls it with an optimiser whose rate only one of its functions sets.
//
//asyncgen:api mutate
func (o *Optimizer) SetRates(rates []tensor.F64) {
	if n := len(o.Rates()); len(rates) != n {
		wrong("SetRates", "%d rates, want %d", len(rates), n)
	}
	for _, part := range o.parts {
		n := len(part.Rates())
		part.SetRates(rates[:n])
		rates = rates[n:]
	}
	if len(o.parts) == 0 {
		tensor.Changing(rate{o})
		o.rate = rates[0]
	}
}

// CheckRate panics as SetRate does if parameters can't move by the rate. It does nothing else.
//
//asyncgen:api meta
func (o *Optimizer) CheckRate(rate float64) { mustRate("SetRate", rate) }

// Cells lists everything that Step or SetRate changes: the parameters, and the cells of [Optimizer.State].
//
//asyncgen:api meta
func (o *Optimizer) Cells() []tensor.Cell {
	var cells []tensor.Cell
	for p := range o.all() {
		cells = append(cells, p)
	}
	for _, c := range o.State() {
		if a, ok := c.(away); ok {
			c = a.Buffer
		}
		cells = append(cells, c)
	}
	return cells
}

// State is the sequence of what the optimiser remembers from step to step beside the parameters, with a name for each
// cell. The names, and their order, depend only on how the optimiser was made.
//
//   - "rate" is the learning rate, a float64 tensor of one element. It is on the CPU, unless SetRateF64 has set a number
//     that has not been computed yet: then it is where that is computed.
//   - "steps" counts Steps, an int64 tensor on the CPU: of all, then of those that changed each parameter.
//   - "momentum.2", "mean.2" and "square.2" are buffers for the third parameter, of its shape; see [SGD], [Adam] and
//     [RMSProp]. They are float32 for parameters of half types, and have no value before a Step has changed the
//     parameter.
//   - "plateau.scale", "plateau.best" and "plateau.bad" are buffers of [Plateau], if it is set.
//
// The cells of part i of a Group have its number in front: "1.momentum.2".
//
// On a rank that does not hold the state of a parameter (nn.Parallel.Zero), its cells have no value. [Optimizer.Gather]
// gives rank 0 all values; a checkpoint without them is refused.
//
//asyncgen:api meta
func (o *Optimizer) State() iter.Seq2[string, tensor.Cell] {
	return func(yield func(string, tensor.Cell) bool) {
		if len(o.parts) == 0 && !yield("rate", rate{o}) {
			return
		}
		if !yield("steps", counts{&o.counts}) {
			return
		}
		for s, buffers := range o.state {
			for i := range buffers {
				if !yield(slot(s).String()+"."+strconv.Itoa(i), o.cell(slot(s), i)) {
					return
				}
			}
		}
		if o.Plateau != nil {
			for name, c := range o.Plateau.State() {
				if !yield("plateau."+name, c) {
					return
				}
			}
		}
		for i, part := range o.parts {
			for name, c := range part.State() {
				if !yield(strconv.Itoa(i)+"."+name, c) {
					return
				}
			}
		}
	}
}

// rate is the Cell of an optimiser's learning rate.
type rate struct{ o *Optimizer }

// Value implements tensor.Cell. The tensor is pending only if the rate is.
//
//go:noinline
func (r rate) Value() *tensor.Tensor {
	if v, ok := r.o.rate.Known(); ok {
		return tensor.FromOn(device.CPU(), []float64{v})
	}
	t := r.o.rate.As(tensor.Float64)
	defer tensor.Dead(t)
	return t.Reshape(1)
}

// Set implements tensor.Cell.
//
//go:noinline
func (r rate) Set(t *tensor.Tensor) { r.o.rate = t.ItemF64() }

// counts is a Cell of numbers that the host counts.
type counts struct{ of *[]int64 }

// Value implements tensor.Cell. The tensor is never pending.
//
//go:noinline
func (c counts) Value() *tensor.Tensor { return tensor.FromOn(device.CPU(), *c.of) }

// Set implements tensor.Cell. It reads t, which doesn't wait if Value has made t.
//
//go:noinline
func (c counts) Set(t *tensor.Tensor) {
	n := t.Int64s()
	if len(n) != len(*c.of) {
		wrong("Set", "%d counts of steps for an optimiser that has %d", len(n), len(*c.of))
	}
	*c.of = n
}

// wide returns t in the type that its elements are computed in, and lets go of t.
func wide(t *tensor.Tensor) *tensor.Tensor {
	if !t.DType().IsStorage() {
		return t
	}
	defer tensor.Dead(t)
	return t.As(t.DType().Wide())
}

// Step gives each parameter that has a gradient its next value. It leaves the gradients as they are: without a ZeroGrad
// before the next Backward they go on to grow, and the parameters move along the sum of all gradients so far. Then a
// loss that falls at first soon swings or becomes NaN.
//
// Of parameters of float16 and bfloat16 a step, and what is remembered, are computed in float32; the next value is
// rounded once. Steps that are small beside a parameter are lost by that: to train for long, keep parameters in
// float32, and compute with their values as bfloat16.
//
// Step panics with a [tensor.Mistake] if Schedule returns a number that is negative, infinite or NaN, or if a parameter
// has another shape than its gradient or what is remembered about it.
//
//asyncgen:api mutate
//go:noinline
func (o *Optimizer) Step() { o.step(func() float64 { return 1 }, nil) }

// guard has a step that is captured be captured again when the fields of o, or whether it is the first step of a
// parameter, say that other operations are needed.
func (o *Optimizer) guard() {
	c := engine.Default().Capturing()
	if c == nil {
		return
	}
	guard, plateau := o.Guard, o.Plateau
	_, isKnown := o.rate.Known()
	isFirst := make([]bool, len(o.params))
	for i := range isFirst {
		isFirst[i] = o.counts[1+i] == 0
	}
	c.Guard(func() bool {
		for i, was := range isFirst {
			if was != (o.counts[1+i] == 0) {
				return false
			}
		}
		_, is := o.rate.Known()
		return is == isKnown && o.Guard == guard && o.Plateau == plateau
	})
}

// ZeroGrad drops the gradients of all parameters.
//
//asyncgen:api mutate
func (o *Optimizer) ZeroGrad() {
	for p := range o.all() {
		p.ZeroGrad()
	}
}

// Minimize takes one step that makes loss smaller: ZeroGrad, loss.Backward, Step.
//
// Of a model of nn.DataParallel, parameters get their next values as soon as their gradients have been added up, while
// others still travel between the devices. A Step by itself, and one with Guard, comes after all sums; the bits are the
// same.
//
//asyncgen:api mutate
//go:noinline
func (o *Optimizer) Minimize(loss *tensor.Tensor) {
	o.ZeroGrad()
	if o.hasGuard() {
		loss.Backward()
		o.Step()
		return
	}
	var s steps
	loss.BackwardEach(func(params []*nn.Param) {
		if s.of == nil {
			s.begin(o, func() float64 { return 1 }, nil)
		}
		s.update(params)
	})
	if s.of == nil {
		o.Step()
		return
	}
	s.end()
}

func (o *Optimizer) hasGuard() bool {
	return o.Guard || slices.ContainsFunc(o.parts, (*Optimizer).hasGuard)
}
