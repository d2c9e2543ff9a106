package blocking

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
)

// isDelayed reports whether an iteration of l that waits for e, in c, waits
// for what an earlier iteration enqueued, after it has enqueued work of its
// own. That is what loops that read should look like: the device has work
// while the host waits.
func (a *analyzer) isDelayed(c *Call, e ast.Expr, l *Loop) bool {
	if e == nil || l.fn != c.in || l.blocks == nil {
		return false
	}
	return a.isOld(c.in, e, c.Expr.Pos(), l, 0) && (a.keepsBusy(c, l) || a.isFarBehind(e, l, 0))
}

// isFarBehind reports whether e is an element of a list in which those of the
// iterations since are, too: ring[i%n], losses[i-8]. The device has their work
// when the iteration has not enqueued any yet.
func (a *analyzer) isFarBehind(e ast.Expr, l *Loop, depth int) bool {
	if depth > 4 {
		return false
	}
	switch e := ast.Unparen(e).(type) {
	case *ast.SelectorExpr:
		return a.isFarBehind(e.X, l, depth+1)
	case *ast.IndexExpr:
		b, ok := ast.Unparen(e.Index).(*ast.BinaryExpr)
		if !ok || !a.counts(b.X, l) {
			return false
		}
		n, constant := intConst(a.info, b.Y)
		return (b.Op == token.REM || b.Op == token.SUB) && (!constant || n > 1) || b.Op == token.AND && constant && n > 0
	case *ast.Ident:
		d := a.defs[a.local(e)]
		return len(d) == 1 && d[0].kind == defValue && a.isFarBehind(d[0].value, l, depth+1)
	}
	return false
}

// keepsBusy reports whether each iteration of l enqueues work before it comes
// to c.
func (a *analyzer) keepsBusy(c *Call, l *Loop) bool {
	fl := c.in.flow()
	here := fl.blockAt(c.Expr.Pos())
	return slices.ContainsFunc(c.in.calls, func(d *Call) bool {
		b := fl.blockAt(d.Expr.Pos())
		return d != c && b >= 0 && l.blocks[b] && d.Expr.End() < c.Expr.Pos() && d.enqueues() && fl.dominates(b, here) &&
			len(a.shortCircuits(d.Expr.Pos())) == 0
	})
}

// isOld reports whether e, evaluated at pos in l, was computed in an earlier
// iteration: a variable that the iteration assigns later, or the far end of a
// queue.
func (a *analyzer) isOld(f *Func, e ast.Expr, pos token.Pos, l *Loop, depth int) bool {
	if depth > 4 {
		return false
	}
	switch e := ast.Unparen(e).(type) {
	case *ast.SelectorExpr:
		return a.isOld(f, e.X, pos, l, depth+1)
	case *ast.IndexExpr:
		v := a.local(e.X)
		return v != nil && (a.assignedLater(f, v, pos, l) || a.isFarEnd(f, v, e, pos, l))
	case *ast.Ident:
		v := a.local(e)
		if v == nil {
			return false
		}
		if a.assignedLater(f, v, pos, l) {
			return true
		}
		d := a.defs[v]
		return len(d) == 1 && d[0].kind == defValue && d[0].in == f && a.in(l, f, d[0].pos) && a.isOld(f, d[0].value, d[0].pos, l, depth+1)
	}
	return false
}

// local returns the local variable that e names, or nil.
func (a *analyzer) local(e ast.Expr) *types.Var {
	id, ok := ast.Unparen(e).(*ast.Ident)
	if !ok {
		return nil
	}
	v, ok := a.info.Uses[id].(*types.Var)
	if !ok || v.IsField() || v.Parent() == a.pass.Pkg.Scope() {
		return nil
	}
	return v
}

// assignedLater reports whether l assigns v, and only where an iteration does
// not come to pos any more.
func (a *analyzer) assignedLater(f *Func, v *types.Var, pos token.Pos, l *Loop) bool {
	fl := f.flow()
	here := fl.blockAt(pos)
	assigned := false
	for _, d := range a.defs[v] {
		if !a.in(l, d.in, d.pos) {
			continue
		}
		there := fl.blockAt(d.pos)
		switch {
		case d.in != f, there < 0:
			return false
		case there == here:
			if d.pos < pos {
				return false
			}
		case here != l.head && fl.reaches(there, here, func(b int32) bool { return b == l.head }):
			return false
		}
		assigned = true
	}
	return assigned
}

// isFarEnd reports whether an element of the slice or map v is one that was
// put there some iterations ago: losses[i-8], or queue[0] where the length of
// the queue is asked for first.
func (a *analyzer) isFarEnd(f *Func, v *types.Var, e *ast.IndexExpr, pos token.Pos, l *Loop) bool {
	if b, ok := ast.Unparen(e.Index).(*ast.BinaryExpr); ok && b.Op == token.SUB && a.counts(b.X, l) {
		return true
	}
	if a.info.Types[e.Index].Value == nil {
		return false
	}
	cur, ok := a.res.Cursor(pos)
	if !ok {
		return false
	}
	for c := range cur.Enclosing((*ast.ForStmt)(nil)) {
		if n := c.Node().(*ast.ForStmt); n != l.Stmt && n.Cond != nil && a.in(l, f, n.Cond.Pos()) && a.asksLength(n.Cond, v) {
			return true
		}
	}
	fl := f.flow()
	return slices.ContainsFunc(fl.conditions(fl.blockAt(pos)), func(c condition) bool {
		return c.block >= 0 && l.blocks[c.block] && a.asksLength(c.expr, v)
	})
}

// asksLength reports whether a condition compares the length of v with more
// than nothing.
func (a *analyzer) asksLength(cond ast.Expr, v *types.Var) bool {
	b, ok := ast.Unparen(orNil(cond)).(*ast.BinaryExpr)
	if !ok {
		return false
	}
	call := asCall(b.X)
	if call == nil || len(call.Args) != 1 || !a.info.Types[call.Fun].IsBuiltin() || a.local(call.Args[0]) != v {
		return false
	}
	n, constant := intConst(a.info, b.Y)
	return !constant || n > 0
}
