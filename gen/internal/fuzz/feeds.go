package fuzz

import (
	"fmt"
	"math"
)

// The operations of numbers that are read, computed with, and given back to the device.
var (
	opDivide   = host("$0 / $1", tFloat, 0, func(a []any) any { return a[0].(float64) / a[1].(float64) }, tFloat, tFloat)
	opProduct  = host("float64(($0) * ($1))", tFloat, 0, func(a []any) any { return a[0].(float64) * a[1].(float64) }, tFloat, tFloat)
	opNegate   = host("-($0)", tFloat, 0, func(a []any) any { return -a[0].(float64) }, tFloat)
	opRoot     = host("math.Sqrt($0)", tFloat, 0, func(a []any) any { return math.Sqrt(a[0].(float64)) }, tFloat)
	opLesser   = host("min($0, $1)", tFloat, 0, func(a []any) any { return min(a[0].(float64), a[1].(float64)) }, tFloat, tFloat)
	opShorten  = host("float64(float32($0))", tFloat, 0, func(a []any) any { return float64(float32(a[0].(float64))) }, tFloat)
	opTanh     = host("math.Tanh($0)", tFloat, 0, func(a []any) any { return math.Tanh(a[0].(float64)) }, tFloat)
	opLeast    = host("min($0, $1, $2)", tFloat, 0, func(a []any) any { return min(a[0].(float64), a[1].(float64), a[2].(float64)) }, tFloat, tFloat, tFloat)
	opMost     = host("max($0, $1, $2)", tFloat, 0, func(a []any) any { return max(a[0].(float64), a[1].(float64), a[2].(float64)) }, tFloat, tFloat, tFloat)
	opAtMost   = host("min(math.Pi, 2, $0)", tFloat, 0, func(a []any) any { return min(2, a[0].(float64)) }, tFloat)
	opBounded  = host("max(-math.E, min($0, math.Pi))", tFloat, 0, func(a []any) any { return max(-math.E, min(a[0].(float64), math.Pi)) }, tFloat)
	opShrink   = shapedBy("$0.DivScalar($1)", div)
	opSubtract = shapedBy("$0.SubScalar($1)", sub)
)

// shapedBy makes an operation of a tensor and a number.
func shapedBy(source string, eval func(x, y *value) *value) *operation {
	return &operation{source: source, result: tMat, args: []kind{tMat, tFloat}, device: true, eval: func(_ *machine, a []any) any {
		return eval(val(a[0]), scalar(val(a[0]), a[1].(float64)))
	}}
}

// computed is what the host makes of values: with few operations, all of which
// the device has as well.
func (g *maker) computed(deep int) *expr {
	item := func() *expr {
		x := g.variable(tOne)
		if !g.hostOnly && g.chance(2) {
			x = g.expr(tOne, 1)
		}
		return apply(operationOf("$0.Item()", tFloat), x)
	}
	if deep == 0 {
		switch g.choose(5) {
		case 0:
			return g.variable(tFloat)
		case 1:
			return g.leaf(tFloat)
		}
		return item()
	}
	switch g.choose(10) {
	case 0, 1:
		x, y := g.computed(deep-1), g.computed(deep-1)
		if y.isConstant() { // which may be zero: Go does not compile that
			y = item()
		}
		return apply(opDivide, x, y)
	case 2:
		return apply(operationOf("$0 + $1", tFloat), g.computed(deep-1), g.computed(deep-1))
	case 3:
		return apply(operationOf("$0 - $1", tFloat), g.computed(deep-1), g.computed(deep-1))
	case 4:
		return apply(opProduct, g.computed(deep-1), g.computed(deep-1))
	case 5:
		return apply(opRoot, g.computed(deep-1))
	case 6:
		switch x, y := g.computed(deep-1), g.computed(deep-1); g.choose(4) {
		case 0:
			return apply([]*operation{opLeast, opMost}[g.choose(2)], x, y, g.computed(deep-1))
		case 1: // no constant, which would have more digits than a float64
			return apply([]*operation{opAtMost, opBounded}[g.choose(2)], item())
		default:
			return apply([]*operation{opLesser, operationOf("math.Max($0, $1)", tFloat)}[g.choose(2)], x, y)
		}
	case 7:
		return apply([]*operation{opNegate, opShorten, operationOf("math.Abs($0)", tFloat)}[g.choose(3)], g.computed(deep-1))
	}
	return item()
}

// several is what functions of package math make of x, one after the other.
func (g *maker) several(x *expr) *expr {
	for range 1 + g.choose(3) {
		x = apply([]*operation{opRoot, operationOf("math.Abs($0)", tFloat), operationOf("math.Floor($0)", tFloat), opTanh, opBounded}[g.choose(5)], x)
	}
	return x
}

// roundTrip makes statements by which values come back to the device through
// arithmetic, some of them from one iteration to the next.
func (g *maker) roundTrip() []*stmt {
	var list []*stmt
	x := g.computed(2)
	var v *variable
	if g.chance(3) { // comes round again
		v = g.local(tFloat)
		list = append(list, assign(of(v), "=", x))
	} else {
		v = g.fresh(tFloat)
		list = append(list, declaration(v, x))
		g.declare(v)
	}
	if g.chance(3) {
		list = append(list, assign(of(v), g.pick("+=", "-="), g.computed(1)))
	}
	back := of(v)
	if g.chance(3) {
		back = g.computed(1)
	}
	o := []*operation{operationOf("$0.MulScalar($1)", tMat), operationOf("$0.AddScalar($1)", tMat), opShrink, opSubtract}[g.choose(4)]
	list = append(list, assign(of(g.local(tMat)), "=", apply(o, g.variable(tMat), back)))
	switch g.choose(4) {
	case 0:
		list = append(list, &stmt{form: sPrint, text: outWriter, rhs: []*expr{of(v), g.expr(tInt, 0)}})
	case 1:
		list = append(list, assign(g.place(tFloat), "+=", of(v)))
	}
	return list
}

