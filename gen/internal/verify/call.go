package verify

import (
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"slices"

	"github.com/asyncgen/asyncgen/gen/internal/load"
	"golang.org/x/tools/go/types/typeutil"
)

// A callee is what a call calls. Of constant, to, builtin and fn one is set, or none where a value is called.
type callee struct {
	constant constant.Value // the call is one
	to       types.Type     // it is a conversion
	builtin  string
	fn       *types.Func
	known    *known           // of fn
	sel      *types.Selection // how a method is chosen
}

// calleeOf looks e up where info has it, once.
func (p *Program) calleeOf(info *types.Info, e *ast.CallExpr) *callee {
	c := p.calls[e]
	if c != nil {
		return c
	}
	c = &callee{constant: info.Types[e].Value}
	p.calls[e] = c
	if tv := info.Types[e.Fun]; tv.IsType() {
		c.to = tv.Type
		return c
	}
	switch called := typeutil.Callee(info, e).(type) {
	case *types.Builtin:
		c.builtin = called.Name()
	case *types.Func:
		c.fn, c.known = called, p.knownOf(called)
		if sel, ok := ast.Unparen(e.Fun).(*ast.SelectorExpr); ok {
			c.sel = info.Selections[sel]
		}
	}
	return c
}

func (f *frame) callExpr(e *ast.CallExpr) value {
	c := f.p.calleeOf(f.fn.Info, e)
	switch {
	case c.constant != nil:
		return f.ts.constant(c.constant)
	case c.to != nil:
		return f.converted(f.expr(e.Args[0]), f.typeOf(e.Args[0]), c.to, e.Args[0])
	case c.builtin != "":
		return f.builtin(c.builtin, e)
	}
	fun, fn := ast.Unparen(e.Fun), c.fn
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
	if s := c.sel; s != nil && s.Kind() == types.MethodVal {
		recv = f.receiver(fun.(*ast.SelectorExpr), s)
	} else if s != nil && s.Kind() == types.MethodExpr {
		if len(s.Index()) > 1 {
			f.stop(e, "a method expression of a promoted method")
		}
		recv = clone(f.expr(e.Args[0]))
		e = &ast.CallExpr{Fun: e.Fun, Lparen: e.Lparen, Args: e.Args[1:], Ellipsis: e.Ellipsis, Rparen: e.Rparen}
	}
	return f.callKnown(fn, c.known, recv, f.args(e, fn.Signature()), e)
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

// channel executes the operation with the given name, send or close, on ch. If a directive says that ch is output,
// others only receive from it.
func (f *frame) channel(name string, ch ast.Expr, sent ...ast.Expr) value {
	ts := []*term{f.term(f.expr(ch))}
	var behind []*term
	for _, e := range sent {
		v := f.expr(e)
		ts, behind = append(ts, f.kept(v)), append(behind, f.reach(v, f.typeOf(e))...)
	}
	if obj := f.said(ast.Unparen(ch)); obj != nil {
		if d, _ := f.p.declared(obj); d.Output {
			f.mayFail(failsFor, f.event(name, append(ts, behind...)...))
			return nil
		}
	}
	return f.unknown(name, ts)
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
		return append(slices.Clip(vs[:fixed]), &list{mem: f.holding(rest), len: f.ts.int(len(rest))})
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
	return &env{vars: []variable{{obj, &cell{v: clone(recv), typ: obj.Type()}}}}
}

// apply calls a value.
func (f *frame) apply(of value, args []value, e *ast.CallExpr) value {
	switch of := of.(type) {
	case *closure:
		return f.run.call(of, args)
	case native:
		return of(f.run, args)
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
	f.mayFail(failsFor, t)
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
		f.mayFail(failsFor, t)
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
		case spread:
			f.handed(nil, a, e)
		case *closure:
			f.free(a)
		case native, *later, *bound:
			f.stop(e, "hands a function to one of which nothing is known")
		case *list, *array, *record: // it may change what is behind them
			f.kept(a)
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
	return f.callKnown(fn, f.p.knownOf(fn), recv, args, e)
}

// callKnown is callOf. known is what tables say of fn.
func (f *frame) callKnown(fn *types.Func, known *known, recv value, args []value, e *ast.CallExpr) value {
	if concrete := dynamic(fn, recv); concrete != nil {
		// a directive may speak of the method of the interface alone
		if _, ok := f.p.declared(fn); !ok || f.p.body(concrete) != nil {
			fn, known = concrete, f.p.knownOf(concrete)
		}
	}
	name := known.name
	if v, ok := f.runtime(fn, known, recv, args, e); ok {
		return v
	}
	if known.isAPI {
		v := f.library(fn, known, recv, args, e)
		if t, ok := v.(*term); ok && f.run.vain != nil {
			f.run.vain[t] = true
		}
		return v
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
