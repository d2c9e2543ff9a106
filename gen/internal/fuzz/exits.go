package fuzz

import (
	"fmt"
	"slices"
)

// Programs of loops that values end. Such a loop runs on past its end until
// the value has arrived, so a program has to show everything that must not be
// seen of that: cells, random numbers, variables, output, failures. The
// statements are those that let a loop be run past its end, mostly.

// ending are the statements of loops that values end.
var ending []statement

func init() { // not an initialiser: they contain blocks
	ending = []statement{
		{6, forDevice, func(g *maker) []*stmt { return one(assign(of(g.local(tMat)), "=", g.expr(tMat, 2))) }},
		{4, forDevice, func(g *maker) []*stmt { return one(assign(of(g.local(tOne)), "=", g.expr(tOne, 2))) }},
		{3, forDevice, func(g *maker) []*stmt {
			k := []kind{tMat, tVec, tOne, tIOne}[g.choose(4)]
			x := g.expr(k, 2)
			return one(declaration(g.declare(g.fresh(k)), x))
		}},
		{4, forDevice, func(g *maker) []*stmt { // cells
			return one(g.changeCells())
		}},
		{4, forDevice, func(g *maker) []*stmt { return one(g.draw()) }},
		{6, anywhere, func(g *maker) []*stmt {
			return one(assign(g.place(tFloat), g.pick("+=", "+=", "-=", "="), g.number()))
		}},
		{5, anywhere, func(g *maker) []*stmt { return one(g.print()) }},
		{3, anywhere, (*maker).group},
		{3, anywhere, func(g *maker) []*stmt {
			l := g.place(tFloats)
			if l.form == eVar && l.v.name == "rates" {
				return nil
			}
			return one(assign(l, "=", apply(opAppend, l, g.number())))
		}},
		{2, anywhere, (*maker).overtake},
		{1, anywhere, (*maker).overwrite},
		{2, forDevice, (*maker).roundTrip},
		{1, forDevice, (*maker).solver},
		{2, forDevice, (*maker).divided},
		{1, forDevice, (*maker).checkpoint},
		{2, anywhere, (*maker).onlySometimes},
		{5, anywhere, (*maker).rows},
		{4, forDevice, (*maker).keptRows},
		// What is changed ahead of the value, and given back.
		{4, anywhere, func(g *maker) []*stmt { return one(&stmt{form: sIncDec, lhs: []*expr{of(g.local(tInt))}, op: "++"}) }},
		{2, anywhere, func(g *maker) []*stmt { return one(assign(of(g.local(tString)), "+=", g.leaf(tString))) }},
		{2, anywhere, func(g *maker) []*stmt {
			return one(assign(of(g.local(tFloat)), g.pick("=", "+=", "*="), g.leaf(tFloat)))
		}},
		{2, anywhere, func(g *maker) []*stmt {
			x := g.number()
			return one(declaration(g.declare(g.fresh(tFloat)), x))
		}},
		// What fails behind the exit must not be seen, before it it must.
		{2, anywhere, func(g *maker) []*stmt {
			return one(&stmt{form: sIf, rhs: []*expr{g.until(g.choose(4))}, body: []*stmt{{form: sPanic, rhs: []*expr{literal(tString, "stop "), g.expr(tInt, 1)}}}})
		}},
		{2, forDevice, func(g *maker) []*stmt { // fails when the clock is near zero
			divide := operationOf("$0.As(tensor.Int64).Div($1.As(tensor.Int64)).As(tensor.{T})", tMat)
			return one(assign(of(g.local(tMat)), "=", apply(divide, g.expr(tMat, 0), apply(operationOf("$0.BroadcastTo({r}, {c})", tMat), of(g.clock)))))
		}},
		{2, anywhere, (*maker).beyond},
		{1, forDevice, (*maker).choice},
		{1, forDevice, (*maker).selection},
		{1, anywhere, (*maker).help},
		{4, anywhere, (*maker).branch},
		{4, anywhere, (*maker).leave},
		{1, anywhere, func(g *maker) []*stmt { // work that comes several times
			if g.depth > 4 {
				return nil
			}
			v := g.fresh(tInt)
			g.protected[v] = true
			s := &stmt{form: sRange, vars: []*variable{v}, rhs: []*expr{literal(tInt, 2)}}
			scope := len(g.scope)
			g.declare(v)
			g.count++
			s.text = fmt.Sprintf("loop%d", g.count)
			g.loops = append(g.loops, s)
			s.body = g.block(1 + g.choose(2))
			g.loops, g.scope = g.loops[:len(g.loops)-1], g.scope[:scope]
			return one(s)
		}},
	}
}

