package fuzz

// Programs in which values decide what becomes of tensors and what the host does besides, on the
// same side: the device chooses, and the host does the rest later.

// divided makes statements by which a value decides for the device as well as for the host.
func (g *maker) divided() []*stmt {
	w, rate := g.local(tMat), g.local(tFloat)
	v, k := g.fresh(tFloat), g.fresh(tInt)
	g.protected[v], g.protected[k] = true, true
	var list []*stmt
	item := operationOf("$0.Item()", tFloat)
	list = append(list, declaration(v, apply(item, apply(operationOf("$0.Sum()", tOne), of(w)))))
	g.declare(v)
	byIndex := g.chance(4)
	if byIndex {
		list = append(list, declaration(k, apply(opFound, apply(opBest, apply(opRow, of(w), literal(tInt, 0))))))
		g.declare(k)
	}
	more := operationOf("$0 > $1", tBool)
	condition := func() *expr {
		switch g.choose(6) {
		case 0:
			if byIndex {
				return apply(operationOf("$0 == $1", tBool), of(k), literal(tInt, g.choose(3)))
			}
			return apply(areOdd[g.choose(4)], of(v))
		case 1:
			return apply(more, of(v), of(rate))
		case 2:
			if byIndex {
				return apply([]*operation{opAnd, opOr}[g.choose(2)], apply(operationOf("$0 < $1", tBool), literal(tInt, g.choose(3)), of(k)), apply(more, of(v), g.leaf(tFloat)))
			}
			return apply([]*operation{opAnd, opOr}[g.choose(2)], apply(more, of(v), g.leaf(tFloat)), apply(more, g.leaf(tFloat), of(v)))
		case 3:
			return apply(operationOf("!$0", tBool), apply(more, of(v), g.leaf(tFloat)))
		}
		return g.tested(of(v))
	}
	side := func() (all []*stmt) {
		for range 1 + g.choose(3) {
			all = append(all, g.onOneSide(w, rate, v, condition)...)
		}
		return all
	}
	switch g.choose(6) {
	case 5: // the host decides, and leaves the other side to the device
		body := side()
		if g.chance(2) {
			body = append(one(assign(of(rate), "=", g.leaf(tFloat))), g.hostSide(v, rate)...)
		}
		list = append(list, &stmt{form: sIf, rhs: []*expr{apply(operationOf("$0%2 == 0", tBool), g.variable(tInt))}, body: body, other: one(&stmt{
			form: sIf, text: elseIf, rhs: []*expr{apply(more, of(rate), of(v))}, body: one(assign(of(rate), "=", g.several(of(v)))),
		})})
	case 0:
		s := &stmt{form: sSwitch, rhs: []*expr{condition(), condition()}, cases: [][]*stmt{side(), side()}}
		if g.chance(2) {
			s.other = side()
		}
		list = append(list, s)
	case 1:
		list = append(list, &stmt{form: sIf, rhs: []*expr{condition()}, body: side()})
	default:
		list = append(list, &stmt{form: sIf, rhs: []*expr{condition()}, body: side(), other: side()})
	}
	if g.chance(2) {
		list = append(list, assign(of(w), "=", g.changed(of(w), of(rate))))
	}
	return append(list, &stmt{form: sPrint, text: outWriter, rhs: []*expr{of(v), of(rate), of(g.local(tInt))}})
}

// onOneSide makes a statement for the device, or one for the host, which v decides on.
func (g *maker) onOneSide(w, rate, v *variable, condition func() *expr) []*stmt {
	half := operationOf("$0 * $1", tFloat)
	switch g.choose(13) {
	case 0, 1:
		return one(assign(of(w), "=", g.changed(of(w), g.leaf(tFloat))))
	case 2:
		return one(assign(of(w), "=", g.changed(of(w), of(v))))
	case 3:
		return one(assign(of(rate), "=", apply(half, of(rate), literal(tFloat, 0.5))))
	case 4:
		return one(assign(of(rate), "=", of(v)))
	case 5:
		s := &stmt{form: sIf, rhs: []*expr{condition()}, body: one(assign(of(w), "=", g.changed(of(w), g.leaf(tFloat))))}
		if g.chance(2) {
			s.other = one(assign(of(w), "=", of(w)))
		}
		return one(s)
	case 6:
		return g.hostSide(v, rate)
	case 7:
		return one(&stmt{form: sPrint, text: outWriter, rhs: []*expr{of(w), of(g.local(tInt))}})
	case 8:
		if g.clock != nil && g.chance(2) {
			out := &stmt{form: []stmtKind{sBreak, sReturn}[g.choose(2)]}
			g.goes(out)
			return one(&stmt{form: sIf, rhs: []*expr{g.until(g.choose(4))}, body: one(out)})
		}
		return one(assign(of(g.local(tFloat)), "+=", of(v)))
	case 9:
		return one(assign(of(rate), "=", g.leaf(tFloat)))
	case 10:
		return one(assign(of(rate), "=", g.several(of(v))))
	case 11:
		if !g.noCells {
			return one(call(apply(opSetRate, apply(operationOf("math.Abs($0)", tFloat), of(rate)))))
		}
	}
	return one(&stmt{form: sIncDec, lhs: []*expr{of(g.local(tInt))}, op: "++"})
}

// hostSide makes statements for the host alone, which may end the loop.
func (g *maker) hostSide(v, rate *variable) []*stmt {
	all := one(&stmt{form: sPrint, text: outWriter, rhs: []*expr{literal(tString, "side"), of(v), of(rate)}[:1+g.choose(3)]})
	if len(g.loops) > 0 && g.chance(2) {
		out := &stmt{form: sBreak, text: g.loops[len(g.loops)-1].text}
		all = append(all, &stmt{form: sIf, rhs: []*expr{apply(operationOf("$0 > 2", tBool), g.variable(tInt))}, body: one(out)})
	}
	return all
}
