package rewrite

import (
	"go/ast"

	"github.com/asyncgen/asyncgen/gen/internal/plan"
)

// Guarded is defer-guarded: the look at a value is under a condition that needs none. The
// condition stays where it is, unless the statement before reads the same
// tensor anyway. An iteration for which it is false runs what has arrived.
//
//	if i%100 == 0 {                 later.Poll() // where the iteration begins
//		fmt.Println(loss.Item())    …
//	}                               if i%100 == 0 {
//	                                	lossAt := later.Read(loss)
//	                                	later.Do(func() { fmt.Println(lossAt.Item()) })
//	                                }
var Guarded = &Rewrite{
	Name: "defer-guarded",
	Was:  "R5",
	Code: plan.DeferredGuarded,
	Does: "is read only where the condition holds, when it has arrived",
}

// isGuarded reports whether s is under a condition, or one itself.
func isGuarded(s *plan.Stmt) bool {
	for p := s.Parent; p != nil && !p.IsLoop(); p = p.Parent {
		if _, ok := p.Inner().(*ast.IfStmt); ok {
			return true
		}
	}
	_, ok := s.Inner().(*ast.IfStmt)
	return ok
}
