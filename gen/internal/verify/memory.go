package verify

import (
	"go/types"
	"maps"
	"slices"
	"strings"
)

// mem returns what memory of a class holds.
func (r *run) mem(class, typ string) *term {
	m := r.memory[class]
	if m == nil {
		m = r.ts.of("memory "+class, r.epoch, r.crossed(typ))
		r.memory[class] = m
	}
	return m
}

func (r *run) crossed(typ string) *term {
	c := r.cross[typ]
	if c == nil {
		c = r.ts.of("untouched")
	}
	return c
}

// load reads a value of type t at an address.
func (r *run) load(class string, addr *term, t types.Type) value {
	if isStruct(t) {
		return r.loadFields(addr, t)
	}
	name := r.p.typeName(t)
	held := r.ts.sel(r.mem(class, name), addr)
	if same := r.same[name]; same != nil && isFirst(held) {
		return same
	}
	if class != r.p.derefClass(t) {
		return held
	}
	args := []*term{held} // the pointer may lead to a field or an element
	for _, c := range slices.Sorted(maps.Keys(r.memory)) {
		if m := r.memory[c]; c != class && strings.HasSuffix(c, "\x00"+name) && (m.op == "store" || m.op == "perhaps") {
			args = append(args, m)
		}
	}
	if len(args) == 1 || strings.HasPrefix(addr.op, "new ") || strings.HasPrefix(addr.op, "variable ") {
		return held
	}
	return r.ts.of("pointed", args...)
}

// isFirst reports whether t is what memory held when the function was called.
func isFirst(t *term) bool {
	return t.op == "select" && strings.HasPrefix(t.args[0].op, "memory ")
}

func (r *run) loadFields(addr *term, t types.Type) value {
	rec := &record{typ: t}
	st := t.Underlying().(*types.Struct)
	for f := range st.Fields() {
		rec.fields = append(rec.fields, r.loadField(addr, t, f))
	}
	return rec
}

func (r *run) loadField(addr *term, t types.Type, f *types.Var) value {
	if isStruct(f.Type()) {
		return r.loadFields(r.ts.of("part "+f.Name(), addr), f.Type())
	}
	return r.load(r.p.fieldClass(t, f), addr, f.Type())
}

// The classes of memory: values of different classes are at different places, except that a pointer may lead to a
// field or an element of its type. A class ends in the type of the values in it.
func (p *Program) fieldClass(t types.Type, f *types.Var) string {
	return "field " + f.Name() + " of " + p.structName(t) + "\x00" + p.typeName(f.Type())
}

func (p *Program) elemClass(t types.Type) string  { return p.named(t).elements }
func (p *Program) derefClass(t types.Type) string { return p.named(t).pointed }

// save stores a value of type t at an address.
func (r *run) save(class string, addr *term, t types.Type, v value) {
	if isStruct(t) {
		st := t.Underlying().(*types.Struct)
		for i := range st.NumFields() {
			r.saveField(addr, t, st.Field(i), r.field(v, t, i))
		}
		return
	}
	name, stored := r.p.typeName(t), r.kept(v)
	m := r.mem(class, name)
	if stored == r.same[name] && isFirst(r.ts.sel(m, addr)) {
		return
	}
	if stored == r.same[name] { // a place holds again what it held at first
		if rest := r.ts.without(m, addr); rest != m && isFirst(r.ts.sel(rest, addr)) && class != r.p.derefClass(t) {
			r.memory[class] = rest
			return
		}
	}
	if class == r.p.derefClass(t) {
		r.cross[name] = r.ts.of("store", r.crossed(name), addr, stored)
		for c, m := range r.memory {
			if c != class && strings.HasSuffix(c, "\x00"+name) {
				r.memory[c] = r.ts.of("perhaps", m, addr, stored)
			}
		}
	}
	r.memory[class] = r.ts.store(m, addr, stored)
}

func (r *run) saveField(addr *term, t types.Type, f *types.Var, v value) {
	if isStruct(f.Type()) {
		r.save("", r.ts.of("part "+f.Name(), addr), f.Type(), v)
		return
	}
	r.save(r.p.fieldClass(t, f), addr, f.Type(), v)
}

// clobber notes that code of which nothing is known has run: all memory may have changed.
func (r *run) clobber(by *term) {
	r.epoch = r.ts.of("after", r.epoch, by)
	r.memory, r.cross = make(map[string]*term), make(map[string]*term)
	r.cells = r.ts.of("after", r.cells, by)
}

// address returns the address of what v points to, which is in memory from now on.
func (r *run) address(v *ref) *term {
	c := v.cell
	if c.addr == nil {
		if c.inTerm {
			panic(stop{"an object leads to itself"})
		}
		c.inTerm = true
		held := r.termOf(c.v)
		c.inTerm = false
		key := r.ts.of("new "+r.p.typeName(c.typ), held)
		r.news[key]++
		c.addr = r.ts.of("new "+r.p.typeName(c.typ), held, r.ts.int(r.news[key]))
		r.save(r.p.derefClass(c.typ), c.addr, c.typ, c.v)
	}
	addr, t := c.addr, c.typ
	for _, i := range v.path {
		f := t.Underlying().(*types.Struct).Field(i)
		if !isStruct(f.Type()) {
			return r.ts.of("address of "+f.Name(), addr)
		}
		addr, t = r.ts.of("part "+f.Name(), addr), f.Type()
	}
	return addr
}

// addressOf returns the address of a place in memory.
func (r *run) addressOf(at *place) *term {
	switch {
	case at.addr == nil:
		panic(stop{"the address of an element goes to a function of which nothing is known"})
	case at.field == nil:
		return at.addr
	case isStruct(at.typ):
		return r.ts.of("part "+at.field.Name(), at.addr)
	}
	return r.ts.of("address of "+at.field.Name(), at.addr)
}

// own sees to it that nothing but a list leads to m, which is about to change.
func (r *run) own(m *memory) {
	if m.isShared {
		panic(stop{"memory that something else leads to changes"})
	}
}

// kept is termOf for what goes on to lead to the memory of v.
func (r *run) kept(v value) *term {
	switch v := v.(type) {
	case *list:
		v.mem.isShared = true
		v.mem.kept(r)
	case *array:
		v.mem.kept(r)
	case *record:
		for _, field := range v.fields {
			r.kept(field)
		}
	}
	return r.termOf(v)
}

// get returns the value of a cell.
func (r *run) get(c *cell) value {
	if c.addr != nil {
		return r.load(r.p.derefClass(c.typ), c.addr, c.typ)
	}
	return c.v
}

// set changes the value of a cell.
func (r *run) set(c *cell, v value) {
	if c.addr != nil {
		r.save(r.p.derefClass(c.typ), c.addr, c.typ, v)
		return
	}
	c.v = clone(v)
}
