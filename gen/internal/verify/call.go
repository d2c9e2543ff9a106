package verify

import (
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"slices"

	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"github.com/asyncgen/asyncgen/gen/internal/facts"
	"github.com/asyncgen/asyncgen/gen/internal/load"
	"golang.org/x/tools/go/types/typeutil"
)

func (f *frame) callExpr(e *ast.CallExpr) value {
	info := f.fn.Info
	if tv := info.Types[e.Fun]; tv.IsType() {
		return f.converted(f.expr(e.Args[0]), f.typeOf(e.Args[0]), tv.Type, e.Args[0])
	}
	fun := ast.Unparen(e.Fun)
	if id, ok := fun.(*ast.Ident); ok {
		if b, ok := info.Uses[id].(*types.Builtin); ok {
			return f.builtin(b.Name(), e)
		}
	}
	fn, _ := typeutil.Callee(info, e).(*types.Func)
	if fn == nil {
		of := f.expr(e.Fun)
		if t, ok := of.(*term); ok {
			if obj := f.said(fun); obj != nil {
				d, _ := f.p.declared(obj)
				args := f.args(e, f.typeOf(e.Fun).Underlying().(*types.Signature))
				return f.declared(d, "calls "+t.String(), f.typeOf(e.Fun).Underlying().(*types.Signature), nil, args, e)
			}
		}
		return f.apply(of, f.args(e, f.typeOf(e.Fun).Underlying().(*types.Signature)), e)
	}
	var recv value
	if sel, ok := fun.(*ast.SelectorExpr); ok {
		if s := info.Selections[sel]; s != nil && s.Kind() == types.MethodVal {
			recv = f.receiver(sel, s)
		} else if s != nil && s.Kind() == types.MethodExpr {
			if len(s.Index()) > 1 {
				f.stop(e, "a method expression of a promoted method")
			}
			recv = clone(f.expr(e.Args[0]))
			e = &ast.CallExpr{Fun: e.Fun, Lparen: e.Lparen, Args: e.Args[1:], Ellipsis: e.Ellipsis, Rparen: e.Rparen}
		}
	}
	return f.callOf(fn, recv, f.args(e, fn.Signature()), e)
}

// said returns the parameter, field or type of a function value of which a directive says what it does, or nil.
func (f *frame) said(fun ast.Expr) types.Object {
	var obj types.Object
	switch fun := fun.(type) {
	case *ast.Ident:
		obj = f.fn.Info.Uses[fun]
	case *ast.SelectorExpr:
		obj = f.fn.Info.Uses[fun.Sel]
	}
	if obj != nil {
		if _, ok := f.p.declared(obj); ok {
			return obj
		}
	}
	if n, ok := types.Unalias(f.typeOf(fun)).(*types.Named); ok {
		if _, ok := f.p.declared(n.Origin().Obj()); ok {
			return n.Origin().Obj()
		}
	}
	return nil
}

// args returns the arguments of a call, with those of a variadic parameter in a slice.
func (f *frame) args(e *ast.CallExpr, sig *types.Signature) []value {
	var vs []value
	if len(e.Args) == 1 && sig != nil && sig.Params().Len() > 1 && !sig.Variadic() {
		vs = f.several(f.expr(e.Args[0]), sig.Params().Len())
	} else {
		vs = f.exprs(e.Args)
	}
	for i, v := range vs {
		vs[i] = clone(v)
	}
	if sig == nil || !sig.Variadic() || e.Ellipsis.IsValid() {
		return vs
	}
	fixed := sig.Params().Len() - 1
	rest := vs[fixed:]
	if f.holdsOnlyTerms(rest) {
		return append(slices.Clip(vs[:fixed]), &list{mem: &memory{content: f.ts.of("list", f.termsOf(rest)...)}, len: f.ts.int(len(rest))})
	}
	return append(slices.Clip(vs[:fixed]), spread(rest))
}

// A spread is the variadic part of the arguments of a call, if they are more than terms.
type spread []value

func (f *frame) holdsOnlyTerms(vs []value) bool {
	return !slices.ContainsFunc(vs, func(v value) bool {
		switch v.(type) {
		case *term, *list, *record, *reading:
			return false
		}
		return true
	})
}

