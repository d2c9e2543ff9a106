package verify

import (
	"go/ast"
	"go/token"
	"go/types"
	"strings"
)

// A place is what can be assigned to.
type place struct {
	cell *cell // a variable, or nil
	path []int // the part of it: fields

	list  *list // or an element of a list
	index *term

	class string // or a place in memory
	addr  *term
	typ   types.Type
	owner types.Type // of a field: the struct
	field *types.Var

	array *place // or an element of an array, which is another place

	whole *place // or a field of a struct that is an element
	part  int

	all *elements // or all elements of a slice

	blank bool
}

// A pointer is a pointer to a place in memory.
type pointer struct{ at *place }

func (f *frame) read(p *place) value {
	switch {
	case p.blank:
		return nil
	case p.all != nil:
		return f.holdElements(p.all)
	case p.cell != nil:
		v, t := f.get(p.cell), p.cell.typ
		for _, i := range p.path {
			v, t = f.run.field(v, t, i), t.Underlying().(*types.Struct).Field(i).Type()
		}
		return v
	case p.list != nil:
		return p.list.mem.element(f.run, p.index)
	case p.array != nil:
		return f.elementOf(f.read(p.array), p.index)
	case p.whole != nil:
		return f.run.field(f.read(p.whole), p.whole.typ, p.part)
	case p.field != nil:
		return f.loadField(p.addr, p.owner, p.field)
	}
	return f.load(p.class, p.addr, p.typ)
}

func (f *frame) write(p *place, v value) {
	v = clone(v)
	switch {
	case p.blank:
	case p.all != nil:
		f.restoreElements(p.all, f.term(v))
	case p.cell != nil:
		f.set(p.cell, f.withPart(f.get(p.cell), p.cell.typ, p.path, v))
	case p.list != nil:
		f.own(p.list.mem)
		p.list.mem.put(f.run, p.index, v)
	case p.array != nil:
		f.write(p.array, f.withElement(f.read(p.array), p.index, v))
	case p.whole != nil:
		f.write(p.whole, f.withPart(f.read(p.whole), p.whole.typ, []int{p.part}, v))
	case p.field != nil:
		f.saveField(p.addr, p.owner, p.field, v)
	default:
		f.save(p.class, p.addr, p.typ, v)
	}
}

// withPart returns whole, of type t, with another value for the part at path.
func (f *frame) withPart(whole value, t types.Type, path []int, v value) value {
	if len(path) == 0 {
		return v
	}
	st := t.Underlying().(*types.Struct)
	rec := &record{typ: t}
	for i := range st.NumFields() {
		rec.fields = append(rec.fields, f.run.field(whole, t, i))
	}
	rec.fields[path[0]] = f.withPart(rec.fields[path[0]], st.Field(path[0]).Type(), path[1:], v)
	return rec
}

// place returns the place that e denotes, after what has to be evaluated to find it.
func (f *frame) place(e ast.Expr) *place {
	f.step()
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		if e.Name == "_" {
			return &place{blank: true}
		}
		obj := f.fn.Info.ObjectOf(e)
		if c := f.env.lookup(obj); c != nil {
			return &place{cell: c}
		}
		return f.global(obj)
	case *ast.SelectorExpr:
		sel := f.fn.Info.Selections[e]
		if sel == nil {
			return f.global(f.fn.Info.Uses[e.Sel])
		}
		return f.selected(e, sel)
	case *ast.IndexExpr:
		return f.indexed(e)
	case *ast.StarExpr:
		return f.pointed(f.expr(e.X), f.typeOf(e))
	}
	f.stop(e, "a place that is not interpreted")
	return nil
}

func (f *frame) global(obj types.Object) *place {
	if _, ok := obj.(*types.Var); !ok || obj.Pkg() == nil {
		panic(stop{"a name that is not interpreted: " + obj.Name()})
	}
	return &place{class: f.p.derefClass(obj.Type()), addr: f.ts.of("variable " + obj.Pkg().Path() + "." + obj.Name()), typ: obj.Type()}
}

// pointed returns the place of type t that p points to.
func (f *frame) pointed(p value, t types.Type) *place {
	if r, ok := p.(*ref); ok {
		return &place{cell: r.cell, path: r.path}
	}
	if p, ok := p.(*pointer); ok {
		return p.at
	}
	addr := f.term(p)
	f.notNil(addr)
	return &place{class: f.p.derefClass(t), addr: addr, typ: t}
}

// notNil panics if p is nil.
func (f *frame) notNil(p *term) {
	if strings.HasPrefix(p.op, "new ") || strings.HasPrefix(p.op, "variable ") || strings.HasPrefix(p.op, "part ") || strings.HasPrefix(p.op, "at") {
		return
	}
	if is := f.ts.binary(token.EQL, "?", p, f.ts.of("nil")); f.decide(is) {
		f.run.raise(f.ts.of(failsNil))
	}
}

// selected returns the place of a field.
func (f *frame) selected(e *ast.SelectorExpr, sel *types.Selection) *place {
	var at *place
	t := sel.Recv()
	if p, ok := t.Underlying().(*types.Pointer); ok {
		t = p.Elem()
		at = f.pointed(f.expr(e.X), t)
	} else if isPlace(e.X) {
		at = f.place(e.X)
	} else {
		at = &place{cell: &cell{v: f.expr(e.X), typ: t}}
	}
	for n, i := range sel.Index() {
		if n > 0 {
			if p, ok := t.Underlying().(*types.Pointer); ok {
				t = p.Elem()
				at = f.pointed(f.read(at), t)
			}
		}
		field := t.Underlying().(*types.Struct).Field(i)
		at, t = f.part(at, t, i, field), field.Type()
	}
	return at
}

