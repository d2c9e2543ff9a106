package gen

import (
	"go/ast"
	"go/token"
	"go/types"
	"strings"
)

// isUndo reports whether s only tells a backlog which memory a loop changes ahead of values,
// perhaps if pointers on the way are not nil: that evaluates nothing that could fail or have
// effects.
func (u *undoer) isUndo(s ast.Stmt) bool {
	switch s := s.(type) {
	case *ast.ExprStmt:
		call, ok := s.X.(*ast.CallExpr)
		return ok && u.isCall(call, "Undo") && tellsPlaces(call, make(map[string]bool))
	case *ast.IfStmt:
		if s.Init != nil || s.Else != nil || len(s.Body.List) != 1 {
			return false
		}
		inner, ok := s.Body.List[0].(*ast.ExprStmt)
		if !ok {
			return false
		}
		call, ok := inner.X.(*ast.CallExpr)
		there := make(map[string]bool)
		return ok && areThere(s.Cond, there) && u.isCall(call, "Undo") && tellsPlaces(call, there)
	}
	return false
}

// areThere reports whether cond only asks whether variables and their fields are not nil, and adds these.
func areThere(cond ast.Expr, there map[string]bool) bool {
	b, ok := cond.(*ast.BinaryExpr)
	switch {
	case !ok:
		return false
	case b.Op == token.LAND:
		return areThere(b.X, there) && areThere(b.Y, there)
	case b.Op != token.NEQ || !isName(b.Y, "nil") || !isPath(b.X):
		return false
	}
	there[types.ExprString(b.X)] = true
	return true
}

// isPath reports whether e is a variable or a field of one.
func isPath(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.Ident:
		return true
	case *ast.SelectorExpr:
		return isPath(e.X)
	}
	return false
}

// tellsPlaces reports whether the arguments of call are places: of fields behind pointers some of
// which are there, or of slices.
func tellsPlaces(call *ast.CallExpr, there map[string]bool) bool {
	for _, arg := range call.Args {
		place, ok := arg.(*ast.CallExpr)
		if !ok || len(place.Args) != 1 {
			return false
		}
		fun, ok := place.Fun.(*ast.SelectorExpr)
		if !ok {
			return false
		}
		at := place.Args[0]
		switch fun.Sel.Name {
		case "Var":
			ref, ok := at.(*ast.UnaryExpr)
			if !ok || ref.Op != token.AND {
				return false
			}
			at = ref.X
		case "Elems":
		default:
			return false
		}
		if !isPath(at) {
			return false
		}
		if sel, ok := at.(*ast.SelectorExpr); ok && !beginsThere(sel, there) {
			return false
		}
	}
	return true
}

// beginsThere reports whether the variable that e is a field of is known to be there. Of what is between the compiler
// knows more.
func beginsThere(e ast.Expr, there map[string]bool) bool {
	for {
		sel, ok := e.(*ast.SelectorExpr)
		if !ok {
			return there[types.ExprString(e)]
		}
		e = sel.X
	}
}

// notUndone returns which memory that a parameter of fn leads to a loop changes ahead of entries
// and does not give back, or "".
func notUndone(fn *ast.FuncDecl, info *types.Info, entries []entry, flushed map[ast.Node]bool, laters map[types.Object]bool, lits variants) (text string) {
	params, called := paramsOf(fn, info), closuresCalled(fn, info, lits)
	for _, e := range entries {
		if e.root == nil || e.next {
			continue
		}
		told := toldBefore(fn, e.root, info, laters)
		called.inspect(e.root, info, func(n, _ ast.Node) bool {
			for _, o := range entries {
				if n == o.lit {
					return false
				}
			}
			if flushed[n] || isWayOut(n, e.root, info, laters) {
				return false
			}
			for _, at := range memoryAssigned(n, info, params) {
				if !told[at] && text == "" {
					text = strings.TrimPrefix(at, "&") + " is not given back"
				}
			}
			return true
		})
	}
	return text
}

// toldBefore are the places that a backlog of fn has been told of in front of the loop root.
func toldBefore(fn *ast.FuncDecl, root ast.Node, info *types.Info, laters map[types.Object]bool) map[string]bool {
	told := make(map[string]bool)
	ast.Inspect(fn, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || call.Pos() >= root.Pos() || method(call, info, laters) != "Undo" {
			return true
		}
		if len(call.Args) == 0 {
			clear(told)
		}
		for _, arg := range call.Args {
			told[types.ExprString(arg.(*ast.CallExpr).Args[0])] = true
		}
		return true
	})
	return told
}

// memoryAssigned returns how Undo calls what the node n assigns behind one of params.
func memoryAssigned(n ast.Node, info *types.Info, params map[types.Object]bool) (places []string) {
	add := func(e ast.Expr) {
		at := types.ExprString(e)
		switch x := e.(type) {
		case *ast.SelectorExpr:
			at = "&" + at
		case *ast.IndexExpr:
			e, at = x.X, types.ExprString(x.X)
			if sel, ok := x.X.(*ast.SelectorExpr); ok && isArray(info.Uses[sel.Sel]) {
				at = "&" + at
			}
		default:
			return
		}
		for {
			sel, ok := e.(*ast.SelectorExpr)
			if !ok {
				break
			}
			e = sel.X
		}
		if id, ok := e.(*ast.Ident); ok && params[info.Uses[id]] {
			places = append(places, at)
		}
	}
	switch n := n.(type) {
	case *ast.AssignStmt:
		if n.Tok != token.DEFINE {
			for _, lhs := range n.Lhs {
				add(lhs)
			}
		}
	case *ast.IncDecStmt:
		add(n.X)
	}
	return places
}

func isArray(obj types.Object) bool {
	if obj == nil {
		return false
	}
	_, ok := obj.Type().Underlying().(*types.Array)
	return ok
}

// paramsOf are the parameters of fn, and its receiver, that lead to memory.
func paramsOf(fn *ast.FuncDecl, info *types.Info) map[types.Object]bool {
	params := make(map[types.Object]bool)
	for _, list := range []*ast.FieldList{fn.Recv, fn.Type.Params} {
		if list == nil {
			continue
		}
		for _, field := range list.List {
			for _, name := range field.Names {
				obj := info.Defs[name]
				if obj == nil {
					continue
				}
				switch obj.Type().Underlying().(type) {
				case *types.Pointer, *types.Slice:
					params[obj] = true
				}
			}
		}
	}
	return params
}
