package op

import (
	"fmt"
	"slices"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/kernel"
)

// A Gradient says how to compute the gradient with respect to one operand of an elementwise
// operation with n operands: apply Def to the values that In lists.
type Gradient struct {
	Def *Def  // nil: the gradient is 0
	In  []int // i < n: operand i; n: the result; n+1: the gradient with respect to the result
	// Times says that Def computes only the derivative, because a command has no room for one more
	// operand. Another operation multiplies it by the gradient with respect to the result.
	Times bool
}

// Gradient returns the gradient with respect to operand i. It may be called
// concurrently, and returns the same Gradient every time.
func (d *Def) Gradient(i int) *Gradient {
	if g := d.grads[i].Load(); g != nil {
		return g
	}
	d.grads[i].CompareAndSwap(nil, d.deriveGradient(i))
	return d.grads[i].Load()
}

func (d *Def) deriveGradient(i int) *Gradient {
	// The derivative depends on the same operands for every element type, so any type will do.
	g := &Gradient{}
	derivative := d.derivative(i, device.Float64)
	if isZero(derivative) {
		return g
	}
	cond := false
	for _, x := range derivative.Nodes() {
		if x.Kind() == kernel.Operand {
			g.In = append(g.In, x.Index())
		}
	}
	slices.Sort(g.In)
	place := map[int]int{}
	for at, operand := range g.In {
		place[operand] = at
		cond = cond || d.Cond && operand == 0
	}
	g.Times = len(g.In) == MaxInputs
	grad := &Def{
		Name: fmt.Sprintf("%s'%d", d.Name, i), Types: Floats, Unlisted: true,
		Tensors: len(g.In), Scalars: d.Scalars, Cond: cond,
	}
	if !g.Times {
		g.In = append(g.In, d.Tensors+1)
		grad.Tensors++
	}
	grad.Expr = func(x ...*kernel.Expr) *kernel.Expr {
		e := renumber(d.derivative(i, x[grad.Tensors-1].DType()), x, place)
		if g.Times {
			return e
		}
		return times(x[grad.Tensors-1], e)
	}
	g.Def = grad
	return g
}

// derivative returns the derivative of the result with respect to operand i, for elements of type dt.
// An operation with one operand may have a derivative that is a function of the result alone. Then that
// function is returned, with the result as operand 1, so the gradient need neither keep the operand nor
// compute the result again.
func (d *Def) derivative(i int, dt device.DType) *kernel.Expr {
	x := d.operands(dt)
	result := d.Expr(x...)
	var e *kernel.Expr
	if d.Grad != nil {
		e = d.Grad(i, x...)
	} else {
		e = kernel.Diff(result, i)
	}
	if d.Tensors == 1 && result.DType() == dt {
		if of := replace(e, map[*kernel.Expr]*kernel.Expr{result: kernel.Arg(1, dt)}); !slices.Contains(of.Nodes(), x[0]) {
			return of
		}
	}
	return e
}

// renumber returns e with x[place[i]] for operand i.
func renumber(e *kernel.Expr, x []*kernel.Expr, place map[int]int) *kernel.Expr {
	as := map[*kernel.Expr]*kernel.Expr{}
	for _, node := range e.Nodes() {
		if node.Kind() == kernel.Operand {
			as[node] = x[place[node.Index()]]
		}
	}
	return replace(e, as)
}

// replace returns e with each subexpression x that is in as replaced by as[x]. It adds the other
// subexpressions to as.
func replace(e *kernel.Expr, as map[*kernel.Expr]*kernel.Expr) *kernel.Expr {
	for _, x := range e.Nodes() {
		switch {
		case as[x] != nil:
		case x.Kind() != kernel.Application:
			as[x] = x
		case x.Prim() == kernel.PrimCast:
			as[x] = kernel.Cast(as[x.In()[0]], x.DType())
		default:
			in := make([]*kernel.Expr, 0, len(x.In()))
			for _, operand := range x.In() {
				in = append(in, as[operand])
			}
			as[x] = kernel.Apply(x.Prim(), in...)
		}
	}
	return as[e]
}

// times returns g * e, but 0 in branches where e is the constant 0: an infinite or NaN g does not reach
// an operand that was not chosen.
func times(g, e *kernel.Expr) *kernel.Expr {
	if isZero(e) {
		return e
	}
	if e.Kind() == kernel.Application && e.Prim() == kernel.PrimWhere {
		in := e.In()
		return kernel.Where(in[0], times(g, in[1]), times(g, in[2]))
	}
	return kernel.Mul(g, e)
}

