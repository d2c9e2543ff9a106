package fuzz

import "math"

// The operations of numbers that are read, computed with, and given back to the device.
var (
	opDivide   = host("$0 / $1", tFloat, 0, func(a []any) any { return a[0].(float64) / a[1].(float64) }, tFloat, tFloat)
	opProduct  = host("float64(($0) * ($1))", tFloat, 0, func(a []any) any { return a[0].(float64) * a[1].(float64) }, tFloat, tFloat)
	opNegate   = host("-($0)", tFloat, 0, func(a []any) any { return -a[0].(float64) }, tFloat)
	opRoot     = host("math.Sqrt($0)", tFloat, 0, func(a []any) any { return math.Sqrt(a[0].(float64)) }, tFloat)
	opLesser   = host("min($0, $1)", tFloat, 0, func(a []any) any { return min(a[0].(float64), a[1].(float64)) }, tFloat, tFloat)
	opShorten  = host("float64(float32($0))", tFloat, 0, func(a []any) any { return float64(float32(a[0].(float64))) }, tFloat)
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
		return apply([]*operation{opLesser, operationOf("math.Max($0, $1)", tFloat)}[g.choose(2)], g.computed(deep-1), g.computed(deep-1))
	case 7:
		return apply([]*operation{opNegate, opShorten, operationOf("math.Abs($0)", tFloat)}[g.choose(3)], g.computed(deep-1))
	}
	return item()
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
