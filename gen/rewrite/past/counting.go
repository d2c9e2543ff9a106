package past

import (
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"maps"
	"slices"

	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"github.com/asyncgen/asyncgen/gen/internal/plan"
)

// counting finds out which variables count, so that they are in the range of what they index, and loops come to an end.
type counting struct{ *known }

// counts reports whether v only ever counts up from a number that is not
// negative, in the head of a loop or by ones in all of the function.
func (p *counting) counts(v types.Object) bool {
	info, ok := p.f.Info, false
	for _, u := range p.Units {
		if lv, isVar := v.(*types.Var); !isVar || !u.All().Sets(lv) {
			continue
		}
		switch n := u.Stmt.Inner().(type) {
		case *ast.IncDecStmt:
			if lv := v.(*types.Var); u.Whole || !p.carried(v) || !p.f.CountsUp(lv) {
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

// bounded reports whether the loop variable v is an index of x at the place of
// the index expression at.
func (p *counting) bounded(v types.Object, x ast.Expr, at *ast.IndexExpr) bool {
	if !p.counts(v) {
		return false
	}
	info := p.f.Info
	for _, u := range p.Units {
		if !u.Stmt.IsLoop() {
			continue
		}
		switch n := u.Stmt.Inner().(type) {
		case *ast.RangeStmt:
			if id, ok := n.Key.(*ast.Ident); ok && info.ObjectOf(id) == v {
				return types.ExprString(n.X) == types.ExprString(x) || isLen(info, n.X, x)
			}
		case *ast.ForStmt:
			for _, c := range u.Stmt.Condition() {
				b, ok := ast.Unparen(c).(*ast.BinaryExpr)
				if !ok || b.Op != token.LSS || !isLen(info, b.Y, x) {
					continue
				}
				if id, ok := ast.Unparen(b.X).(*ast.Ident); ok && info.ObjectOf(id) == v {
					// in the condition, what comes later is bounded
					return c.End() <= at.Pos() && at.Pos() < n.Body.End() && !p.counted(v, n, at)
				}
			}
		}
	}
	return false
}

// counted reports whether v may have been counted up in the body of n, a loop, before it is used at the given place.
func (p *counting) counted(v types.Object, n *ast.ForStmt, at ast.Node) bool {
	return slices.ContainsFunc(p.Units, func(u *plan.Unit) bool {
		if u.Stmt.Inner() == n || !u.All().Sets(v.(*types.Var)) || u.Stmt.Node.Pos() < n.Body.Pos() || n.Body.End() <= u.Stmt.Node.Pos() {
			return false
		}
		for l := u.Stmt.Loop(); l != nil && l.Inner() != n; l = l.Loop() {
			if l.Node.Pos() <= at.Pos() && at.Pos() < l.Node.End() {
				return true
			}
		}
		return u.Stmt.Node.Pos() < at.Pos()
	})
}

// inRange reports whether an index can't be out of range.
func (p *counting) inRange(e *ast.IndexExpr) bool {
	info := p.f.Info
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

// rowOf reports whether call, x.Row(i), asks a tensor that stays the same for a row in a loop that i numbers them in.
func (p *counting) rowOf(call *ast.CallExpr) bool {
	sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr)
	if !ok || len(call.Args) != 1 || !p.fixed(sel.X) {
		return false
	}
	id, ok := ast.Unparen(call.Args[0]).(*ast.Ident)
	if !ok || !p.counts(p.f.Info.ObjectOf(id)) {
		return false
	}
	rows := types.ExprString(sel.X) + ".Dim(0)"
	for _, u := range p.Units {
		if !call.Pos().IsValid() || call.Pos() < u.Stmt.Node.Pos() || u.Stmt.Node.End() <= call.Pos() {
			continue
		}
		switch n := u.Stmt.Inner().(type) {
		case *ast.RangeStmt:
			if key, ok := n.Key.(*ast.Ident); ok && p.f.Info.ObjectOf(key) == p.f.Info.ObjectOf(id) {
				return types.ExprString(n.X) == rows
			}
		case *ast.ForStmt:
			b, ok := ast.Unparen(n.Cond).(*ast.BinaryExpr)
			if !ok || b.Op != token.LSS || n.Body.Pos() > call.Pos() {
				continue
			}
			if x, ok := ast.Unparen(b.X).(*ast.Ident); ok && p.f.Info.ObjectOf(x) == p.f.Info.ObjectOf(id) {
				return types.ExprString(b.Y) == rows
			}
		}
	}
	return false
}

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

// fromElement reports whether e is an element of something fixed, or a part of one: xs[i], or what the loop ranges
// over, or a variable that is set to one.
func (p *counting) fromElement(e ast.Expr, root *types.Var) bool {
	if ix, ok := elementOf(e); ok {
		return p.fixed(ix.X) && p.inRange(ix) && p.ofHead(ix.Index)
	}
	sets := 0
	from := false
	for _, u := range p.Units {
		if !u.All().Sets(root) {
			continue
		}
		sets++
		switch n := u.Stmt.Inner().(type) {
		case *ast.RangeStmt: // over whatever: what it gives is compared
			isOf := func(e ast.Expr) bool {
				id, ok := e.(*ast.Ident)
				return ok && p.f.Info.ObjectOf(id) == root
			}
			from = u.Stmt == p.Stmt && n.Tok == token.DEFINE && (isOf(n.Value) || isOf(n.Key))
		case *ast.AssignStmt:
			if u.Stmt.Parent != p.Stmt || n.Tok != token.DEFINE || len(n.Lhs) != 1 || len(n.Rhs) != 1 {
				return false
			}
			ix, ok := elementOf(n.Rhs[0])
			from = ok && p.fixed(ix.X) && p.inRange(ix)
		}
	}
	return sets == 1 && from
}

// isElement reports whether e is an element of something from outside that the loop does not change, or a part of one.
func (p *counting) isElement(e ast.Expr) bool {
	if id, ok := ast.Unparen(e).(*ast.Ident); ok {
		v, ok := p.f.Info.ObjectOf(id).(*types.Var)
		return ok && p.fromElement(id, v)
	}
	ix, ok := elementOf(e)
	return ok && p.fixed(ix.X)
}

// ofHead reports whether e uses no variables but those of the head of the loop
// and those from before.
func (p *counting) ofHead(e ast.Expr) bool {
	body, inside := p.Stmt.Bodies[0], false
	if len(body) == 0 {
		return true
	}
	ast.Inspect(e, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			if v, ok := p.f.Info.ObjectOf(id).(*types.Var); ok {
				first := body[0]
				if first.IsTest && len(body) > 1 {
					first = body[1]
				}
				inside = inside || first.Node.Pos() <= v.Pos() && v.Pos() < p.Stmt.Node.End()
			}
		}
		return !inside
	})
	return !inside
}

// ranges reports whether v is only given values by loops in the loop that range over what does not change: so
// that fields of v are those of the same elements in each iteration.
func (p *counting) ranges(v *types.Var) bool {
	found := false
	for _, u := range p.Units {
		if !u.All().Sets(v) {
			continue
		}
		n, ok := u.Stmt.Inner().(*ast.RangeStmt)
		if !ok || u.Stmt == p.Stmt || !p.fixed(n.X) {
			return false
		}
		found = true
	}
	return found && !p.carried(v)
}

// isOther reports whether a call of a method may be of another receiver each time: of none that the loop leaves alone,
// and of none that an inner loop gets out of a slice that it leaves alone.
func (p *counting) isOther(call *ast.CallExpr) bool {
	f := p.f
	sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr)
	if !ok || f.Info.Selections[sel] == nil || p.fixed(sel.X) {
		return false
	}
	if t := f.Info.TypeOf(sel.X); f.Analysis.API.IsTensor(t) || tensorapi.IsNumber(t) {
		return false
	}
	id, ok := sel.X.(*ast.Ident)
	if !ok {
		return true
	}
	for s := range p.Stmt.All {
		n, ok := s.Inner().(*ast.RangeStmt)
		if ok && s != p.Stmt && n.Tok == token.DEFINE && n.Value != nil && f.Info.Defs[n.Value.(*ast.Ident)] == f.Info.ObjectOf(id) {
			return !p.fixed(n.X) || slices.ContainsFunc(slices.Collect(maps.Keys(p.changed.Writes)), func(l plan.Loc) bool { return l.Kind == plan.Elem })
		}
	}
	return true
}

// endless returns that an inner loop may not come to an end, or nil.
func (p *counting) endless(u *plan.Unit) *plan.Cause {
	n, ok := u.Stmt.Inner().(*ast.ForStmt)
	if !ok || u.Stmt == p.Stmt || p.tests(u.Stmt) {
		return nil
	}
	cond, ok := ast.Unparen(n.Cond).(*ast.BinaryExpr)
	id, isUp := p.counter(n.Post)
	if n.Cond != nil && ok && id != nil {
		counter := p.f.Info.ObjectOf(id)
		x, isID := ast.Unparen(cond.X).(*ast.Ident)
		up := isUp && (cond.Op == token.LSS || cond.Op == token.LEQ)
		down := !isUp && (cond.Op == token.GTR || cond.Op == token.GEQ)
		if isID && p.f.Info.ObjectOf(x) == counter && (up || down) && p.changedOnlyBy(counter, n) && !p.f.Mentions(cond.Y, changedIn(p.Units, u.Stmt)) {
			return nil
		}
	}
	return &plan.Cause{Pos: n.Pos(), Text: "may go on for ever"}
}

// counter returns the variable that the post statement of a loop counts up or down, or nil. By more than 1 it is an int
// or int64, which does not come near to its end in the time that there is.
func (p *counting) counter(post ast.Stmt) (id *ast.Ident, isUp bool) {
	switch n := post.(type) {
	case *ast.IncDecStmt:
		id, _ = n.X.(*ast.Ident)
		return id, n.Tok == token.INC
	case *ast.AssignStmt:
		if n.Tok != token.ADD_ASSIGN && n.Tok != token.SUB_ASSIGN {
			return nil, false
		}
		step := p.f.Info.Types[n.Rhs[0]].Value
		if step == nil || step.Kind() != constant.Int || constant.Sign(step) <= 0 || constant.BitLen(step) > 31 {
			return nil, false
		}
		id, ok := n.Lhs[0].(*ast.Ident)
		if !ok {
			return nil, false
		}
		b, ok := p.f.Info.TypeOf(id).Underlying().(*types.Basic)
		if !ok || b.Kind() != types.Int && b.Kind() != types.Int64 {
			return nil, false
		}
		return id, n.Tok == token.ADD_ASSIGN
	}
	return nil, false
}

// changedOnlyBy reports whether nothing in the body of n changes v.
func (p *counting) changedOnlyBy(v types.Object, n *ast.ForStmt) bool {
	for _, u := range p.Units {
		if n.Body.Pos() <= u.Stmt.Node.Pos() && u.Stmt.Node.Pos() < n.Body.End() && u.Effects.Sets(v.(*types.Var)) {
			return false
		}
	}
	return true
}