func isZero(e *kernel.Expr) bool {
	return e.Kind() == kernel.Constant && e.Bits() == kernel.BitsOf(0, e.DType())
}

// Needed returns which values the gradients need, in the form of Def.Saves, if those operands have
// gradients whose bits are set in tracked.
func (d *Def) Needed(tracked uint8) uint8 {
	if d.each != nil {
		return d.neededOfEach(tracked)
	}
	if d.Expr == nil {
		return d.Saves
	}
	needed := uint8(0)
	for i := range d.Tensors {
		if tracked>>i&1 == 0 {
			continue
		}
		for _, operand := range d.Gradient(i).In {
			switch {
			case operand < d.Tensors:
				needed |= 1 << operand
			case operand == d.Tensors:
				needed |= SavesResult
			}
		}
	}
	return needed
}

// Differentiable reports whether the operation has a gradient for operands
// and a result of these types.
func (d *Def) Differentiable(in, out device.DType) bool {
	return in.IsFloat() && out.IsFloat() && (d.Expr != nil || d.VJP != nil)
}

// Pull builds the gradient of a loss with respect to operand i of c, from g, the gradient with respect
// to the result of c. nil means 0.
func Pull(b Builder, c *Call, i int, g Value) Value {
	if c.Def.Expr == nil {
		return c.pull(b, i, g)
	}
	gr := c.Def.Gradient(i)
	if gr.Def == nil {
		return nil
	}
	var in [MaxInputs]Value
	for at, operand := range gr.In {
		switch operand {
		case c.Def.Tensors:
			in[at] = c.Out
		case c.Def.Tensors + 1:
			in[at] = g
		default:
			in[at] = c.In[operand]
		}
	}
	v := g
	if len(gr.In) > 1 || gr.In[0] != c.Def.Tensors+1 || !gr.isIdentity(g.DType()) {
		v = b.Elementwise(gr.Def, c.Attr.Scalars, in[:len(gr.In)]...)
	}
	if gr.Times {
		v = b.Elementwise(Mul, [2]float64{}, v, g)
	}
	return Unbroadcast(b, v, c.In[i].Shape())
}

// pull is Pull for a structural operation. If it computes with a type for storage, so does the gradient: in the wide
// type, rounded once.
func (c *Call) pull(b Builder, i int, g Value) Value {
	of := c.In[i].DType()
	if !of.IsStorage() || !c.Def.Widens() {
		return c.Def.VJP(b, c, i, g)
	}
	wide := *c
	for k, x := range c.In {
		wide.In[k] = widen(b, x)
	}
	wide.Out = widen(b, c.Out)
	v := c.Def.VJP(b, &wide, i, widen(b, g))
	if v == nil {
		return nil
	}
	return b.Structural(As, Attr{DType: of}, v)
}

// widen returns x, which may be nil, in the type that its elements are computed in.
func widen(b Builder, x Value) Value {
	if x == nil || !x.DType().IsStorage() {
		return x
	}
	dt := x.DType()
	if m, ok := x.(*Meta); ok {
		return &Meta{Dims: m.Dims, Type: dt.Wide()}
	}
	return b.Structural(As, Attr{DType: dt.Wide()}, x)
}

// isIdentity reports whether the gradient equals the gradient with respect to the result.
func (g *Gradient) isIdentity(dt device.DType) bool {
	return g.Def.Kernel(dt).Body == device.Body(kernel.Arg(0, dt))
}

// Unbroadcast sums g over the axes along which an operand of the given shape was broadcast. The result
// has that shape.
func Unbroadcast(b Builder, g Value, shape device.Shape) Value {
	have := g.Shape()
	if have.Equal(shape) {
		return g
	}
	var axes []int
	lead := len(have) - len(shape)
	for axis := range have {
		if axis < lead || shape[axis-lead] == 1 && have[axis] != 1 {
			axes = append(axes, axis)
		}
	}
	sum := b.Structural(Sum, Attr{Axes: axes, Keep: true}, g)
	if lead == 0 {
		return sum
	}
	return b.Structural(Reshape, Attr{Shape: shape}, sum)
}
