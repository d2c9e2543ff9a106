package fuzz

import (
	"math"
	"slices"
)

// Programs in which the device is asked what becomes of tensors: by a comparison of values, or by
// an index that it finds.

var (
	opAddRow  = shaped("$0.Add($1)", 0, func(a []*value) *value { return add(a[0], a[1]) }, tMat, tMat, tVec)
	opAddPart = &operation{source: "$0.Add($1.Slice(0, $2, $2+1))", result: tMat, args: []kind{tMat, tMat, tInt}, device: true, eval: func(m *machine, a []any) any {
		x, i := val(a[1]), a[2].(int)
		return add(val(a[0]), part(x, m.slice(x, i, i+1)*x.shape[1], 1, x.shape[1]))
	}}
	// What is asked of a number besides whether it is more than another.
	areOdd = []*operation{
		operationOf("math.IsNaN($0)", tBool),
		host("math.IsInf($0, 1)", tBool, 0, func(a []any) any { return math.IsInf(a[0].(float64), 1) }, tFloat),
		host("math.IsInf($0, -1)", tBool, 0, func(a []any) any { return math.IsInf(a[0].(float64), -1) }, tFloat),
		host("math.IsInf($0, 0)", tBool, 0, func(a []any) any { return math.IsInf(a[0].(float64), 0) }, tFloat),
	}
	// Constants of package help.
	constants = []*operation{
		host("help.Quiet", tBool, 0, func([]any) any { return false }),
		host(`help.Mode == "train"`, tBool, 0, func([]any) any { return true }),
	}
	opFound = read("int($0.ItemInt())", tInt, 0, func(_ *machine, a []any) any { return int(ok(a[0]).ints[0]) }, tIOne)
)

// slice is where a slice begins, if there is one.
func (m *machine) slice(x *value, from, to int) int {
	n := x.shape[0]
	if from < 0 {
		from += n
	}
	if to < 0 {
		to += n
	}
	if from < 0 || from > n || to < 0 || to > n || from > to {
		panic(raised{"*op.Mistake: Slice"})
	}
	return from
}

// changed is what one side of a choice makes of the tensor x, with numbers of the host, or with another tensor.
func (g *maker) changed(x, number *expr) *expr {
	switch g.choose(8) {
	case 0:
		return apply(operationOf("$0.Abs()", tMat), x)
	case 1:
		return apply(operationOf("$0.AddScalar($1)", tMat), x, number)
	case 2:
		return apply(opSubtract, apply(operationOf("$0.MulScalar($1)", tMat), x, literal(tFloat, 0.5)), number)
	case 3:
		return apply(opShrink, x, literal(tFloat, 4.0))
	case 4:
		return apply(operationOf("$0.Mul($1)", tMat), x, x)
	case 5: // which may have failed
		return apply(operationOf("$0.Add($1)", tMat), x, g.variable(tMat))
	case 6: // there may be no such row
		if at := g.variable(tIOne); at != nil && g.chance(2) {
			return apply(opAddRow, x, apply(operationOf("$0.RowAt($1)", tVec), x, at))
		}
	}
	return apply(operationOf("$0.MulScalar($1)", tMat), x, number)
}

// tested is a condition that x, a number, decides, alone or together with a constant.
func (g *maker) tested(x *expr) *expr {
	is := apply(operationOf("$0 > $1", tBool), x, g.leaf(tFloat))
	switch g.choose(8) {
	case 0:
		is.args[0], is.args[1] = is.args[1], is.args[0]
	case 1, 2:
		is = apply(areOdd[g.choose(4)], x)
	}
	if g.chance(8) {
		args := []*expr{is, apply(constants[g.choose(2)])}
		if g.chance(3) {
			slices.Reverse(args)
		}
		return apply([]*operation{opAnd, opOr}[g.choose(2)], args...)
	}
	return is
}

// choice makes statements by which a value decides what becomes of a tensor, or of a number that goes into one.
func (g *maker) choice() []*stmt {
	w := g.local(tMat)
	v := g.fresh(tFloat)
	scope := len(g.scope)
	define := declaration(v, apply(operationOf("$0.Item()", tFloat), apply(operationOf("$0.Sum()", tOne), of(w))))
	s := &stmt{form: sIf}
	var list []*stmt
	isHead := g.chance(4)
	if isHead {
		s.init = define
	} else {
		list = append(list, define)
	}
	g.declare(v)
	number := func() *expr {
		switch g.choose(6) {
		case 0, 1:
			return of(v)
		case 2:
			return g.several(of(v))
		}
		return g.leaf(tFloat)
	}
	s.rhs = []*expr{g.tested(of(v))}
	if !isHead && g.chance(3) { // a number
		u := g.fresh(tFloat)
		begins := apply(operationOf("$0 - $1", tFloat), of(v), g.leaf(tFloat))
		if g.chance(2) {
			begins = g.leaf(tFloat)
		}
		list = append(list, declaration(u, begins))
		g.declare(u)
		used := of(u)
		if g.chance(3) {
			used = apply(opShorten, used)
		}
		s.body = one(assign(of(u), "=", number()))
		if g.chance(2) {
			s.other = one(assign(of(u), "=", apply(opNegate, of(v))))
		}
		list = append(list, s, assign(of(w), "=", apply(operationOf("$0.AddScalar($1)", tMat), of(w), used)))
		if g.chance(2) {
			list = append(list, assign(g.place(tFloat), "+=", of(u)))
		}
		return list
	}
	side := func() []*stmt { return one(assign(of(w), "=", g.changed(of(w), number()))) }
	if s.body = side(); g.chance(2) {
		s.other = side()
	}
	list = append(list, s)
	if isHead {
		g.scope = g.scope[:scope]
	} else if g.chance(3) {
		list = append(list, &stmt{form: sPrint, text: outWriter, rhs: []*expr{of(v), g.expr(tInt, 0)}})
	}
	return list
}

// selection makes statements by which an index that the device finds selects a row, which is there or not.
func (g *maker) selection() []*stmt {
	w := of(g.local(tMat))
	i := g.fresh(tInt)
	g.protected[i] = true
	found := apply(opBest, apply(opRow, g.variable(tMat), literal(tInt, 0)))
	if at := g.variable(tIOne); at != nil && g.chance(3) { // of any sign
		found = at
	}
	list := []*stmt{declaration(i, apply(opFound, found))}
	g.declare(i)
	if g.chance(3) {
		list = append(list, &stmt{form: sPrint, text: outWriter, rhs: []*expr{of(i), g.expr(tFloat, 0)}})
	}
	if g.chance(3) {
		return append(list, assign(w, "=", apply(opAddPart, w, g.variable(tMat), of(i))))
	}
	at := of(i)
	if g.chance(4) {
		at = apply(operationOf("$0 + $1", tInt), at, literal(tInt, g.choose(2)))
	}
	return append(list, assign(w, "=", apply(opAddRow, w, apply(opRow, g.variable(tMat), at))))
}
