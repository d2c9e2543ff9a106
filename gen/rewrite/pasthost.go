package rewrite

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"slices"

	"github.com/asyncgen/asyncgen/gen/internal/plan"
	"github.com/asyncgen/asyncgen/gen/internal/syntax"
)

// partial returns what in n may fail although it did not in the iterations
// before, or nil. always says that every iteration comes to n.
func (p *past) partial(n ast.Node, always bool, in *plan.Stmt) (found *plan.Cause) {
	if p.a.contained != nil && in != p.a.loop {
		return p.unlimited(n, in)
	}
	report := func(at ast.Node, format string, args ...any) {
		if found == nil {
			found = &plan.Cause{Pos: at.Pos(), Text: fmt.Sprintf(format, args...)}
		}
	}
	same := func(list ...ast.Expr) bool {
		return always && !slices.ContainsFunc(list, func(e ast.Expr) bool { return e != nil && !p.fixed(e) })
	}
	info := p.a.f.Info
	store := func(lhs ast.Expr) {
		if ix, ok := ast.Unparen(lhs).(*ast.IndexExpr); ok && isMap(info.TypeOf(ix.X)) && !same(ix.X) {
			report(ix, "stores in %s, which may be nil", types.ExprString(ix.X))
		}
	}
	ast.Inspect(n, func(m ast.Node) bool {
		if found != nil {
			return false
		}
		switch m := m.(type) {
		case *ast.FuncLit:
			return false
		case *ast.IndexExpr:
			if t, ok := info.TypeOf(m.X).Underlying().(*types.Map); ok && syntax.MayNotCompare(t.Key()) && !same(m.Index) {
				report(m, "may look for a key in %s that can't be compared", types.ExprString(m.X))
			}
			if !p.inRange(m) && !same(m.X, m.Index) {
				report(m, "may index beyond the end of %s", types.ExprString(m.X))
			}
		case *ast.SliceExpr:
			if !same(m.X, m.Low, m.High, m.Max) {
				report(m, "may slice beyond the end of %s", types.ExprString(m.X))
			}
		case *ast.BinaryExpr:
			switch m.Op {
			case token.QUO, token.REM:
				if syntax.IsInteger(info.TypeOf(m)) && !isNonzero(info, m.Y) && !same(m.Y) {
					report(m, "may divide by zero")
				}
			case token.SHL, token.SHR:
				if info.Types[m.Y].Value == nil && !isUnsigned(info.TypeOf(m.Y)) && !same(m.Y) {
					report(m, "may shift by a negative number")
				}
			case token.EQL, token.NEQ:
				if syntax.MayNotCompare(info.TypeOf(m.X)) && syntax.MayNotCompare(info.TypeOf(m.Y)) && !same(m.X, m.Y) {
					report(m, "may compare what can't be compared")
				}
			}
		case *ast.AssignStmt:
			switch m.Tok {
			case token.QUO_ASSIGN, token.REM_ASSIGN:
				if syntax.IsInteger(info.TypeOf(m.Lhs[0])) && !isNonzero(info, m.Rhs[0]) && !same(m.Rhs[0]) {
					report(m, "may divide by zero")
				}
			case token.SHL_ASSIGN, token.SHR_ASSIGN:
				if info.Types[m.Rhs[0]].Value == nil && !isUnsigned(info.TypeOf(m.Rhs[0])) && !same(m.Rhs[0]) {
					report(m, "may shift by a negative number")
				}
			}
			p.assigns(m, always, report)
			for _, lhs := range m.Lhs {
				store(lhs)
			}
		case *ast.IncDecStmt:
			store(m.X)
		case *ast.StarExpr:
			if info.Types[m].IsValue() && !same(m.X) {
				report(m, "follows a pointer that may be nil, %s", types.ExprString(m.X))
			}
		case *ast.SelectorExpr:
			sel := info.Selections[m]
			if sel == nil || sel.Kind() != types.FieldVal {
				break
			}
			if _, ptr := info.TypeOf(m.X).Underlying().(*types.Pointer); (ptr || sel.Indirect()) && !same(m.X) {
				report(m, "follows a pointer that may be nil, %s", types.ExprString(m.X))
			}
		case *ast.TypeAssertExpr:
			if m.Type != nil && !same(m.X) {
				report(m, "asserts a type")
			}
		case *ast.CallExpr:
			for _, e := range append([]ast.Expr{m.Fun}, m.Args...) { // what is wrong first comes first
				if c := p.partial(e, always, in); c != nil {
					found = c
					return false
				}
			}
			p.call(m, always, in, report)
			return false
		}
		return found == nil
	})
	return found
}

// assigns checks that tensors which come round again keep their shapes.
func (p *past) assigns(n *ast.AssignStmt, always bool, report func(ast.Node, string, ...any)) {
	for i, lhs := range n.Lhs {
		id, ok := ast.Unparen(lhs).(*ast.Ident)
		if !ok {
			continue
		}
		v, _ := p.a.f.Info.ObjectOf(id).(*types.Var)
		if v != nil && !always && p.swaps(v, n, i) {
			report(n, "may give %s another shape in some iterations", v.Name())
			return
		}
	}
}

