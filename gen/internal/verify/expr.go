package verify

import (
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
)

func (f *frame) typeOf(e ast.Expr) types.Type { return f.fn.Info.TypeOf(e) }

func (f *frame) term(v value) *term { return f.termOf(v) }

// commaOK is expr for the right side of v, ok := e.
func (f *frame) commaOK(e ast.Expr) value {
	switch x := ast.Unparen(e).(type) {
	case *ast.IndexExpr:
		if u, ok := f.typeOf(x.X).Underlying().(*types.Map); ok {
			m := f.expr(x.X)
			i := f.term(f.expr(x.Index))
			has := f.ts.of("has", f.mapOf(m, u), i)
			if l, ok := m.(*list); ok {
				return tuple{f.read(&place{list: l, index: i}), has}
			}
			return tuple{f.load(f.p.mapClass(u), f.ts.of("at", f.term(m), i), u.Elem()), has}
		}
	case *ast.UnaryExpr:
		if x.Op == token.ARROW {
			v := f.term(f.expr(x))
			return tuple{v, f.ts.of("open", v)}
		}
	case *ast.TypeAssertExpr:
		v := f.expr(x.X)
		return tuple{v, f.isType(v, f.fn.Info.Types[x.Type])}
	}
	return f.expr(e)
}

func (f *frame) exprs(list []ast.Expr) []value {
	vs := make([]value, len(list))
	for i, e := range list {
		vs[i] = f.expr(e)
	}
	return vs
}

func (f *frame) expr(e ast.Expr) value {
	f.step()
	if id, ok := e.(*ast.Ident); ok {
		if c := f.env.lookup(f.fn.Info.Uses[id]); c != nil {
			f.step() // as place does
			return f.get(c)
		}
	}
	if call, ok := e.(*ast.CallExpr); ok {
		return f.callExpr(call)
	}
	if tv := f.fn.Info.Types[e]; tv.Value != nil {
		return f.ts.constant(tv.Value)
	}
	switch e := e.(type) {
	case *ast.ParenExpr:
		return f.expr(e.X)
	case *ast.Ident:
		return f.name(e, f.fn.Info.ObjectOf(e))
	case *ast.SelectorExpr:
		sel := f.fn.Info.Selections[e]
		switch {
		case sel == nil:
			return f.name(e, f.fn.Info.Uses[e.Sel])
		case sel.Kind() == types.FieldVal:
			return f.read(f.selected(e, sel))
		case sel.Kind() == types.MethodVal:
			return f.methodValue(e, sel)
		}
	case *ast.IndexExpr:
		if tv := f.fn.Info.Types[e.X]; tv.IsType() {
			break
		}
		if _, ok := f.typeOf(e.X).Underlying().(*types.Signature); ok {
			return f.expr(e.X) // an instance of a generic function
		}
		if b, ok := f.typeOf(e.X).Underlying().(*types.Basic); ok && b.Info()&types.IsString != 0 {
			x, i := f.term(f.expr(e.X)), f.term(f.expr(e.Index))
			f.inRange(i, f.ts.of("len", x))
			return f.ts.of("byte", x, i)
		}
		return f.read(f.indexed(e))
	case *ast.StarExpr:
		return f.read(f.place(e))
	case *ast.UnaryExpr:
		return f.unary(e)
	case *ast.BinaryExpr:
		return f.binary(e)
	case *ast.CompositeLit:
		return f.composite(e)
	case *ast.FuncLit:
		return f.closure(e)
	case *ast.TypeAssertExpr:
		v := f.expr(e.X)
		if is := f.isType(v, f.fn.Info.Types[e.Type]); !f.decide(is) {
			f.run.raise(f.ts.of("fails: type", is))
		}
		return v
	case *ast.SliceExpr:
		return f.slice(e)
	}
	f.stop(e, "an expression that is not interpreted")
	return nil
}

// name returns the value of a name.
func (f *frame) name(e ast.Expr, obj types.Object) value {
	switch obj := obj.(type) {
	case *types.Nil:
		return f.ts.of("nil")
	case *types.Var:
		if id, ok := e.(*ast.Ident); ok {
			return f.read(f.place(id))
		}
		return f.read(f.global(obj))
	case *types.Func:
		if body := f.p.body(obj); body != nil {
			return &closure{typ: body.Decl.Type, body: body.Decl.Body, fn: body, name: obj.FullName()}
		}
		return f.ts.of("func " + obj.FullName())
	}
	f.stop(e, "a name that is not interpreted")
	return nil
}

func (f *frame) closure(lit *ast.FuncLit) *closure {
	return &closure{typ: lit.Type, body: lit.Body, fn: f.fn, env: f.env, name: "a function literal"}
}

