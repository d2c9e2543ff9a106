package sites

import (
	"go/ast"
	"go/types"
	"slices"

	"github.com/asyncgen/asyncgen/analysis/blocking"
	"github.com/asyncgen/asyncgen/analysis/internal/syntax"
	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"golang.org/x/tools/go/analysis"
)

// Functions that another package calls in each iteration of a loop. That package doesn't know them, and this one
// doesn't see the loop; a fact tells.

// InLoop is the fact that a loop calls, in each iteration, what other packages supply here. It is about a method of an
// interface, an exported field of function type, a parameter whose function is kept for later, or a type of functions
// with a method that calls them.
//
//	func (t *Trainer) Hook(f func(loss *tensor.Tensor)) { t.hooks = append(t.hooks, f) } // f, if Run calls all hooks
//	func (f HookFunc) OnStep(loss *tensor.Tensor)       { f(loss) }                      // HookFunc
type InLoop struct {
	// Args are the arguments of these calls with tensors that may be unfinished.
	Args blocking.Operands
	// Gathers reports whether a loop adds up or keeps the numbers that it gets from these calls, and looks at none of
	// them. It would do as well with tensors.
	Gathers bool
	// Seldom are the functions, by their full names, that call what is in the field no more than now and then. A struct
	// that is given to one of these has it called so.
	Seldom []string
}

// AFact marks InLoop as a fact of package analysis.
func (*InLoop) AFact() {}

// loopedElsewhere returns the waiting functions of this package that loops of other packages call. It also exports the
// facts about this package: what its own loops call, and what it hands on to other packages with such loops.
func loopedElsewhere(pass *analysis.Pass, pkg *blocking.Package) map[*blocking.Func]blocking.Repeated {
	found := make(map[types.Object]InLoop)
	// What this package calls.
	for _, f := range pkg.Funcs {
		for _, d := range f.Calls {
			if !d.Dynamic && !callsVariable(pkg, d) || d.Away || d.API.Kind != tensorapi.Unknown {
				continue
			}
			gathers := onlyGathers(pkg, d)
			add := func(list ...types.Object) {
				for _, o := range list {
					if !isRare(pkg, o) {
						found[o] = found[o].with(InLoop{Args: unfinished(pkg, d), Gathers: gathers})
					}
				}
			}
			if d.Callee != nil && d.Callee.Pkg() == pkg.Pass.Pkg && isBusy(pkg, d) {
				add(d.Callee.Origin())
			} else if d.Callee == nil && (gathers || onlyListens(pkg, d)) {
				passed(pkg, d.Expr.Fun, d, 0, func(e ast.Expr, at *blocking.Call) {
					if isBusy(pkg, at) {
						_, open := pkg.FuncsIn(e)
						add(open...)
					}
				})
			}
		}
	}
	for t, fact := range typesInLoops(pkg) {
		found[t] = found[t].with(fact)
	}
	// What others call, if it waits for one of the arguments, or for something that it isn't given.
	why := make(map[*blocking.Func]blocking.Repeated)
	again := func(g *blocking.Func, fact *InLoop) {
		if !slices.ContainsFunc(g.Summary.Waits, func(w blocking.Wait) bool { return w.Operand < 0 || fact.Args.Has(w.Operand) }) {
			return
		}
		if fact.Gathers {
			why[g] = blocking.Measuring
		} else if why[g] == 0 {
			why[g] = blocking.Chosen
		}
	}
	given := func(e ast.Expr, fact *InLoop) {
		funcs, open := pkg.FuncsIn(e)
		for _, g := range funcs {
			again(g, fact)
		}
		for _, o := range open {
			found[o] = found[o].with(*fact)
		}
	}
	for _, of := range pass.AllObjectFacts() {
		fact, ok := of.Fact.(*InLoop)
		if !ok || of.Object.Pkg() == pkg.Pass.Pkg {
			continue
		}
		switch o := of.Object.(type) {
		case *types.TypeName:
			for _, g := range pkg.Funcs {
				if g.Lit != nil && isMadeAs(pkg, g, o.Type()) {
					again(g, fact)
				}
			}
		case *types.Func:
			if it, ok := syntax.RecvType(o).Underlying().(*types.Interface); ok {
				for _, g := range pkg.Implementing(it, o.Name()) {
					again(g, fact)
				}
			}
		case *types.Var:
			for _, d := range pkg.Defs[o] {
				if d.Kind == blocking.DefValue && !isGivenTo(pkg, d.Value, fact.Seldom) {
					given(d.Value, fact)
				}
			}
		}
	}
	for _, f := range pkg.Funcs {
		for _, c := range f.Calls {
			if c.Callee == nil || c.API.Kind != tensorapi.Unknown || c.Callee.Pkg() == nil || c.Callee.Pkg() == pkg.Pass.Pkg {
				continue
			}
			params := c.Callee.Origin().Signature().Params()
			for i, e := range c.Expr.Args {
				if fact := new(InLoop); params.Len() > 0 && pass.ImportObjectFact(params.At(min(i, params.Len()-1)), fact) {
					given(e, fact)
				}
			}
		}
	}
	for o, fact := range found {
		fact.Seldom = callsSeldom(pkg, o)
		pass.ExportObjectFact(o, &fact)
	}
	return why
}

