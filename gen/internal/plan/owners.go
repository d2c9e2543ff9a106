package plan

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
)

// ownsRows reports whether v, whose memory nothing else leads to, holds slices of which the same is true: groups, in
//
//	groups[key] = append(groups[key], value)
//
// if that is a map which f has made. Each slice in it is new, or made of one in it, and no use
// hands one on before f returns.
func (f *Function) ownsRows(v *types.Var) bool {
	var elem types.Type
	switch t := v.Type().Underlying().(type) {
	case *types.Map:
		elem = t.Elem()
	case *types.Slice:
		elem = t.Elem()
	default:
		return false
	}
	if _, ok := elem.Underlying().(*types.Slice); !ok {
		return false
	}
	owns := true
	ast.Inspect(f.Decl, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && f.variable(id) == v {
			owns = owns && f.keepsRows(id, v)
		}
		return owns
	})
	return owns
}

// keepsRows reports whether one use of v keeps the slices in it its own.
func (f *Function) keepsRows(id *ast.Ident, v *types.Var) bool {
	switch p := f.parents[id].(type) {
	case *ast.IndexExpr:
		return p.X == id && f.keepsRow(p, v)
	case *ast.RangeStmt:
		return p.X == id && (p.Value == nil || isBlank(p.Value))
	case *ast.BinaryExpr:
		return true // compared, with nil
	case *ast.ReturnStmt:
		return !f.inLiteral(p)
	case *ast.Field:
		return true // a named result
	case *ast.AssignStmt:
		i := slices.Index(p.Lhs, ast.Expr(id))
		return i >= 0 && len(p.Rhs) == len(p.Lhs) && f.newRows(p.Rhs[i], v)
	case *ast.ValueSpec:
		i := slices.Index(p.Names, id)
		return len(p.Values) == 0 || len(p.Values) == len(p.Names) && f.newRows(p.Values[i], v)
	case *ast.CallExpr:
		switch f.builtin(p) {
		case "len", "cap", "delete", "clear":
			return true
		case "append":
			return f.newRows(p, v) && f.assignsTo(p, v)
		}
		return f.onlyLooks(p, id, v) && f.endsThere(p)
	}
	return false
}

// endsThere reports whether nothing that is in the slices among the arguments of call can be
// reached by its result, or by a function among its arguments.
func (f *Function) endsThere(call *ast.CallExpr) bool {
	if slices.ContainsFunc(call.Args, func(e ast.Expr) bool { return isFunc(f.Info.TypeOf(e)) }) {
		return false
	}
	switch t := f.Info.TypeOf(call).(type) {
	case *types.Tuple:
		for v := range t.Variables() {
			if _, basic := v.Type().Underlying().(*types.Basic); !basic && !isError(v.Type()) {
				return false
			}
		}
		return true
	case nil:
		return true
	default:
		_, basic := t.Underlying().(*types.Basic)
		return basic || isError(t) || f.Analysis.API.IsTensor(t)
	}
}

// keepsRow reports whether a use of row, a slice in v, keeps it v's own.
func (f *Function) keepsRow(row *ast.IndexExpr, v *types.Var) bool {
	switch p := f.parents[row].(type) {
	case *ast.IndexExpr:
		return p.X == row
	case *ast.SliceExpr:
		return p.X == row && f.storesBack(p, v)
	case *ast.RangeStmt:
		return p.X == row
	case *ast.BinaryExpr:
		return true // compared, with nil
	case *ast.ReturnStmt:
		return !f.inLiteral(p)
	case *ast.AssignStmt:
		if i := slices.Index(p.Lhs, ast.Expr(row)); i >= 0 {
			return p.Tok == token.ASSIGN && len(p.Rhs) == len(p.Lhs) && f.newRow(p.Rhs[i], v)
		}
		return len(p.Lhs) == 2 && len(p.Rhs) == 1 && isBlank(p.Lhs[0]) // _, ok := v[key]
	case *ast.CallExpr:
		switch f.builtin(p) {
		case "len", "cap", "copy", "clear":
			return true
		case "append":
			if p.Args[0] != row {
				return p.Ellipsis.IsValid() // its elements
			}
			return f.storesBack(p, v)
		}
		return f.onlyLooks(p, row, v)
	}
	return false
}

// isRowOf reports whether e is a slice in v.
func (f *Function) isRowOf(e ast.Expr, v *types.Var) bool {
	ix, ok := ast.Unparen(e).(*ast.IndexExpr)
	if !ok {
		return false
	}
	id, ok := ast.Unparen(ix.X).(*ast.Ident)
	return ok && f.variable(id) == v
}

// storesBack reports whether e, or a slice that is made of it, becomes a slice in v, and nothing else.
func (f *Function) storesBack(e ast.Expr, v *types.Var) bool {
	switch p := f.parents[e].(type) {
	case *ast.SliceExpr:
		return p.X == e && f.storesBack(p, v)
	case *ast.CallExpr:
		return f.builtin(p) == "append" && p.Args[0] == e && f.storesBack(p, v)
	case *ast.AssignStmt:
		i := slices.Index(p.Rhs, e)
		return i >= 0 && len(p.Lhs) == len(p.Rhs) && f.isRowOf(p.Lhs[i], v)
	}
	return false
}

// newRow reports whether e makes a new slice, or makes one of a slice in v.
func (f *Function) newRow(e ast.Expr, v *types.Var) bool {
	e = ast.Unparen(e)
	switch x := e.(type) {
	case *ast.SliceExpr:
		return f.isRowOf(x.X, v) || f.newRow(x.X, v)
	case *ast.CallExpr:
		if f.builtin(x) == "append" {
			return f.isRowOf(x.Args[0], v) || f.newRow(x.Args[0], v)
		}
	}
	return f.isNew(e, v)
}

// newRows reports whether e makes new memory for slices that are all new, or is made of v by appending such.
func (f *Function) newRows(e ast.Expr, v *types.Var) bool {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		return f.Info.Types[e].IsNil()
	case *ast.CompositeLit:
		return !slices.ContainsFunc(e.Elts, func(el ast.Expr) bool {
			if kv, ok := el.(*ast.KeyValueExpr); ok {
				el = kv.Value
			}
			return !f.newRow(el, v)
		})
	case *ast.CallExpr:
		switch f.builtin(e) {
		case "make":
			return true
		case "append":
			id, ok := ast.Unparen(e.Args[0]).(*ast.Ident)
			return ok && f.variable(id) == v && !e.Ellipsis.IsValid() && !slices.ContainsFunc(e.Args[1:], func(arg ast.Expr) bool { return !f.newRow(arg, v) })
		}
	}
	return false
}
