// Package syntax answers small questions about statements, expressions and types that several parts of the generator
// ask.
package syntax

import (
	"go/ast"
	"go/types"
)

// List returns the list of statements that n consists of.
func List(n ast.Node) []ast.Stmt {
	switch n := n.(type) {
	case *ast.BlockStmt:
		return n.List
	case *ast.CaseClause:
		return n.Body
	case *ast.CommClause:
		return n.Body
	}
	return nil
}

// HasCall reports whether n contains a call.
func HasCall(n ast.Node) (found bool) {
	ast.Inspect(n, func(m ast.Node) bool {
		_, is := m.(*ast.CallExpr)
		found = found || is
		return !found
	})
	return found
}

// IsInteger reports whether values of type t are integers.
func IsInteger(t types.Type) bool {
	b, ok := t.Underlying().(*types.Basic)
	return ok && b.Info()&types.IsInteger != 0
}

// MayNotCompare reports whether a comparison of values of type t may fail: if it comes to values in interfaces, which
// may be slices.
func MayNotCompare(t types.Type) bool {
	switch t := t.Underlying().(type) {
	case *types.Interface: // of a type parameter as well
		return true
	case *types.Array:
		return MayNotCompare(t.Elem())
	case *types.Struct:
		for f := range t.Fields() {
			if MayNotCompare(f.Type()) {
				return true
			}
		}
	}
	return false
}

// IsSliceToArray reports whether a conversion makes an array of a slice, or a pointer to one.
func IsSliceToArray(info *types.Info, call *ast.CallExpr) bool {
	if _, ok := info.TypeOf(call.Args[0]).Underlying().(*types.Slice); !ok {
		return false
	}
	switch info.TypeOf(call).Underlying().(type) {
	case *types.Array, *types.Pointer:
		return true
	}
	return false
}

// Arguments calls bind for each parameter of decl, the function that call calls, and its argument. The receiver is one
// of them unless the method is promoted. Variadic parameters are left out.
func Arguments(info *types.Info, call *ast.CallExpr, decl *ast.FuncDecl, bind func(param *ast.Ident, arg ast.Expr)) {
	if sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr); ok && decl.Recv != nil && len(decl.Recv.List[0].Names) > 0 {
		if s := info.Selections[sel]; s != nil && s.Kind() == types.MethodVal && len(s.Index()) == 1 {
			bind(decl.Recv.List[0].Names[0], sel.X)
		}
	}
	i := 0
	for _, field := range decl.Type.Params.List {
		for _, name := range field.Names {
			if _, variadic := field.Type.(*ast.Ellipsis); !variadic && i < len(call.Args) {
				bind(name, call.Args[i])
			}
			i++
		}
		if len(field.Names) == 0 {
			i++
		}
	}
}
