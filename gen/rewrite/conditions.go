package rewrite

import (
	"go/ast"
	"go/token"

	"github.com/asyncgen/asyncgen/gen/internal/load"
	"github.com/asyncgen/asyncgen/gen/internal/plan"
)

// What stands on the right of && is computed only if the left is true, so nothing of it can be taken before the statement. An if
// without else says the same as one if in another; then what the outer one decides on need not be a value:
//
//	if i > 9 && r.Norm().Item() < tol {     if i > 9 {
//		break                                   	normAt := later.Read(r.Norm())
//	}                                       	if end, ok := later.BreakIf(func() bool { return normAt.Item() < tol }, …); ok {
//	                                        		…
//	                                        	}
//	                                        }

// nested returns f with conditions in loops divided between two ifs, where only the right of && looks at values. It returns nil if there are none.
func nested(f *plan.Function) *plan.Function {
	var edits []load.Edit
	ast.Inspect(f.Decl.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.IfStmt:
			if n.Else == nil && len(f.LoopsAround(n)) > 0 {
				edits = append(edits, nest(f, n)...)
			}
		}
		return true
	})
	if len(edits) == 0 {
		return nil
	}
	restated, err := f.Restate(edits)
	if err != nil {
		return nil // it stays as it is
	}
	return restated
}

// nest returns the edits that divide the condition of n before the first operand of && that looks at a value; none if that is the first, or there is none.
func nest(f *plan.Function, n *ast.IfStmt) []load.Edit {
	operands := conjuncts(n.Cond)
	for i, e := range operands {
		if f.Effects(e).Waits == nil {
			continue
		}
		if i == 0 || f.HasComments(n.Cond) {
			return nil
		}
		return []load.Edit{{Pos: operands[i-1].End(), End: e.Pos(), Text: " { if "}, {Pos: n.Body.Rbrace + 1, End: n.Body.Rbrace + 1, Text: "}"}}
	}
	return nil
}

// conjuncts returns the operands of the && that e consists of, without parentheses around several of them; e itself if it is none.
func conjuncts(e ast.Expr) []ast.Expr {
	if b, ok := e.(*ast.BinaryExpr); ok && b.Op == token.LAND {
		return append(conjuncts(b.X), b.Y)
	}
	return []ast.Expr{e}
}
