package blocking

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"

	"github.com/asyncgen/asyncgen/analysis/internal/syntax"
	"github.com/asyncgen/asyncgen/analysis/tensorapi"
)

// A place is where a function reads something or calls a function that does. A list of places leads from a call in a
// loop to the read: each but the last is the call of the function of the next.
type place struct {
	f   *Func
	pos token.Pos
}

// IsDelayed reports whether w, a wait of c in l, is for something that an earlier iteration enqueued, and comes after
// this iteration has enqueued work of its own. Loops should read like this: the device has work while the host waits.
//
//	for _, b := range batches {
//		loss := step(b)
//		if last != nil {
//			total += last.Item() // delayed by one iteration
//		}
//		last = loss
//	}
//
// The read may be in a function that c calls.
func (pkg *Package) IsDelayed(c *Call, w CallWait, l *Loop) bool {
	if l.Func != c.In || l.Handed {
		return false
	}
	return isDelayed(pkg, c, w, nil, l) || w.Operand != nil && isFarBehind(pkg, w.Operand, l, 0) && isOld(pkg, w.Operand, []place{{c.In, c.Expr.Pos()}}, l, 0)
}

// isDelayed is IsDelayed for a call c at the end of the calls that to leads to from l.
func isDelayed(pkg *Package, c *Call, w CallWait, to []place, l *Loop) bool {
	at := append(slices.Clone(to), place{c.In, c.Expr.Pos()})
	if w.Operand != nil && isOld(pkg, w.Operand, at, l, 0) || w.Via != nil && c.Callee == nil && isOld(pkg, c.Expr.Fun, at, l, 0) {
		return keepsBusy(pkg, at, l)
	}
	if w.Via == nil || w.Arg != nil || w.Operand != nil && w.Via.Operand != tensorapi.Recv || c.Target == nil || len(at) > maxChain {
		return false
	}
	late := false
	for _, d := range c.Target.Calls {
		for _, v := range pkg.Waits(d) {
			if v.Operand != nil {
				if o := pkg.OriginOf(v.Operand, d.In); !o.Pending && !o.From.Has(tensorapi.Recv) {
					continue
				}
			}
			if d.Away || !isDelayed(pkg, d, v, at, l) {
				return false
			}
			late = true
		}
	}
	return late
}

// OfLastCall reports whether e, at pos in f, is what a call of f has left for the next one: f, which is given tensors
// in each step, sets it only after pos. It was computed a step ago, and the device has had the work of this step since.
//
//	func (g *guard) AfterStep(s Step) {
//		if g.last != nil && g.last.Item() > limit {
//			g.alarm()
//		}
//		g.last = s.Loss
//	}
func (pkg *Package) OfLastCall(e ast.Expr, f *Func, pos token.Pos) bool {
	return takesTensors(pkg, f) && isOld(pkg, e, []place{{f, pos}}, f.WholeLoop(), 0)
}

// takesTensors reports whether a function has a parameter that holds tensors.
func takesTensors(pkg *Package, f *Func) bool {
	for v := range f.Sig.Params().Variables() {
		if pkg.HoldsTensors(v.Type()) {
			return true
		}
	}
	return false
}

// isFarBehind reports whether e is an element of a list that also holds the tensors of later iterations: ring[i%n],
// losses[i-8]. The device has their work, even if this iteration has not enqueued any yet.
func isFarBehind(pkg *Package, e ast.Expr, l *Loop, depth int) bool {
	if depth > 4 {
		return false
	}
	switch e := ast.Unparen(e).(type) {
	case *ast.SelectorExpr:
		return isFarBehind(pkg, e.X, l, depth+1)
	case *ast.StarExpr:
		d := pkg.Defs[pkg.Local(e.X)] // the first says where it points to
		return len(d) > 0 && d[0].Kind == DefValue && isFarBehind(pkg, d[0].Value, l, depth+1)
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
		return len(d) == 1 && d[0].Kind == DefValue && isFarBehind(pkg, d[0].Value, l, depth+1)
	}
	return false
}

// keepsBusy reports whether each iteration of l enqueues work before it comes to the last of the places at: in l, or in
// one of the functions on the way.
func keepsBusy(pkg *Package, at []place, l *Loop) bool {
	for i, p := range at {
		fl := p.f.Flow()
		here := fl.BlockAt(p.pos)
		if i == 0 && l.Blocks == nil && takesTensors(pkg, p.f) || slices.ContainsFunc(p.f.Calls, func(d *Call) bool {
			b := fl.BlockAt(d.Expr.Pos())
			return b >= 0 && (i > 0 || pkg.Contains(l, p.f, d.Expr.Pos())) && isBefore(pkg, d, p) && d.Enqueues() && fl.Dominates(b, here) &&
				len(pkg.ShortCircuits(d.Expr.Pos())) == 0
		}) {
			return true
		}
	}
	return false
}

// isBefore reports whether d stands before the call at p, or among its arguments.
func isBefore(pkg *Package, d *Call, p place) bool {
	if d.Expr.End() < p.pos {
		return true
	}
	cur, ok := pkg.Cursor(p.pos)
	if !ok || d.Expr.Pos() <= p.pos {
		return false
	}
	for c := range cur.Enclosing((*ast.CallExpr)(nil)) {
		if n := c.Node().(*ast.CallExpr); n.Pos() == p.pos && n.Rparen != d.Expr.Rparen && d.Expr.End() <= n.End() {
			return true
		}
	}
	return false
}

