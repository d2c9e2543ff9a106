package sites

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"

	"github.com/asyncgen/asyncgen/analysis/blocking"
	"github.com/asyncgen/asyncgen/analysis/internal/syntax"
	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"golang.org/x/tools/go/analysis"
)

// Functions of one package that a second one registers with a third one, whose loop calls them. The first two don't
// know the loop, or the function, so the finding is where they come together. Where the first one knows the type that
// the loop calls, it has the finding.
//
//	trainer.Hook(plots.Live) // Live waits for the loss that each step passes

// registeredSite returns the site of c, which registers a function or a value of another package that a loop of a third
// one calls in each iteration, and that waits for what it is given; or nil.
func registeredSite(pass *analysis.Pass, pkg *blocking.Package, c *blocking.Call) *Site {
	if c.Callee == nil || c.Callee.Pkg() == nil || c.Callee.Pkg() == pkg.Pass.Pkg || c.API.Kind != tensorapi.Unknown || isTest(pkg, c.In) || IsAllowed(c) {
		return nil
	}
	params := c.Callee.Origin().Signature().Params()
	var s *Site
	for i, e := range c.Expr.Args {
		if params.Len() == 0 || s != nil {
			break
		}
		fact, v := new(InLoop), params.At(min(i, params.Len()-1))
		if named, ok := types.Unalias(typeOf(pkg, e)).(*types.Named); ok && syntax.IsFunc(named) && pass.ImportObjectFact(named.Obj(), new(InLoop)) {
			continue
		}
		isCalled := pass.ImportObjectFact(v, fact)
		if !isCalled && registersSteps(pkg, c) && isListener(pkg, e) {
			isCalled, fact.Args = true, ^blocking.Operands(0) // by its name, so the loop is not known
		}
		if isCalled {
			pkg.OthersIn(e, func(e ast.Expr, f *blocking.Summary) { s = waitingSite(c, e, f, fact, s) })
			continue
		}
		s = implementingSite(pass, pkg, c, e, v.Type())
	}
	return s
}

// implementingSite is registeredSite for e, an argument of c for a parameter of type t, an interface or list of such.
// The value of e has a method of t that waits.
func implementingSite(pass *analysis.Pass, pkg *blocking.Package, c *blocking.Call, e ast.Expr, t types.Type) *Site {
	if elem := syntax.ElementType(t); elem != nil {
		t = elem
	}
	it, ok := t.Underlying().(*types.Interface)
	if !ok || types.IsInterface(typeOf(pkg, e)) {
		return nil
	}
	for m := range it.Methods() {
		fact := new(InLoop)
		if m.Pkg() == pkg.Pass.Pkg || stepName.MatchString(m.Name()) || !pass.ImportObjectFact(m, fact) || !fact.Gathers && !onlyGoesOn(m.Signature().Results()) {
			continue // a method with the name of a step has its finding at home
		}
		if fn, f := pkg.MethodOf(typeOf(pkg, e), m.Name()); f != nil && fn.Pkg() != m.Pkg() && !slices.Contains(fn.Pkg().Imports(), m.Pkg()) {
			if s := waitingSite(c, e, f, fact, nil); s != nil {
				return s
			}
		}
	}
	return nil
}

// waitingSite returns the site of c, which registers e, if e waits in each call: for what it computes, or for one of
// the operands that may be unfinished, which the fact lists. If e does not wait, waitingSite returns s.
func waitingSite(c *blocking.Call, e ast.Expr, f *blocking.Summary, fact *InLoop, s *Site) *Site {
	i := slices.IndexFunc(f.Waits, func(w blocking.Wait) bool {
		return (w.Operand >= 0 && fact.Args.Has(w.Operand) || w.Operand == blocking.Own && f.Enqueues) && !w.InLoop && !w.Guarded
	})
	if i >= 0 {
		return handedSite(c, e.Pos(), exprName(e), f.Waits[i].Chain)
	}
	return s
}

// exprName is how messages call what c registers.
func exprName(e ast.Expr) string {
	if u, ok := ast.Unparen(e).(*ast.UnaryExpr); ok && u.Op == token.AND {
		e = u.X
	}
	if lit, ok := ast.Unparen(e).(*ast.CompositeLit); ok && lit.Type != nil {
		return types.ExprString(lit.Type)
	}
	return types.ExprString(e)
}