func isUnsigned(t types.Type) bool {
	b, ok := t.Underlying().(*types.Basic)
	return ok && b.Info()&types.IsUnsigned != 0
}

func isNonzero(info *types.Info, e ast.Expr) bool {
	v := info.Types[e].Value
	return v != nil && constant.Sign(v) != 0
}

// inRange reports whether an index can't be out of range.
func (p *past) inRange(e *ast.IndexExpr) bool {
	info := p.a.f.Info
	switch t := info.TypeOf(e.X).Underlying().(type) {
	case *types.Map, *types.Signature:
		return true
	case *types.Array:
		return info.Types[e.Index].Value != nil // else the compiler complains
	case *types.Slice, *types.Basic:
	default:
		_ = t
		return false
	}
	if !p.fixed(e.X) {
		return false
	}
	switch index := ast.Unparen(e.Index).(type) {
	case *ast.Ident:
		v := info.ObjectOf(index)
		return v != nil && p.bounded(v, e.X, e)
	case *ast.BinaryExpr: // i % len(xs), in a loop that would have failed before if that were zero
		id, ok := ast.Unparen(index.X).(*ast.Ident)
		return ok && index.Op == token.REM && isLen(info, index.Y, e.X) && p.counts(info.ObjectOf(id))
	}
	return false
}

func isMap(t types.Type) bool { _, ok := t.Underlying().(*types.Map); return ok }

// isLen reports whether e is len(x).
func isLen(info *types.Info, e, x ast.Expr) bool {
	call, ok := ast.Unparen(e).(*ast.CallExpr)
	if !ok || len(call.Args) != 1 {
		return false
	}
	id, ok := ast.Unparen(call.Fun).(*ast.Ident)
	if !ok {
		return false
	}
	_, builtin := info.Uses[id].(*types.Builtin)
	return builtin && id.Name == "len" && types.ExprString(call.Args[0]) == types.ExprString(x)
}

// bounded reports whether the loop variable v is an index of x at the place of
// the index expression at.
func (p *past) bounded(v types.Object, x ast.Expr, at *ast.IndexExpr) bool {
	if !p.counts(v) {
		return false
	}
	info := p.a.f.Info
	for _, u := range p.a.units {
		if !u.Stmt.IsLoop() {
			continue
		}
		switch n := u.Stmt.Inner().(type) {
		case *ast.RangeStmt:
			if id, ok := n.Key.(*ast.Ident); ok && info.ObjectOf(id) == v {
				return types.ExprString(n.X) == types.ExprString(x) || isLen(info, n.X, x)
			}
		case *ast.ForStmt:
			conds := p.a.keep
			if n.Cond != nil && (u.Stmt != p.a.loop || p.a.tests == nil) {
				conds = plan.Conjuncts(n.Cond)
			}
			for _, c := range conds {
				b, ok := ast.Unparen(c).(*ast.BinaryExpr)
				if !ok || b.Op != token.LSS || !isLen(info, b.Y, x) {
					continue
				}
				if id, ok := ast.Unparen(b.X).(*ast.Ident); ok && info.ObjectOf(id) == v {
					// in the condition, what comes later is bounded
					return at.Pos() < n.Cond.Pos() || c.End() <= at.Pos()
				}
			}
		}
	}
	return false
}

// counts reports whether v only ever counts up from a number that is not
// negative, in the head of a loop or by ones in all of the function.
func (p *past) counts(v types.Object) bool {
	info, ok := p.a.f.Info, false
	for _, u := range p.a.units {
		if lv, isVar := v.(*types.Var); !isVar || !writes(u.All(), lv) {
			continue
		}
		switch n := u.Stmt.Inner().(type) {
		case *ast.IncDecStmt:
			if lv := v.(*types.Var); u.Whole || !p.carried(v) || !p.a.f.CountsUp(lv) {
				return false
			}
			ok = true
		case *ast.RangeStmt:
			id, isID := n.Key.(*ast.Ident)
			_, isMap := info.TypeOf(n.X).Underlying().(*types.Map)
			_, isFunc := info.TypeOf(n.X).Underlying().(*types.Signature)
			if !isID || info.ObjectOf(id) != v || isMap || isFunc || u.Whole {
				return false
			}
			ok = true
		case *ast.ForStmt:
			init, isInit := n.Init.(*ast.AssignStmt)
			post, isPost := n.Post.(*ast.IncDecStmt)
			if !isInit || !isPost || post.Tok != token.INC || len(init.Lhs) != 1 || init.Tok != token.DEFINE || u.Whole {
				return false
			}
			value := info.Types[init.Rhs[0]].Value
			id, isID := post.X.(*ast.Ident)
			if !isID || info.ObjectOf(id) != v || info.ObjectOf(init.Lhs[0].(*ast.Ident)) != v || value == nil || constant.Sign(value) < 0 {
				return false
			}
			ok = true
		default:
			return false
		}
	}
	return ok
}