// isOld reports whether e, at the last of the places at, was computed in an earlier iteration of l: it is a variable or
// a field that the iteration assigns only later, or the far end of a queue.
func isOld(pkg *Package, e ast.Expr, at []place, l *Loop, depth int) bool {
	if depth > 4 {
		return false
	}
	here := at[len(at)-1]
	switch e := ast.Unparen(e).(type) {
	case *ast.SelectorExpr:
		return assignedLater(pkg, pkg.Variable(e), at, l) || isOld(pkg, e.X, at, l, depth+1)
	case *ast.StarExpr:
		return isFarBehind(pkg, e, l, 0) && pkg.Local(e.X) != nil && setLater(pkg, here.f, pkg.Local(e.X), here.pos)
	case *ast.IndexExpr:
		v := pkg.Variable(e.X)
		return assignedLater(pkg, v, at, l) || v != nil && isFarEnd(pkg, v, e, here, l)
	case *ast.Ident:
		v := pkg.Variable(e)
		if assignedLater(pkg, v, at, l) {
			return true
		}
		d := pkg.Defs[v]
		if len(d) != 1 || d[0].Kind != DefValue || d[0].In != here.f || len(at) == 1 && !pkg.Contains(l, here.f, d[0].Pos) {
			return false
		}
		return isOld(pkg, d[0].Value, append(slices.Clone(at[:len(at)-1]), place{here.f, d[0].Pos}), l, depth+1)
	}
	return false
}

// setLater reports whether f sets what p points to after pos, and not before.
//
//	slot := &ring[i%n]
//	total += (*slot).Item()
//	*slot = step(b)
func setLater(pkg *Package, f *Func, p *types.Var, pos token.Pos) bool {
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

// assignedLater reports whether an iteration of l assigns v only after the last of the places at: at places in their
// functions, or in functions called there, from which control doesn't reach it any more. Variables of the functions on
// the way are new in each call.
func assignedLater(pkg *Package, v *types.Var, at []place, l *Loop) bool {
	if v == nil {
		return false
	}
	for i, p := range at {
		if n := p.f.Cur.Node(); (i > 0 || l.Blocks == nil) && n.Pos() <= v.Pos() && v.Pos() < n.End() {
			return false
		}
	}
	assigned := false
	for _, d := range pkg.Defs[v] {
		if d.In == nil {
			continue
		}
		known, leaves := false, d.Value == nil || !syntax.IsNil(pkg.Info, d.Value)
		for i, p := range at {
			if d.In == p.f {
				known = true
				if i == 0 && !pkg.Contains(l, d.In, d.Pos) {
					continue
				}
				if reaches(p, d.Pos, i, l) {
					return false
				}
				assigned = assigned || leaves
				continue
			}
			for _, c := range p.f.Calls {
				if c.Expr.Pos() == p.pos || c.Target == nil || i == 0 && !pkg.Contains(l, p.f, c.Expr.Pos()) || !c.Target.LeadsTo(d.In.Owner()) {
					continue
				}
				if reaches(p, c.Expr.Pos(), i, l) {
					return false
				}
				known, assigned = true, assigned || leaves
			}
		}
		if !known && pkg.Contains(l, d.In, d.Pos) {
			return false
		}
	}
	return assigned
}

// reaches reports whether control gets from pos to p, place number i on the way from l, in the same function and
// iteration.
func reaches(p place, pos token.Pos, i int, l *Loop) bool {
	fl := p.f.Flow()
	here, there := fl.BlockAt(p.pos), fl.BlockAt(pos)
	head := func(b int32) bool { return i == 0 && l.Blocks != nil && b == l.Head }
	switch {
	case there < 0:
		return true
	case there == here:
		return pos < p.pos
	}
	return !head(here) && fl.Reaches(there, here, head)
}

// isFarEnd reports whether e is an element of the list v that was put there some iterations ago:
// losses[i-8], or queue[0] under a condition on the length of the queue.
func isFarEnd(pkg *Package, v *types.Var, e *ast.IndexExpr, at place, l *Loop) bool {
	if b, ok := ast.Unparen(e.Index).(*ast.BinaryExpr); ok && b.Op == token.SUB && pkg.Counts(b.X, l) {
		return true
	}
	if pkg.Info.Types[e.Index].Value == nil {
		return false
	}
	cur, ok := pkg.Cursor(at.pos)
	if !ok {
		return false
	}
	for c := range cur.Enclosing((*ast.ForStmt)(nil)) {
		if n := c.Node().(*ast.ForStmt); n != l.Stmt && n.Cond != nil && pkg.Contains(l, at.f, n.Cond.Pos()) && asksLength(pkg, n.Cond, v) {
			return true
		}
	}
	fl := at.f.Flow()
	return slices.ContainsFunc(fl.Conditions(fl.BlockAt(at.pos)), func(c Condition) bool {
		return c.Block >= 0 && (l.Blocks == nil || at.f != l.Func || l.Blocks[c.Block]) && asksLength(pkg, c.Expr, v)
	})
}

// asksLength reports whether a condition compares the length of v with more than 0.
func asksLength(pkg *Package, cond ast.Expr, v *types.Var) bool {
	b, ok := ast.Unparen(syntax.OrNil(cond)).(*ast.BinaryExpr)
	if !ok {
		return false
	}
	call := syntax.AsCall(b.X)
	if call == nil || len(call.Args) != 1 || !pkg.Info.Types[call.Fun].IsBuiltin() || pkg.Variable(call.Args[0]) != v {
		return false
	}
	n, constant := syntax.IntConst(pkg.Info, b.Y)
	return !constant || n > 0
}
