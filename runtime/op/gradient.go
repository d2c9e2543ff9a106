package op

import (
	"fmt"
	"slices"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/kernel"
)

// A Gradient says how to compute the gradient with respect to one operand of
// an elementwise operation: Def, applied to the operands with the numbers In,
// where the number of operands means the result, and one more the gradient with
// respect to it.
type Gradient struct {
	Def *Def // nil: no operand to compute with, the gradient is 0
	In  []int
	// Times says that Def computes the derivative alone, because a command
	// has no room for one more operand; the product is another operation.
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
	// Which operands the derivative depends on does not depend on their type.
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
		e := renumber(d.derivative(i, x[grad.Tensors-1].DType()), place)
		if g.Times {
			return e
		}
		return times(x[grad.Tensors-1], e)
	}
	g.Def = grad
	return g
}

// derivative is that of the result with respect to operand i, of elements of the given type. If it
// is a function of the result alone, it is given as one, where that is one more operand: then
// nobody needs the operand itself, and need not compute again what the result is.
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

// renumber is e with its operands numbered as place says.
func renumber(e *kernel.Expr, place map[int]int) *kernel.Expr {
	as := map[*kernel.Expr]*kernel.Expr{}
	for _, x := range e.Nodes() {
		if x.Kind() == kernel.Operand {
			as[x] = kernel.Arg(place[x.Index()], x.DType())
		}
	}
	return replace(e, as)
}

// replace is e with some of what it is made of replaced. It adds the others to as.
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

// times is g * e, but 0 in the branches where e is 0: an infinite or undefined
// g does not reach an operand that was not chosen.
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

// Needed returns which values the gradient looks at, as Def.Saves does, when
// the operands with a bit in tracked have one.
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

// Pull returns the gradient of a loss with respect to operand i of c, from g,
// the one with respect to its result. Nil means 0.
func Pull(b Builder, c *Call, i int, g Value) Value {
	if c.Def.Expr == nil {
		return c.Def.VJP(b, c, i, g)
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

// isIdentity reports whether the gradient is that of the result as it is.
func (g *Gradient) isIdentity(dt device.DType) bool {
	return g.Def.Kernel(dt).Body == device.Body(kernel.Arg(0, dt))
}

// Unbroadcast sums g over the axes along which shape was broadcast.
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
