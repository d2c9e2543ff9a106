package verify

import (
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"slices"

	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"github.com/asyncgen/asyncgen/gen/internal/facts"
	"github.com/asyncgen/asyncgen/gen/internal/load"
)

// This file says what functions of the libraries do.

// library calls a function of the tensor library.
func (f *frame) library(fn *types.Func, known *known, recv value, args []value, e *ast.CallExpr) value {
	api := known.api
	name, isLate := hostForm(known.name)
	if name == tensorPath+".FromI64" {
		name = tensorPath + ".From"
	}
	ts := f.termsOfArgs(recv, args)
	if name == method+"Lazy" || name == method+"Eager" { // the same elements, at another time
		return ts[0]
	}
	for i, t := range ts {
		if t.op == "select" && f.isTensor(fn.Signature(), i) {
			f.held[t] = true
		}
		if isLate && i > 0 && f.isTensor(fn.Signature(), i) && takesIndex(known.name) {
			ts[i] = f.ts.of(itemInt, t) // RowAt(i) is Row(int(i.ItemInt()))
		}
	}
	usesCells := known.usesCells && api.Kind != tensorapi.Pure && api.Kind != tensorapi.Output
	if recv != nil && ts[0].op == load.RuntimePath+"/nn.Frozen" {
		usesCells = false // its values never change
	}
	if usesCells {
		ts = append(ts, f.cells)
	}
	switch api.Kind {
	case tensorapi.Meta, tensorapi.Pure:
		if name == checkRate {
			f.mayBeNoRate(ts)
			return nil
		}
		return f.ts.of(name, f.behind(ts, fn.Signature(), args)...)
	case tensorapi.Host:
		return f.filled(name, f.behind(ts, fn.Signature(), args))
	case tensorapi.View, tensorapi.Op:
		if api.Kind == tensorapi.Op && isLate && isRead(name) { // ItemF64: it fails where it is looked at
			f.late[ts[0]] = true
			return f.ts.of(name, ts...)
		}
		ts = f.behind(ts, fn.Signature(), args)
		if known.name == method+"SliceI64" { // Slice(axis, i, i+n)
			ts[3] = f.ts.binary(token.ADD, "int", ts[2], ts[3])
		}
		if isLate && f.p.api.Funcs[name].Kind == tensorapi.View {
			return f.ts.of(name, ts...) // an index that is out of range is a failure of the result
		}
		t := f.operation(name, ts)
		if api.Arg != tensorapi.None && api.Kind == tensorapi.Op && usesCells {
			f.run.cells = f.ts.of("used", f.run.cells, t)
		}
		return t
	case tensorapi.Draw, tensorapi.Mutate:
		if !usesCells {
			ts = append(ts, f.cells)
		}
		t := f.ts.of(name, ts...)
		if name == setRate && !isLate { // which CheckRate panics about
			f.mayBeNoRate(ts)
		} else if name != setRate {
			t = f.operation(name, ts)
		}
		f.run.cells = f.ts.of("changed", t)
		return t
	case tensorapi.Value:
		if name == rate && f.cells.op == "changed" && f.cells.args[0].op == setRate && f.cells.args[0].args[0] == ts[0] {
			return f.cells.args[0].args[1]
		}
		return f.ts.of(name, ts...)
	case tensorapi.Read:
		if results := fn.Signature().Results(); results.Len() == 0 || f.p.typeName(results.At(results.Len()-1).Type()) != "error" {
			f.reads(ts[0])
		}
		return f.ts.of(name, ts...)
	case tensorapi.Wait, tensorapi.Print:
		return f.ts.of(name, ts...)
	case tensorapi.Call:
		if api.Calls == tensorapi.Later || api.Arg == tensorapi.Recv { // the function of a Captured isn't known here
			break
		}
		if c, ok := args[api.Arg].(*closure); ok {
			f.probe(c, e)
		}
		t := f.operation(name, append(ts, f.cells))
		f.run.cells = f.ts.of("used", f.run.cells, t)
		return t
	case tensorapi.Poll:
		f.asked[name]++
		return f.ts.of("asked "+name, append(ts, f.ts.int(f.asked[name]))...)
	case tensorapi.Control, tensorapi.Output, tensorapi.Save, tensorapi.WaitAll:
		return f.event(name, f.behind(ts, fn.Signature(), args)...)
	}
	f.stop(e, "calls "+fn.FullName())
	return nil
}