// callsVariable reports whether d calls what is in a variable of the package that others may set.
func callsVariable(pkg *blocking.Package, d *blocking.Call) bool {
	v := pkg.Variable(d.Expr.Fun)
	return v != nil && v.Parent() == pkg.Pass.Pkg.Scope() && v.Exported()
}

// with is the fact that both hold.
func (x InLoop) with(y InLoop) InLoop {
	return InLoop{Args: x.Args | y.Args, Gathers: x.Gathers || y.Gathers}
}

// callsSeldom lists the exported functions of the package that call the function in the field o now and then, and
// never in each iteration.
func callsSeldom(pkg *blocking.Package, o types.Object) (names []string) {
	if v, ok := o.(*types.Var); !ok || !v.IsField() {
		return nil
	}
	var often, seldom []*blocking.Func
	for _, f := range pkg.Funcs {
		for _, d := range f.Calls {
			switch v := pkg.Variable(d.Expr.Fun); {
			case v == nil || v != o:
			case isBusy(pkg, d):
				often = append(often, f.Owner())
			default:
				seldom = append(seldom, f.Owner())
			}
		}
	}
	if len(seldom) == 0 {
		return nil
	}
	for fn, f := range pkg.Decls {
		if fn.Exported() && slices.ContainsFunc(seldom, f.LeadsTo) && !slices.ContainsFunc(often, f.LeadsTo) {
			names = append(names, fn.FullName())
		}
	}
	slices.Sort(names)
	return names
}

// isGivenTo reports whether e is in a struct that is an argument of a call of one of the functions with the given full
// names.
//
//	fit.Sparsely(xs, fit.Options{Every: 20, Progress: func(loss *tensor.Tensor) { fmt.Println(loss) }})
func isGivenTo(pkg *blocking.Package, e ast.Expr, names []string) bool {
	cur, ok := pkg.Root.FindNode(e)
	if !ok || len(names) == 0 {
		return false
	}
	for up := range cur.Enclosing() {
		switch n := up.Node().(type) {
		case *ast.CallExpr:
			c := pkg.Calls[n]
			return c != nil && c.Callee != nil && slices.Contains(names, c.Callee.Origin().FullName())
		case *ast.CompositeLit, *ast.KeyValueExpr, *ast.UnaryExpr, *ast.ParenExpr:
		default:
			if up != cur {
				return false
			}
		}
	}
	return false
}

// isRare reports whether o has a name that speaks of epochs and the like: a method, a field, a type, or the function of
// a parameter.
func isRare(pkg *blocking.Package, o types.Object) bool {
	name := o.Name()
	if v, ok := o.(*types.Var); ok && pkg.Params[v].Of != nil {
		name = pkg.Params[v].Of.Name
	}
	return rareName.MatchString(name) && !stepName.MatchString(name)
}

