package blocking

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"

	"github.com/asyncgen/asyncgen/analysis/internal/syntax"
	"github.com/asyncgen/asyncgen/analysis/tensorapi"
)

// Functions that are called as elements of a list, such as hooks and callbacks. A loop over the list
// calls all of them, so the call waits if one of them does (together). A variable or field with several
// possible functions is the opposite case: the call leads to one of them, so only what all do is
// certain (agreement).
//
// Both need to know which functions a list may hold. flow finds them: it follows assignments, append,
// arguments and results backwards through this package. It takes no account of order, so it finds too
// many rather than too few; and it says whether it has seen all, for there may be assignments in other
// packages.

// eachOf lists the functions that c may lead to if it calls an element of a list or map, a field of an element, or a
// method of one:
//
//	for _, h := range hooks {
//		h(loss)         // each function that hooks holds
//		h.OnBatch(loss) // OnBatch of each type that hooks holds
//	}
//
// It returns nil if c calls something else. Elements that it can't identify are left out: they count as
// functions that do nothing.
func eachOf(pkg *Package, c *Call) []FuncValue {
	if c.API.Kind != tensorapi.Unknown || !c.Dynamic {
		return nil
	}
	fun := ast.Unparen(c.Expr.Fun)
	sel, isSelector := fun.(*ast.SelectorExpr)
	switch {
	case c.Callee != nil: // a method of an interface
		if !isSelector {
			return nil
		}
		list := listOf(pkg, sel.X)
		if list == nil {
			return nil
		}
		return methodsIn(pkg, list, c.Callee)
	case isSelector:
		if listOf(pkg, sel.X) == nil {
			return nil
		}
		// A field of function type, of each element.
	default:
		if fun = listOf(pkg, fun); fun == nil {
			return nil
		}
	}
	// Which functions the list, or the field of its elements, may hold.
	var funcs []FuncValue
	flow(pkg, fun, func(e ast.Expr) bool {
		v := pkg.FuncValue(e, 0)
		if v.IsKnown() {
			funcs = append(funcs, v)
		}
		return v.IsKnown()
	})
	return funcs
}

// methodsIn lists the methods that a call of method may lead to, if the receiver is an element of the
// list: those of the types that the package puts into the list. If there may be others, all types of
// the package that implement the interface count.
//
//	hooks := []Hook{&logger{}, saver{}}
//	for _, h := range hooks { h.OnBatch(loss) } // (*logger).OnBatch and saver.OnBatch
func methodsIn(pkg *Package, list ast.Expr, method *types.Func) []FuncValue {
	var funcs []FuncValue
	known := flow(pkg, list, func(e ast.Expr) bool {
		t := pkg.Info.TypeOf(e)
		if t == nil || types.IsInterface(t) {
			return false
		}
		obj, _, _ := types.LookupFieldOrMethod(t, true, method.Pkg(), method.Name())
		fn, ok := obj.(*types.Func)
		if !ok {
			return false // a list of such
		}
		if v := funcObject(pkg, fn, 0); v.IsKnown() {
			funcs = append(funcs, v)
		}
		return true
	})
	if it, ok := syntax.RecvType(method).Underlying().(*types.Interface); ok && !known {
		for _, f := range pkg.Implementing(it, method.Name()) {
			funcs = append(funcs, FuncValue{Fn: f})
		}
	}
	return funcs
}

// listOf returns the list or map from which a loop takes e, another element in each iteration; or nil.
//
//	for _, h := range hooks { h() }              // hooks, for h
//	for i := range hooks { hooks[i]() }          // hooks, for hooks[i]
//	for _, h := range slices.All(hooks) { h() }  // hooks
//	for h := range maps.Values(hooks) { h() }    // hooks
func listOf(pkg *Package, e ast.Expr) ast.Expr {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		v := pkg.Local(e)
		if d := pkg.Defs[v]; v != nil && len(d) == 1 {
			switch {
			// An iterator over a list: the element is the second variable, or the first one of Values.
			case d[0].Kind != DefValue && syntax.IsFunc(pkg.Info.TypeOf(syntax.OrNil(d[0].Value))):
				c := pkg.Calls[syntax.AsCall(d[0].Value)]
				if c != nil && isCollection(c.Callee) && len(c.Expr.Args) == 1 && (d[0].Kind == DefElem) == (c.Callee.Name() != "Values") {
					return c.Expr.Args[0]
				}
			case d[0].Kind == DefElem:
				return d[0].Value
			case d[0].Kind == DefValue && !syntax.IsIdent(d[0].Value):
				return listOf(pkg, d[0].Value)
			}
		}
	case *ast.UnaryExpr:
		if e.Op == token.AND {
			return listOf(pkg, e.X)
		}
	case *ast.IndexExpr:
		v := pkg.Local(e.Index)
		if v != nil && slices.ContainsFunc(pkg.Defs[v], func(d Def) bool { return d.Kind == DefKey || d.Kind == DefStep }) {
			return e.X
		}
	}
	return nil
}

