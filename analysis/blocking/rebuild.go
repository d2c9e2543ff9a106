package blocking

import (
	"go/ast"
	"go/types"
)

// A Rebuild is a call that builds or compiles the same graph or plan in each
// iteration of a loop.
type Rebuild struct {
	Call *Call
	Loop *Loop
}

// Rebuilds lists those of f, not of the literals in it.
func (f *Func) Rebuilds() []Rebuild {
	var list []Rebuild
	for _, c := range f.calls {
		if c.away || !libraries().Rebuilds(c.Callee) {
			continue
		}
		for l := range f.a.loopsAround(f, c.Expr.Pos()) {
			if l.blocks != nil && !l.small && !f.a.isOuter(l, c) && !f.isConditional(c, l) && f.a.buildsSame(c, l) {
				list = append(list, Rebuild{c, l})
			}
			break
		}
	}
	return list
}

// isConditional reports whether some iterations of l, which is in f, don't come
// to c: it may be what fills a cache.
func (f *Func) isConditional(c *Call, l *Loop) bool {
	pos := c.Expr.Pos()
	fl := f.flow()
	for _, cond := range append(f.a.shortCircuits(pos), fl.conditions(fl.blockAt(pos))...) {
		if cond.divides(l) {
			return true
		}
	}
	return false
}

// buildsSame reports whether the fixed parameters of c, what to build and for
// what, are the same in each iteration; those that follow are what it is used on.
func (a *analyzer) buildsSame(c *Call, l *Loop) bool {
	sig := c.Callee.Signature()
	n := sig.Params().Len()
	if sig.Variadic() {
		n--
	}
	operands := c.Expr.Args[:min(n, len(c.Expr.Args))]
	if sel, ok := ast.Unparen(c.Expr.Fun).(*ast.SelectorExpr); ok && sig.Recv() != nil {
		operands = append([]ast.Expr{sel.X}, operands...)
	}
	for _, e := range operands {
		if a.varies(e, l) || !isSettledExpr(e) || a.capturesVarying(e, l) {
			return false
		}
	}
	return true
}

// isSettledExpr reports whether e, outside the literals in it, calls nothing.
func isSettledExpr(e ast.Expr) bool {
	settled := true
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.CallExpr:
			settled = false
		case *ast.UnaryExpr:
			settled = settled && n.Op.String() != "<-"
		}
		return settled
	})
	return settled
}

// capturesVarying reports whether a literal in e mentions a variable that is the
// loop's own, or that it may change by way of a field.
func (a *analyzer) capturesVarying(e ast.Expr, l *Loop) bool {
	found := false
	ast.Inspect(e, func(n ast.Node) bool {
		lit, ok := n.(*ast.FuncLit)
		if !ok {
			return !found
		}
		ast.Inspect(lit, func(n ast.Node) bool {
			id, ok := n.(*ast.Ident)
			if !ok {
				return !found
			}
			v, ok := a.info.Uses[id].(*types.Var)
			if !ok || lit.Pos() <= v.Pos() && v.Pos() < lit.End() {
				return !found
			}
			found = found || a.declaredInLoop(v, l) && !v.IsField() || v.IsField() && a.variesField(v.Origin(), l)
			return !found
		})
		return false
	})
	return found
}

// variesField reports whether l, or what it calls, assigns a field.
func (a *analyzer) variesField(v *types.Var, l *Loop) bool {
	for _, d := range a.defs[v] {
		if a.in(l, d.in, d.pos) || a.calledFrom(l, d.in) {
			return true
		}
	}
	return false
}
