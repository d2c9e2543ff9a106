package fuzz

import (
	"fmt"
	"strings"
)

// Programs with function literals that do a step of the loop: work for the device with variables around them, and
// looks at values.

// stepper makes such a function literal.
func (g *maker) stepper() *stmt {
	g.count++
	x := &variable{name: fmt.Sprintf("in%d", g.count), kind: tMat}
	by := &variable{name: fmt.Sprintf("by%d", g.count), kind: tFloat}
	fn := &function{result: []kind{none, tFloat, tMat, none, tFloat}[g.choose(5)], params: []*variable{x, by}}
	g.second(fn)
	left, noJumps, outer := g.left, g.noJumps, g.here
	scope := len(g.scope)
	g.left, g.noJumps, g.here = 5, true, scope
	g.declare(x)
	g.declare(by)
	var begin []*stmt
	if !g.chance(3) {
		begin = append(begin, assign(of(g.local(tMat)), "=", g.changed(of(x), literal(tFloat, 0.5))))
	}
	if g.chance(2) {
		begin = append(begin, &stmt{form: sIncDec, lhs: []*expr{of(g.local(tInt))}, op: "++"})
	}
	if !g.chance(4) {
		value := apply(operationOf("$0.Item()", tFloat), apply(operationOf("$0.Sum()", tOne), of(g.local(tMat))))
		begin = append(begin, assign(g.place(tFloat), g.pick("+=", "-=", "="), value))
	}
	if vs := g.visible(func(v *variable) bool { return v.fn != nil }); len(vs) > 0 && g.chance(3) {
		begin = append(begin, call(g.callOf(vs[g.choose(len(vs))])))
	}
	g.scope = g.scope[:scope]
	g.left, g.noJumps, g.here = 5, noJumps, outer
	more := 0
	if g.chance(3) {
		more = 1
	}
	g.function(fn, scope, more)
	g.left = left
	fn.body = append(begin, fn.body...)
	v := &variable{name: fmt.Sprintf("step%d", g.count), fn: fn}
	g.declare(v)
	return &stmt{form: sFunc, vars: []*variable{v}, fn: fn}
}

// callOf is a call of the function literal that v is.
func (g *maker) callOf(v *variable) *expr {
	x := &expr{form: eCall, kind: v.fn.result, v: v, fn: v.fn}
	for _, p := range v.fn.params {
		x.args = append(x.args, g.argument(p.kind))
	}
	return x
}

// second gives fn, now and then, a tensor and a number for results.
func (g *maker) second(fn *function) {
	switch {
	case !g.chance(2):
	case fn.result == tFloat:
		fn.also = tMat
	case fn.result == tMat:
		fn.also = tFloat
	}
}

// results are the results of fn as source.
func (fn *function) results() string {
	if fn.also == none {
		return kinds[fn.result].source
	}
	return "(" + kinds[fn.result].source + ", " + kinds[fn.also].source + ")"
}

// both assigns both results of a call to variables, old ones or new ones.
func (g *maker) both(x *expr) *stmt {
	if g.chance(2) {
		vs := []*variable{g.fresh(x.fn.result), g.fresh(x.fn.also)}
		for _, v := range vs {
			g.declare(v)
		}
		return &stmt{form: sDeclare, vars: vs, rhs: []*expr{x}}
	}
	return &stmt{form: sAssign, lhs: []*expr{of(g.local(x.fn.result)), of(g.local(x.fn.also))}, op: "=", rhs: []*expr{x}}
}

// literal calls a function literal, which it makes if there is none.
func (g *maker) literal() []*stmt {
	if g.noJumps {
		return nil
	}
	var list []*stmt
	steps := g.visible(func(v *variable) bool { return v.fn != nil && strings.HasPrefix(v.name, "step") })
	if len(steps) == 0 || g.chance(3) {
		list = one(g.stepper())
		steps = list[0].vars
	}
	for range 1 + g.choose(2) {
		if x := g.callOf(steps[g.choose(len(steps))]); x.fn.also != none && !g.chance(6) {
			list = append(list, g.both(x))
		} else if x.kind == none || x.fn.also != none || g.chance(2) {
			list = append(list, call(x))
		} else if x.kind == tMat {
			list = append(list, assign(of(g.local(tMat)), "=", x))
		} else {
			list = append(list, assign(g.place(tFloat), g.pick("+=", "="), x))
		}
	}
	return list
}
