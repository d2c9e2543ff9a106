package fuzz

// Programs in which the device is asked what becomes of tensors: by a comparison of values, or by an index that it finds.

var (
	opAddRow = shaped("$0.Add($1)", 0, func(a []*value) *value { return add(a[0], a[1]) }, tMat, tMat, tVec)
	opFound  = read("int($0.ItemInt())", tInt, 0, func(_ *machine, a []any) any { return int(ok(a[0]).ints[0]) }, tIOne)
)

// changed is what one side of a choice makes of the tensor x, with numbers of the host.
func (g *maker) changed(x *expr, number *expr) *expr {
	switch g.choose(6) {
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
	}
	return apply(operationOf("$0.MulScalar($1)", tMat), x, number)
}

// choice makes statements by which a value decides what becomes of a tensor.
func (g *maker) choice() []*stmt {
	w := g.local(tMat)
	v := g.fresh(tFloat)
	list := []*stmt{declaration(v, apply(operationOf("$0.Item()", tFloat), apply(operationOf("$0.Sum()", tOne), of(w))))}
	g.declare(v)
	number := func() *expr {
		if g.chance(2) {
			return of(v)
		}
		return g.leaf(tFloat)
	}
	test := apply(operationOf("$0 > $1", tBool), of(v), g.leaf(tFloat))
	if g.chance(4) {
		test = apply(operationOf("$0 > $1", tBool), g.leaf(tFloat), of(v))
	}
	side := func() []*stmt { return one(assign(of(w), "=", g.changed(of(w), number()))) }
	s := &stmt{form: sIf, rhs: []*expr{test}, body: side()}
	if g.chance(2) {
		s.other = side()
	}
	list = append(list, s)
	if g.chance(3) {
		list = append(list, &stmt{form: sPrint, text: outWriter, rhs: []*expr{of(v), g.expr(tInt, 0)}})
	}
	return list
}

// selection makes statements by which an index that the device finds selects a row, which is there or not.
func (g *maker) selection() []*stmt {
	w := of(g.local(tMat))
	i := g.fresh(tInt)
	g.protected[i] = true
	list := []*stmt{declaration(i, apply(opFound, apply(opBest, apply(opRow, g.variable(tMat), literal(tInt, 0)))))}
	g.declare(i)
	if g.chance(3) {
		list = append(list, &stmt{form: sPrint, text: outWriter, rhs: []*expr{of(i), g.expr(tFloat, 0)}})
	}
	at := of(i)
	if g.chance(4) {
		at = apply(operationOf("$0 + $1", tInt), at, literal(tInt, g.choose(2)))
	}
	return append(list, assign(w, "=", apply(opAddRow, w, apply(opRow, g.variable(tMat), at))))
}