func (f *frame) unary(e *ast.UnaryExpr) value {
	switch e.Op {
	case token.AND:
		if lit, ok := ast.Unparen(e.X).(*ast.CompositeLit); ok {
			return &ref{cell: &cell{v: f.composite(lit), typ: f.typeOf(lit)}}
		}
		p := f.place(e.X)
		if p.cell != nil {
			return &ref{p.cell, p.path}
		}
		return &pointer{p}
	case token.NOT:
		return f.ts.not(f.term(f.expr(e.X)))
	case token.SUB:
		x := f.term(f.expr(e.X))
		if n, ok := x.asInt(); ok && kindOf(f.typeOf(e)) == "int" {
			return f.ts.int(-n)
		}
		return f.ts.of("-:"+kindOf(f.typeOf(e)), x)
	case token.ARROW:
		ch := f.term(f.expr(e.X))
		return f.unknown("receive", []*term{ch})
	case token.ADD:
		return f.expr(e.X)
	case token.XOR:
		return f.ts.of("^:"+kindOf(f.typeOf(e)), f.term(f.expr(e.X)))
	}
	f.stop(e, "an operator that is not interpreted")
	return nil
}

func (f *frame) binary(e *ast.BinaryExpr) value {
	if e.Op == token.LAND || e.Op == token.LOR {
		x := f.term(f.expr(e.X))
		if f.decide(x) == (e.Op == token.LOR) {
			return f.ts.bool(e.Op == token.LOR)
		}
		return f.expr(e.Y)
	}
	x, y := f.expr(e.X), f.expr(e.Y)
	t := f.typeOf(e.X)
	if b, ok := t.Underlying().(*types.Basic); ok && b.Info()&types.IsUntyped != 0 {
		t = f.typeOf(e.Y)
	}
	if e.Op == token.EQL || e.Op == token.NEQ {
		is := f.compared(x, y, kindOf(t))
		if e.Op == token.NEQ {
			return f.ts.not(is)
		}
		return is
	}
	return f.arithmetic(e.Op, t, f.term(x), f.term(y), e.X, e.Y)
}

// arithmetic returns x op y. Go may round the sum of a product once: where one of the operands is written as a product,
// the sum is another one.
func (f *frame) arithmetic(op token.Token, t types.Type, x, y *term, operands ...ast.Expr) *term {
	kind := kindOf(t)
	if (op == token.QUO || op == token.REM) && kind != "float64" && kind != "float32" && y.c == nil {
		f.mayFail("fails: division", y)
	}
	if (op == token.ADD || op == token.SUB) && (kind == "float64" || kind == "float32") {
		for _, e := range operands {
			if b, ok := ast.Unparen(e).(*ast.BinaryExpr); ok && b.Op == token.MUL && f.fn.Info.Types[b].Value == nil {
				return f.ts.of("fused "+op.String()+":"+kind, x, y)
			}
		}
	}
	return f.ts.binary(op, kind, x, y)
}

func (f *frame) composite(e *ast.CompositeLit) value {
	t := f.typeOf(e)
	switch u := t.Underlying().(type) {
	case *types.Pointer: // an element &T{} of which the type is left out
		inner := *e
		rec := f.compositeOf(&inner, u.Elem())
		return &ref{cell: &cell{v: rec, typ: u.Elem()}}
	default:
		return f.compositeOf(e, t)
	}
}

func (f *frame) compositeOf(e *ast.CompositeLit, t types.Type) value {
	switch u := t.Underlying().(type) {
	case *types.Struct:
		rec := f.zero(t).(*record)
		for i, el := range e.Elts {
			if kv, ok := el.(*ast.KeyValueExpr); ok {
				for j := range u.NumFields() {
					if u.Field(j).Name() == kv.Key.(*ast.Ident).Name {
						rec.fields[j] = clone(f.expr(kv.Value))
					}
				}
				continue
			}
			rec.fields[i] = clone(f.expr(el))
		}
		return rec
	case *types.Slice, *types.Array:
		const most = 1000 // more are not made because of a key
		var elems []value
		upTo := func(n int) {
			for len(elems) < n {
				elems = append(elems, f.zero(elemOf(u)))
			}
		}
		next := 0
		for _, el := range e.Elts {
			if kv, ok := el.(*ast.KeyValueExpr); ok {
				if next, _ = f.term(f.expr(kv.Key)).asInt(); next > most {
					f.stop(el, "a key in a literal that is so large")
				}
				el = kv.Value
			}
			upTo(next + 1)
			elems[next] = f.expr(el)
			next++
		}
		a, isArray := u.(*types.Array)
		if isArray && a.Len() <= most {
			upTo(int(a.Len()))
		}
		m := f.holding(elems)
		if isArray {
			m.room = int(a.Len())
			return f.arrayOf(m)
		}
		return &list{mem: m, len: f.ts.int(len(elems))}
	case *types.Map:
		m := &memory{content: f.ts.of("empty")}
		for _, el := range e.Elts {
			kv := el.(*ast.KeyValueExpr)
			k := f.term(f.expr(kv.Key))
			m.put(f.run, k, f.expr(kv.Value))
		}
		return &list{mem: m, isMap: true}
	}
	f.stop(e, "a literal that is not interpreted")
	return nil
}

