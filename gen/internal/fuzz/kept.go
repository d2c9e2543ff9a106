package fuzz

import "fmt"

// Programs of loops over the rows of tensors that keep, as tensors, what they make of each.

// More operations of rows: of functions of the program, of cells, and some that values can make fail.
var (
	opMixVec = shaped("mix($0, $1)", 0, func(a []*value) *value {
		x := greater(a[0], a[1])
		return mul(x, scalar(x, 0.5))
	}, tVec, tVec, tVec)
	opOfParam = cell("$0.MatMul(m.P.Value().T()).Sum()", tOne, 0, func(m *machine, a []any) any {
		x := val(a[0])
		return sum(m.product(reshape(x, 1, x.shape[0]), transpose(m.param)), -1)
	}, tVec)
	opNearParam = cell("$0.Sub(m.B.Value().Row(-1))", tVec, 0, func(m *machine, a []any) any {
		b := m.buffer
		return sub(val(a[0]), part(b, (b.shape[0]-1)*b.shape[1], b.shape[1]))
	}, tVec)
	opDivideVec = shaped("$0.As(tensor.Int64).Div($1.As(tensor.Int64)).As($0.DType())", 0, func(a []*value) *value {
		return as(div(as(a[0], i64), as(a[1], i64)), a[0].dtype)
	}, tVec, tVec, tVec)
	opStackSum = &operation{source: "tensor.Stack(0, $0...).Sum(0)", result: tVec, args: []kind{tVecs}, device: true, eval: func(_ *machine, a []any) any {
		return sum(stack(a[0].([]*value)), 0)
	}}
	opSumVec = shaped("$0.Sum()", 0, func(a []*value) *value { return sum(a[0], -1) }, tOne, tVec)
	opSoft   = shaped("$0.Sub($0.MaxKeep(-1)).Reshape(1, -1).T().Flatten()", 0, func(a []*value) *value {
		return sub(a[0], most(a[0], -1))
	}, tVec, tVec)
)

// A keeping is a loop that keeps rows.
type keeping struct {
	*rowMaker
	names []*variable // of vectors that are made of the row
}

// keptRows makes a loop that keeps what it makes of the rows of tensors, in lists and in sums, among other things.
func (g *maker) keptRows() []*stmt {
	if g.depth > 4 || g.noJumps || g.hostOnly {
		return nil
	}
	k := &keeping{rowMaker: &rowMaker{maker: g, index: g.fresh(tInt)}}
	g.protected[k.index] = true
	n := g.p.rows
	if g.chance(12) {
		n++ // a row that there isn't
	} else if g.chance(6) {
		n = g.choose(n + 1)
	}
	g.count++
	k.loop = &stmt{form: []stmtKind{sRange, sRange, sCount}[g.choose(3)], text: fmt.Sprintf("loop%d", g.count), vars: []*variable{k.index}, rhs: []*expr{literal(tInt, n)}}
	scope, here := len(g.scope), g.here

	var before, after []*stmt
	var lists []*variable
	for range 1 + g.choose(2) {
		v := g.fresh([]kind{tVecs, tOnes}[g.choose(2)])
		before = append(before, &stmt{form: sDeclare, vars: []*variable{v}})
		lists = append(lists, g.declare(v))
	}
	sum := g.fresh(tVec)
	before = append(before, declaration(sum, apply(opRow, g.variable(tMat), literal(tInt, 0))))
	g.declare(sum)

	inLoop := len(g.scope)
	g.here = inLoop
	g.declare(k.index)
	g.loops = append(g.loops, k.loop)
	g.depth++
	for range 2 + g.choose(4) {
		k.statement(lists, sum)
	}
	g.depth--
	g.loops = g.loops[:len(g.loops)-1]
	g.scope, g.here = g.scope[:inLoop], here

	for _, v := range lists {
		switch {
		case v.kind == tOnes:
			after = append(after, assign(of(g.local(tOne)), "=", apply(opStackOne, of(v))))
		default: // there may be more or less of them than rows
			after = append(after, assign(of(g.local(tVec)), "=", apply(opStackSum, of(v))))
		}
		if g.chance(3) {
			break // others are kept for nobody
		}
	}
	after = append(after, assign(of(g.local(tOne)), "=", apply(opSumVec, of(sum))))
	g.scope = g.scope[:scope]
	return append(append(before, k.loop), after...)
}

// statement adds a statement to the loop.
func (k *keeping) statement(lists []*variable, sum *variable) {
	add := func(s *stmt) { k.loop.body = append(k.loop.body, s) }
	list := lists[k.choose(len(lists))]
	switch k.choose(12) {
	case 0, 1, 2, 3:
		add(k.append(list))
	case 4, 5:
		add(assign(of(sum), "=", apply(operationOf("$0.Add($1)", tVec), of(sum), k.made())))
	case 6, 7, 8:
		v := k.fresh(tVec)
		add(declaration(v, k.made()))
		k.names = append(k.names, k.declare(v))
	case 9:
		add(&stmt{form: sIf, rhs: []*expr{apply(operationOf("$0%2 == 0", tBool), of(k.index))}, body: []*stmt{k.append(list)}})
	case 10:
		if k.chance(2) {
			add(&stmt{form: sIf, rhs: []*expr{apply(operationOf("$0 > 2", tBool), of(k.index))}, body: one(&stmt{form: []stmtKind{sContinue, sBreak}[k.choose(2)]})})
		} else {
			add(&stmt{form: sPrint, text: outWriter, rhs: []*expr{of(k.index), k.expr(tInt, 0)}})
		}
	case 11:
		k.use(k.read())
	}
}

func (k *keeping) append(list *variable) *stmt {
	if list.kind == tOnes {
		return assign(of(list), "=", apply(opKeepOne, of(list), k.scored()))
	}
	return assign(of(list), "=", apply(opKeepVec, of(list), k.made()))
}

// made is a vector that is made of the row, or of one that has been.
func (k *keeping) made() *expr {
	x := k.vector()
	if len(k.names) > 0 && k.chance(2) {
		x = of(k.names[k.choose(len(k.names))])
	}
	for range k.choose(3) {
		switch k.choose(6) {
		case 0:
			x = apply(opSoft, k.under(x))
		case 1:
			if !k.noCells {
				x = apply(opNearParam, x)
			}
		case 2:
			if y := k.applied(opDivideVec, x); y != nil && k.chance(3) && x.form == eVar {
				x = y
			}
		default:
			if y := k.applied(opMixVec, x); y != nil {
				x = y
			}
		}
	}
	return x
}

// under is x under a name, for an operation that writes it down twice.
func (k *keeping) under(x *expr) *expr {
	if x.form == eVar {
		return x
	}
	v := k.fresh(tVec)
	k.loop.body = append(k.loop.body, declaration(v, x))
	k.names = append(k.names, k.declare(v))
	return of(v)
}

// scored is a number, still a tensor, that is made of the row.
func (k *keeping) scored() *expr {
	switch k.choose(5) {
	case 0:
		if !k.noCells {
			return apply(opOfParam, k.made())
		}
	case 1:
		if y := k.applied(opCompare, k.made()); y != nil {
			return y
		}
	}
	return apply(opSumVec, k.made())
}
