package plan

import (
	"go/ast"
	"go/token"
	"go/types"

	"github.com/asyncgen/asyncgen/gen/internal/syntax"
)

// LeadsBefore reports whether the program has followed the pointer v before it comes to the loop,
// or does so first of all there.
func (f *Function) LeadsBefore(v *types.Var, loop *Stmt) bool {
	var heads []ast.Node
	switch n := loop.Inner().(type) {
	case *ast.RangeStmt:
		heads = append(heads, n.X)
	case *ast.ForStmt:
		if n.Init != nil {
			heads = append(heads, n.Init)
		}
	}
	for _, head := range heads {
		if f.FollowsFirst(v, head) {
			return true
		}
	}
	for n := ast.Node(loop.Node); n != nil; n = f.Parent(n) {
		if _, isFunc := n.(*ast.FuncLit); isFunc {
			break
		}
		for _, before := range syntax.List(f.Parent(n)) {
			if before.Pos() >= n.Pos() {
				break
			}
			if f.followsAlways(v, before) {
				return true
			}
		}
	}
	return false
}

// LeadsTo reports whether the program has followed the pointer v, which gets no other value, whenever it comes to s.
func (f *Function) LeadsTo(v *types.Var, loop, s *Stmt) bool {
	if v == nil || f.Sets(v) != 1 {
		return false
	}
	if f.LeadsBefore(v, loop) {
		return true
	}
	for n := ast.Node(s.Node); n != nil; n = f.Parent(n) {
		for _, before := range syntax.List(f.Parent(n)) {
			if before.Pos() >= n.Pos() {
				break
			}
			if f.followsAlways(v, before) || f.followsIn(v, before, 0) {
				return true
			}
		}
		if n == ast.Node(loop.Node) {
			break
		}
	}
	return false
}

// followsAlways reports whether n, whenever it is evaluated, follows the pointer v.
func (f *Function) followsAlways(v *types.Var, n ast.Node) (found bool) {
	ast.Inspect(n, func(m ast.Node) bool {
		if sel, ok := m.(*ast.SelectorExpr); ok && f.IsFieldOf(sel, v) {
			found = found || f.AlwaysFirst(sel, n)
		}
		return !found
	})
	return found
}

// FollowsFirst is followsAlways if nothing that may have effects or fail comes before that in n.
func (f *Function) FollowsFirst(v *types.Var, n ast.Node) (found bool) {
	ends := token.Pos(0) // of the first call
	ast.Inspect(n, func(m ast.Node) bool {
		if call, ok := m.(*ast.CallExpr); ok && !f.Info.Types[call.Fun].IsType() && (ends == 0 || call.End() < ends) {
			ends = call.End()
		}
		return true
	})
	ast.Inspect(n, func(m ast.Node) bool {
		if sel, ok := m.(*ast.SelectorExpr); ok && f.IsFieldOf(sel, v) {
			found = found || f.AlwaysFirst(sel, n) && (ends == 0 || sel.Pos() < ends)
		}
		return !found
	})
	return found
}

// followsIn reports whether n, whenever it is evaluated, calls a function with the argument or
// receiver v that always follows it.
func (f *Function) followsIn(v *types.Var, n ast.Node, depth int) (found bool) {
	if depth > 3 {
		return false
	}
	ast.Inspect(n, func(m ast.Node) bool {
		call, ok := m.(*ast.CallExpr)
		if !ok || found || f.Info.Types[call.Fun].IsType() || !f.AlwaysFirst(call, n) {
			return !found
		}
		fn, _, kind := f.Callee(call)
		sel, isSel := ast.Unparen(call.Fun).(*ast.SelectorExpr)
		if kind != CallsFunction || !isSel || f.Variable(sel.X) != v {
			return true
		}
		body, ok := f.Analysis.Program.Body(fn)
		if !ok || body.Decl.Recv == nil || len(body.Decl.Recv.List[0].Names) == 0 || len(body.Decl.Body.List) == 0 {
			return true
		}
		if s := f.Info.Selections[sel]; s == nil || len(s.Index()) != 1 || !isPointer(v.Type()) {
			return true
		}
		inner := f.Analysis.Function(body.Pkg, body.Decl)
		param, ok := inner.Info.ObjectOf(body.Decl.Recv.List[0].Names[0]).(*types.Var)
		if !ok || !isPointer(param.Type()) || inner.Sets(param) != 1 {
			return true
		}
		first := body.Decl.Body.List[0]
		found = inner.followsAlways(param, first) || inner.followsIn(param, first, depth+1)
		return !found
	})
	return found
}

// IsFieldOf reports whether sel is a field of what v points to.
func (f *Function) IsFieldOf(sel *ast.SelectorExpr, v *types.Var) bool {
	s := f.Info.Selections[sel]
	return s != nil && s.Kind() == types.FieldVal && f.Variable(sel.X) == v && isPointer(v.Type())
}
