package blocking

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"

	"github.com/asyncgen/asyncgen/analysis/tensorapi"
)

// What is called through the elements of a list, as hooks and callbacks are. A loop
// over the list calls all of them, so one that waits makes the call wait: no
// agreement is asked for, as of the functions that one variable may hold.

// eachOf lists the functions that c, a call of an element of a list or map, or of a
// method or field of one, is known to lead to.
func (a *analyzer) eachOf(c *Call) []funcValue {
	if c.api.Kind != tensorapi.Unknown || !c.dynamic {
		return nil
	}
	fun := ast.Unparen(c.Expr.Fun)
	sel, isSelector := fun.(*ast.SelectorExpr)
	switch {
	case c.Callee != nil: // a method of an interface
		if !isSelector {
			return nil
		}
		list := a.listOf(sel.X)
		if list == nil {
			return nil
		}
		return a.methodsIn(list, c.Callee)
	case isSelector:
		if a.listOf(sel.X) == nil {
			return nil
		}
		// A field of function type, of each element.
	default:
		if fun = a.listOf(fun); fun == nil {
			return nil
		}
	}
	var funcs []funcValue
	a.flow(fun, func(e ast.Expr) bool {
		v := a.funcValue(e, 0)
		if v.isKnown() {
			funcs = append(funcs, v)
		}
		return v.isKnown()
	})
	return funcs
}

// methodsIn lists what a method of an interface may be of the elements of a list:
// those of the types that the list is seen to have or, if there may be others, also
// those of the types of this package.
func (a *analyzer) methodsIn(list ast.Expr, method *types.Func) []funcValue {
	var funcs []funcValue
	known := a.flow(list, func(e ast.Expr) bool {
		t := a.info.TypeOf(e)
		if t == nil || types.IsInterface(t) {
			return false
		}
		obj, _, _ := types.LookupFieldOrMethod(t, true, method.Pkg(), method.Name())
		fn, ok := obj.(*types.Func)
		if !ok {
			return false // a list of such
		}
		if v := a.funcObject(fn, 0); v.isKnown() {
			funcs = append(funcs, v)
		}
		return true
	})
	if it, ok := recvType(method).Underlying().(*types.Interface); ok && !known {
		for _, f := range a.implementing(it, method.Name()) {
			funcs = append(funcs, funcValue{fn: f})
		}
	}
	return funcs
}

// listOf returns the list or map that e is another element of in each iteration of a
// loop over it, or nil.
func (a *analyzer) listOf(e ast.Expr) ast.Expr {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		v := a.local(e)
		if d := a.defs[v]; v != nil && len(d) == 1 {
			switch {
			case d[0].kind != defValue && isFunc(a.info.TypeOf(orNil(d[0].value))):
				c := a.calls[asCall(d[0].value)]
				if c != nil && isCollection(c.Callee) && len(c.Expr.Args) == 1 && (d[0].kind == defElem) == (c.Callee.Name() != "Values") {
					return c.Expr.Args[0]
				}
			case d[0].kind == defElem:
				return d[0].value
			case d[0].kind == defValue && !isIdent(d[0].value):
				return a.listOf(d[0].value)
			}
		}
	case *ast.UnaryExpr:
		if e.Op == token.AND {
			return a.listOf(e.X)
		}
	case *ast.IndexExpr:
		v := a.local(e.Index)
		if v != nil && slices.ContainsFunc(a.defs[v], func(d def) bool { return d.kind == defKey || d.kind == defStep }) {
			return e.X
		}
	}
	return nil
}

// appliesList reports whether l does no more than to go through the list of which c calls
// the elements, and not all of these wait: lists of functions, like options, are
// short.
func (a *analyzer) appliesList(c *Call, l *Loop) bool {
	s, ok := l.Stmt.(*ast.RangeStmt)
	if !ok || c.each == nil {
		return false
	}
	if c.Callee != nil && !slices.ContainsFunc(c.each, func(v funcValue) bool { return len(v.summary().Waits) == 0 }) {
		return false // things that all work and wait, like jobs
	}
	return a.mentionsRange(c.Expr.Fun, s)
}

