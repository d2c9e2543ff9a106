package optim

import (
	"iter"
	"math"

	"github.com/asyncgen/asyncgen/device/kernel"
	"github.com/asyncgen/asyncgen/runtime/internal/engine"
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// An update is one step of one parameter.
type update struct {
	o     *Optimizer
	i     int            // the number of the parameter
	x, g  *tensor.Tensor // its value and its gradient
	scale *tensor.Tensor // multiplies the rate; 0: the step changes nothing; nil: 1, and the step takes fewer passes
	size  *tensor.Tensor // the rate, if it is not known yet; else nil
	now   *numbers
	temps []*tensor.Tensor
}

// numbers are what the host knows of an update. A step that is captured computes them anew in each run.
type numbers struct {
	rate  float64
	steps float64 // how many steps of this parameter there are with this one
}

// with returns f with the constants that scalars makes of the numbers, also in each run of a step that is captured.
func (u *update) with(f *tensor.Fused, scalars func(n numbers) []float64) *tensor.Fused {
	now := u.now
	if engine.Default().Capturing() == nil {
		return f.With(scalars(*now)...)
	}
	return f.WithFunc(func() []float64 { return scalars(*now) })
}

// fixed are constants that depend on no numbers.
func fixed(scalars ...float64) func(numbers) []float64 {
	return func(numbers) []float64 { return scalars }
}

// rateAnd are the rate and another constant.
func rateAnd(c float64) func(numbers) []float64 {
	return func(n numbers) []float64 { return []float64{n.rate, c} }
}

// against returns the parameter minus rate times direction. It rounds as x - rate*direction does.
func (u *update) against(direction *tensor.Tensor) *tensor.Tensor {
	if engine.Default().Capturing() == nil {
		return u.x.AddScaled(direction, -u.now.rate)
	}
	return u.with(addScaled, func(n numbers) []float64 { return []float64{-n.rate} }).Of(u.x, direction)
}

// addScaled is what the method AddScaled computes, with a constant that may differ from run to run.
var addScaled = tensor.FuseScalars("AddScaled", 2, 1, func(x ...*kernel.Expr) *kernel.Expr {
	return kernel.Add(x[0], kernel.Mul(x[2], x[1]))
})

// inEachRun calls f, which changes numbers that the host counts in cell. If the step is being captured, each of its
// runs calls f again.
func inEachRun(cell tensor.Cell, f func()) {
	if c := engine.Default().Capturing(); c != nil {
		c.Own(cell)
		c.Do(f)
		return
	}
	f()
}

// temp returns t, of which the update lets go in the end.
func (u *update) temp(t *tensor.Tensor) *tensor.Tensor {
	u.temps = append(u.temps, t)
	return t
}

// set gives the parameter's state in the slot its next value, which p computes of the present one and x, and
// returns it.
func (u *update) set(s slot, p pass, scalars func(numbers) []float64, x ...*tensor.Tensor) *tensor.Tensor {
	in, f := append([]*tensor.Tensor{u.present(s)}, x...), p.plain
	if u.scale != nil {
		in, f = append(in, u.scale), p.guarded
	}
	next := u.temp(u.with(f, scalars).Of(in...))
	u.o.state[s][u.i].Set(next)
	return next
}

// present returns the parameter's state in the slot, which begins with zeros.
func (u *update) present(s slot) *tensor.Tensor {
	b := &u.o.state[s][u.i]
	if !b.IsSet() {
		zeros := tensor.On(u.x.Device().Unscoped()).As(u.x.DType()).Zeros(u.x.Shape()...)
		b.Set(zeros)
		tensor.Dead(zeros)
	}
	old := u.temp(b.Value())
	mustKeepShape("Step", u.i, old, u.x)
	return old
}

// mustKeepShape panics unless parameter i, x, has the shape of what is remembered about it, so that nothing is
// broadcast.
func mustKeepShape(name string, i int, old, x *tensor.Tensor) {
	if !old.Shape().Equal(x.Shape()) {
		wrong(name, "parameter %d has the shape %v, and had %v before", i, x.Shape(), old.Shape())
	}
}

// decayed returns the gradient plus decay times the parameter: the gradient of a loss with a penalty on its square.
func (u *update) decayed(decay float64) *tensor.Tensor {
	if decay == 0 {
		return u.g
	}
	return u.temp(u.g.AddScaled(u.x, decay))
}

// isPlain reports whether the rate is known, and nothing multiplies it.
func (u *update) isPlain() bool { return u.scale == nil && u.size == nil }

// along returns the parameter after a step against direction, and a decay of its own, if it is not plain.
func (u *update) along(direction *tensor.Tensor, decay float64) *tensor.Tensor {
	switch {
	case u.size == nil:
		return u.with(along, rateAnd(decay)).Of(u.x, direction, u.scale)
	case u.scale != nil:
		return alongBy.With(decay).Of(u.x, direction, u.temp(times.Of(u.size, u.scale)))
	case decay != 0:
		return alongBy.With(decay).Of(u.x, direction, u.size)
	}
	return descent.Of(u.x, direction, u.size)
}

// A pass computes the next value of its first operand, in one command. With a scale as one more operand, of one
// element, it is guarded: if that is 0 it returns the first operand.
type pass struct{ plain, guarded *tensor.Fused }

func newPass(name string, operands, scalars int, f func(x ...*kernel.Expr) *kernel.Expr) pass {
	return pass{
		tensor.FuseScalars(name, operands, scalars, f),
		tensor.FuseScalars(name, operands+1, scalars, func(x ...*kernel.Expr) *kernel.Expr {
			others := append(append([]*kernel.Expr(nil), x[:operands]...), x[operands+1:]...)
			return unlessZero(x[operands], f(others...), x[0])
		}),
	}
}

// An averaging has two passes for an average x of values g: some keeps a share of x, none keeps nothing and sets x to
// g. The first would not do for both, as x + 1*(g-x) loses a g that is small beside x.
type averaging struct{ some, none pass }

func newAveraging(name string, f func(g *kernel.Expr) *kernel.Expr) averaging {
	return averaging{
		newPass(name, 2, 1, func(x ...*kernel.Expr) *kernel.Expr { return towards(x[0], f(x[1]), x[2]) }),
		newPass(name, 2, 1, func(x ...*kernel.Expr) *kernel.Expr { return f(x[1]) }),
	}
}

func (a averaging) keeping(share float64) pass {
	if share == 0 {
		return a.none
	}
	return a.some
}

func unlessZero(scale, then, otherwise *kernel.Expr) *kernel.Expr {
	return kernel.Where(kernel.Eq(scale, kernel.Const(0, scale.DType())), otherwise, then)
}

// A pass rounds after each primitive. Those without a scale do the same primitives in the same order as those with one,
// so that Guard changes no bits.
var (
	// fading is a sum of which the older terms fade: c*x + d*g.
	fading = newPass("momentum", 2, 2, func(x ...*kernel.Expr) *kernel.Expr {
		return kernel.Add(kernel.Mul(x[2], x[0]), kernel.Mul(x[3], x[1]))
	})
	// average is one of which the older terms fade: x + c*(g-x).
	average = newAveraging("average", func(g *kernel.Expr) *kernel.Expr { return g })
	// averageSquare is that of squares: x + c*(g²-x).
	averageSquare = newAveraging("average of squares", func(g *kernel.Expr) *kernel.Expr { return kernel.Mul(g, g) })
	// along is x - rate*scale*(direction + decay*x).
	along = tensor.FuseScalars("step", 3, 2, func(x ...*kernel.Expr) *kernel.Expr {
		direction, scale, rate, decay := x[1], x[2], x[3], x[4]
		return unlessZero(scale, against(x[0], decaying(x[0], direction, decay), kernel.Mul(rate, scale)), x[0])
	})
	// alongBy is along with rate*scale as one operand, of times.
	alongBy = tensor.FuseScalars("step", 3, 1, func(x ...*kernel.Expr) *kernel.Expr {
		direction, size, decay := x[1], x[2], x[3]
		return kernel.Where(kernel.Eq(size, never(size)), x[0], against(x[0], decaying(x[0], direction, decay), size))
	})
	times = tensor.Fuse("rate", 2, func(x ...*kernel.Expr) *kernel.Expr {
		return unlessZero(x[1], kernel.Mul(x[0], x[1]), never(x[0]))
	})
	// descent is x - rate*direction.
	descent = tensor.Fuse("step", 3, func(x ...*kernel.Expr) *kernel.Expr { return against(x[0], x[1], x[2]) })
)

// never is what no rate is: it stands for that of a step that changes nothing.
func never(x *kernel.Expr) *kernel.Expr { return kernel.Const(math.Inf(-1), x.DType()) }

func towards(x, to, by *kernel.Expr) *kernel.Expr {
	return kernel.Add(x, kernel.Mul(by, kernel.Sub(to, x)))
}

// decaying is direction + decay*x.
func decaying(x, direction, decay *kernel.Expr) *kernel.Expr {
	return kernel.Add(direction, kernel.Mul(decay, x))
}

// against is x after a step against direction.
func against(x, direction, rate *kernel.Expr) *kernel.Expr {
	return kernel.Sub(x, kernel.Mul(rate, direction))
}

// A scale is a number on the device, of one element without axes. nil is 1.
type scale struct {
	forms []*tensor.Tensor // the same number in several element types and on several devices
}

// times returns s times t, which belongs to the result.
func (s *scale) times(t *tensor.Tensor) *scale {
	if t == nil {
		return s
	}
	if s == nil {
		return &scale{[]*tensor.Tensor{t}}
	}
	product := s.like(t).Mul(t)
	tensor.Dead(t)
	return &scale{[]*tensor.Tensor{product}}
}

// like returns s in the element type and on the device of x.
func (s *scale) like(x *tensor.Tensor) *tensor.Tensor {
	if s == nil {
		return nil
	}
	for _, t := range s.forms {
		if t.DType() == x.DType() && t.Device().Unscoped() == x.Device().Unscoped() {
			return t
		}
	}
	t := moved(s.forms[0], x)
	s.forms = append(s.forms, t)
	return t
}

// moved returns t in the element type and on the device of x.
func moved(t, x *tensor.Tensor) *tensor.Tensor {
	there := t.To(x.Device().Unscoped())
	defer tensor.Dead(there)
	return there.As(x.DType())
}

// dead lets go of s.
func (s *scale) dead() {
	if s != nil {
		tensor.Dead(s.forms...)
	}
}

// finite returns 1 if all elements of all gradients are finite, else 0; nil if there are no gradients.
func finite(params iter.Seq[*nn.Param]) *tensor.Tensor {
	total := sumOver(params, func(g *tensor.Tensor) *tensor.Tensor { return notFinite.Sum(nil, g) })
	if total == nil {
		return nil
	}
	defer tensor.Dead(total)
	return isZero.Of(total)
}

var (
	// notFinite is 0, but NaN where x is NaN or infinite.
	notFinite = tensor.Fuse("guard", 1, func(x ...*kernel.Expr) *kernel.Expr { return kernel.Sub(x[0], x[0]) })
	isZero    = tensor.Fuse("guard", 1, func(x ...*kernel.Expr) *kernel.Expr {
		zero, one := kernel.Const(0, x[0].DType()), kernel.Const(1, x[0].DType())
		return kernel.Where(kernel.Eq(x[0], zero), one, zero)
	})
)

// sumOver returns the sum of f of the gradients, in the element type and on the device of the first; nil if there are
// no gradients. f makes a tensor without axes.
func sumOver(params iter.Seq[*nn.Param], f func(g *tensor.Tensor) *tensor.Tensor) (total *tensor.Tensor) {
	var parts []*tensor.Tensor
	var owner tensor.Owner // of some of them
	var away []int         // those of parts that only one rank of its job has
	for p := range params {
		if !p.HasGrad() {
			continue
		}
		if o := p.Owner(); o.Grads {
			owner, away = o, append(away, len(parts))
		}
		g := p.Grad()
		if g == nil { // another rank has it
			v := p.Value()
			g = tensor.On(v.Device().Unscoped()).As(v.DType()).Zeros(1)
			tensor.Dead(v)
		}
		parts = append(parts, f(g))
		tensor.Dead(g)
	}
	if owner.Grads {
		exchange(owner, parts, away)
	}
	for _, part := range parts {
		if total != nil {
			here := moved(part, total)
			sum := total.Add(here)
			tensor.Dead(total, part, here)
			part = sum
		}
		total = part
	}
	return total
}

// exchange gives all ranks of the owner's job those of the parts that are 0 on all ranks but one.
func exchange(owner tensor.Owner, parts []*tensor.Tensor, which []int) {
	var mine []*tensor.Tensor
	for _, i := range which {
		here := moved(parts[i], parts[0])
		mine = append(mine, here.Reshape(1))
		tensor.Dead(here)
	}
	vector := tensor.Concat(0, mine...)
	all := tensor.AllReduceOver(owner.Job, vector)[0]
	for k, i := range which {
		part := all.Slice(0, k, k+1)
		tensor.Dead(parts[i])
		parts[i] = part.Reshape()
		tensor.Dead(part)
	}
	tensor.Dead(append(mine, vector, all)...)
}
