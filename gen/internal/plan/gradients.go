package plan

import (
	"go/ast"
	"go/types"

	"github.com/asyncgen/asyncgen/analysis/tensorapi"
)

// NeverDifferentiates reports whether it is certain that no gradient ever goes through what f
// computes: it asks for none, and no tensor that it makes gets out of it.
func (f *Function) NeverDifferentiates() bool {
	if f.Obj == nil {
		return false
	}
	for result := range f.Obj.Signature().Results().Variables() {
		if !isPlain(result.Type()) {
			return false
		}
	}
	return f.keepsTensors(make(map[*types.Func]bool))
}

// isPlain reports whether values of type t can't lead to a tensor.
func isPlain(t types.Type) bool {
	for depth := 0; depth < 8; depth++ { // a type may be made of itself
		switch u := t.Underlying().(type) {
		case *types.Basic:
			return true
		case *types.Slice:
			t = u.Elem()
		case *types.Array:
			t = u.Elem()
		case *types.Map:
			if _, ok := u.Key().Underlying().(*types.Basic); !ok {
				return false
			}
			t = u.Elem()
		default:
			return types.Identical(t, types.Universe.Lookup("error").Type())
		}
	}
	return false
}

// keepsTensors reports whether f and what it calls neither ask for gradients nor store tensors
// where others may find them.
func (f *Function) keepsTensors(seen map[*types.Func]bool) bool {
	if seen[f.Obj] {
		return true
	}
	seen[f.Obj] = true
	keeps := true
	ast.Inspect(f.Decl.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit, *ast.GoStmt, *ast.DeferStmt, *ast.SendStmt:
			keeps = false
		case *ast.AssignStmt:
			for _, lhs := range n.Lhs {
				keeps = keeps && f.assignsOwn(lhs, n)
			}
		case *ast.CallExpr:
			keeps = keeps && f.callKeepsTensors(n, seen)
		}
		return keeps
	})
	return keeps
}

// assignsOwn reports whether n, which assigns to lhs, gives nobody but f a tensor.
func (f *Function) assignsOwn(lhs ast.Expr, n *ast.AssignStmt) bool {
	t := f.Info.TypeOf(lhs)
	if t == nil || isPlain(t) { // _, and the variable of a type switch, have no type
		return true
	}
	for l := range f.StmtEffects(n).Writes {
		switch l.Kind {
		case Var, Own:
			if f.Visible(l.Obj) {
				return false
			}
		default:
			return false
		}
	}
	return true
}

func (f *Function) callKeepsTensors(call *ast.CallExpr, seen map[*types.Func]bool) bool {
	if f.Info.Types[call.Fun].IsType() {
		return true
	}
	fn, api, kind := f.Callee(call)
	switch kind {
	case CallsBuiltin, CallsTotal:
		return true
	case CallsLibrary:
		switch api.Kind {
		case tensorapi.Mutate, tensorapi.Call, tensorapi.Draw:
			return false
		}
		return fn.Name() != "Grad" && fn.Name() != "Track"
	case CallsFunction:
		body, ok := f.Analysis.Program.Body(fn)
		return ok && f.Analysis.Function(body.Pkg, body.Decl).keepsTensors(seen)
	}
	for _, arg := range call.Args { // of the standard library, or unknown
		if !isPlain(f.Info.TypeOf(arg)) {
			return false
		}
	}
	return kind == CallsStandard
}
