package gen

import (
	"go/ast"
	"go/token"

	"golang.org/x/tools/go/ast/astutil"
)

// iterations puts the bodies of loops back that are functions which Iterate runs, in a generated function, and
// reports whether there are any. What such a function ends with then leaves the loop, in the way in which what
// calls it does.
//
//	for … {                                          for … {
//		if end, ok := later.Iterate(func() {         	work()
//			work()                                   	if end, ok := later.BreakIf(…); ok {
//			if _, ok := later.BreakIf(…); ok {       		return end.x
//				return                               	}
//			}                                        	more()
//			more()                                   }
//		}); ok {
//			return end.x
//		}
//	}
func iterations(fn *ast.FuncDecl) (any bool) {
	ast.Inspect(fn.Body, func(n ast.Node) bool {
		body := loopBody(n)
		if body == nil || len(body.List) != 1 {
			return true
		}
		outer, ok := body.List[0].(*ast.IfStmt)
		if !ok {
			return true
		}
		call, told := askedBy(outer)
		if call == nil || methodName(call) != "Iterate" || len(call.Args) != 1 {
			return true
		}
		lit, ok := call.Args[0].(*ast.FuncLit)
		if !ok {
			return true
		}
		any = true
		astutil.Apply(lit.Body, func(c *astutil.Cursor) bool {
			switch n := c.Node().(type) {
			case *ast.FuncLit:
				return false
			case *ast.IfStmt:
				if call, a := askedBy(n); call != nil && (methodName(call) == "BreakIf" || methodName(call) == "Flush") {
					a.Lhs, a.Tok = told.Lhs, told.Tok
					n.Cond, n.Body = outer.Cond, outer.Body
					return false
				}
			case *ast.ReturnStmt:
				if len(n.Results) == 0 {
					c.Replace(&ast.BranchStmt{TokPos: n.Return, Tok: token.CONTINUE})
				}
			}
			return true
		}, nil)
		body.List = lit.Body.List
		return true
	})
	return any
}

// loopBody returns the body of n if that is a loop, or nil.
func loopBody(n ast.Node) *ast.BlockStmt {
	switch n := n.(type) {
	case *ast.ForStmt:
		return n.Body
	case *ast.RangeStmt:
		return n.Body
	}
	return nil
}

// askedBy returns the call whose second result s asks for, and the assignment of the results; or nil.
func askedBy(s *ast.IfStmt) (*ast.CallExpr, *ast.AssignStmt) {
	a, ok := s.Init.(*ast.AssignStmt)
	if !ok || len(a.Lhs) != 2 || len(a.Rhs) != 1 || !isIdent(s.Cond) {
		return nil, nil
	}
	call, _ := a.Rhs[0].(*ast.CallExpr)
	return call, a
}

// methodName is the name of the method of a variable that is called, or "".
func methodName(call *ast.CallExpr) string {
	s, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || !isIdent(s.X) {
		return ""
	}
	return s.Sel.Name
}
