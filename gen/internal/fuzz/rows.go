package fuzz

import (
	"fmt"
	"slices"
)

// Programs of loops over the rows of tensors, each of which is read, or
// computed with and read, or kept.

// The operations of one row of a tensor, by its number.
var (
	opRow = &operation{source: "$0.Row($1)", result: tVec, args: []kind{tMat, tInt}, device: true, eval: func(m *machine, a []any) any {
		x := val(a[0])
		return part(x, m.row("Row", x, a[1].(int))*x.shape[1], x.shape[1])
	}}
	opNumber = &operation{source: "$0.Row($1)", result: tOne, args: []kind{tVec, tInt}, device: true, eval: func(m *machine, a []any) any {
		return part(val(a[0]), m.row("Row", val(a[0]), a[1].(int)))
	}}
	opRowLast = read("$0.At($1, {c}-1)", tFloat, 0, func(m *machine, a []any) any {
		x := val(a[0])
		at := m.row("At", x, a[1].(int))
		return ok(x).floats[at*x.shape[1]+x.shape[1]-1]
	}, tMat, tInt)
	opElement = read("$0.At({c}-1)", tFloat, 0, func(_ *machine, a []any) any { return ok(a[0]).floats[val(a[0]).shape[0]-1] }, tVec)
	opWhere   = read("float64($0.ItemInt())", tFloat, 0, func(_ *machine, a []any) any { return first(ok(a[0])) }, tIOne)

	opProject = &operation{source: "$0.MatMul($1.T()).Sum()", result: tOne, args: []kind{tVec, tMat}, device: true, eval: func(m *machine, a []any) any {
		x := val(a[0])
		return sum(m.product(reshape(x, 1, x.shape[0]), transpose(val(a[1]))), -1)
	}}
	opCompare = &operation{source: "nn.MSELoss($0, $1)", result: tOne, args: []kind{tVec, tVec}, device: true, eval: func(_ *machine, a []any) any {
		d := sub(val(a[0]), val(a[1]))
		return mean(mul(d, d), -1)
	}}
	opBest     = shaped("$0.ArgMax()", 0, func(a []*value) *value { return extreme(a[0], 0, false) }, tIOne, tVec)
	opKeepVec  = host("append($0, $1)", tVecs, 0, appended, tVecs, tVec)
	opKeepOne  = host("append($0, $1)", tOnes, 0, appended, tOnes, tOne)
	opStackOne = &operation{source: "tensor.Stack(0, $0...).Sum()", result: tOne, args: []kind{tOnes}, device: true, eval: func(_ *machine, a []any) any {
		return sum(stack(a[0].([]*value)), -1)
	}}
	opStackVec = &operation{source: "tensor.Stack(0, $0...)", result: tMat, args: []kind{tVecs}, device: true, eval: func(_ *machine, a []any) any {
		return stack(a[0].([]*value))
	}}
)

// row is the number of a row, if there is one.
func (m *machine) row(name string, x *value, i int) int {
	if i < 0 {
		i += x.shape[0]
	}
	if i < 0 || i >= x.shape[0] {
		panic(raised{"*op.Mistake: " + name})
	}
	return i
}

func appended(a []any) any {
	xs := a[0].([]*value)
	return append(slices.Clip(xs), val(a[1]))
}

// stack makes a tensor of its rows.
func stack(rows []*value) *value {
	if len(rows) == 0 {
		panic(raised{"*op.Mistake: Stack"})
	}
	shape := append([]int{len(rows)}, rows[0].shape...)
	if s := spoiled(rows[0].dtype, shape, rows...); s != nil {
		return s
	}
	z := newValue(rows[0].dtype, shape)
	for i, r := range rows {
		copy(z.floats[i*len(r.floats):], r.floats)
	}
	return z
}

// A rowMaker makes what one loop over rows computes.
type rowMaker struct {
	*maker
	loop  *stmt
	index *variable
}

// rows makes a loop over the rows of a tensor, which reads each, or keeps what it has made of it.
func (g *maker) rows() []*stmt {
	if g.depth > 4 || g.noJumps && len(g.loops) > 0 {
		return nil
	}
	r := &rowMaker{maker: g, index: g.fresh(tInt)}
	g.protected[r.index] = true
	n := g.p.rows
	ofVec := g.chance(5)
	if ofVec {
		n = g.p.cols
	}
	if g.chance(12) {
		n++ // a row that there isn't
	}
	g.count++
	r.loop = &stmt{form: []stmtKind{sRange, sRange, sCount}[g.choose(3)], text: fmt.Sprintf("loop%d", g.count), vars: []*variable{r.index}, rhs: []*expr{literal(tInt, n)}}
	scope, here := len(g.scope), g.here
	list, kept := r.keeps(ofVec)
	inLoop := len(g.scope)
	g.here = inLoop
	g.declare(r.index)
	g.loops = append(g.loops, r.loop)
	g.depth++
	if kept != nil {
		r.loop.body = append(r.loop.body, r.keep(kept))
	}
	for range 1 + g.choose(2) {
		if ofVec {
			r.use(apply(operationOf("$0.Item()", tFloat), apply(opNumber, g.variable(tVec), of(r.index))))
			continue
		}
		r.use(r.read())
	}
	g.depth--
	g.loops = g.loops[:len(g.loops)-1]
	g.scope, g.here = g.scope[:inLoop], here
	list = append(list, r.loop)
	if kept != nil && n == g.p.rows {
		switch {
		case kept.kind == tOnes:
			list = append(list, assign(of(g.local(tOne)), "=", apply(opStackOne, of(kept))))
		case r.loop.breaks(): // perhaps there are fewer than rows
			list = append(list, assign(of(g.local(tOne)), "=", apply(opSumVec, apply(opStackSum, of(kept)))))
		default:
			list = append(list, assign(of(g.local(tMat)), "=", apply(opStackVec, of(kept))))
		}
	}
	g.scope = g.scope[:scope]
	return list
}

