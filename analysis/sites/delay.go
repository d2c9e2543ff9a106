package sites

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"

	"github.com/asyncgen/asyncgen/analysis/blocking"
	"github.com/asyncgen/asyncgen/analysis/internal/syntax"
)

// isDelayed reports whether c, in l, waits for something that an earlier iteration enqueued, and comes
// after this iteration has enqueued work of its own. Loops should read like this: the device has work
// while the host waits.
//
//	for _, b := range batches {
//		loss := step(b)
//		if last != nil {
//			total += last.Item() // delayed by one iteration
//		}
//		last = loss
//	}
func isDelayed(pkg *blocking.Package, c *blocking.Call, e ast.Expr, l *blocking.Loop) bool {
	if e == nil || l.Func != c.In || l.Blocks == nil {
		return false
	}
	return isOld(pkg, c.In, e, c.Expr.Pos(), l, 0) && (keepsBusy(pkg, c, l) || isFarBehind(pkg, e, l, 0))
}

// isOfLastCall reports whether e is a field that the function around c, which is called in each step and given its
// tensors, sets only after c: it was computed a step ago, and the device has had the work of this step since.
//
//	func (g *guard) AfterStep(s Step) {
//		if g.last != nil && g.last.Item() > limit {
//			g.alarm()
//		}
//		g.last = s.Loss
//	}
func isOfLastCall(pkg *blocking.Package, c *blocking.Call, e ast.Expr) bool {
	field, ok := ast.Unparen(e).(*ast.SelectorExpr)
	if !ok || pkg.Local(field.X) == nil || pkg.Variable(field) == nil || !takesTensors(pkg, c.In) {
		return false
	}
	later := false
	for cur := range c.In.Cur.Preorder((*ast.AssignStmt)(nil)) {
		for _, lhs := range cur.Node().(*ast.AssignStmt).Lhs {
			set, ok := ast.Unparen(lhs).(*ast.SelectorExpr)
			if !ok || pkg.Variable(set) != pkg.Variable(field) {
				continue
			}
			if pkg.Local(set.X) != pkg.Local(field.X) || lhs.Pos() < c.Expr.Pos() {
				return false
			}
			later = true
		}
	}
	return later
}

// takesTensors reports whether a function has a parameter that holds tensors.
func takesTensors(pkg *blocking.Package, f *blocking.Func) bool {
	for v, p := range pkg.Params {
		if p.Of == f && pkg.HoldsTensors(v.Type()) {
			return true
		}
	}
	return false
}

// isFarBehind reports whether e is an element of a list that also holds the tensors of later iterations: ring[i%n],
// losses[i-8]. The device has their work, even if this iteration has not enqueued any yet.
func isFarBehind(pkg *blocking.Package, e ast.Expr, l *blocking.Loop, depth int) bool {
	if depth > 4 {
		return false
	}
	switch e := ast.Unparen(e).(type) {
	case *ast.SelectorExpr:
		return isFarBehind(pkg, e.X, l, depth+1)
	case *ast.StarExpr:
		d := pkg.Defs[pkg.Local(e.X)] // the first says where it points to
		return len(d) > 0 && d[0].Kind == blocking.DefValue && isFarBehind(pkg, d[0].Value, l, depth+1)
	case *ast.UnaryExpr:
		return e.Op == token.AND && isFarBehind(pkg, e.X, l, depth+1)
	case *ast.IndexExpr:
		b, ok := ast.Unparen(e.Index).(*ast.BinaryExpr)
		if !ok || !pkg.Counts(b.X, l) {
			return false
		}
		n, constant := syntax.IntConst(pkg.Info, b.Y)
		return (b.Op == token.REM || b.Op == token.SUB) && (!constant || n > 1) || b.Op == token.AND && constant && n > 0
	case *ast.Ident:
		d := pkg.Defs[pkg.Local(e)]
		return len(d) == 1 && d[0].Kind == blocking.DefValue && isFarBehind(pkg, d[0].Value, l, depth+1)
	}
	return false
}

// keepsBusy reports whether each iteration of l enqueues work before it comes to c.
func keepsBusy(pkg *blocking.Package, c *blocking.Call, l *blocking.Loop) bool {
	fl := c.In.Flow()
	here := fl.BlockAt(c.Expr.Pos())
	return slices.ContainsFunc(c.In.Calls, func(d *blocking.Call) bool {
		b := fl.BlockAt(d.Expr.Pos())
		return d != c && b >= 0 && l.Blocks[b] && d.Expr.End() < c.Expr.Pos() && d.Enqueues() && fl.Dominates(b, here) &&
			len(pkg.ShortCircuits(d.Expr.Pos())) == 0
	})
}