// receiver evaluates what a method is called of.
func (f *frame) receiver(e *ast.SelectorExpr, sel *types.Selection) value {
	fn := sel.Obj().(*types.Func)
	_, wants := types.Unalias(fn.Signature().Recv().Type()).(*types.Pointer)
	path := sel.Index()
	t := sel.Recv()
	if len(path) == 1 {
		p, isPointer := t.Underlying().(*types.Pointer)
		switch {
		case wants && !isPointer && !types.IsInterface(t):
			return f.unary(&ast.UnaryExpr{Op: token.AND, X: e.X})
		case !wants && isPointer && !types.IsInterface(fn.Signature().Recv().Type()):
			return clone(f.read(f.pointed(f.expr(e.X), p.Elem())))
		}
		return clone(f.expr(e.X))
	}
	// promoted from an embedded field
	var at *place
	if p, ok := t.Underlying().(*types.Pointer); ok {
		t = p.Elem()
		at = f.pointed(f.expr(e.X), t)
	} else if isPlace(e.X) {
		at = f.place(e.X)
	} else {
		at = &place{cell: &cell{v: f.expr(e.X), typ: t}}
	}
	for _, i := range path[:len(path)-1] {
		if p, ok := t.Underlying().(*types.Pointer); ok {
			t = p.Elem()
			at = f.pointed(f.read(at), t)
		}
		field := t.Underlying().(*types.Struct).Field(i)
		at, t = f.part(at, t, i, field), field.Type()
	}
	p, isPointer := t.Underlying().(*types.Pointer)
	switch {
	case wants && !isPointer:
		if at.cell != nil {
			return &ref{at.cell, at.path}
		}
		return &pointer{at}
	case !wants && isPointer && !types.IsInterface(t):
		return clone(f.read(f.pointed(f.read(at), p.Elem())))
	}
	return clone(f.read(at))
}

// methodValue evaluates x.Method that is not called at once.
func (f *frame) methodValue(e *ast.SelectorExpr, sel *types.Selection) value {
	fn := sel.Obj().(*types.Func)
	recv := f.receiver(e, sel)
	if body := f.p.body(fn); body != nil {
		return f.method(body, fn, recv)
	}
	return &bound{fn: fn, recv: recv}
}

func (f *frame) method(body *Func, fn *types.Func, recv value) *closure {
	return &closure{typ: body.Decl.Type, body: body.Decl.Body, fn: body, recv: recv, name: fn.FullName(), env: f.receiverEnv(body, recv)}
}

// receiverEnv is the scope of the receiver of a method.
func (f *frame) receiverEnv(body *Func, recv value) *env {
	if body.Decl.Recv == nil || len(body.Decl.Recv.List[0].Names) == 0 {
		return nil
	}
	id := body.Decl.Recv.List[0].Names[0]
	obj := body.Info.Defs[id]
	if obj == nil {
		return nil
	}
	return &env{vars: map[types.Object]*cell{obj: {v: clone(recv), typ: obj.Type()}}}
}

// apply calls a value.
func (f *frame) apply(of value, args []value, e *ast.CallExpr) value {
	switch of := of.(type) {
	case *closure:
		return f.run.call(of, args)
	case native:
		return of(f.run, args)
	case *once:
		if !of.done {
			of.result = f.apply(of.of, nil, e)
			of.done = true
		}
		return of.result
	case *bound:
		return f.callOf(of.fn, of.recv, args, e)
	case *term:
		if of.op == "nil" {
			f.run.raise(f.ts.of("fails: nil function"))
		}
		return f.unknown("calls", append([]*term{of}, f.handed(nil, args, e)...))
	}
	f.stop(e, "calls a value that is not known")
	return nil
}

// unknown calls a function of which nothing is known.
func (f *frame) unknown(name string, ts []*term) value {
	t := f.event(name, append(ts, f.cells)...)
	t = f.ts.of("result", t, f.ts.int(len(f.trace)))
	f.mayFail("panics", t)
	f.clobber(t)
	return t
}

