package rows

import (
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"slices"

	"github.com/asyncgen/asyncgen/gen/internal/plan"
)

// newBatcher returns nil if loop does not number rows from 0 to something.
func newBatcher(f *plan.Function, loop *plan.Stmt) *batcher {
	b := &batcher{f: f, loop: loop, defs: make(map[*types.Var]*plan.Stmt)}
	switch n := loop.Inner().(type) {
	case *ast.RangeStmt:
		b.ranges(n)
	case *ast.ForStmt:
		b.counts(n)
	}
	if b.index == nil || b.index.Name == "_" || b.f.Variable(b.index) == nil || b.isAssigned(b.f.Variable(b.index)) {
		return nil
	}
	if e := b.f.Effects(b.count); !e.OnlyReads() || b.mentionsLoop(b.count) {
		return nil
	}
	b.total, _ = loop.Total()
	return b
}

// ranges is for j := range n, and over a slice or an array.
func (b *batcher) ranges(n *ast.RangeStmt) {
	id, ok := n.Key.(*ast.Ident)
	if !ok || n.Tok != token.DEFINE {
		return
	}
	switch t := b.f.Info.TypeOf(n.X).Underlying().(type) {
	case *types.Basic:
		if v := b.f.Variable(id); v == nil || !types.Identical(v.Type(), types.Typ[types.Int]) {
			return
		}
	case *types.Slice, *types.Array:
		b.len = true
	case *types.Pointer:
		if _, ok := t.Elem().Underlying().(*types.Array); !ok {
			return
		}
		b.len = true
	default:
		return
	}
	b.index, b.count = id, n.X
}

// counts is for j := 0; j < n; j++.
func (b *batcher) counts(n *ast.ForStmt) {
	init, ok := n.Init.(*ast.AssignStmt)
	if !ok || init.Tok != token.DEFINE || len(init.Lhs) != 1 || len(init.Rhs) != 1 {
		return
	}
	id := init.Lhs[0].(*ast.Ident)
	if v := b.f.Info.Types[init.Rhs[0]].Value; v == nil || v.Kind() != constant.Int || constant.Sign(v) != 0 || !types.Identical(b.f.Info.TypeOf(id), types.Typ[types.Int]) {
		return
	}
	cond, ok := n.Cond.(*ast.BinaryExpr)
	if !ok || cond.Op != token.LSS || b.f.Variable(cond.X) != b.f.Variable(id) {
		return
	}
	post, ok := n.Post.(*ast.IncDecStmt)
	if !ok || post.Tok != token.INC || b.f.Variable(post.X) != b.f.Variable(id) {
		return
	}
	b.index, b.count = id, cond.Y
}

// body is the body of the loop.
func (b *batcher) body() *ast.BlockStmt {
	switch n := b.loop.Inner().(type) {
	case *ast.RangeStmt:
		return n.Body
	case *ast.ForStmt:
		return n.Body
	}
	return nil
}

// isAssigned reports whether the body of the loop may change v.
func (b *batcher) isAssigned(v *types.Var) (found bool) {
	is := func(e ast.Expr) bool { return e != nil && b.f.Variable(e) == v }
	ast.Inspect(b.body(), func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			found = found || slices.ContainsFunc(n.Lhs, is) && n.Tok != token.DEFINE || n.Tok == token.DEFINE && slices.ContainsFunc(n.Lhs, func(e ast.Expr) bool {
				id := e.(*ast.Ident)
				return b.f.Info.Defs[id] == nil && is(id)
			})
		case *ast.IncDecStmt:
			found = found || is(n.X)
		case *ast.RangeStmt:
			found = found || n.Tok == token.ASSIGN && (is(n.Key) || is(n.Value))
		case *ast.UnaryExpr:
			found = found || n.Op == token.AND && is(n.X)
		}
		return !found
	})
	return found
}

// mentionsLoop reports whether e uses what the loop declares.
func (b *batcher) mentionsLoop(e ast.Expr) (found bool) {
	ast.Inspect(e, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			if v, ok := b.f.Info.ObjectOf(id).(*types.Var); ok && !v.IsField() && b.declares(v) {
				found = true
			}
		}
		return !found
	})
	return found
}

func (b *batcher) declares(v *types.Var) bool {
	return b.loop.Node.Pos() <= v.Pos() && v.Pos() < b.loop.Node.End()
}

// isIndexAt reports whether the name of the index means the index at e.
func (b *batcher) isIndexAt(e ast.Expr) bool {
	scope := b.f.Pkg.Types.Scope().Innermost(e.Pos())
	if scope == nil {
		return false
	}
	_, obj := scope.LookupParent(b.index.Name, e.Pos())
	return obj != nil && obj == b.f.Info.Defs[b.index]
}

// always reports whether each iteration evaluates r.
func (b *batcher) always(r *plan.Read) bool {
	for _, s := range b.loop.Bodies[0] {
		if slices.Contains(s.Reads, r) {
			return b.f.AlwaysFirst(r.Expr, s.Inner())
		}
		for c := range s.All {
			if jump, ok := c.Inner().(*ast.BranchStmt); ok && jump.Tok == token.CONTINUE {
				return false
			}
		}
	}
	return false
}

// isElement reports whether e is labels[j] in for j := range labels.
func (b *batcher) isElement(e *ast.IndexExpr) bool {
	n, ok := b.loop.Inner().(*ast.RangeStmt)
	if !ok || b.f.Variable(e.Index) != b.f.Variable(b.index) {
		return false
	}
	v := b.f.Variable(n.X)
	return v != nil && b.f.Variable(e.X) == v && !b.isAssigned(v) && !b.f.Visible(v)
}
