package gen

import (
	"go/ast"
	"go/token"
	"slices"
)

// choice returns the if statement that s, a call of Either, stands for; nil if s is none, or one that loses something.
func (u *undoer) choice(s *ast.ExprStmt) *ast.IfStmt {
	call, ok := s.X.(*ast.CallExpr)
	if !ok || len(call.Args) < 3 {
		return nil
	}
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || sel.Sel.Name != "Either" || !isName(sel.X, runtimeQualifier) {
		return nil
	}
	var chosen []string
	for _, arg := range call.Args[3:] {
		if p, ok := arg.(*ast.UnaryExpr); ok && p.Op == token.AND && isIdent(p.X) {
			chosen = append(chosen, p.X.(*ast.Ident).Name)
		}
	}
	then, ok := call.Args[1].(*ast.FuncLit)
	if !ok || losesAny(then, chosen) {
		return nil
	}
	n := &ast.IfStmt{Cond: call.Args[0], Body: then.Body}
	if otherwise, ok := call.Args[2].(*ast.FuncLit); ok {
		if losesAny(otherwise, chosen) {
			return nil
		}
		n.Else = otherwise.Body
		if list := otherwise.Body.List; len(list) == 1 {
			if next, ok := list[0].(*ast.IfStmt); ok { // of another Either: there is no other if in them
				n.Else = next
			}
		}
	}
	return n
}

// losesAny reports whether lit assigns to a variable from outside that is not among those with the given names.
func losesAny(lit *ast.FuncLit, chosen []string) (loses bool) {
	own := make(map[string]bool)
	ast.Inspect(lit.Body, func(n ast.Node) bool {
		a, ok := n.(*ast.AssignStmt)
		if !ok {
			return true
		}
		for _, lhs := range a.Lhs {
			id, ok := lhs.(*ast.Ident)
			switch {
			case ok && a.Tok == token.DEFINE:
				own[id.Name] = true
			case !ok || !own[id.Name] && !slices.Contains(chosen, id.Name):
				loses = true
			}
		}
		return true
	})
	return loses
}

// headed returns the if statement in block, a definition and an if statement, with the definition in its head; or nil.
func headed(block *ast.BlockStmt) *ast.IfStmt {
	if len(block.List) != 2 {
		return nil
	}
	a, ok := block.List[0].(*ast.AssignStmt)
	n, isIf := block.List[1].(*ast.IfStmt)
	if !ok || !isIf || a.Tok != token.DEFINE || n.Init != nil {
		return nil
	}
	return &ast.IfStmt{Init: a, Cond: n.Cond, Body: n.Body, Else: n.Else}
}