// AppliesList reports whether l only goes through the list whose elements c calls, known or not. Lists of
// functions, such as options and hooks, are short, so l is no loop to look at. A list of values with methods is
// different if each of them waits: these are jobs, and there may be many.
func (pkg *Package) AppliesList(c *Call, l *Loop) bool {
	s, ok := l.Stmt.(*ast.RangeStmt)
	if !ok || c.Each == nil && (!c.Dynamic || pkg.Local(c.Expr.Fun) == nil) {
		return false
	}
	if c.Callee != nil && !slices.ContainsFunc(c.Each, func(v FuncValue) bool { return len(v.Summary().Waits) == 0 }) {
		return false // things that all work and wait, like jobs
	}
	return mentionsRange(pkg, c.Expr.Fun, s)
}

// mentionsRange reports whether e mentions a variable of the range clause of s.
func mentionsRange(pkg *Package, e ast.Expr, s *ast.RangeStmt) bool {
	vars := make(map[types.Object]bool)
	for _, v := range []ast.Expr{s.Key, s.Value} {
		if id, ok := v.(*ast.Ident); ok && id.Name != "_" {
			vars[pkg.Info.ObjectOf(id)] = true
		}
	}
	return pkg.MentionsAny(e, vars)
}

// flow finds the expressions whose values e may stand for, or hold as elements, as far as this package
// shows. It follows assignments, append, arguments and results backwards. It shows each expression to
// leaf, and looks behind it where leaf returns false. It reports whether leaf has seen all there can
// be.
//
//	hooks := []func(){save}
//	hooks = append(hooks, extra...) // flow(hooks) shows hooks, the literal, save, extra, …
func flow(pkg *Package, e ast.Expr, leaf func(ast.Expr) bool) bool {
	return flowInto(pkg, e, leaf, make(map[*types.Var]bool))
}

// flowInto is flow. The variables in seen are being looked at already, so they are skipped.
func flowInto(pkg *Package, e ast.Expr, leaf func(ast.Expr) bool, seen map[*types.Var]bool) bool {
	e = ast.Unparen(e)
	if syntax.IsNil(pkg.Info, e) || leaf(e) {
		return true
	}
	all := func(list []ast.Expr) bool {
		known := true
		for _, e := range list {
			if kv, ok := e.(*ast.KeyValueExpr); ok {
				e = kv.Value
			}
			known = flowInto(pkg, e, leaf, seen) && known
		}
		return known
	}
	switch e := e.(type) {
	case *ast.CompositeLit:
		return all(e.Elts)
	case *ast.UnaryExpr:
		return e.Op == token.AND && flowInto(pkg, e.X, leaf, seen)
	case *ast.StarExpr:
		return flowInto(pkg, e.X, leaf, seen)
	case *ast.SliceExpr:
		return flowInto(pkg, e.X, leaf, seen)
	case *ast.IndexExpr:
		return flowInto(pkg, e.X, leaf, seen)
	case *ast.CallExpr:
		tv := pkg.Info.Types[e.Fun]
		id, _ := ast.Unparen(e.Fun).(*ast.Ident)
		c := pkg.Calls[e]
		known := true
		if c != nil { // a function that is made of others, and calls them
			for op := range c.Summary().Wraps.all() {
				known = all(c.Operand(op)) && known
			}
		}
		switch {
		// A conversion, append, or a function of slices and maps: whatever it is given is in the
		// result.
		case tv.IsType() || tv.IsBuiltin() && id != nil && id.Name == "append" || c != nil && isCollection(c.Callee):
			return all(e.Args)
		case tv.IsBuiltin():
			return true // make, new
		// A function of this package: whatever it returns.
		case c != nil && c.Target != nil && c.Target.Sig.Results().Len() == 1:
			for _, ret := range c.Target.Returns {
				known = all(ret.Results) && known
			}
			return known
		}
	case *ast.Ident, *ast.SelectorExpr:
		if v := pkg.Variable(e); v != nil {
			return flowIntoVar(pkg, v, leaf, seen)
		}
	}
	return false
}

