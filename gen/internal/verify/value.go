package verify

import (
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"slices"
)

// A value is what an expression is at a time: a *term, or one of the types below, of which more is known.
type value any

// A cell is a variable, or an object that a pointer leads to.
type cell struct {
	v value
	// the address of the cell, once code that is not interpreted may use it: then memory holds its value
	addr *term
	typ  types.Type

	inTerm bool // its address is being found
}

// A ref is a pointer to a cell, or to a part of it.
type ref struct {
	cell *cell
	path []int // fields
}

// A record is a struct with known fields.
type record struct {
	typ    types.Type
	fields []value
}

// A list is a slice whose memory nothing else leads to: content is a chain of stores and appends. Slices of one array
// share it, from indices of their own. So is a map.
type list struct {
	mem   *memory
	from  *term // nil: 0
	len   *term
	isMap bool
}

// at is the index of an element in the memory of l.
func (l *list) at(ts *terms, i *term) *term {
	if l.from == nil {
		return i
	}
	return ts.binary(token.ADD, "int", l.from, i)
}

// memory is what a list leads to.
type memory struct {
	content  *term
	parts    map[*term]value // elements that are more than terms, by index or key, of which no two are the same
	room     int             // the capacity, as far as it is known: this much at the least
	isShared bool            // a term leads to it: it must not change any more
}

// An array is an array value in which some elements are pointers, functions or lists. Its memory is never changed, so
// copies of the array share it.
type array struct{ mem *memory }

// elementOf returns an element of an array.
func (r *run) elementOf(v value, index *term) value {
	if a, ok := v.(*array); ok {
		return a.mem.element(r, index)
	}
	return r.ts.sel(r.termOf(v), r.ts.at(index))
}

// withElement returns an array with another value for an element.
func (r *run) withElement(v value, index *term, element value) value {
	m := &memory{}
	if a, ok := v.(*array); ok {
		m.content, m.parts, m.room = a.mem.content, maps.Clone(a.mem.parts), a.mem.room
	} else {
		m.content = r.termOf(v)
	}
	m.put(r, index, element)
	return r.arrayOf(m)
}

// arrayOf returns the array with the elements of m.
func (r *run) arrayOf(m *memory) value {
	if len(m.parts) == 0 {
		return m.content
	}
	return &array{m}
}

// A closure is a function literal with the variables around it, or a function with a body.
type closure struct {
	typ  *ast.FuncType
	body *ast.BlockStmt
	fn   *Func
	env  *env
	recv value // of a method, or nil
	name string
}

// A bound is a method of the library with its receiver: x.Item, as a value.
type bound struct {
	call *ast.CallExpr // whose Fun it is, without arguments
	fn   *types.Func
	recv value
}

// A native is a function that the interpreter itself makes, such as the row function of MapRows.
type native func(r *run, args []value) value

type tuple []value

// An env is a scope with the variables that are declared in it.
type env struct {
	vars   []variable
	parent *env
}

// A variable is a name and what it stands for.
type variable struct {
	obj  types.Object
	cell *cell
}

func (e *env) lookup(obj types.Object) *cell {
	for ; e != nil; e = e.parent {
		for _, v := range e.vars {
			if v.obj == obj {
				return v.cell
			}
		}
	}
	return nil
}

// copied is e with the values that its variables have now.
func (e *env) copied() *env {
	if e == nil {
		return nil
	}
	vars := slices.Clone(e.vars)
	for i, v := range vars {
		copied := *v.cell
		vars[i].cell = &copied
	}
	return &env{vars, e.parent.copied()}
}

// clone returns a copy of v, as an assignment makes it.
func clone(v value) value {
	if r, ok := v.(*record); ok {
		fields := make([]value, len(r.fields))
		for i, f := range r.fields {
			fields[i] = clone(f)
		}
		return &record{r.typ, fields}
	}
	return v
}

// isMore reports whether v, an element of a list, is kept as it is and not as a term: it can change.
func isMore(v value) bool {
	switch v := v.(type) {
	case *list, *ref, *closure, native, *array:
		return true
	case *record:
		return slices.ContainsFunc(v.fields, isMore)
	}
	return false
}

// key returns the index of the part that is at index, or index if none is there. Where that is not known it is chosen.
func (m *memory) key(r *run, index *term) *term {
	if m.parts[index] != nil {
		return index
	}
	keys := m.keys()
	isFull := len(keys) == m.room && !slices.ContainsFunc(keys, func(i *term) bool { return i.c == nil })
	for n, i := range keys {
		if i.c != nil && index.c != nil {
			continue // they are not the same
		}
		if isFull && n == len(keys)-1 || r.decide(r.ts.binary(token.EQL, "int", index, i)) {
			return i
		}
	}
	return index
}

// keys returns the indices of the parts, in the same order each time.
func (m *memory) keys() []*term {
	return slices.SortedFunc(maps.Keys(m.parts), func(a, b *term) int { return a.id - b.id })
}

// element returns an element.
func (m *memory) element(r *run, index *term) value {
	index = m.key(r, index)
	if part := m.parts[index]; part != nil {
		return part
	}
	return r.ts.sel(m.content, r.ts.at(index))
}

// put stores an element.
func (m *memory) put(r *run, index *term, v value) {
	index = m.key(r, index)
	if !isMore(v) {
		delete(m.parts, index)
		m.content = r.ts.store(m.content, r.ts.at(index), r.kept(v))
		return
	}
	if m.parts == nil {
		m.parts = make(map[*term]value)
	}
	m.parts[index] = v
	m.content = r.ts.store(m.content, r.ts.at(index), r.ts.of("part"))
}

// flatten makes terms of all elements, for what takes them all at once.
func (m *memory) flatten(r *run) {
	m.content, m.parts = m.kept(r), nil
}

// isWithin reports whether all elements of m that are known not to be zero are among the first n.
func (m *memory) isWithin(n *term) bool {
	most, ok := n.asInt()
	t := m.content
	for ; ok && t.op == "store"; t = t.args[0] {
		i, known := t.args[1].args[1].asInt()
		ok = known && i < most
	}
	return ok && (t.op == "zeros" || t.op == "list" && len(t.args) <= most)
}

// whole is the content of m as a term.
func (m *memory) whole(r *run) *term { return m.with(r, r.termOf) }

// kept is whole for a copy of m: the copy leads to the same memory as the elements do.
func (m *memory) kept(r *run) *term { return m.with(r, r.kept) }

// with is the content of m as a term; termOf makes terms of the parts. It is called for the parts in a fixed order,
// since it gives them addresses, which tell objects apart that are alike.
func (m *memory) with(r *run, termOf func(value) *term) *term {
	t := m.content
	for _, i := range m.keys() {
		t = r.ts.store(t, r.ts.at(i), termOf(m.parts[i]))
	}
	return t
}