// passed finds where the function e that c calls, or the list of it, comes from. If c's function is given it, that is
// an argument of each of the callers, at their calls: some may be in a loop over batches and others in one over epochs.
// Depth bounds the callers. An element of a map is one for some event, and never shown.
//
//	t.fire(t.onStep, loss) // t.onStep, for h in fire
//	func (t *Trainer) fire(hooks []Hook, x *tensor.Tensor) { for _, h := range hooks { h(x) } }
func passed(pkg *blocking.Package, e ast.Expr, c *blocking.Call, depth int, show func(e ast.Expr, at *blocking.Call)) {
	for range 8 {
		var v *types.Var
		switch x := ast.Unparen(e).(type) {
		case *ast.IndexExpr:
			if syntax.IsMap(typeOf(pkg, x.X)) {
				return
			}
			e = x.X
			continue
		case *ast.Ident:
			v = pkg.Local(x)
		}
		d, p := pkg.Defs[v], pkg.Params[v]
		switch {
		case v != nil && p.Of == nil && len(d) == 1 && (d[0].Kind == blocking.DefValue || d[0].Kind == blocking.DefElem):
			e = d[0].Value
		case v != nil && len(d) == 0 && p.Of != nil && p.Of.Lit == nil && !ast.IsExported(p.Of.Name) && depth < 3:
			if pkg.GuardOf(c.In, c.Expr.Pos(), nil) == blocking.Rarely {
				return
			}
			for _, caller := range pkg.CallersOf(p.Of) {
				for _, e := range caller.Operand(p.Operand) {
					passed(pkg, e, caller, depth+1, show)
				}
			}
			return
		default:
			show(e, c)
			return
		}
	}
}

// isBusy reports whether c runs in each iteration of a loop that keeps the device busy, and is not as slow as the world
// outside, or whether other packages call its function in each step.
func isBusy(pkg *blocking.Package, c *blocking.Call) bool {
	l := busyLoop(pkg, c)
	return (isCalledAgain(pkg, c, false) || runsOften(pkg, nil, c, 0) || announcesStep(pkg, c)) && (l == nil || !pkg.Any(l, IsOutside))
}

// onlyListens reports whether d calls a function that is told something, and returns no more than whether to go on, or
// tensors, for which it need not wait. One that returns another value is asked for it.
func onlyListens(pkg *blocking.Package, d *blocking.Call) bool {
	for v := range pkg.ResultsOf(d).Variables() {
		if !saysGoOn(v.Type()) && !pkg.HoldsTensors(v.Type()) {
			return false
		}
	}
	return true
}

// onlyGathers reports whether the loop around d adds up or keeps the number that it gets from d, and does no more with
// it.
//
//	for name, metric := range t.metrics {
//		t.sums[name] += metric(pred, y)
//	}
func onlyGathers(pkg *blocking.Package, d *blocking.Call) bool {
	l, results := busyLoop(pkg, d), pkg.ResultsOf(d)
	if l == nil || results.Len() != 1 {
		return false
	}
	if _, generic := types.Unalias(results.At(0).Type()).(*types.TypeParam); !generic && !syntax.IsNumeric(results.At(0).Type()) {
		return false
	}
	places := Uses(pkg, d, l)
	return len(places) > 0 && !slices.ContainsFunc(places, func(p Place) bool { return p.Use != Kept })
}

// busyLoop returns the innermost loop around d that enqueues work, or nil.
func busyLoop(pkg *blocking.Package, d *blocking.Call) *blocking.Loop {
	for l := range pkg.LoopsAround(d.In, d.Expr.Pos()) {
		if paceOf(pkg, d, l, false) != idle {
			return l
		}
	}
	return nil
}

// unfinished returns the arguments of d with tensors that the loop around d may have enqueued. Without a loop, they may
// come from the callers of d's function. Somebody waits for a tensor from which the next one is computed, as for the
// frames of a simulation.
func unfinished(pkg *blocking.Package, d *blocking.Call) (args blocking.Operands) {
	l := busyLoop(pkg, d)
	for i, e := range d.Expr.Args {
		o := pkg.OriginOf(e, d.In)
		isPending := l == nil && (o.Pending || o.From != 0) ||
			l != nil && (pkg.Fresh(e, d.In, l) || pkg.Arrives(e, d.In, l) || !blocking.IsTensor(typeOf(pkg, e)) && pkg.SetsIn(typeOf(pkg, e), l)) && !isFed(pkg, e, l)
		if i < 31 && isPending {
			args |= 1 << (i + 1)
		}
	}
	return args
}
