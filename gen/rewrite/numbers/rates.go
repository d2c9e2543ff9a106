package numbers

import (
	"go/ast"
	"go/constant"
	"go/types"

	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"github.com/asyncgen/asyncgen/gen/internal/plan"
	"github.com/asyncgen/asyncgen/gen/internal/syntax"
)

// Of round trips, the part about learning rates: the device computes the rate, and the optimiser takes it as it is.
// Where SetRate would panic about a rate, CheckRate does, later. If only one side of a choice sets the rate, the device
// chooses between that and the one before, which has been checked.
//
//	if bad > patience {          asyncrt.Either(bad.Gt(asyncrt.ConstInt(patience)), func() {
//		rate *= 0.5              	rate = rate.Mul(asyncrt.Const(0.5))
//		opt.SetRate(rate)        	opt.SetRateF64(rate)
//	}                            }, nil, &rate, opt)
//	                             opt.CheckRate(opt.RateF64().Item())

// setting returns the form of call of SetRate.
func setting(f *plan.Function, call *ast.CallExpr) (s sink, ok bool) {
	fn, api, ok := f.Library(call)
	sel, isSelector := ast.Unparen(call.Fun).(*ast.SelectorExpr)
	if !ok || !isSelector || api.Kind != tensorapi.Mutate || api.F64 == "" || !isPath(f, sel.X) || !types.Identical(f.Info.TypeOf(sel.X), fn.Signature().Recv().Type()) {
		return sink{}, false
	}
	stmt, ok := f.Parent(call).(*ast.ExprStmt)
	return sink{name: sel.Sel, form: api.F64, arg: call.Args[0], rated: sel.X}, ok && inList(f, stmt)
}

// settingIn is setting of a statement.
func settingIn(f *plan.Function, s ast.Stmt) (call *ast.CallExpr, set sink, ok bool) {
	e, isExpr := s.(*ast.ExprStmt)
	if !isExpr {
		return nil, sink{}, false
	}
	call, ok = e.X.(*ast.CallExpr)
	if ok {
		set, ok = setting(f, call)
		set.stmt = s
	}
	return call, set, ok
}

// rateOf returns the form of e if that asks an optimiser for its rate.
func rateOf(f *plan.Function, e ast.Expr) (sel *ast.SelectorExpr, form string, ok bool) {
	call, ok := ast.Unparen(e).(*ast.CallExpr)
	if !ok {
		return nil, "", false
	}
	_, api, ok := f.Library(call)
	sel, isSelector := ast.Unparen(call.Fun).(*ast.SelectorExpr)
	return sel, api.F64, ok && isSelector && api.Kind == tensorapi.Value && api.F64 != "" && isPath(f, sel.X)
}

// setsRates reports whether values have to do with a rate that the function sets in a loop.
func (r *restatement) setsRates() bool {
	if r.rated == nil {
		r.rated = new(bool) // while it is found out
		eachSink(r.f, func(_ *ast.CallExpr, s sink) { *r.rated = *r.rated || s.rated != nil && s.loop && r.isGiven(s) })
	}
	return *r.rated
}

// isGiven reports whether values have to do with what the sink s is given.
func (r *restatement) isGiven(s sink) bool {
	return r.isValued(s.arg) || s.rated != nil && r.decided(s.stmt, func(ast.Node) bool { return true }, make(map[*types.Var]bool))
}

// sets returns why the device can't choose whether s, a call of SetRate on a side of the choice in, sets the rate; or
// nil. The optimiser is asked for its rate whatever is chosen, so it must not be nil.
func (r *chooser) sets(s sink, in ast.Stmt, needs map[*types.Var]bool) *misfit {
	if reads := itemsIn(r.f, s.arg); len(reads) > 0 {
		return &misfit{plan.NoNumber, reads[0].Pos(), "reads " + types.ExprString(reads[0]) + " on one side of a choice", "give the value a name before: v := " + types.ExprString(reads[0])}
	}
	text := types.ExprString(s.rated)
	if r.sinks[callOf(s.stmt.(*ast.ExprStmt).X)].rated == nil {
		return &misfit{plan.NoNumber, s.stmt.Pos(), "sets the rate of " + text + " on one side of a choice", "compute the rate in a variable of its own"}
	}
	v, isVar := r.f.Info.Uses[identOf(ast.Unparen(s.rated))].(*types.Var)
	if !isVar || r.inner[v] || !r.f.CanCopy(v) || len(r.defs[v]) != 1 {
		return &misfit{plan.NoNumber, s.stmt.Pos(), "sets the rate of " + text + ", which may be another one by then", "keep the optimiser in a local variable that is set once"}
	}
	if !r.isOptimizer(v, in) {
		return &misfit{plan.NoNumber, s.stmt.Pos(), "sets the rate of " + text + ", and nothing before the choice shows that this is not nil", "call a method of it before the loop, such as " + text + ".ZeroGrad()"}
	}
	return r.fits(s.arg, needs)
}

// setsTwice returns where more than one rate is set on one way through the sides of a choice, or nil: nobody would
// check the first one.
func (r *chooser) setsTwice(all []side, c *choice) *misfit {
	for _, x := range all {
		for _, path := range pathsOf(r.f, x.body, c) {
			n := 0
			for _, s := range path {
				if _, set, ok := settingIn(r.f, s); ok {
					if n++; n > 1 {
						return &misfit{plan.NoNumber, s.Pos(), "sets the rate of " + types.ExprString(set.rated) + " where it has set one before", "set it once on each side of the choice"}
					}
				}
			}
		}
	}
	return nil
}

// isOptimizer reports whether v, which is set once, is known not to be nil at s: it has been made by the library, or a
// method of it has been called.
func (r *locals) isOptimizer(v *types.Var, s ast.Stmt) bool {
	if made, ok := ast.Unparen(r.defs[v][0].value).(*ast.CallExpr); ok && r.defs[v][0].plain {
		if _, api, ok := r.f.Library(made); ok && api.Kind == tensorapi.Pure {
			return true
		}
	}
	called := func(earlier ast.Stmt) (found bool) {
		switch earlier.(type) {
		case *ast.DeferStmt, *ast.GoStmt:
			return false
		}
		ast.Inspect(earlier, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && r.f.AlwaysFirst(call, earlier) {
				sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr)
				if _, api, isLibrary := r.f.Library(call); ok && isLibrary && (api.Kind == tensorapi.Mutate || api.Kind == tensorapi.Value) {
					found = found || r.f.Info.Uses[identOf(ast.Unparen(sel.X))] == v
				}
			}
			return !found
		})
		return found
	}
	for n := ast.Node(s); n != nil; n = r.f.Parent(n) {
		for _, earlier := range syntax.List(r.f.Parent(n)) {
			if earlier == n {
				break
			}
			if called(earlier) {
				return true
			}
		}
	}
	return false
}

// isRate reports whether v, of type float64, is a constant that is a rate.
func isRate(v constant.Value) bool { return v != nil && constant.Sign(v) >= 0 }

// check is the statement that panics if the rate of of, an optimiser, is none.
func check(of string) string { return of + ".CheckRate(" + of + ".RateF64().Item())" }