// mentionsRange reports whether e mentions a variable of the loop s.
func (a *analyzer) mentionsRange(e ast.Expr, s *ast.RangeStmt) bool {
	vars := make(map[types.Object]bool)
	for _, v := range []ast.Expr{s.Key, s.Value} {
		if id, ok := v.(*ast.Ident); ok && id.Name != "_" {
			vars[a.info.ObjectOf(id)] = true
		}
	}
	return a.mentionsAny(e, vars)
}

// flow finds the expressions whose values e may stand for, or hold as elements, in
// this package: it looks for what is assigned, appended and passed to what e names. It
// shows each to leaf, which says whether that is one; if not, it looks on. It
// reports whether it has seen all.
func (a *analyzer) flow(e ast.Expr, leaf func(ast.Expr) bool) bool {
	return a.flowInto(e, leaf, make(map[*types.Var]bool))
}

func (a *analyzer) flowInto(e ast.Expr, leaf func(ast.Expr) bool, seen map[*types.Var]bool) bool {
	e = ast.Unparen(e)
	if isNil(a.info, e) || leaf(e) {
		return true
	}
	all := func(list []ast.Expr) bool {
		known := true
		for _, e := range list {
			if kv, ok := e.(*ast.KeyValueExpr); ok {
				e = kv.Value
			}
			known = a.flowInto(e, leaf, seen) && known
		}
		return known
	}
	switch e := e.(type) {
	case *ast.CompositeLit:
		return all(e.Elts)
	case *ast.UnaryExpr:
		return e.Op == token.AND && a.flowInto(e.X, leaf, seen)
	case *ast.StarExpr:
		return a.flowInto(e.X, leaf, seen)
	case *ast.SliceExpr:
		return a.flowInto(e.X, leaf, seen)
	case *ast.IndexExpr:
		return a.flowInto(e.X, leaf, seen)
	case *ast.CallExpr:
		tv := a.info.Types[e.Fun]
		id, _ := ast.Unparen(e.Fun).(*ast.Ident)
		c := a.calls[e]
		switch {
		case tv.IsType() || tv.IsBuiltin() && id != nil && id.Name == "append" || c != nil && isCollection(c.Callee):
			return all(e.Args)
		case tv.IsBuiltin():
			return true // make, new
		case c != nil && c.target != nil && c.target.sig.Results().Len() == 1:
			known := true
			for _, ret := range c.target.rets {
				known = all(ret.Results) && known
			}
			return known
		}
	case *ast.Ident, *ast.SelectorExpr:
		if v := a.variable(e); v != nil {
			return a.flowIntoVar(v, leaf, seen)
		}
	}
	return false
}

func (a *analyzer) flowIntoVar(v *types.Var, leaf func(ast.Expr) bool, seen map[*types.Var]bool) bool {
	if seen[v] {
		return true
	}
	seen[v] = true
	known := !v.Exported()
	for _, d := range a.defs[v] {
		switch {
		case d.kind == defValue && d.index == 0 || d.kind == defElem:
			known = a.flowInto(d.value, leaf, seen) && known
		default:
			known = false
		}
	}
	p, ok := a.params[v]
	if !ok {
		return known
	}
	called := false
	for _, f := range a.funcs {
		for _, c := range f.calls {
			if c.target != p.of {
				continue
			}
			for _, e := range c.operand(p.operand) {
				known = a.flowInto(e, leaf, seen) && known
			}
			called = true
		}
	}
	return known && called && !ast.IsExported(p.of.name)
}

// together is the summary of a call that leads to each of several functions. What they
// return is what such calls return of which nothing is known.
func together(funcs []funcValue) *Summary {
	var s Summary
	for _, v := range funcs {
		t := v.summary()
		for _, w := range t.Waits {
			s.Waits = w.addTo(s.Waits)
		}
		for _, w := range t.Barriers {
			s.Barriers = w.addTo(s.Barriers)
		}
		s.Blocks = s.Blocks || t.Blocks
		s.Enqueues = s.Enqueues || t.Enqueues
		s.Mutates = s.Mutates || t.Mutates
		s.Steps = s.Steps || t.Steps
		s.Trains = s.Trains || t.Trains
	}
	return &s
}
