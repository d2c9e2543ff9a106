package numbers

import (
	"go/ast"
	"go/token"
	"slices"
)

// A side is what a statement does on a condition.
type side struct {
	when []ast.Expr // one of these holds, or is equal to the tag of the switch; nil: otherwise
	body []ast.Stmt

	begin token.Pos // behind the brace or the colon in front of body
}

// sides returns the sides of an if or a switch. It is not ok if they are not done one or the other,
// on conditions alone.
func sides(s ast.Stmt) (all []side, ok bool) {
	switch s := s.(type) {
	case *ast.IfStmt:
		for next := s; next != nil; {
			if next != s && next.Init != nil {
				return nil, false
			}
			all = append(all, side{[]ast.Expr{next.Cond}, next.Body.List, next.Body.Lbrace + 1})
			switch e := next.Else.(type) {
			case *ast.BlockStmt:
				all = append(all, side{nil, e.List, e.Lbrace + 1})
				next = nil
			case *ast.IfStmt:
				next = e
			default:
				next = nil
			}
		}
		return all, true
	case *ast.SwitchStmt:
		for i, clause := range s.Body.List {
			cc := clause.(*ast.CaseClause)
			if cc.List == nil && (i == 0 || i < len(s.Body.List)-1) || slices.ContainsFunc(cc.Body, leavesSwitch) {
				return nil, false
			}
			all = append(all, side{cc.List, cc.Body, cc.Colon + 1})
		}
		return all, s.Init == nil && len(all) > 0
	}
	return nil, false
}

// leavesSwitch reports whether s, in a case of a switch, may leave the switch for what comes after
// it, or for the next case.
func leavesSwitch(s ast.Stmt) (found bool) {
	ast.Inspect(s, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit, *ast.ForStmt, *ast.RangeStmt, *ast.SwitchStmt, *ast.TypeSwitchStmt, *ast.SelectStmt:
			return false
		case *ast.BranchStmt:
			found = found || n.Tok == token.FALLTHROUGH || n.Tok == token.BREAK && n.Label == nil
		}
		return !found
	})
	return found
}

// tagOf returns what a switch is about; nil if that is the truth, and for an if.
func tagOf(s ast.Stmt) ast.Expr {
	if n, ok := s.(*ast.SwitchStmt); ok {
		return n.Tag
	}
	return nil
}

// otherwise reports whether x is what is done if no condition holds.
func (x side) otherwise() bool { return x.when == nil }