// declared calls a function of which a directive or a table says what it does.
func (f *frame) declared(d load.Effects, name string, sig *types.Signature, recv value, args []value, e *ast.CallExpr) value {
	ts := f.behind(f.handed(recv, args, e), sig, args)
	if recv != nil {
		ts = append(ts, f.reach(recv, sig.Recv().Type())...)
	}
	if d.Device {
		ts = append(ts, f.cells)
	}
	t := f.ts.of(name, ts...)
	if d.Output || d.Input || d.Changes {
		t = f.ts.of("result", f.event(name, ts...), f.ts.int(len(f.trace)))
	}
	if d.Output || d.Input || d.Changes {
		f.mayFail("panics", t)
	}
	if d.Device {
		f.run.cells = f.ts.of("changed", t)
	}
	if d.Changes {
		if recv != nil {
			f.change(sig.Recv().Type(), t)
		}
		for i := range args {
			f.change(sig.Params().At(min(i, sig.Params().Len()-1)).Type(), t)
		}
	}
	return t
}

// handed is what a function of which nothing is known gets. A function literal that is among it may be called at any
// time: the variables that it uses are in memory from now on.
func (f *frame) handed(recv value, args []value, e *ast.CallExpr) []*term {
	for _, a := range append(slices.Clip(args), recv) {
		switch a := a.(type) {
		case *closure:
			f.free(a)
		case native, *once, *later, *bound:
			f.stop(e, "hands a function to one of which nothing is known")
		case *list: // it may change it
			a.mem.isShared = true
		}
	}
	return f.termsOfArgs(recv, args)
}

// free puts the variables around a function literal that it uses into memory.
func (r *run) free(c *closure) {
	ast.Inspect(c.body, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		if !ok {
			return true
		}
		v, ok := c.fn.Info.Uses[id].(*types.Var)
		if !ok || v.IsField() || c.body.Pos() <= v.Pos() && v.Pos() < c.body.End() {
			return true
		}
		cell := c.env.lookup(v)
		if cell == nil {
			return true
		}
		if inner, ok := cell.v.(*closure); ok && cell.addr == nil {
			if cell.inTerm {
				return true
			}
			cell.inTerm = true
			r.free(inner)
			cell.inTerm = false
		}
		r.address(&ref{cell: cell})
		return true
	})
}

// callOf calls a function or method that is known by name.
func (f *frame) callOf(fn *types.Func, recv value, args []value, e *ast.CallExpr) value {
	if concrete := dynamic(fn, recv); concrete != nil {
		// a directive may speak of the method of the interface alone
		if _, ok := f.p.declared(fn); !ok || f.p.body(concrete) != nil {
			fn = concrete
		}
	}
	known := f.p.knownOf(fn)
	name := known.name
	if v, ok := f.runtime(fn, name, recv, args, e); ok {
		return v
	}
	if known.isAPI {
		return f.library(known.api, fn, recv, args, e)
	}
	if known.fact != nil {
		return f.standard(known.fact, fn, name, recv, args, e)
	}
	if name == "log/slog.Any" || name == "log/slog.Group" { // they hold what they are given
		return f.ts.of(name, f.behind(f.termsOfArgs(nil, args), fn.Signature(), args)...)
	}
	if d, ok := f.p.declared(fn); ok {
		return f.declared(d, name, fn.Signature(), recv, args, e)
	}
	if body := f.p.body(fn); body != nil {
		return f.run.call(f.method(body, fn, recv), args)
	}
	if name == "(error).Error" {
		if isNil(recv) {
			f.run.raise(f.ts.of(failsNil))
		}
		return f.ts.of(name, f.term(recv))
	}
	return f.unknown(name, f.handed(recv, args, e))
}

// dynamic returns the method that a call of a method of an interface calls, if the type of the value is known.
func dynamic(fn *types.Func, recv value) *types.Func {
	if r := fn.Signature().Recv(); r == nil || !types.IsInterface(r.Type()) {
		return nil
	}
	var t types.Type
	switch v := recv.(type) {
	case *record:
		t = v.typ
	case *ref:
		if len(v.path) == 0 {
			t = types.NewPointer(v.cell.typ)
		}
	}
	if t == nil {
		return nil
	}
	obj, path, _ := types.LookupFieldOrMethod(t, true, fn.Pkg(), fn.Name())
	if m, ok := obj.(*types.Func); ok && len(path) == 1 {
		return m
	}
	return nil
}