// beyond makes a statement that fails when the loop has run for long enough: what it looks for is not there any more.
func (g *maker) beyond() []*stmt {
	vs := g.visible(func(v *variable) bool { return v.kind == tInt && g.protected[v] })
	if len(vs) == 0 {
		return nil
	}
	k := of(vs[g.choose(len(vs))])
	switch x := g.visible(func(v *variable) bool { return v.name == "rates" }); {
	case g.chance(2) && len(x) > 0:
		return one(assign(g.place(tFloat), "+=", &expr{form: eIndex, kind: tFloat, args: []*expr{of(x[0]), k}}))
	case g.hostOnly:
		return nil
	}
	l := of(g.local(tMat))
	return one(assign(l, "=", apply(opAddRow, l, apply(opRow, g.variable(tMat), k))))
}

// draw makes a statement that uses random numbers.
func (g *maker) draw() *stmt {
	source := g.pick("m.G.Rand({r}, {c}).As(tensor.{T})", "tensor.Rand({r}, {c}).As(tensor.{T})", "m.G.Uniform(-1, 1, {r}, {c}).As(tensor.{T})", "tensor.Full($0, {r}, {c}).As(tensor.{T})")
	drawn := apply(operationOf(source, tMat))
	if len(drawn.op.args) > 0 { // of the host's generator
		drawn.args = []*expr{apply(operationOf("m.R.Float64()", tFloat))}
	}
	l := of(g.local(tMat))
	return assign(l, "=", apply(operationOf("$0.Add($1)", tMat), l, drawn))
}

// until is a condition that holds from some iteration on, the later the
// greater margin is: the clock loses a half in each.
func (g *maker) until(margin int) *expr {
	lim := literal(tFloat, float64(2-margin)/2)
	return apply(operationOf("$0 > $1", tBool), lim, apply(operationOf("$0.Item()", tFloat), of(g.clock)))
}

// leave makes a way out of the loop, decided by a value mostly.
func (g *maker) leave() []*stmt {
	if inner := len(g.loops) > g.outer; inner && !g.chance(4) {
		return nil
	}
	out := &stmt{form: []stmtKind{sBreak, sReturn, sContinue}[g.weighted([]int{6, 5, 1})]}
	scope, was := len(g.scope), g.hostOnly
	defer func() { g.scope, g.hostOnly = g.scope[:scope], was }()
	var s *stmt
	switch g.choose(8) {
	case 0, 1, 2:
		s = &stmt{form: sIf, rhs: []*expr{g.until(g.choose(5) - 1)}}
	case 3:
		s = &stmt{form: sIf, rhs: []*expr{apply(operationOf("$0 > $1", tBool), g.reading(), literal(tFloat, float64(g.choose(9)-1)))}}
	case 4:
		o := opAnd
		if g.chance(3) {
			o = opOr
		}
		s = &stmt{form: sIf, rhs: []*expr{apply(o, g.until(g.choose(3)), g.expr(tBool, 1))}}
	case 5: // what the values before have made of the host's state
		s = &stmt{form: sIf, rhs: []*expr{apply(operationOf("$0 > $1", tBool), of(g.local(tFloat)), literal(tFloat, float64(g.choose(9)-1)))}}
	case 6:
		v := g.fresh(tError)
		s = &stmt{form: sIf, init: declaration(v, apply(operationOf("$0.Wait()", tError), g.variable(tOne))), rhs: []*expr{apply(operationOf("$0 != nil", tBool), of(v))}}
		g.declare(v)
	case 7:
		v := g.fresh(tFloat)
		s = &stmt{form: sIf, init: declaration(v, apply(operationOf("$0.Item()", tFloat), of(g.clock))), rhs: []*expr{apply(operationOf("$0 <= 0.5", tBool), of(v))}}
		g.declare(v)
	}
	g.hostOnly = true
	if g.chance(2) {
		s.body = g.block(1 + g.choose(2))
	}
	g.goes(out)
	s.body = append(s.body, out)
	if g.chance(5) {
		s.other = g.block(1)
	}
	if s.init == nil && g.chance(6) {
		return one(&stmt{form: sSwitch, rhs: s.rhs, cases: [][]*stmt{s.body}, other: s.other})
	}
	return one(s)
}