// keptNumbers makes a slice of its own, of numbers that are read and go back to the device.
func (g *maker) keptNumbers() []*stmt {
	v := g.fresh(tFloats)
	at := func() *expr {
		return &expr{form: eIndex, kind: tFloat, args: []*expr{of(v), literal(tInt, g.choose(3))}}
	}
	scaled := func() *stmt {
		x := g.variable(tMat)
		return assign(of(g.local(tMat)), "=", apply(operationOf("$0.MulScalar($1)", tMat), x, at()))
	}
	list := []*stmt{declaration(v, apply(opMake))}
	for range 2 + g.choose(4) {
		switch g.choose(6) {
		case 0:
			list = append(list, assign(at(), g.pick("=", "*=", "+="), g.number()))
		case 1:
			list = append(list, assign(at(), "=", apply(operationOf("$0 * $1", tFloat), at(), g.reading())))
		case 2:
			list = append(list, &stmt{form: sPrint, text: outWriter, rhs: []*expr{at(), of(v)}[:2-min(g.choose(4), 1)]})
		case 3:
			list = append(list, assign(of(v), "=", apply(opAppend, of(v), g.number())))
		default:
			list = append(list, assign(at(), "=", g.reading()), scaled())
		}
	}
	list = append(list, scaled())
	if g.chance(4) {
		g.declare(v) // others see it
	}
	return list
}

// solver makes a loop as of the method of conjugate gradients: values that are
// read come back as factors, from one iteration to the next, and one of them ends it.
func (g *maker) solver() []*stmt {
	if len(g.loops) >= 2 || g.depth > 3 || g.noJumps {
		return nil
	}
	scope, here, inSwitch := len(g.scope), g.here, g.inSwitch
	var list []*stmt
	keep := func(k kind, x *expr) *expr {
		v := g.fresh(k)
		list = append(list, declaration(v, x))
		return of(g.declare(v))
	}
	item := func(x *expr) *expr { return apply(operationOf("$0.Item()", tFloat), x) }
	dot := func(x, y *expr) *expr {
		return item(apply(operationOf("$0.Sum()", tOne), apply(operationOf("$0.Mul($1)", tMat), x, y)))
	}
	step := func(x, d, by *expr) *expr { return apply(operationOf("$0.AddScaled($1, $2)", tMat), x, d, by) }
	x := of(g.local(tMat))
	a := keep(tMat, apply(operationOf("$0.AddScalar($1)", tMat), apply(operationOf("$0.Abs()", tMat), g.variable(tMat)), literal(tFloat, 0.5)))
	r := keep(tMat, apply(operationOf("$0.Sub($1)", tMat), g.variable(tMat), apply(operationOf("$0.Mul($1)", tMat), a, x)))
	p := keep(tMat, r)
	rs := keep(tFloat, dot(r, r))
	isDense := g.chance(3) // the products of which are judged less often
	g.count++
	k := g.fresh(tInt)
	g.protected[k] = true
	s := &stmt{form: []stmtKind{sRange, sCount}[g.choose(2)], text: fmt.Sprintf("loop%d", g.count), vars: []*variable{k}, rhs: []*expr{literal(tInt, 3+g.choose(6))}}
	g.here = len(g.scope)
	g.declare(k)
	g.loops, g.inSwitch = append(g.loops, s), false
	g.depth++
	in := func(list ...*stmt) { s.body = append(s.body, list...) }
	local := func(k kind, x *expr) *expr {
		v := g.fresh(k)
		in(declaration(v, x))
		return of(g.declare(v))
	}
	product := apply(operationOf("$0.Mul($1)", tMat), p, a)
	if isDense {
		product = apply(operationOf("$0.MatMul($1.T()).MatMul($0)", tMat), a, p)
	}
	ap := local(tMat, product)
	alpha := local(tFloat, apply(opDivide, rs, dot(p, ap)))
	if g.chance(4) {
		in(g.print())
	}
	in(assign(x, "=", step(x, p, alpha)))
	in(assign(r, "=", step(r, ap, apply(opNegate, alpha))))
	next := local(tFloat, dot(r, r))
	if g.chance(3) {
		in(&stmt{form: sPrint, text: outWriter, format: "%.4f %v\n", rhs: []*expr{next, of(k)}})
	}
	out := &stmt{form: []stmtKind{sBreak, sBreak, sReturn}[g.choose(3)]}
	g.goes(out)
	small := apply(operationOf("$0 > $1", tBool), literal(tFloat, []float64{0.25, 0.0625, 1e-6}[g.choose(3)]), apply(opRoot, next))
	if g.chance(5) { // it got worse
		small = apply(operationOf("$0 > $1", tBool), next, apply(opProduct, rs, literal(tFloat, 2.0)))
	}
	in(&stmt{form: sIf, rhs: []*expr{small}, body: one(out)})
	in(assign(p, "=", step(r, p, apply(opDivide, next, rs))))
	in(assign(rs, "=", next))
	if g.chance(3) {
		in(g.stmt()...)
	}
	g.depth--
	g.loops = g.loops[:len(g.loops)-1]
	g.scope, g.here, g.inSwitch = g.scope[:scope], here, inSwitch
	return append(list, s)
}
