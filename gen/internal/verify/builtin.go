package verify

import (
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"maps"
	"slices"
)

func (f *frame) builtin(name string, e *ast.CallExpr) value {
	switch name {
	case "len", "cap":
		t := f.typeOf(e.Args[0])
		if p, ok := t.Underlying().(*types.Pointer); ok {
			t = p.Elem()
		}
		n := f.lenOf(f.expr(e.Args[0]), t)
		if name == "cap" {
			return f.ts.of("cap", n)
		}
		return n
	case "append":
		return f.append(e)
	case "make":
		return f.make(e)
	case "new":
		t := f.typeOf(e.Args[0])
		return &ref{cell: &cell{v: f.zero(t), typ: t}}
	case "recover":
		if f.panicking == nil {
			return f.ts.of("nil")
		}
		v := f.panicking.v
		f.run.panicking = nil
		return f.ts.of("recovered", v)
	case "close":
		return f.channel("close", e.Args[0])
	case "panic":
		v := f.term(f.expr(e.Args[0]))
		f.run.raise(f.ts.of("panic", v))
	case "min", "max":
		kind := kindOf(f.typeOf(e))
		operand := func(a ast.Expr) *term {
			t := f.term(f.expr(a))
			// A constant may have no type yet, and more digits.
			if t.c != nil && t.c.Kind() == constant.Float && kind == "float64" {
				v, _ := constant.Float64Val(t.c)
				return f.ts.constant(constant.MakeFloat64(v))
			}
			return t
		}
		t := operand(e.Args[0])
		for _, a := range e.Args[1:] {
			t = f.ts.of(name+":"+kind, t, operand(a))
		}
		return t
	case "delete":
		m, k := f.expr(e.Args[0]), f.term(f.expr(e.Args[1]))
		if l, ok := m.(*list); ok {
			k = l.mem.key(f.run, k)
			delete(l.mem.parts, k)
			l.mem.content = f.ts.of("deleted", l.mem.content, k)
			return nil
		}
		u := f.typeOf(e.Args[0]).Underlying().(*types.Map)
		class := f.p.mapClass(u)
		f.memory[class] = f.ts.of("deleted", f.mem(class, f.p.typeName(u.Elem())), f.term(m), k)
		return nil
	case "copy":
		to, source := f.expr(e.Args[0]), f.expr(e.Args[1])
		if vs, ok := f.elementsIn(source); ok {
			if l, ok := to.(*list); ok {
				if n, ok := l.len.asInt(); ok {
					vs = vs[:min(n, len(vs))]
					for i, v := range vs {
						f.write(f.elementPlace(l, f.ts.int(i), nil), v)
					}
					return f.ts.int(len(vs))
				}
			}
		}
		from, more := f.elements(source), f.reach(source, f.typeOf(e.Args[1]))
		if l, ok := to.(*list); ok {
			f.own(l.mem)
			l.mem.flatten(f.run)
			l.mem.content = f.ts.of("copied", append([]*term{l.mem.content, l.at(f.ts, f.ts.int(0)), l.len, from}, more...)...)
			return f.ts.of("len", from)
		}
		by := f.ts.of("copied", append([]*term{f.term(to), from}, more...)...)
		f.change(f.typeOf(e.Args[0]), by)
		return f.ts.of("len", from)
	case "clear":
		x := f.expr(e.Args[0])
		l, ok := x.(*list)
		if !ok {
			f.change(f.typeOf(e.Args[0]), f.ts.of("cleared", f.term(x)))
			return nil
		}
		f.own(l.mem)
		if l.isMap || l.from == nil && l.mem.isWithin(l.len) {
			l.mem.content, l.mem.parts = f.ts.of("zeros"), nil
			return nil
		}
		l.mem.flatten(f.run)
		l.mem.content = f.ts.of("cleared", l.mem.content, l.at(f.ts, f.ts.int(0)), l.len)
		return nil
	}
	f.stop(e, "calls "+name)
	return nil
}