// goes says where a jump leads.
func (g *maker) goes(out *stmt) {
	switch {
	case out.form != sReturn: // its label is right in a switch, too
		out.text = g.loops[len(g.loops)-1].text
		if g.chance(4) {
			out.text = g.loops[g.choose(len(g.loops))].text
		}
	case g.p.named && g.chance(2): // what the results hold
	default:
		out.rhs = []*expr{g.variable(tMat), g.expr(tFloat, 1), g.variable(tFloats)}
		if g.chance(3) {
			out.rhs[0] = g.expr(tMat, 1)
		}
	}
}

// patience makes a counter of iterations without progress, and its exit.
func (g *maker) patience(best, bad *variable) *stmt {
	out := &stmt{form: sBreak}
	if g.chance(2) {
		out.form = sReturn
	}
	read := g.reading()
	if g.chance(2) {
		read = apply(operationOf("math.Abs($0)", tFloat), apply(operationOf("$0.Item()", tFloat), of(g.clock)))
	}
	g.goes(out)
	tooMany := apply(operationOf("$0 > 2", tBool), of(bad))
	s := &stmt{form: sIf, rhs: []*expr{apply(operationOf("$0 > $1", tBool), of(best), read)}}
	s.body = one(assign(of(best), "=", read))
	s.other = []*stmt{{form: sIncDec, lhs: []*expr{of(bad)}, op: "++"}, {form: sIf, rhs: []*expr{tooMany}, body: one(out)}}
	return s
}

