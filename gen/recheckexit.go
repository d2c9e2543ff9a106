package gen

import (
	"go/ast"
	"go/types"
)

// isWayOut reports whether n, in the loop root, is what happens when a value has ended the
// loop: nothing is queued there.
func isWayOut(n, root ast.Node, info *types.Info, laters map[types.Object]bool) (is bool) {
	block, ok := n.(*ast.BlockStmt)
	if !ok {
		return false
	}
	ast.Inspect(root, func(m ast.Node) bool {
		if s, ok := m.(*ast.IfStmt); ok && s.Body == block && s.Init != nil {
			is = asksForExit(s.Init, info, laters)
		}
		return !is
	})
	return is
}

// asksForExit reports whether s calls BreakIf or Flush.
func asksForExit(s ast.Stmt, info *types.Info, laters map[types.Object]bool) bool {
	a, ok := s.(*ast.AssignStmt)
	if !ok || len(a.Rhs) != 1 {
		return false
	}
	call, ok := a.Rhs[0].(*ast.CallExpr)
	if !ok {
		return false
	}
	m := method(call, info, laters)
	return m == "BreakIf" || m == "Flush"
}

// lost returns which variable that a loop goes on to change past its end does
// not get back what it held, or "".
func lost(fn *ast.FuncDecl, info *types.Info, laters map[types.Object]bool) (text string) {
	visit := func(list []ast.Stmt) {
		for i, s := range list {
			loop := s
			for {
				l, ok := loop.(*ast.LabeledStmt)
				if !ok {
					break
				}
				loop = l.Stmt
			}
			switch loop.(type) {
			case *ast.ForStmt, *ast.RangeStmt:
			default:
				continue
			}
			if !endsByValue(loop, info, laters) || i+1 == len(list) {
				continue
			}
			back, goesOn := givenBack(list[i+1:], info, laters)
			if !goesOn {
				continue
			}
			for v := range ranAhead(loop, info, laters) {
				if !back[v] && usedAfter(fn, v, loop, info) && text == "" {
					text = v.Name() + " does not get back what it held when the loop ended"
				}
			}
		}
	}
	ast.Inspect(fn.Body, func(n ast.Node) bool {
		visit(listOf(n))
		return true
	})
	return text
}

// endsByValue reports whether BreakIf is called in loop, and in no loop in it.
func endsByValue(loop ast.Node, info *types.Info, laters map[types.Object]bool) (found bool) {
	ast.Inspect(loop, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ForStmt, *ast.RangeStmt:
			return n == loop
		case *ast.CallExpr:
			found = found || method(n, info, laters) == "BreakIf"
		}
		return !found
	})
	return found
}

// givenBack returns the variables that are assigned where a loop that a value
// has ended goes on, in the statements after the loop, and whether it does.
func givenBack(after []ast.Stmt, info *types.Info, laters map[types.Object]bool) (vs map[types.Object]bool, goesOn bool) {
	vs = make(map[types.Object]bool)
	ifs, ok := after[0].(*ast.IfStmt)
	if !ok {
		return vs, true // a Flush whose result does not matter
	}
	body := ifs.Body
	if ifs.Init == nil && len(after) > 1 { // the result is asked for by the next statement
		switch next := after[1].(type) {
		case *ast.IfStmt:
			body = next.Body
			_, goesOn = next.Cond.(*ast.BinaryExpr) // it takes one of several ways
		case *ast.SwitchStmt:
			body, goesOn = next.Body, true
		}
	}
	ast.Inspect(body, func(n ast.Node) bool {
		for _, v := range assigned(n, info) {
			vs[v] = true
		}
		return true
	})
	return vs, goesOn || !jumps(body.List)
}

// jumps reports whether control never comes to the end of list: it ends with a
// jump, or with a switch of which each case does.
func jumps(list []ast.Stmt) bool {
	if len(list) == 0 {
		return false
	}
	switch s := list[len(list)-1].(type) {
	case *ast.ReturnStmt, *ast.BranchStmt:
		return true
	case *ast.SwitchStmt:
		hasDefault := false
		for _, c := range s.Body.List {
			c := c.(*ast.CaseClause)
			hasDefault = hasDefault || c.List == nil
			if !jumps(c.Body) {
				return false
			}
		}
		return hasDefault
	}
	return false
}

// ranAhead returns the variables from before loop that it changes outside
// entries and with entries pending.
func ranAhead(loop ast.Node, info *types.Info, laters map[types.Object]bool) map[types.Object]bool {
	vs := make(map[types.Object]bool)
	flushed, ended := make(map[ast.Node]bool), make(map[ast.Node]bool)
	ast.Inspect(loop, func(n ast.Node) bool {
		markFlushed(listOf(n), flushed, ended, info, laters)
		return true
	})
	ast.Inspect(loop, func(n ast.Node) bool {
		if _, lit := n.(*ast.FuncLit); lit || flushed[n] || isWayOut(n, loop, info, laters) {
			return false
		}
		if a, ok := n.(*ast.AssignStmt); ok && asksForExit(a, info, laters) {
			return true // the variables that tell about the exit
		}
		for _, v := range assigned(n, info) {
			if v.Pos() < loop.Pos() || loop.End() <= v.Pos() {
				vs[v] = true
			}
		}
		return true
	})
	return vs
}

// usedAfter reports whether fn mentions v after loop.
func usedAfter(fn *ast.FuncDecl, v types.Object, loop ast.Node, info *types.Info) (found bool) {
	ast.Inspect(fn.Body, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && id.Pos() >= loop.End() && info.Uses[id] == v {
			found = true
		}
		return !found
	})
	return found
}