// isOld reports whether e, at pos in l, was computed in an earlier iteration: it is a variable that the
// iteration assigns only later, or the far end of a queue.
func isOld(pkg *blocking.Package, f *blocking.Func, e ast.Expr, pos token.Pos, l *blocking.Loop, depth int) bool {
	if depth > 4 {
		return false
	}
	switch e := ast.Unparen(e).(type) {
	case *ast.SelectorExpr:
		return isOld(pkg, f, e.X, pos, l, depth+1)
	case *ast.StarExpr:
		return isFarBehind(pkg, e, l, 0) && pkg.Local(e.X) != nil && setLater(pkg, f, pkg.Local(e.X), pos)
	case *ast.IndexExpr:
		v := pkg.Local(e.X)
		return v != nil && (assignedLater(pkg, f, v, pos, l) || isFarEnd(pkg, f, v, e, pos, l))
	case *ast.Ident:
		v := pkg.Local(e)
		if v == nil {
			return false
		}
		if assignedLater(pkg, f, v, pos, l) {
			return true
		}
		d := pkg.Defs[v]
		return len(d) == 1 && d[0].Kind == blocking.DefValue && d[0].In == f && pkg.Contains(l, f, d[0].Pos) && isOld(pkg, f, d[0].Value, d[0].Pos, l, depth+1)
	}
	return false
}

// setLater reports whether f sets what p points to after pos, and not before.
//
//	slot := &ring[i%n]
//	total += (*slot).Item()
//	*slot = step(b)
func setLater(pkg *blocking.Package, f *blocking.Func, p *types.Var, pos token.Pos) bool {
	later := false
	for cur := range f.Cur.Preorder((*ast.AssignStmt)(nil)) {
		for _, lhs := range cur.Node().(*ast.AssignStmt).Lhs {
			if star, ok := ast.Unparen(lhs).(*ast.StarExpr); ok && pkg.Local(star.X) == p {
				if lhs.Pos() < pos {
					return false
				}
				later = true
			}
		}
	}
	return later
}

// assignedLater reports whether l assigns v only at places from which the same iteration doesn't reach
// pos any more.
func assignedLater(pkg *blocking.Package, f *blocking.Func, v *types.Var, pos token.Pos, l *blocking.Loop) bool {
	fl := f.Flow()
	here := fl.BlockAt(pos)
	assigned := false
	for _, d := range pkg.Defs[v] {
		if !pkg.Contains(l, d.In, d.Pos) {
			continue
		}
		there := fl.BlockAt(d.Pos)
		switch {
		case d.In != f, there < 0:
			return false
		case there == here:
			if d.Pos < pos {
				return false
			}
		case here != l.Head && fl.Reaches(there, here, func(b int32) bool { return b == l.Head }):
			return false
		}
		assigned = true
	}
	return assigned
}

// isFarEnd reports whether e is an element of the list v that was put there some iterations ago:
// losses[i-8], or queue[0] under a condition on the length of the queue.
func isFarEnd(pkg *blocking.Package, f *blocking.Func, v *types.Var, e *ast.IndexExpr, pos token.Pos, l *blocking.Loop) bool {
	if b, ok := ast.Unparen(e.Index).(*ast.BinaryExpr); ok && b.Op == token.SUB && pkg.Counts(b.X, l) {
		return true
	}
	if pkg.Info.Types[e.Index].Value == nil {
		return false
	}
	cur, ok := pkg.Cursor(pos)
	if !ok {
		return false
	}
	for c := range cur.Enclosing((*ast.ForStmt)(nil)) {
		if n := c.Node().(*ast.ForStmt); n != l.Stmt && n.Cond != nil && pkg.Contains(l, f, n.Cond.Pos()) && asksLength(pkg, n.Cond, v) {
			return true
		}
	}
	fl := f.Flow()
	return slices.ContainsFunc(fl.Conditions(fl.BlockAt(pos)), func(c blocking.Condition) bool {
		return c.Block >= 0 && l.Blocks[c.Block] && asksLength(pkg, c.Expr, v)
	})
}

// asksLength reports whether a condition compares the length of v with more than 0.
func asksLength(pkg *blocking.Package, cond ast.Expr, v *types.Var) bool {
	b, ok := ast.Unparen(syntax.OrNil(cond)).(*ast.BinaryExpr)
	if !ok {
		return false
	}
	call := syntax.AsCall(b.X)
	if call == nil || len(call.Args) != 1 || !pkg.Info.Types[call.Fun].IsBuiltin() || pkg.Local(call.Args[0]) != v {
		return false
	}
	n, constant := syntax.IntConst(pkg.Info, b.Y)
	return !constant || n > 0
}
