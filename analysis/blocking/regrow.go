package blocking

import (
	"go/ast"
	"go/types"
	"slices"

	"github.com/asyncgen/asyncgen/analysis/tensorapi"
)

// A Regrowth is a call in a loop that copies a tensor to add a piece to it.
type Regrowth struct {
	Call *Call
	Var  *types.Var
	Loop *Loop
}

// Regrown lists those of f, not of the literals in it.
func (f *Func) Regrown() []Regrowth {
	var list []Regrowth
	for _, c := range f.calls {
		if c.away || !tensorapi.Joins(c.Callee) {
			continue
		}
		assign, ok := c.cur.Parent().Node().(*ast.AssignStmt)
		if !ok || len(assign.Lhs) != 1 {
			continue
		}
		v := f.a.local(assign.Lhs[0])
		if v == nil || !slices.ContainsFunc(c.Expr.Args, func(e ast.Expr) bool { return f.a.local(e) == v }) {
			continue
		}
		for l := range f.a.loopsAround(f, c.Expr.Pos()) {
			if f.a.isRegrown(v, c, l) {
				list = append(list, Regrowth{c, v, l})
				break
			}
		}
	}
	return list
}

// isRegrown reports whether c copies v, which begins outside of l, in each iteration of l to no other end than that it
// grows.
func (a *analyzer) isRegrown(v *types.Var, c *Call, l *Loop) bool {
	if l.Stmt == nil || l.small || l.Stmt.Pos() <= v.Pos() && v.Pos() < l.Stmt.End() || a.guardOf(c.in, c.Expr.Pos(), l) != always {
		return false
	}
	for _, d := range a.defs[v] {
		if a.in(l, d.in, d.pos) && (d.kind != defValue || ast.Unparen(d.value) != c.Expr) {
			return false // it begins anew now and then
		}
	}
	for use := range a.usesOf(v, l.fn) {
		if !a.in(l, a.funcAt(use), use.Node().Pos()) || isTarget(use) {
			continue
		}
		parent := use.Parent()
		if parent.Node() == c.Expr {
			continue
		}
		if sel, ok := parent.Node().(*ast.SelectorExpr); ok && sel.X == use.Node() {
			if call, ok := parent.Parent().Node().(*ast.CallExpr); ok && a.calls[call] != nil && a.calls[call].api.Kind == tensorapi.Meta {
				continue
			}
		}
		return false
	}
	return true
}
