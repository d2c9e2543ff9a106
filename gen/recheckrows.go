package gen

import (
	"go/ast"
	"go/token"
	"go/types"

	"github.com/asyncgen/asyncgen/gen/internal/load"
)

// changedRows returns that what the function of one row of asyncrt.MapRows uses changes before the
// last row is asked for, in fn, or "".
func changedRows(fn *ast.FuncDecl, info *types.Info) (text string) {
	ast.Inspect(fn, func(n ast.Node) bool {
		list := listOf(n)
		for i, s := range list {
			rows, of := mapped(s, info)
			if rows == nil {
				continue
			}
			used, last := usedIn(of, info), i
			users := map[types.Object]bool{rows: true} // and what is made of it
			for j, behind := range list[i+1:] {
				uses := false
				for user := range users {
					uses = uses || usesObject(behind, user, info)
				}
				if more, _ := mapped(behind, info); uses && more != nil {
					users[more] = true
				} else if uses {
					last = i + 1 + j
				}
			}
			for _, behind := range list[i+1 : last+1] {
				for _, v := range changedIn(behind, users, info) {
					if used[v] {
						text = "what rows are computed of, " + v.Name() + ", changes before they are"
					}
				}
			}
		}
		return true
	})
	return text
}

// changedIn returns the variables that s assigns to before control goes on behind it, or users are
// asked for a row: not what it assigns on its way out of the list of statements that it is in.
func changedIn(s ast.Stmt, users map[types.Object]bool, info *types.Info) (vs []types.Object) {
	var literals int // around the node
	var stack []ast.Node
	ast.Inspect(s, func(m ast.Node) bool {
		if m == nil {
			if _, ok := stack[len(stack)-1].(*ast.FuncLit); ok {
				literals--
			}
			stack = stack[:len(stack)-1]
			return true
		}
		list := listOf(m)
		if literals == 0 && len(list) > 0 && leaves(list[len(list)-1], s) {
			asks := false
			for user := range users {
				asks = asks || usesObject(m, user, info)
			}
			if !asks {
				return false
			}
		}
		vs = append(vs, assigned(m, info)...)
		if _, ok := m.(*ast.FuncLit); ok {
			literals++
		}
		stack = append(stack, m)
		return true
	})
	return vs
}

// leaves reports whether control goes from last, a statement in s, to neither s nor what stands behind it.
func leaves(last, s ast.Stmt) bool {
	switch last := last.(type) {
	case *ast.ReturnStmt:
		return true
	case *ast.BranchStmt:
		if last.Label == nil || last.Tok == token.GOTO {
			return false
		}
		isInside := false
		ast.Inspect(s, func(m ast.Node) bool {
			labeled, ok := m.(*ast.LabeledStmt)
			isInside = isInside || ok && labeled.Label.Name == last.Label.Name
			return true
		})
		return !isInside
	}
	return false
}

// mapped returns the variable of rows that s declares, by asyncrt.MapRows or others of its loop,
// and the function of one row; or nil.
func mapped(s ast.Stmt, info *types.Info) (rows types.Object, of ast.Expr) {
	a, ok := s.(*ast.AssignStmt)
	if !ok || a.Tok != token.DEFINE || len(a.Lhs) != 1 || len(a.Rhs) != 1 {
		return nil, nil
	}
	call, ok := a.Rhs[0].(*ast.CallExpr)
	for ok {
		sel, isSel := call.Fun.(*ast.SelectorExpr)
		if !isSel {
			break
		}
		if f, isFunc := info.Uses[sel.Sel].(*types.Func); isFunc && len(call.Args) > 0 &&
			(f.FullName() == load.RuntimePath+".MapRows" || f.FullName() == "(*"+load.RuntimePath+".MappedRows).Map") {
			return info.Defs[a.Lhs[0].(*ast.Ident)], call.Args[len(call.Args)-1]
		}
		call, ok = sel.X.(*ast.CallExpr)
	}
	return nil, nil
}

// usedIn returns the variables from outside that n uses.
func usedIn(n ast.Node, info *types.Info) map[types.Object]bool {
	used := make(map[types.Object]bool)
	ast.Inspect(n, func(m ast.Node) bool {
		if id, ok := m.(*ast.Ident); ok {
			if v, ok := info.Uses[id].(*types.Var); ok && !v.IsField() && (v.Pos() < n.Pos() || n.End() <= v.Pos()) {
				used[v] = true
			}
		}
		return true
	})
	return used
}

func usesObject(n ast.Node, obj types.Object, info *types.Info) (found bool) {
	ast.Inspect(n, func(m ast.Node) bool {
		if id, ok := m.(*ast.Ident); ok && info.Uses[id] == obj {
			found = true
		}
		return !found
	})
	return found
}
