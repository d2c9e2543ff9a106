package tensor

import (
	"slices"

	"github.com/asyncgen/asyncgen/runtime/internal/tape"
	"github.com/asyncgen/asyncgen/runtime/op"
)

// A Param is a Cell whose value is tracked: a weight of a model. Backward adds
// to its gradient, and an optimiser gives it its next value.
//
// Several goroutines may call Value at the same time. Set, ZeroGrad and Backward are for one goroutine at a time.
type Param struct {
	value  *Tensor // tracked, with the Param as its leaf, unless frozen
	grad   *Tensor
	frozen bool
	awaits []int     // see Awaits
	sets   uint64    // how often it was given a value, or a gradient by SetGrad
	shard  tape.Leaf // instead of the Param, while a shard is computed, see Reducer; nil: none is
	owned  *owned    // what it has in common with its copies in a Reducer; nil: it is in none

	hasGradElsewhere bool // the owner has got a gradient since the last ZeroGrad, and this rank has not
}

// NewParam returns a Param that holds t's elements, or nothing yet if t is nil.
// It panics if t's elements are not floating-point numbers.
//
//asyncgen:api pure
func NewParam(t *Tensor) *Param {
	p := &Param{}
	if t != nil {
		p.Set(t)
	}
	return p
}

// LazyParam returns a Param that holds nothing yet, and is to get a value of the given shape: a layer gives it one at
// its first Forward. -1 stands for a length that depends on the input. Whoever reads values from files holds them
// against it, see [Param.Awaits]; Set takes other shapes, too.
//
//asyncgen:api pure
func LazyParam(shape ...int) *Param { return &Param{awaits: slices.Clone(shape)} }

// Awaits returns the shape that [LazyParam] was given, with -1 for lengths that are not known, or nil if the Param was
// made otherwise.
//
//asyncgen:api pure
func (p *Param) Awaits() []int { return slices.Clone(p.awaits) }

// IsFrozen reports whether the Param can't be Set: see [Param.Frozen].
//
//asyncgen:api pure
func (p *Param) IsFrozen() bool { return p.frozen }

// IsSet reports whether the Param has a value.
//
//asyncgen:api value
func (p *Param) IsSet() bool {
	see(p)
	return p.value != nil
}

// Value returns the tensor that the Param holds now, tracked. It panics if there is none.
//
//asyncgen:api value
func (p *Param) Value() *Tensor {
	see(p)
	if p.value == nil {
		wrong("Value", op.MistakeNoParameter)
	}
	return p.value.another()
}

// Set gives the Param the elements of t as its value. Tensors that were computed from the old value do not change, and
// their gradients still go to p. Set panics if the Param is frozen. To call Set while another goroutine calls Value,
// which Forward of a model does, is a data race: see [Cell].
//
//asyncgen:api mutate
func (p *Param) Set(t *Tensor) {
	if t == nil {
		wrong("Set", op.MistakeNil)
	}
	if p.frozen {
		wrong("Set", op.MistakeFrozen, t)
	}
	if !t.dtype.IsFloat() {
		wrong("Set", op.Unsupported(op.Floats), t)
	}
	t.mustLive("Set")
	Changing(p)
	p.hold(t)
	p.sets++
}

// hold gives p another handle of t as its value.
func (p *Param) hold(t *Tensor) {
	v, old := t.eager(), p.value
	v.node = tape.NewLeaf(p.leaf())
	p.value = v
	old.letGo()
}

// leaf is where gradients for the value arrive.
func (p *Param) leaf() tape.Leaf {
	if p.shard != nil {
		return p.shard
	}
	return leaf{p}
}

// Clone returns a new Param that holds p's present value, if p has one, and no gradient.
//
//asyncgen:api value
func (p *Param) Clone() *Param {
	refuseCapture("Clone of a Param")
	c := LazyParam(p.awaits...)
	if p.value != nil {
		c.hold(p.value)
	}
	return c
}

// Frozen returns a new Param that holds p's present value, untracked. It can't be Set and never gets a gradient. Any
// number of goroutines may use it, even while p changes. Frozen panics if p has no value.
//
//asyncgen:api value
func (p *Param) Frozen() *Param {
	refuseCapture("Frozen of a Param")
	if p.value == nil {
		wrong("Frozen", op.MistakeNoParameter)
	}
	return &Param{value: p.value.detached(), frozen: true}
}

// Grad returns the sum of the gradients that Backward has added since the last
// ZeroGrad, or nil if there was none. It does not wait.
//
//asyncgen:api value
func (p *Param) Grad() *Tensor {
	seeGrad(p)
	return p.grad.another()
}

// SetGrad replaces the gradient by the elements of g, which are not tracked from then on: a gradient that was clipped,
// or computed in another way. A later Backward adds to them. It panics if p has no value or is frozen, or if g differs
// from the value in shape, element type or device.
//
//asyncgen:api mutate
func (p *Param) SetGrad(g *Tensor) {
	if g == nil {
		wrong("SetGrad", op.MistakeNil)
	}
	if p.value == nil {
		wrong("SetGrad", op.MistakeNoParameter)
	}
	if p.frozen {
		wrong("SetGrad", op.MistakeFrozen, g)
	}
	g.mustLive("SetGrad")
	seeGrad(p)
	see(p)
	switch v := p.value; {
	case g.dtype != v.dtype:
		wrong("SetGrad", op.MistakeDTypes, v, g)
	case !slices.Equal(g.shape, v.shape):
		wrong("SetGrad", op.MistakeShapes, v, g)
	case g.storage.Device().Unscoped() != v.storage.Device().Unscoped():
		wrong("SetGrad", op.MistakeDevices, v, g)
	}
	Changing(p)
	old := p.grad
	p.grad = g.eager()
	p.grad.node = nil
	p.sets++
	old.letGo()
}

