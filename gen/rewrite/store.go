package rewrite

import (
	"go/ast"

	"github.com/asyncgen/asyncgen/gen/internal/plan"
)

// Store is defer-store: a value goes into a slice, a map or a field, by append or by
// index.
//
//	hist = append(hist, loss.Item())    later.Do(func() { hist = append(hist, lossAt.Item()) })
var Store = &Rewrite{
	Name: "defer-store",
	Was:  "R3",
	Code: plan.DeferredStore,
	Does: "is stored when it has arrived",
}

// isStore reports whether s puts values into memory.
func isStore(s *plan.Stmt) bool {
	a, ok := s.Inner().(*ast.AssignStmt)
	if !ok {
		return false
	}
	for _, lhs := range a.Lhs {
		if _, isVar := ast.Unparen(lhs).(*ast.Ident); !isVar {
			return true
		}
	}
	for _, rhs := range a.Rhs {
		if call, ok := ast.Unparen(rhs).(*ast.CallExpr); ok {
			if id, ok := ast.Unparen(call.Fun).(*ast.Ident); ok && id.Name == "append" {
				return true
			}
		}
	}
	return false
}