// isTensor reports whether the i-th operand of a function, the receiver included, is a tensor.
func (f *frame) isTensor(sig *types.Signature, i int) bool {
	if sig.Recv() != nil {
		if i--; i < 0 {
			return f.p.api.IsTensor(sig.Recv().Type())
		}
	}
	return i < sig.Params().Len() && f.p.api.IsTensor(sig.Params().At(i).Type())
}

const (
	optimizer = "(*" + load.RuntimePath + "/optim.Optimizer)."
	rate      = optimizer + "Rate"
	setRate   = optimizer + "SetRate"
	checkRate = optimizer + "CheckRate"
)

// mayBeNoRate notes that the optimiser ts[0] may refuse the rate ts[1], unless that is a constant from 0 on, or a rate
// that it has.
func (f *frame) mayBeNoRate(ts []*term) {
	if ts[1].op != rate && (ts[1].c == nil || constant.Sign(ts[1].c) < 0) {
		f.mayFail(mistake, f.ts.of(setRate, ts[:2]...))
	}
}

// filled is operation. Full without a shape is Scalar.
func (f *frame) filled(name string, ts []*term) *term {
	if name == tensorPath+".Full" && ts[1].op == "slice" && ts[1].args[0].op == "list" && len(ts[1].args[0].args) == 0 {
		return f.operation(tensorPath+".Scalar", ts[:1])
	}
	return f.operation(name, ts)
}

// operation enqueues an operation, unless that is a mistake.
func (f *frame) operation(name string, ts []*term) *term {
	t := f.ts.of(name, ts...)
	f.mayFail(mistake, t)
	return t
}

// usesCells reports whether a function of the library may depend on more than the tensors and numbers that it gets.
func (p *Program) usesCells(fn *types.Func) bool {
	sig := fn.Signature()
	if r := sig.Recv(); r != nil && !p.isPlain(r.Type()) {
		return true
	}
	for v := range sig.Params().Variables() {
		if !p.isPlain(v.Type()) {
			return true
		}
	}
	return false
}

func (p *Program) isPlain(t types.Type) bool {
	if p.api.IsTensor(t) || tensorapi.IsNumber(t) {
		return true
	}
	if _, ok := types.Unalias(t).(*types.TypeParam); ok {
		return true // elements, in the library
	}
	switch u := t.Underlying().(type) {
	case *types.Basic:
		return true
	case *types.Slice:
		return p.isPlain(u.Elem())
	case *types.Pointer:
		return isMatrix(u.Elem())
	case *types.Interface:
		return isMatrix(t)
	case *types.Struct:
		return !p.api.IsCell(t)
	}
	return false
}

// isMatrix reports whether t is a type of gonum's matrices.
func isMatrix(t types.Type) bool {
	n, ok := types.Unalias(t).(*types.Named)
	return ok && n.Obj().Pkg() != nil && n.Obj().Pkg().Path() == "gonum.org/v1/gonum/mat"
}

// behind adds to the terms of a call what slices and the like lead to.
func (f *frame) behind(ts []*term, sig *types.Signature, args []value) []*term {
	ts = slices.Clip(ts)
	for i, a := range args {
		if i >= sig.Params().Len() {
			break
		}
		ts = append(ts, f.reach(a, sig.Params().At(i).Type())...)
	}
	return ts
}

// reach returns what a value of type t leads to, by class. The content of a list is part of its term.
func (f *frame) reach(v value, t types.Type) (ts []*term) {
	if _, ok := v.(*list); ok || f.isPartOfList(v) {
		s, ok := t.Underlying().(*types.Slice)
		if !ok {
			return nil
		}
		t = s.Elem()
	}
	for _, c := range f.classes(t) {
		ts = append(ts, f.mem(c.name, f.p.typeName(c.typ)))
	}
	return ts
}