// ZeroGrad forgets the gradient.
//
//asyncgen:api mutate
func (p *Param) ZeroGrad() {
	seeGrad(p)
	if p.hasGradElsewhere {
		p.hasGradElsewhere = false
	}
	if old := p.grad; old != nil { // a frozen Param has none, and is not written to
		Changing(p)
		p.grad = nil
		old.letGo()
	}
}

// leaf is where gradients for a Param arrive.
type leaf struct{ p *Param }

func (l leaf) Accumulate(g op.Value) { l.p.addGrad(g.(*Tensor)) }

// addGrad adds g to the gradient of p. It panics if that is of a value with another shape, as an addition would
// broadcast them.
func (p *Param) addGrad(g *Tensor) {
	seeGrad(p)
	old := p.grad
	if old != nil && !slices.Equal(old.shape, g.shape) {
		wrong("Backward", op.MistakeShapes+": ZeroGrad comes after a Set with another shape", old, g)
	}
	Changing(p)
	if old == nil {
		p.grad = g.another()
		return
	}
	p.grad = mapped(op.Add, [2]float64{}, operands{old, g}, false)
	old.letGo()
}

// Track returns t as a tensor at which tracking begins: everything computed from the result is tracked, and [Grad] can
// give its gradient.
//
//asyncgen:api view
func (t *Tensor) Track() *Tensor {
	if !t.dtype.IsFloat() {
		wrong("Track", op.Unsupported(op.Floats), t)
	}
	t.mustLive("Track")
	v := t.another()
	v.node = tape.NewLeaf(nil)
	return v
}

// Backward computes the gradient of t, which has one element, with respect to each Param that t depends on, and adds it
// to the Param's gradient. It enqueues the work and does not wait.
//
// Gradients add up until ZeroGrad of the Param, or of an optimiser. If that is forgotten between two batches, no error
// says so: each step goes along the sum of all gradients before, and a loss that falls at first swings or becomes NaN.
// Minimize of an optimiser has its own ZeroGrad.
//
// Then it releases the graph of t and the intermediate values that only the graph holds, so a second Backward through
// any part of it panics. To differentiate two losses that share a part of the graph, add them first. Backward also
// panics if t depends on nothing that is tracked, and if a Param has a gradient of another shape, from a former value.
//
//asyncgen:api mutate none
//go:noinline
func (t *Tensor) Backward() {
	g := t.trace("Backward")
	g.Backward(&builder{}, t.seed())
}

// BackwardEach is [Tensor.Backward], and calls f with Params that got their gradients from a [Reducer]: those that
// travelled together, of all copies. All operations of the backward pass have been enqueued then, and sums for other
// Params may still be under way. So what f enqueues is computed while they travel. f may set the Params. Params that
// are in no Reducer have their gradients when BackwardEach returns.
//
//asyncgen:api call 0 loop
func (t *Tensor) BackwardEach(f func(params []*Param)) {
	g := t.trace("Backward")
	g.Backward(&builder{each: f}, t.seed())
}

// Grad returns the gradient of y, which has one element, with respect to each of xs. It is zero if y does not depend on
// that x. Grad enqueues the work and does not wait. It changes no Param and releases nothing. Its results are tracked
// where they depend on what is tracked, so that they can be differentiated again; use Detach where this is not wanted.
// Grad panics if y or one of xs is not tracked.
//
//asyncgen:api op
//go:noinline
func Grad(y *Tensor, xs ...*Tensor) []*Tensor {
	if y == nil || slices.Contains(xs, nil) {
		wrong("Grad", op.MistakeNil)
	}
	g := y.trace("Grad")
	nodes := make([]*tape.Node, len(xs))
	for i, x := range xs {
		x.mustLive("Grad")
		if x.node == nil {
			wrong("Grad", op.MistakeGradient+" (an operand is not tracked: Track it before use)", x)
		}
		nodes[i] = x.node
	}
	b := &builder{tracking: true}
	grads := make([]*Tensor, len(xs))
	for i, v := range g.Gradients(b, y.seed(), nodes) {
		if v == nil {
			grads[i] = zerosLike(xs[i])
			continue
		}
		grads[i] = v.(*Tensor).eager() // several may be one tensor
		b.LetGo(v)
	}
	return grads
}

// trace returns the graph of t, which has one element.
func (t *Tensor) trace(name string) tape.Graph {
	t.mustLive(name)
	t.single(name)
	if t.node == nil {
		wrong(name, op.MistakeGradient+" (it depends on nothing that is tracked)", t)
	}
	g, ok := tape.Trace(t.node)
	if !ok {
		wrong(name, op.MistakeReleased, t)
	}
	return g
}

// seed is the gradient of t with respect to itself.
func (t *Tensor) seed() *Tensor {
	return filled(1, t.shape, t.dtype, t.storage.Device())
}
