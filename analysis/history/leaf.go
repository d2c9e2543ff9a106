package history

import (
	"go/ast"
	"slices"

	"github.com/asyncgen/asyncgen/analysis/blocking"
	"github.com/asyncgen/asyncgen/analysis/internal/syntax"
	"github.com/asyncgen/asyncgen/analysis/tensorapi"
)

// isLeaf reports whether e is the value of a parameter, or a tensor that is tracked from here on. The
// history of a leaf is only the leaf itself.
func isLeaf(pkg *blocking.Package, e ast.Expr) bool {
	c := pkg.Calls[syntax.AsCall(e)]
	return c != nil && (blocking.IsParamValue(c) || c.API.Kind == tensorapi.View && c.Callee.Name() == "Track")
}

// isReleased reports whether e, in f, is differentiated by itself, or comes from a function that takes
// a step of training. In both cases Backward releases the history.
func isReleased(pkg *blocking.Package, e ast.Expr, f *blocking.Func) bool {
	released := false
	ast.Inspect(e, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if c := pkg.Calls[call]; ok && c != nil {
			released = released || c.Mutates()
		}
		return !released
	})
	v := pkg.Local(e)
	if released || v == nil {
		return released
	}
	for use := range pkg.UsesOf(v, f) {
		if call, ok := use.Parent().Node().(*ast.CallExpr); ok {
			if c := pkg.Calls[call]; c != nil && c.Mutates() {
				return true
			}
		}
		if sel, ok := use.Parent().Node().(*ast.SelectorExpr); ok && sel.Sel.Name == "Backward" {
			return true
		}
	}
	return slices.ContainsFunc(pkg.Defs[v], func(d blocking.Def) bool {
		return d.Kind == blocking.DefValue && syntax.AsCall(d.Value) != nil && isReleased(pkg, d.Value, f)
	})
}