// termsOfArgs returns the terms of a receiver, if there is one, and arguments.
func (f *frame) termsOfArgs(recv value, args []value) (ts []*term) {
	if recv != nil {
		ts = append(ts, f.term(recv))
	}
	for _, a := range args {
		if s, ok := a.(spread); ok {
			ts = append(ts, f.termsOf(s)...)
			continue
		}
		ts = append(ts, f.term(a))
	}
	return ts
}

// library calls a function of the tensor library.
func (f *frame) library(api tensorapi.Func, fn *types.Func, recv value, args []value, e *ast.CallExpr) value {
	name, isLate := hostForm(f.p.nameOf(fn))
	ts := f.termsOfArgs(recv, args)
	for i, t := range ts { // RowAt(i) is Row(int(i.ItemInt()))
		if isLate && i > 0 && i <= fn.Signature().Params().Len() && tensorapi.Ours().IsTensor(fn.Signature().Params().At(i-1).Type()) && takesIndex(f.p.nameOf(fn)) {
			ts[i] = f.ts.of(itemInt, t)
		}
	}
	usesCells := f.usesCells(fn) && api.Kind != tensorapi.Pure && api.Kind != tensorapi.Output
	if recv != nil && ts[0].op == load.RuntimePath+"/nn.Frozen" {
		usesCells = false // its values never change
	}
	if usesCells {
		ts = append(ts, f.cells)
	}
	switch api.Kind {
	case tensorapi.Meta, tensorapi.Pure:
		return f.ts.of(name, f.behind(ts, fn.Signature(), args)...)
	case tensorapi.Host:
		return f.operation(name, f.behind(ts, fn.Signature(), args))
	case tensorapi.View, tensorapi.Op:
		if api.Kind == tensorapi.Op && isLate && isRead(name) { // ItemF64: it fails where it is looked at
			f.late[ts[0]] = true
			return f.ts.of(name, ts...)
		}
		ts = f.behind(ts, fn.Signature(), args)
		if f.p.nameOf(fn) == method+"SliceI64" { // Slice(axis, i, i+n)
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
		t := f.operation(name, ts)
		f.run.cells = f.ts.of("changed", t)
		return t
	case tensorapi.Value:
		return f.ts.of(name, ts...)
	case tensorapi.Read:
		if results := fn.Signature().Results(); results.Len() == 0 || f.p.typeName(results.At(results.Len()-1).Type()) != "error" {
			f.reads(ts[0])
		}
		return f.ts.of(name, ts...)
	case tensorapi.Wait, tensorapi.Print:
		return f.ts.of(name, ts...)
	case tensorapi.Call:
		if api.Calls == tensorapi.Later {
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

// operation enqueues an operation, unless that is a mistake.
func (f *frame) operation(name string, ts []*term) *term {
	t := f.ts.of(name, ts...)
	f.mayFail("mistake", t)
	return t
}

// usesCells reports whether a function of the library may depend on more than the tensors and numbers that it gets.
func (f *frame) usesCells(fn *types.Func) bool {
	sig := fn.Signature()
	if r := sig.Recv(); r != nil && !f.isPlain(r.Type()) {
		return true
	}
	for p := range sig.Params().Variables() {
		if !f.isPlain(p.Type()) {
			return true
		}
	}
	return false
}

func (f *frame) isPlain(t types.Type) bool {
	if f.p.api.IsTensor(t) || tensorapi.IsNumber(t) {
		return true
	}
	if _, ok := types.Unalias(t).(*types.TypeParam); ok {
		return true // elements, in the library
	}
	switch u := t.Underlying().(type) {
	case *types.Basic:
		return true
	case *types.Slice:
		return f.isPlain(u.Elem())
	case *types.Pointer:
		return isMatrix(u.Elem())
	case *types.Interface:
		return isMatrix(t)
	case *types.Struct:
		return !f.p.api.IsCell(t)
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
	if _, ok := v.(*list); ok {
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
		if n, ok := f.term(args[1]).asInt(); ok && n == 0 {
			return f.ts.binary(token.EQL, "float64", f.ts.of("math.Abs", f.term(args[0])), f.ts.of("math.Inf", f.ts.int(1)))
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
		f.mayFail("panics", f.ts.of(name, ts...))
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
		return f.unknown("close", []*term{f.term(f.expr(e.Args[0]))})
	case "panic":
		v := f.term(f.expr(e.Args[0]))
		f.run.raise(f.ts.of("panic", v))
	case "min", "max":
		kind := kindOf(f.typeOf(e))
		t := f.term(f.expr(e.Args[0]))
		for _, a := range e.Args[1:] {
			t = f.ts.of(name+":"+kind, t, f.term(f.expr(a)))
		}
		return t
	case "delete":
		m, k := f.expr(e.Args[0]), f.term(f.expr(e.Args[1]))
		if l, ok := m.(*list); ok {
			l.mem.content = f.ts.of("deleted", l.mem.content, k)
			return nil
		}
		u := f.typeOf(e.Args[0]).Underlying().(*types.Map)
		class := f.p.mapClass(u)
		f.memory[class] = f.ts.of("deleted", f.mem(class, f.p.typeName(u.Elem())), f.term(m), k)
		return nil
	case "copy":
		to, source := f.expr(e.Args[0]), f.expr(e.Args[1])
		from, more := f.term(source), f.reach(source, f.typeOf(e.Args[1]))
		if l, ok := to.(*list); ok {
			l.mem.content = f.ts.of("copied", append([]*term{l.mem.content, from}, more...)...)
			return f.ts.of("len", from)
		}
		by := f.ts.of("copied", append([]*term{f.term(to), from}, more...)...)
		f.change(f.typeOf(e.Args[0]), by)
		return f.ts.of("len", from)
	case "clear":
		if l, ok := f.expr(e.Args[0]).(*list); ok {
			f.own(l.mem)
			l.mem.content = f.ts.of("zeros")
			l.mem.parts = nil
			return nil
		}
		t := f.typeOf(e.Args[0])
		f.change(t, f.ts.of("cleared", f.term(f.expr(e.Args[0]))))
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
			f.mayFail("make", n)
		}
	}
	if len(e.Args) > 2 {
		f.expr(e.Args[2])
	}
	switch f.typeOf(e).Underlying().(type) {
	case *types.Slice:
		return &list{mem: &memory{content: f.ts.of("zeros")}, len: n}
	case *types.Map:
		return &list{mem: &memory{content: f.ts.of("empty")}, isMap: true}
	}
	f.asked["make"]++
	return f.ts.of("channel", n, f.ts.int(f.asked["make"]))
}

// append appends to a slice. If others may lead to its memory, that may change.
func (f *frame) append(e *ast.CallExpr) value {
	x := f.expr(e.Args[0])
	elem := f.typeOf(e.Args[0]).Underlying().(*types.Slice).Elem()
	if isNil(x) {
		x = &list{mem: &memory{content: f.ts.of("list")}, len: f.ts.int(0)}
	}
	l, isList := x.(*list)
	if e.Ellipsis.IsValid() {
		y := f.expr(e.Args[1])
		ts := append([]*term{f.term(y)}, f.reach(y, f.typeOf(e.Args[1]))...)
		n := f.lenOf(y, f.typeOf(e.Args[1]))
		if isList {
			return &list{mem: &memory{content: f.ts.of("appended", append([]*term{l.mem.whole(f.run), l.len}, ts...)...)}, len: f.ts.binary(token.ADD, "int", l.len, n)}
		}
		by := f.ts.of("appended", append([]*term{f.term(x)}, ts...)...)
		f.change(f.typeOf(e.Args[0]), by)
		return by
	}
	vs := f.exprs(e.Args[1:])
	if isList {
		m := &memory{content: l.mem.content, parts: maps.Clone(l.mem.parts)}
		n := l.len
		for _, v := range vs {
			m.put(f.run, n, v)
			n = f.ts.binary(token.ADD, "int", n, f.ts.int(1))
		}
		return &list{mem: m, len: n}
	}
	ts := append([]*term{f.term(x)}, f.termsOf(vs)...)
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
