package rewrite

import (
	"go/ast"
	"go/token"

	"github.com/asyncgen/asyncgen/gen/internal/plan"
)

// Accumulate is defer-sum: a sum, product or the like grows by a value. The host adds
// the same numbers in the same order and precision, so that the bits are the
// same; the device never adds for it.
//
//	total += loss.Item()    later.Do(func() { total += lossAt.Item() })
var Accumulate = &Rewrite{
	Name: "defer-sum",
	Was:  "R2",
	Code: plan.DeferredSum,
	Does: "is added when it has arrived, in the same order",
}

// isSum reports whether s changes a variable by a value.
func isSum(s *plan.Stmt) bool {
	a, ok := s.Inner().(*ast.AssignStmt)
	return ok && a.Tok != token.ASSIGN && a.Tok != token.DEFINE
}