// isPartOfList reports whether v is a part of a list, perhaps with more elements, to which nothing has been stored by
// that name: its content is part of its term.
func (f *frame) isPartOfList(v value) bool {
	of := func(t *term) *term {
		for t.op == "part" || t.op == "append" {
			t = t.args[0]
		}
		return t
	}
	t, ok := v.(*term)
	if !ok || t.op != "part" && t.op != "append" || of(t).op != "slice" {
		return false
	}
	for _, m := range f.memory {
		for ; m.op == "store"; m = m.args[0] {
			if addr := m.args[1]; addr.op == "at" && of(addr.args[0]) == of(t) {
				return false
			}
		}
		if m.op == "perhaps" {
			return false
		}
	}
	return true
}

// A class is a part of memory, see fieldClass, and the type of the values in it.
type class struct {
	name string
	typ  types.Type
}

// classes returns the classes of memory that a value of type t leads to, as far as types show.
func (f *frame) classes(t types.Type) []class {
	if all, ok := f.p.classes[t]; ok {
		return all
	}
	var all []class
	seen := make(map[string]bool)
	add := func(name string, t types.Type) {
		if !seen[name] {
			seen[name] = true
			all = append(all, class{name, t})
		}
	}
	var follow func(t types.Type)
	follow = func(t types.Type) {
		if t == nil || seen[f.p.typeName(t)] || f.p.api.IsTensor(t) || tensorapi.IsNumber(t) {
			return
		}
		seen[f.p.typeName(t)] = true
		switch u := t.Underlying().(type) {
		case *types.Slice:
			if !isStruct(u.Elem()) {
				add(f.p.elemClass(u.Elem()), u.Elem())
			}
			follow(u.Elem())
			f.fields(u.Elem(), add, follow)
		case *types.Pointer:
			if !isStruct(u.Elem()) {
				add(f.p.derefClass(u.Elem()), u.Elem())
			}
			f.fields(u.Elem(), add, follow)
		case *types.Map:
			add(f.p.mapClass(u), u.Elem())
			follow(u.Elem())
		case *types.Struct:
			for field := range u.Fields() {
				follow(field.Type())
			}
		}
	}
	follow(t)
	f.p.classes[t] = all
	return all
}

func (f *frame) fields(t types.Type, add func(string, types.Type), visit func(types.Type)) {
	st, ok := t.Underlying().(*types.Struct)
	if !ok {
		return
	}
	for field := range st.Fields() {
		if !isStruct(field.Type()) {
			add(f.p.fieldClass(t, field), field.Type())
		}
		visit(field.Type())
	}
}

