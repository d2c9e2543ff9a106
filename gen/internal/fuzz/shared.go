package fuzz

// Memory that others can see, changed in loops that wait for values: fields of the parameter s, and the tensors of xs.

// share adds such changes to the loops of the program, and a deferred function that looks.
func (g *maker) share() {
	p := g.p
	s, w, xs := of(p.params["s"]), of(p.params["w"]), of(p.params["xs"])
	count := &expr{form: eField, kind: tInt, field: "Count", args: []*expr{s}}
	best := &expr{form: eField, kind: tMat, field: "Best", args: []*expr{s}}
	element := func(i *expr) *expr {
		at := apply(&operation{source: "$0 % len($1)", result: tInt, args: []kind{tInt, tMats}, eval: func(_ *machine, a []any) any {
			return a[0].(int) % len(a[1].([]*value))
		}}, i, xs)
		return &expr{form: eIndex, kind: tMat, args: []*expr{xs, at}}
	}
	scaled := func(x, by *expr) *expr {
		return apply(operationOf("$0.MulScalar($1)", tMat), x, apply(operationOf("float64($0)", tFloat), by))
	}
	half := func(x *expr) *expr {
		return apply(operationOf("$0.MulScalar($1)", tMat), x, literal(tFloat, 0.5))
	}
	look := func() *stmt {
		sum := apply(operationOf("$0.Sum()", tOne), w)
		return &stmt{form: sPrint, text: outWriter, rhs: []*expr{count, sum}}
	}
	kept := func(at *expr) *stmt { // there is none before
		s := assign(at, "=", half(w))
		s.stays = true
		return s
	}
	made := func() []*stmt {
		switch g.choose(7) {
		case 0:
			return one(&stmt{form: sIncDec, lhs: []*expr{count}, op: "++"})
		case 1:
			return []*stmt{{form: sIncDec, lhs: []*expr{count}, op: "++"}, assign(w, "=", scaled(half(w), count))}
		case 2:
			return []*stmt{kept(best), assign(w, "=", half(best))}
		case 3:
			return []*stmt{kept(best), {form: sPrint, text: outWriter, rhs: []*expr{best, count}}}
		case 4:
			return one(assign(element(literal(tInt, g.choose(3))), "=", half(w)))
		case 5:
			at := element(literal(tInt, g.choose(3)))
			return []*stmt{assign(at, "=", half(at)), assign(w, "=", half(at))}
		}
		return one(look())
	}
	for _, list := range p.inLoops() {
		for range 1 + g.choose(3) {
			at := g.choose(len(*list) + 1)
			tail := append(made(), (*list)[at:]...)
			*list = append((*list)[:at:at], tail...)
		}
	}
	if g.chance(2) {
		see := &stmt{form: sDefer, body: []*stmt{{form: sPrint, text: outWriter, rhs: []*expr{count, element(literal(tInt, 0))}}}}
		p.body = append([]*stmt{see}, p.body...)
	}
}

// inLoops are the lists of statements in loops of the kernel, without those in functions.
func (p *program) inLoops() (all []*[]*stmt) {
	var visit func(list *[]*stmt, inside bool)
	visit = func(list *[]*stmt, inside bool) {
		if inside {
			all = append(all, list)
		}
		for _, s := range *list {
			if s.form == sFunc || s.form == sDefer {
				continue
			}
			for _, block := range s.blocks() {
				if len(*block) > 0 {
					visit(block, inside || s.isLoop())
				}
			}
		}
	}
	visit(&p.body, false)
	return all
}