// holding returns new memory with elements.
func (r *run) holding(vs []value) *memory {
	m := &memory{parts: make(map[*term]value), room: len(vs)}
	elems := make([]*term, len(vs))
	for i, v := range vs {
		if isMore(v) {
			m.parts[r.ts.int(i)], elems[i] = v, r.ts.of("part")
		} else {
			elems[i] = r.termOf(v)
		}
	}
	m.content = r.ts.of("list", elems...)
	return m
}

// elemOf returns the type of the elements of a slice or an array.
func elemOf(t types.Type) types.Type {
	if s, ok := t.(*types.Slice); ok {
		return s.Elem()
	}
	return t.(*types.Array).Elem()
}

func (f *frame) slice(e *ast.SliceExpr) value {
	x := f.expr(e.X)
	var bounds []*term
	for _, b := range []ast.Expr{e.Low, e.High, e.Max} {
		if b == nil {
			bounds = append(bounds, f.ts.of("open"))
		} else {
			bounds = append(bounds, f.term(f.expr(b)))
		}
	}
	if l, ok := x.(*list); ok && e.Max == nil {
		if part := f.partOf(l, bounds[0], bounds[1]); part != nil {
			return part
		}
	}
	if e.Low != nil || e.High != nil {
		f.mayFail(failsSlice, append([]*term{f.term(x)}, bounds...)...)
	}
	if l, ok := x.(*list); ok {
		if e.Low == nil && e.High == nil {
			return l
		}
		if e.Max == nil {
			n := l.len
			if e.High != nil {
				n = bounds[1]
			}
			return f.cut(l, bounds[0], n)
		}
	}
	return f.ts.of("part", append([]*term{f.kept(x)}, bounds...)...)
}

// cut returns the elements of l from low, which may be open, to high.
func (f *frame) cut(l *list, low, high *term) *list {
	if n, known := low.asInt(); low.op == "open" || known && n == 0 {
		return &list{mem: l.mem, from: l.from, len: high}
	}
	return &list{mem: l.mem, from: l.at(f.ts, low), len: f.ts.binary(token.SUB, "int", high, low)}
}

// partOf returns a part of l, whose length is known; nil if it is not, or the part goes beyond it, where there may be
// more memory. Bounds that are not known are chosen.
func (f *frame) partOf(l *list, low, high *term) *list {
	n, known := l.len.asInt()
	from, to := 0, n
	switch i, ok := high.asInt(); {
	case !known || ok && i > n:
		return nil
	case ok:
		to = i
	case high.op != "open":
		to = f.chosen(high, n, l.len)
	}
	switch i, ok := low.asInt(); {
	case ok:
		from = i
	case low.op != "open":
		from = f.chosen(low, to, l.len)
	}
	if from < 0 || from > to {
		f.run.raise(f.ts.of(failsSlice, l.len, low, high))
	}
	return f.cut(l, f.ts.int(from), f.ts.int(to))
}

// chosen returns a number that is no more than most for t, a bound of a slice of n elements.
func (f *frame) chosen(t *term, most int, n *term) int {
	f.mayFail(failsSlice, n, t)
	for i := range max(0, most) {
		if f.decide(f.ts.binary(token.EQL, "int", t, f.ts.int(i))) {
			return i
		}
	}
	return most
}

// holds reports whether c, an integer, is the same number as a value of the numeric type b.
func holds(b *types.Basic, c constant.Value) (exact bool) {
	switch b.Kind() {
	case types.Float32:
		_, exact = constant.Float32Val(c)
	case types.Float64:
		_, exact = constant.Float64Val(c)
	default:
		exact = b.Info()&types.IsInteger == 0 || b.Kind() == types.Int || b.Kind() == types.Int64
	}
	return exact
}

// converted returns a conversion of v.
func (f *frame) converted(v value, from, to types.Type, e ast.Expr) value {
	a, okA := from.Underlying().(*types.Basic)
	b, okB := to.Underlying().(*types.Basic)
	if _, ok := to.Underlying().(*types.Slice); ok && okA && a.Kind() == types.UntypedNil {
		return v
	}
	if !okA || !okB {
		if okA != okB && (okA || okB) {
			return f.ts.of("to "+f.p.typeName(to.Underlying()), f.term(v))
		}
		if rec, ok := v.(*record); ok {
			return &record{to, rec.fields}
		}
		return v
	}
	t := f.term(v)
	if t.c != nil && a.Info()&types.IsNumeric != 0 && b.Info()&types.IsNumeric != 0 && t.c.Kind() == constant.Int {
		if holds(b, t.c) {
			return t
		}
	}
	if kindOf(from) == kindOf(to) {
		return t // also float64(x*y), which then is no part of a sum, see arithmetic
	}
	if kindOf(to) == "float64" && t.op == "to float32" && kindOf(from) == "float32" {
		return f.ts.of("rounded", t.args[0])
	}
	if kindOf(to) == "int" && t.op == item && (t.args[0].op == method+"ArgMax" || t.args[0].op == method+"ArgMin") {
		return f.ts.of(itemInt, t.args[0]) // which is an integer
	}
	return f.ts.of("to "+kindOf(to), t)
}