// part returns the place of field i of the struct of type t at a place.
func (f *frame) part(at *place, t types.Type, i int, field *types.Var) *place {
	switch {
	case at.cell != nil:
		return &place{cell: at.cell, path: append(append([]int(nil), at.path...), i)}
	case at.list != nil || at.array != nil || at.whole != nil:
		return &place{whole: at, part: i, typ: field.Type()}
	case at.field != nil:
		return &place{addr: f.ts.of("part "+at.field.Name(), at.addr), owner: t, field: field, typ: field.Type()}
	}
	return &place{addr: at.addr, owner: t, field: field, typ: field.Type()}
}

func isPlace(e ast.Expr) bool {
	switch ast.Unparen(e).(type) {
	case *ast.Ident, *ast.SelectorExpr, *ast.IndexExpr, *ast.StarExpr:
		return true
	}
	return false
}

// indexed returns the place of an element.
func (f *frame) indexed(e *ast.IndexExpr) *place {
	switch u := f.typeOf(e.X).Underlying().(type) {
	case *types.Array:
		var whole *place
		if isPlace(e.X) {
			whole = f.place(e.X)
		} else {
			whole = &place{cell: &cell{v: f.expr(e.X), typ: u}}
		}
		i := f.term(f.expr(e.Index))
		f.inRange(i, f.ts.int(int(u.Len())))
		return &place{array: whole, index: i, typ: u.Elem()}
	case *types.Pointer:
		whole := f.pointed(f.expr(e.X), u.Elem())
		i := f.term(f.expr(e.Index))
		a := u.Elem().Underlying().(*types.Array)
		f.inRange(i, f.ts.int(int(a.Len())))
		return &place{array: whole, index: i, typ: a.Elem()}
	case *types.Map:
		x := f.expr(e.X)
		i := f.term(f.expr(e.Index))
		if l, ok := x.(*list); ok {
			return &place{list: l, index: i, typ: u.Elem()}
		}
		return &place{class: f.p.mapClass(u), addr: f.ts.of("at", f.term(x), i), typ: u.Elem()}
	case *types.Slice:
		x := f.expr(e.X)
		i := f.term(f.expr(e.Index))
		f.inRange(i, f.lenOf(x, u))
		return f.elementPlace(x, i, u.Elem())
	}
	f.stop(e, "an index that is not interpreted")
	return nil
}

func (p *Program) mapClass(u *types.Map) string {
	return "entries " + p.typeName(u) + "\x00" + p.typeName(u.Elem())
}

// mapOf returns a map with all that is in it, but for the parts of one that is a list.
func (f *frame) mapOf(x value, u *types.Map) *term {
	if l, ok := x.(*list); ok {
		return l.mem.content
	}
	return f.ts.of("map", f.term(x), f.mem(f.p.mapClass(u), f.p.typeName(u.Elem())))
}

func (f *frame) elementPlace(x value, i *term, t types.Type) *place {
	if l, ok := x.(*list); ok {
		return &place{list: l, index: l.at(f.ts, i), typ: t}
	}
	return &place{class: f.p.elemClass(t), addr: f.ts.of("at", f.term(x), i), typ: t}
}

func (f *frame) element(x value, i *term, t types.Type) value { return f.read(f.elementPlace(x, i, t)) }

// inRange notes that an index may be out of range.
func (f *frame) inRange(i, n *term) {
	a, okA := i.asInt()
	b, okB := n.asInt()
	if okA && okB && 0 <= a && a < b {
		return
	}
	if x, ok := first(i).asInt(); i.op == "%:int" && i.args[1] == n && ok && x >= 0 {
		return
	}
	if less := f.ts.binary(token.LSS, "int", i, n); okA && a >= 0 && f.ask(question{asksKnown, less, 0}) {
		return // the loop around it has just asked
	}
	f.mayFail(failsIndex, i, n)
}

// first returns the first operand of t, or t.
func first(t *term) *term {
	if len(t.args) > 0 {
		return t.args[0]
	}
	return t
}

// lenOf returns the length of a slice, a map or a string.
func (f *frame) lenOf(x value, t types.Type) *term {
	switch u := t.Underlying().(type) {
	case *types.Array:
		return f.ts.int(int(u.Len()))
	case *types.Map:
		return f.ts.of("len", f.mapOf(x, u))
	}
	if l, ok := x.(*list); ok {
		return l.len
	}
	return f.lenOfTerm(f.term(x))
}

func (r *run) lenOfTerm(t *term) *term {
	switch t.op {
	case "nil":
		return r.ts.int(0)
	case "slice":
		return t.args[1]
	case tensorPath + ".Grad": // as many as it is given
		if len(t.args) > 1 && t.args[1].op == "slice" {
			return t.args[1].args[1]
		}
	case "append":
		return r.ts.binary(token.ADD, "int", r.lenOfTerm(t.args[0]), r.ts.int(len(t.args)-1))
	}
	return r.ts.of("len", t)
}
