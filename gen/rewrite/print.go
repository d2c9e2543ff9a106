package rewrite

import (
	"go/ast"

	"github.com/asyncgen/asyncgen/gen/internal/plan"
)

// Print is defer-print: a value is printed or logged. Everything else that writes to
// the outside in the loop goes with it, so that the output is the same, byte
// for byte, in the same order.
//
//	fmt.Println(loss)    later.Do(func() { fmt.Println(lossAt) })
var Print = &Rewrite{
	Name: "defer-print",
	Was:  "R4",
	Code: plan.DeferredPrint,
	Does: "is printed when it has arrived, in the same order",
}

// isPrint reports whether s is a call that writes to the outside.
func isPrint(s *plan.Stmt) bool {
	_, ok := s.Inner().(*ast.ExprStmt)
	return ok && s.Head.Writes[plan.Loc{Kind: plan.World}] != (plan.Cause{})
}