// standard calls a function of the standard library.
func (f *frame) standard(fact *facts.Entry, fn *types.Func, name string, recv value, args []value, e *ast.CallExpr) value {
	switch name { // which numbers have no methods for
	case "math.IsNaN":
		return f.ts.not(f.ts.binary(token.EQL, "float64", f.term(args[0]), f.term(args[0])))
	case "math.IsInf":
		if sign, ok := f.term(args[1]).asInt(); ok {
			x := f.term(args[0])
			if sign == 0 {
				x = f.ts.of("math.Abs", x)
			}
			one := 1
			if sign < 0 {
				one = -1
			}
			return f.ts.binary(token.EQL, "float64", x, f.ts.of("math.Inf", f.ts.int(one)))
		}
	}
	recvSlot, slots := fact.Slots(fn.Origin().Signature())
	sig := fn.Signature()
	var ts []*term
	var changes []func(by *term)
	isHeld := false // an object of the function's own is among what it gets
	isSeen := false // it changes an object that is none of the function's own
	look := func(v value, t types.Type, s facts.Slot) {
		switch v := v.(type) {
		case *ref: // an object of the function: what it holds is what counts
			if !s.Has(facts.Keeps) && v.cell.addr == nil {
				isHeld = true
				ts = append(ts, f.ts.of("pointer to", f.term(f.read(&place{cell: v.cell, path: v.path}))))
				if s.Has(facts.Changes|facts.State|facts.Fills) || s.Has(facts.Calls) && len(s.Methods) > 0 {
					at := &place{cell: v.cell, path: v.path}
					changes = append(changes, func(by *term) { f.write(at, f.ts.of("after", by)) })
				}
				return
			}
		case *list:
			if s.Has(facts.Changes | facts.State | facts.Fills) {
				changes = append(changes, func(by *term) {
					f.own(v.mem)
					v.mem.flatten(f.run)
					v.mem.content = f.ts.of("after", by)
				})
			}
		case *closure:
			if s.Has(facts.Calls) {
				f.probe(v, e)
			}
		case spread:
			for _, x := range v {
				ts = append(ts, f.term(x))
			}
			return
		}
		ts = append(ts, f.term(v))
		ts = append(ts, f.reach(v, t)...)
		switch v.(type) {
		case *term, *ref, *pointer: // others lead there
			isSeen = isSeen || s.Has(facts.Changes|facts.State|facts.Fills) || s.Has(facts.Calls) && types.IsInterface(t)
			if s.Has(facts.Changes | facts.Fills) {
				changes = append(changes, func(by *term) { f.change(t, by) })
			}
		}
	}
	if recv != nil {
		look(recv, sig.Recv().Type(), recvSlot)
	}
	for i, a := range args {
		if i < sig.Params().Len() {
			look(a, sig.Params().At(i).Type(), slots[min(i, len(slots)-1)])
		}
	}
	var t *term
	isOwn := false // a text of the function that nobody else sees
	if len(args) > 0 {
		r, ok := args[0].(*ref)
		isOwn = ok && r.cell.addr == nil
	}
	switch {
	case fact.Has(facts.Polls | facts.Env | facts.Clock | facts.Random): // it changes by itself
		f.asked[name]++
		t = f.ts.of("asked "+name, append(ts, f.ts.int(f.asked[name]))...)
	case fact.Has(facts.Global | facts.Source):
		by := f.ts.of("the global generator")
		if recv != nil {
			by = f.term(recv)
		}
		state := f.random[by]
		if state == nil {
			state = f.ts.of("fresh")
		}
		t = f.ts.of(name, append(ts, state)...)
		f.random[by] = f.ts.of("after", t)
	case isSeen || len(fact.Wraps) > 0 || fact.Has(facts.Prints|facts.Stamps) && !isOwn || fact.Has(facts.Setenv|facts.Blocks|facts.Ends|facts.Exits) ||
		fact.Has(facts.Stream) && !isHeld:
		t = f.event(name, ts...)
		t = f.ts.of("result", t, f.ts.int(len(f.trace)))
	default:
		t = f.ts.of(name, ts...)
	}
	if fact.Has(facts.Ends | facts.Exits) {
		f.run.raise(t)
	}
	if !fact.Has(facts.Total) {
		f.mayFail(failsFor, f.ts.of(name, ts...))
	}
	for _, change := range changes {
		change(t)
	}
	if fact.Has(facts.Fresh) && sig.Results().Len() == 1 {
		if _, ok := f.typeOf(e).Underlying().(*types.Slice); ok {
			return &list{mem: &memory{content: f.ts.of("content", t)}, len: f.ts.of("len", t)}
		}
	}
	return t
}

// change notes that what a value of type t leads to has changed.
func (f *frame) change(t types.Type, by *term) {
	for _, c := range f.classes(t) {
		f.memory[c.name] = f.ts.of("perhaps", f.mem(c.name, f.p.typeName(c.typ)), by)
	}
}

// probe executes a function that another one calls, once, for what it does.
func (f *frame) probe(c *closure, e *ast.CallExpr) {
	var args []value
	for _, field := range c.typ.Params.List {
		for _, name := range field.Names {
			args = append(args, f.ts.of("argument "+name.Name))
		}
	}
	f.run.call(c, args)
}
