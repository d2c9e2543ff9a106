package kernel

import (
	"sync"

	"github.com/asyncgen/asyncgen/device"
)

// Diff is the derivative of e with respect to its operand arg, in the type of e, simplified as Apply
// does. It is 0 if e does not depend on the operand, or only through integers, comparisons or
// rounding. The derivative of [Where] is that of the chosen branch alone. At a kink, the derivative
// of [Abs] is 0, and the operands of [Max] and [Min] get one half each.
//
// The derivative follows the chain rule step by step. This may lose accuracy, or overflow although the
// derivative does not. Operations with such a derivative have a gradient of their own.
func Diff(e *Expr, arg int) *Expr {
	d := differentiator{arg: arg, done: map[*Expr]*Expr{}}
	if de := d.of(e); de != nil {
		return de
	}
	return Const(0, e.dtype)
}

type differentiator struct {
	arg  int
	done map[*Expr]*Expr
}

// of returns the derivative of e, or nil if it is 0 everywhere. So the chain rule leaves out terms that
// do not depend on the operand: adding 0 can change -0, and 0 times an infinity is NaN.
func (d *differentiator) of(e *Expr) *Expr {
	if !e.dtype.IsFloat() {
		return nil
	}
	if de, ok := d.done[e]; ok {
		return de
	}
	de := d.derive(e)
	d.done[e] = de
	return de
}

func (d *differentiator) derive(e *Expr) *Expr {
	switch rule := ruleOf(e); {
	case rule != nil:
		return d.chain(rule.in, func(k int) *Expr { return rule.partial(e, rule.in[k]) })
	case e.kind == Operand && e.Index() == d.arg:
		return Const(1, e.dtype)
	case e.kind != Application:
		return nil
	case e.prim == PrimCast:
		if dx := d.of(e.in[0]); dx != nil {
			return Cast(dx, e.dtype)
		}
		return nil
	case e.prim == PrimWhere:
		dx, dy := d.of(e.in[1]), d.of(e.in[2])
		if dx == nil && dy == nil {
			return nil
		}
		return Where(e.in[0], orZero(dx, e.dtype), orZero(dy, e.dtype))
	}
	partial := table[e.prim].partial
	if partial == nil {
		return nil
	}
	return d.chain(e.In(), func(k int) *Expr { return partial(e, k) })
}

// chain is the sum of the partial derivatives with respect to in, each times the derivative of that one.
func (d *differentiator) chain(in []*Expr, partial func(k int) *Expr) *Expr {
	var sum *Expr
	for k, x := range in {
		dx := d.of(x)
		if dx == nil {
			continue
		}
		term := Mul(partial(k), dx)
		if sum == nil {
			sum = term
		} else {
			sum = Add(sum, term)
		}
	}
	return sum
}

func orZero(e *Expr, dt device.DType) *Expr {
	if e == nil {
		return Const(0, dt)
	}
	return e
}

// A rule is the derivative of an application that is given rather than derived.
type rule struct {
	in      []*Expr
	partial func(e, x *Expr) *Expr // the derivative of e with respect to x, which is one of in
}

var rules struct {
	sync.RWMutex
	of map[*Expr]*rule
}

func ruleOf(e *Expr) *rule {
	rules.RLock()
	defer rules.RUnlock()
	return rules.of[e]
}

// withDerivative returns e, and sets a rule for its derivative: e counts as a function of the
// expressions in, with the given partial derivatives, whatever it is made of. If in is empty, e counts
// as a constant.
func withDerivative(e *Expr, partial func(e, x *Expr) *Expr, in ...*Expr) *Expr {
	if e.kind != Application {
		return e // it was simplified, and its derivative is known
	}
	rules.Lock()
	defer rules.Unlock()
	if rules.of == nil {
		rules.of = map[*Expr]*rule{}
	}
	if rules.of[e] == nil {
		rules.of[e] = &rule{in, partial}
	}
	return e
}