// flowIntoVar is flow for what is in v. It has seen all there can be unless v is an exported field, a
// parameter of a function that other packages can call, or is assigned in a way that has no expression.
func flowIntoVar(pkg *Package, v *types.Var, leaf func(ast.Expr) bool, seen map[*types.Var]bool) bool {
	if seen[v] {
		return true
	}
	seen[v] = true
	known := !v.Exported()
	for _, d := range pkg.Defs[v] {
		switch {
		case d.Kind == DefValue && d.Index == 0 || d.Kind == DefElem:
			known = flowInto(pkg, d.Value, leaf, seen) && known
		default:
			known = false
		}
	}
	p, ok := pkg.Params[v]
	if !ok {
		return known
	}
	// A parameter holds what its callers pass.
	called := false
	for _, f := range pkg.Funcs {
		for _, c := range f.Calls {
			if c.Target != p.Of {
				continue
			}
			for _, e := range c.Operand(p.Operand) {
				known = flowInto(pkg, e, leaf, seen) && known
			}
			called = true
		}
	}
	return known && called && !ast.IsExported(p.Of.Name)
}

// FuncsIn lists the functions of this package that e may stand for, or hold as elements, and what other packages may
// set to have theirs there: exported fields and variables, parameters of exported functions, and named types of
// functions with methods. A parameter that its function calls itself is left out, as the summary has that.
//
//	func (t *Trainer) Hook(f func(loss *tensor.Tensor)) { t.hooks = append(t.hooks, f) }
//	for _, h := range t.hooks {
//		h(loss) // f
//	}
func (pkg *Package) FuncsIn(e ast.Expr) (funcs []*Func, open []types.Object) {
	flow(pkg, e, func(e ast.Expr) bool {
		if v := pkg.Variable(e); v != nil && v.Parent() == pkg.Pass.Pkg.Scope() && v.Exported() {
			open = append(open, v) // other packages may set it, whatever this one has set it to
		}
		if v := pkg.FuncValue(e, 0); v.Fn != nil {
			funcs = append(funcs, v.Fn)
			return true
		}
		switch e.(type) {
		case *ast.Ident, *ast.SelectorExpr:
			v := pkg.Variable(e)
			if v == nil || v.Pkg() != pkg.Pass.Pkg {
				break
			}
			p, isParam := pkg.Params[v]
			switch named, isNamed := types.Unalias(v.Type()).(*types.Named); {
			case isParam && p.Operand == tensorapi.Recv && isNamed:
				open = append(open, named.Obj())
			case v.IsField() && v.Exported(), isParam && p.Of.Lit == nil && ast.IsExported(p.Of.Name) && p.Of.Summary.callback(p.Operand) == nil:
				open = append(open, v)
			}
		}
		return false
	})
	return funcs, open
}

// OthersIn shows the functions of other packages that e may stand for, or hold as elements, each with what is known of
// it.
//
//	t.Hook(plugins.Spike(3)) // what Spike returns
func (pkg *Package) OthersIn(e ast.Expr, show func(e ast.Expr, s *Summary)) {
	flow(pkg, e, func(e ast.Expr) bool {
		v := pkg.FuncValue(e, 0)
		if v.Fn == nil && (v.maker == nil || v.maker.Target == nil) && !v.Summary().isZero() {
			show(e, v.Summary())
		}
		return v.Fn != nil
	})
}

// MethodOf returns what is known of the method of t with the given name, if it is in another package; or nil.
func (pkg *Package) MethodOf(t types.Type, name string) (*types.Func, *Summary) {
	obj, _, _ := types.LookupFieldOrMethod(t, true, pkg.Pass.Pkg, name)
	if fn, ok := obj.(*types.Func); ok && fn.Pkg() != pkg.Pass.Pkg {
		if v := funcObject(pkg, fn, 0); v.sum != nil {
			return fn, v.sum
		}
	}
	return nil, nil
}

// together is the summary of a call that leads to each of several functions, one after the other: it
// does what any of them does. Their results stay unknown.
func together(funcs []FuncValue) *Summary {
	var s Summary
	for _, v := range funcs {
		t := v.Summary()
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

// IsHostList reports whether all tensors in a list are made of host data. To read one of these is a
// copy and no wait. It is false if some elements may come from elsewhere, and for a list without
// elements.
func (pkg *Package) IsHostList(list ast.Expr) bool {
	found := false
	known := flow(pkg, list, func(e ast.Expr) bool {
		c := pkg.Calls[syntax.AsCall(e)]
		made := c != nil && c.API.Kind == tensorapi.Host
		found = found || made
		return made
	})
	return known && found
}