// ended makes a loop that a value ends, what it starts from, and what looks
// at it afterwards.
func (g *maker) ended() []*stmt {
	clock, wasClock := g.fresh(tOne), g.clock
	g.protected[clock] = true
	from := float64(2 + g.choose(6))
	list := one(declaration(clock, apply(operationOf("tensor.Scalar($0).As(tensor.{T})", tOne), literal(tFloat, from))))
	list[0].stays = true
	g.declare(clock)
	g.clock = clock
	keep := func(v *variable, x *expr) *variable {
		list = append(list, declaration(v, x))
		return g.declare(v)
	}
	best, bad := keep(g.fresh(tFloat), literal(tFloat, 5.0)), keep(g.fresh(tInt), literal(tInt, 0))
	k := g.fresh(tInt)
	g.protected[k] = true
	g.count++
	s := &stmt{text: fmt.Sprintf("loop%d", g.count)}
	limit := literal(tInt, 6+g.choose(12))
	inLoop := len(g.scope)
	var first, last []*stmt
	switch g.choose(9) {
	case 8: // for v := clock.Item(); v > 0.5 && k < limit; v = clock.Item()
		keep(k, literal(tInt, 0))
		list[len(list)-1].stays = true
		inLoop++
		first = append(first, &stmt{form: sIncDec, lhs: []*expr{of(k)}, op: "++", stays: true})
		item := apply(operationOf("$0.Item()", tFloat), of(clock))
		if g.chance(3) {
			item = apply(operationOf("$0 + $1", tFloat), item, g.reading())
		}
		v := g.fresh(tFloat)
		s.form, s.init, s.post = sHead, declaration(v, item), assign(of(v), "=", item)
		s.rhs = []*expr{apply(opAnd, apply(operationOf("$0 > $1", tBool), of(v), literal(tFloat, 0.5)), apply(operationOf("$0 < $1", tBool), of(k), limit))}
		g.protected[v] = !g.chance(4)
		g.declare(v)
	case 0, 1, 2:
		s.form, s.rhs, s.vars = sRange, []*expr{limit}, []*variable{k}
		g.declare(k)
	case 3:
		s.form, s.rhs, s.vars = sCount, []*expr{limit}, []*variable{k}
		g.declare(k)
	case 4:
		s.form, s.rhs, s.vars = sRange, []*expr{g.variable(tMats)}, []*variable{k, g.fresh(tMat)}
		g.declare(k)
		g.declare(s.vars[1])
	default: // the loop counts itself
		keep(k, literal(tInt, 0))
		list[len(list)-1].stays = true
		inLoop++
		more := apply(operationOf("$0 < $1", tBool), of(k), limit)
		first = append(first, &stmt{form: sIncDec, lhs: []*expr{of(k)}, op: "++", stays: true})
		if s.form = sWhile; g.chance(3) {
			s.form = sEndless
			first = append(first, &stmt{form: sIf, rhs: []*expr{apply(operationOf("!$0", tBool), more)}, body: []*stmt{{form: sBreak, stays: true}}, stays: true})
			break
		}
		left := keep(g.fresh(tFloat), literal(tFloat, 1.5))
		inLoop++
		item := apply(operationOf("$0.Item()", tFloat), of(clock))
		goOn := apply(operationOf("$0 > $1", tBool), of(left), literal(tFloat, 0.5))
		switch g.choose(3) {
		case 0: // for left > 0.5 && k < limit
			last = one(assign(of(left), "=", item))
		case 1:
			last = one(assign(of(left), "=", apply(operationOf("$0 + $1", tFloat), item, g.reading())))
		case 2: // for clock.Item() > 0.5 && k < limit
			goOn.args[0] = item
		}
		if s.rhs = []*expr{apply(opAnd, goOn, more)}; g.chance(2) {
			s.rhs[0].args[0], s.rhs[0].args[1] = more, goOn
		}
	}
	g.loops = append(g.loops, s)
	scope, here, statements, inSwitch, outer := len(g.scope), g.here, g.statements, g.inSwitch, g.outer
	g.here, g.statements, g.inSwitch, g.outer = scope, ending, false, len(g.loops)
	g.depth++
	s.body = append(s.body, first...)
	tick := assign(of(clock), "=", apply(operationOf("$0.SubScalar(0.5)", tOne), of(clock)))
	tick.stays = true
	n := 3 + g.choose(4)
	ticks, leaves, counts := g.choose(n), g.choose(n), -1
	if g.chance(3) {
		counts = g.choose(n)
	}
	for i := range n {
		if i == ticks {
			s.body = append(s.body, tick)
		}
		if i == leaves {
			s.body = append(s.body, g.leave()...)
		}
		if i == counts {
			s.body = append(s.body, g.patience(best, bad))
		}
		s.body = append(s.body, g.stmt()...)
	}
	s.body = append(s.body, last...)
	g.depth--
	g.here, g.statements, g.inSwitch, g.outer = here, statements, inSwitch, outer
	g.loops = g.loops[:len(g.loops)-1]
	g.scope = slices.Delete(g.scope, inLoop, len(g.scope))
	g.clock = wasClock
	list = append(list, s)
	if g.chance(2) {
		list = append(list, g.draw())
	}
	shown := []*expr{literal(tString, "ended"), of(clock), of(best), of(bad), g.variable(tInt), g.variable(tFloat), g.variable(tString), g.variable(tMat)}
	return append(list, &stmt{form: sPrint, text: outWriter, rhs: shown})
}

// endings makes one loop after the other that values end, some in another loop.
func (g *maker) endings() []*stmt {
	if !g.chance(3) {
		return g.ended()
	}
	g.count++
	v := g.fresh(tInt)
	g.protected[v] = true
	s := &stmt{form: sRange, text: fmt.Sprintf("loop%d", g.count), vars: []*variable{v}, rhs: []*expr{literal(tInt, 2)}}
	scope, here := len(g.scope), g.here
	g.here = scope
	g.declare(v)
	g.loops = append(g.loops, s)
	if g.chance(2) {
		s.body = append(s.body, g.stmt()...)
	}
	s.body = append(s.body, g.ended()...)
	if g.chance(2) {
		s.body = append(s.body, g.stmt()...)
	}
	g.loops, g.scope, g.here = g.loops[:len(g.loops)-1], g.scope[:scope], here
	return one(s)
}
