package rewrite

import (
	"go/ast"

	"github.com/asyncgen/asyncgen/gen/internal/plan"
)

// Guarded is R5: the look at a value is under a condition that needs none. The
// condition stays where it is, and an iteration for which it is false costs
// nothing, unless the statement before reads the same tensor anyway.
//
//	if i%100 == 0 {                 if i%100 == 0 {
//		fmt.Println(loss.Item())    	lossAt := later.Read(loss)
//	}                               	later.Do(func() { fmt.Println(lossAt.Item()) })
//	                                }
var Guarded = &Rewrite{
	ID:   "R5",
	Code: plan.DeferredGuarded,
	Does: "is read only where the condition holds, when it has arrived",
	Matches: func(s *plan.Stmt) bool {
		for p := s.Parent; p != nil && !p.IsLoop(); p = p.Parent {
			if _, ok := p.Inner().(*ast.IfStmt); ok {
				return true
			}
		}
		_, ok := s.Inner().(*ast.IfStmt)
		return ok
	},
}