// breaks reports whether a statement in s may be a break.
func (s *stmt) breaks() bool {
	if s.form == sBreak {
		return true
	}
	for _, list := range s.blocks() {
		if slices.ContainsFunc(*list, (*stmt).breaks) {
			return true
		}
	}
	return false
}

// keeps declares what a loop needs outside: a list of tensors, perhaps, and a vector.
func (r *rowMaker) keeps(needsVec bool) (list []*stmt, kept *variable) {
	if r.variable(tVec) == nil && (needsVec || r.chance(2)) {
		v := r.fresh(tVec)
		list = append(list, declaration(v, r.expr(tVec, 1)))
		r.declare(v)
	}
	if needsVec || r.hostOnly || !r.chance(4) {
		return list, nil
	}
	kept = r.fresh([]kind{tVecs, tOnes}[r.choose(2)])
	list = append(list, &stmt{form: sDeclare, vars: []*variable{kept}})
	return list, r.declare(kept)
}

// keep appends something of a row to a list.
func (r *rowMaker) keep(list *variable) *stmt {
	if list.kind == tOnes {
		return assign(of(list), "=", apply(opKeepOne, of(list), r.score()))
	}
	return assign(of(list), "=", apply(opKeepVec, of(list), r.vector()))
}

// vector is a row, or something of its length that is computed of it.
func (r *rowMaker) vector() *expr {
	x := apply(opRow, r.variable(tMat), of(r.index))
	for range r.choose(3) {
		var list []*operation
		for _, o := range operations {
			if o.device && !o.cells && o.result == tVec && len(o.args) > 0 && o.args[0] == tVec {
				list = append(list, o)
			}
		}
		if y := r.applied(list[r.choose(len(list))], x); y != nil {
			x = y
		}
	}
	return x
}

// applied is o of x, and of rows or of what is the same for all rows; or nil.
func (r *rowMaker) applied(o *operation, x *expr) *expr {
	args := []*expr{x}
	for _, k := range o.args[1:] {
		var y *expr
		switch {
		case k == tVec && r.chance(2):
			y = apply(opRow, r.variable(tMat), of(r.index))
		case k.isTensor():
			y = r.variable(k)
		default:
			y = r.leaf(k)
		}
		if y == nil {
			return nil
		}
		args = append(args, y)
	}
	return apply(o, args...)
}

// score is a number, still a tensor, that is computed of a row.
func (r *rowMaker) score() *expr {
	list := []*operation{opProject, opCompare}
	for _, o := range operations {
		if o.device && !o.cells && o.result == tOne && len(o.args) > 0 && o.args[0] == tVec {
			list = append(list, o)
		}
	}
	for {
		if x := r.applied(list[r.choose(len(list))], r.vector()); x != nil {
			return x
		}
	}
}

// read is a number that is read of a row. Now and then what it is computed of gets a name.
func (r *rowMaker) read() *expr {
	switch r.choose(8) {
	case 0:
		return apply(opRowLast, r.variable(tMat), of(r.index))
	case 1:
		return apply(opWhere, apply(opBest, r.named(r.vector())))
	case 2:
		return apply(opElement, r.named(r.vector()))
	}
	return apply(operationOf("$0.Item()", tFloat), r.named(r.score()))
}

// named gives x a name now and then.
func (r *rowMaker) named(x *expr) *expr {
	if !r.chance(3) {
		return x
	}
	v := r.fresh(x.kind)
	r.loop.body = append(r.loop.body, declaration(v, x))
	return of(r.declare(v))
}

// use makes a statement of a value that was read.
func (r *rowMaker) use(x *expr) {
	g := r.maker
	var s *stmt
	switch g.choose(7) {
	case 0, 1:
		s = assign(g.place(tFloat), "+=", x)
	case 2:
		s = &stmt{form: sPrint, text: outWriter, rhs: []*expr{g.expr(tInt, 0), x}}
	case 3:
		more := apply(operationOf("$0 > $1", tBool), x, g.leaf(tFloat))
		s = &stmt{form: sIf, rhs: []*expr{more}, body: one(&stmt{form: sIncDec, lhs: []*expr{g.place(tInt)}, op: "++"})}
	case 4:
		l := g.place(tFloats)
		s = assign(l, "=", apply(opAppend, l, x))
		if l.form == eVar && l.v.name == "rates" {
			s = assign(&expr{form: eIndex, kind: tFloat, args: []*expr{l, g.index(3)}}, "=", x)
		}
	case 5:
		v := g.fresh(tFloat)
		r.loop.body = append(r.loop.body, declaration(v, x))
		g.declare(v)
		s = assign(g.place(tFloat), "=", of(v))
	case 6: // a way out, or to the next row
		out := &stmt{form: []stmtKind{sContinue, sContinue, sBreak}[g.choose(3)]}
		more := apply(operationOf("$0 > $1", tBool), x, literal(tFloat, float64(g.choose(4))))
		s = &stmt{form: sIf, rhs: []*expr{more}, body: one(out)}
	}
	r.loop.body = append(r.loop.body, s)
}