func (f *frame) make(e *ast.CallExpr) value {
	var n = f.ts.int(0)
	if len(e.Args) > 1 {
		n = f.term(f.expr(e.Args[1]))
		if n.c == nil {
			f.mayFail("fails: make", n)
		}
	}
	room, _ := n.asInt()
	if len(e.Args) > 2 {
		if most, known := f.term(f.expr(e.Args[2])).asInt(); known {
			room = most
		}
	}
	switch f.typeOf(e).Underlying().(type) {
	case *types.Slice:
		return &list{mem: &memory{content: f.ts.of("zeros"), room: room}, len: n}
	case *types.Map:
		return &list{mem: &memory{content: f.ts.of("empty")}, isMap: true}
	}
	f.asked["make"]++
	return f.ts.of("channel", n, f.ts.int(f.asked["make"]))
}

// elementsIn returns what is in v, a list whose length is known.
func (f *frame) elementsIn(v value) (vs []value, ok bool) {
	l, ok := v.(*list)
	if !ok {
		return nil, false
	}
	n, ok := l.len.asInt()
	for i := range n {
		vs = append(vs, f.element(l, f.ts.int(i), nil))
	}
	return vs, ok
}

// elements returns the term of the slice v, whose elements are about to be copied. So they become terms first.
func (f *frame) elements(v value) *term {
	if l, ok := v.(*list); ok {
		l.mem.flatten(f.run)
	}
	return f.term(v)
}

// append appends to a slice. If others may lead to its memory, that may change.
func (f *frame) append(e *ast.CallExpr) value {
	x := f.expr(e.Args[0])
	elem := f.typeOf(e.Args[0]).Underlying().(*types.Slice).Elem()
	if isNil(x) {
		x = &list{mem: &memory{content: f.ts.of("list")}, len: f.ts.int(0)}
	}
	l, isList := x.(*list)
	vs, areKnown := []value(nil), true
	if e.Ellipsis.IsValid() {
		y := f.expr(e.Args[1])
		if vs, areKnown = f.elementsIn(y); !isList || !areKnown {
			ts := append([]*term{f.elements(y)}, f.reach(y, f.typeOf(e.Args[1]))...)
			n := f.lenOf(y, f.typeOf(e.Args[1]))
			if isList {
				m := &memory{content: f.ts.of("appended", append([]*term{l.mem.kept(f.run), l.at(f.ts, l.len)}, ts...)...)}
				return &list{mem: m, from: l.from, len: f.ts.binary(token.ADD, "int", l.len, n)}
			}
			by := f.ts.of("appended", append([]*term{f.term(x)}, ts...)...)
			f.change(f.typeOf(e.Args[0]), by)
			return by
		}
	} else {
		vs = f.exprs(e.Args[1:])
	}
	if isList {
		m, n := l.mem, l.at(f.ts, l.len)
		if end, known := n.asInt(); !known || end+len(vs) > m.room || m.isShared { // it may be moved
			m = &memory{content: m.content, parts: maps.Clone(m.parts), room: end + len(vs)}
		}
		for _, v := range vs {
			m.put(f.run, n, v)
			n = f.ts.binary(token.ADD, "int", n, f.ts.int(1))
		}
		return &list{mem: m, from: l.from, len: f.ts.binary(token.ADD, "int", l.len, f.ts.int(len(vs)))}
	}
	ts := []*term{f.term(x)}
	for _, v := range vs {
		ts = append(ts, f.kept(v))
	}
	by := f.ts.of("append", ts...)
	if f.ts.isFresh(ts[0]) {
		return by
	}
	if !isStruct(elem) {
		class := f.p.elemClass(elem)
		f.memory[class] = f.ts.of("perhaps", f.mem(class, f.p.typeName(elem)), by)
	} else {
		f.change(f.typeOf(e.Args[0]), by)
	}
	return by
}

// isFresh reports whether t is a slice that the function has made, whose memory nothing else leads to.
func (ts *terms) isFresh(t *term) bool {
	is, known := ts.fresh[t]
	if !known {
		is = ts.findFresh(t)
		ts.fresh[t] = is
	}
	return is
}

func (ts *terms) findFresh(t *term) bool {
	switch t.op {
	case "nil", "slice":
		return true
	case "append":
		return ts.isFresh(t.args[0])
	case "part": // up to the end
		return t.args[2].op == "open" && t.args[3].op == "open" && ts.isFresh(t.args[0])
	case "select":
		m := t.args[0]
		for ; m.op == "store"; m = m.args[0] {
			if !ts.isFresh(m.args[2]) {
				return false
			}
		}
		return m.op == "zeros" || m.op == "empty" || m.op == "list" && !slices.ContainsFunc(m.args, func(t *term) bool { return !ts.isFresh(t) })
	}
	return false
}
