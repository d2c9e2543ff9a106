package rewrite

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"

	"github.com/asyncgen/asyncgen/gen/internal/plan"
)

// gains reports whether a wait goes away: whether a read is put off in a loop in which nothing else
// makes every iteration wait for what has been queued, or for the tensor that is read. A statement that waits for other
// tensors than that, as a call of a function that trains does, is one wait; the read would be another.
func (a *attempt) gains() bool {
	for _, u := range a.units {
		if !a.late[u] || len(u.Reads) == 0 {
			continue
		}
		loop := u.Stmt.Loop()
		if u.Stmt == a.loop || slices.ContainsFunc(u.Reads, func(r *plan.Read) bool {
			return !slices.ContainsFunc(a.units, func(w *plan.Unit) bool {
				return a.spoils(w, loop) && (a.stays(w) || w.Stmt.Node.Pos() < u.Stmt.Node.Pos() && waitsFor(w, r))
			})
		}) {
			return true
		}
	}
	return false
}

// waitsFor reports whether u itself waits for the tensor of r.
func waitsFor(u *plan.Unit, r *plan.Read) bool {
	if r.Plain == nil || u.Effects.Waits == nil || u.Effects.Waits.Code == plan.WaitsInside {
		return false
	}
	_, uses := u.Effects.Reads[plan.Loc{Kind: plan.Var, Obj: r.Plain}]
	return uses
}

// spoils reports whether u makes every iteration of loop wait.
func (a *attempt) spoils(u *plan.Unit, loop *plan.Stmt) bool {
	if !u.Stmt.Within(loop) || a.exits(u.Stmt) {
		return false
	}
	if !a.stays(u) && u.Effects.Waits == nil {
		return false
	}
	return !isConditional(u.Stmt, loop)
}

// isConditional reports whether s runs only under a condition in an iteration of loop.
func isConditional(s, loop *plan.Stmt) bool {
	for s = s.Parent; s != nil && s != loop; s = s.Parent {
		switch s.Inner().(type) {
		case *ast.IfStmt, *ast.SwitchStmt, *ast.TypeSwitchStmt, *ast.SelectStmt:
			return true
		}
	}
	return false
}

// gather makes whole what reads better, or runs better, as one entry: a loop
// on the host, a condition beside statements that need the same values.
func (a *attempt) gather() {
	for again := true; again; {
		again = false
		var visit func(s *plan.Stmt)
		visit = func(s *plan.Stmt) {
			for _, body := range s.Bodies {
				for i, c := range body {
					if again {
						return
					}
					if !c.IsCompound() || a.whole[c] {
						continue
					}
					if a.gathers(c, body[:i]) {
						a.whole[c] = true
						again = true
						return
					}
					visit(c)
				}
			}
		}
		visit(a.loop)
		if again {
			a.settle()
		}
	}
}

// gathers reports whether the compound statement s becomes one entry; before
// are the statements before it in its list.
func (a *attempt) gathers(s *plan.Stmt, before []*plan.Stmt) bool {
	e, reads := s.Deferred()
	anyLate := false
	for _, u := range a.units {
		if u.Stmt.Within(s) {
			if a.stays(u) {
				return false
			}
			anyLate = anyLate || a.late[u]
		}
	}
	if !anyLate || !a.movable(s, e) {
		return false
	}
	if s.IsLoop() {
		return true
	}
	if len(before) == 0 || !a.isLate(before[len(before)-1]) {
		return false
	}
	known := a.readBefore(before)
	for _, r := range reads {
		if !known[r.Plain] {
			return false
		}
	}
	return true
}

func (a *attempt) isLate(s *plan.Stmt) bool {
	for _, u := range a.units {
		if u.Stmt == s {
			return a.late[u]
		}
	}
	return false
}

// readBefore returns the variables that the run of late statements at the end
// of list reads.
func (a *attempt) readBefore(list []*plan.Stmt) map[*types.Var]bool {
	known := make(map[*types.Var]bool)
	for _, s := range slices.Backward(list) {
		if !a.isLate(s) {
			break
		}
		_, reads := s.Deferred()
		for _, r := range reads {
			if r.Plain != nil {
				known[r.Plain] = true
			}
		}
	}
	return known
}

// movable reports whether all of s may run later, although parts of it needn't.
func (a *attempt) movable(s *plan.Stmt, e *plan.Effects) bool {
	whole := &plan.Unit{Stmt: s, Whole: true, Effects: e, Ahead: &plan.Effects{}}
	_, whole.Reads = s.Deferred()
	if a.obstacle(whole) != nil || plan.Leaves(s.Node) != nil {
		return false
	}
	for _, u := range a.units {
		if u.Stmt.Within(s) || a.late[u] && len(u.Reads) == 0 {
			continue
		}
		if a.late[u] {
			if len(plan.Overtakes(e, u.Ahead, u, a.f.CanCopy)) > 0 {
				return false
			}
			continue
		}
		if _, conflict := a.follows(whole, u, u.All()); conflict {
			return false
		}
	}
	return true
}

// region lays out what has been decided.
func (a *attempt) region() *plan.Region {
	r := &plan.Region{Loop: a.loop, Endless: endless(a.loop), Flushed: make(map[*plan.Stmt]bool)}
	if a.whole[a.loop] {
		a.layout(r, []*plan.Stmt{a.loop})
	} else {
		for _, body := range a.loop.Bodies {
			a.layout(r, body)
		}
	}
	for _, u := range a.units {
		r.Waits = r.Waits || a.stays(u) || u.Effects.Waits != nil && !a.exits(u.Stmt)
	}
	if !a.loop.IsCall {
		r.Undo = a.undoes()
	}
	a.declare(r)
	for _, g := range r.Groups {
		a.copies(g)
	}
	a.polls(r)
	return r
}

// layout divides a list of statements into what stays and groups.
func (a *attempt) layout(r *plan.Region, list []*plan.Stmt) {
	var g *plan.Group
	for i, s := range list {
		if a.isLate(s) && (!s.IsCompound() || a.whole[s]) {
			if g == nil || a.separate(s) || a.isReturn(s) && (computesHere(s) || keeps(g) && !slices.ContainsFunc(g.Stmts, isTail)) {
				g = &plan.Group{Names: make(map[*plan.Read]string)}
				r.Groups = append(r.Groups, g)
			}
			g.Stmts = append(g.Stmts, s)
			if s.IsCompound() && s.Parent != nil && s.Parent.IsLoop() {
				g.Skips = append(g.Skips, goesOn(s)...)
			}
			if a.loop.IsCall {
				a.ends(g)
			} else if s.IsTest || len(g.Stmts) == 1 && onlyEnds(s) && (i+1 == len(list) || !isExit(list[i+1])) {
				g = nil // it is tested in another place, or its condition is the whole test
			}
			continue
		}
		g = nil
		if _, now := a.now[s]; now || a.exits(s) {
			r.Flushed[s] = i > 0 && slices.Contains(r.Flushes, list[i-1]) // that one queues nothing
			r.Flushes = append(r.Flushes, s)
			continue
		}
		for _, body := range s.Bodies {
			a.layout(r, body)
		}
	}
}

// onlyEnds reports whether s is a condition and a jump.
func onlyEnds(s *plan.Stmt) bool {
	n, ok := s.Inner().(*ast.IfStmt)
	return ok && isExit(s) && n.Init == nil && n.Else == nil && len(n.Body.List) == 1
}

// polls finds the loops that have to ask, in each iteration, whether entries can
// run: those in which an iteration may come to no Do and no Flush. Without that, a
// line printed every hundred iterations would come a hundred iterations late,
// and the last one of an endless loop never.
//
// It does not matter whether anything is queued when such a loop runs: mostly
// something may be, and if nothing is, asking is a comparison. Only a loop
// that has neither an entry in it nor work for the device does not ask. It is a
// step of the iteration around it, as a call of a function with that loop
// would be, and it may be so tight that asking takes longer than the rest.
func (a *attempt) polls(r *plan.Region) {
	runs := make(map[*plan.Stmt]bool) // statements in an entry, or after a flush
	for _, s := range r.Flushes {
		runs[s] = true
	}
	for _, g := range r.Groups {
		for _, s := range g.Stmts {
			runs[s] = true
		}
	}
	var visit func(s *plan.Stmt)
	visit = func(s *plan.Stmt) {
		if s.IsLoop() && !s.IsCall && len(s.Bodies[0]) > 0 && matters(s, runs) && !always(s, runs) {
			r.Polls = append(r.Polls, s)
		}
		for c := range s.Children {
			if !runs[c] {
				visit(c)
			}
		}
	}
	if !runs[a.loop] {
		visit(a.loop)
	}
}

// matters reports whether loop contains an entry, a flush, or work for the device.
func matters(loop *plan.Stmt, runs map[*plan.Stmt]bool) bool {
	e, _ := loop.Total()
	if e.Enqueues != nil {
		return true
	}
	for s := range loop.All {
		if runs[s] {
			return true
		}
	}
	return false
}

// always reports whether each iteration of loop that comes to an end has come
// to one of the statements in runs. An inner loop may have no iteration, so what is in it does not count.
func always(loop *plan.Stmt, runs map[*plan.Stmt]bool) bool {
	i := slices.IndexFunc(loop.Bodies[0], func(s *plan.Stmt) bool { return runs[s] })
	if i < 0 {
		return false
	}
	for _, before := range loop.Bodies[0][:i] {
		for s := range before.All {
			if s.Restarts(loop) {
				return false
			}
		}
	}
	return true
}

// separate reports whether s may not share an entry with the statements
// before it: computing what it reads may fail, and they come first.
func (a *attempt) separate(s *plan.Stmt) bool {
	_, reads := s.Deferred()
	return slices.ContainsFunc(reads, func(r *plan.Read) bool {
		return r.Plain == nil && !r.Fixed && (r.Rows == nil || !a.f.CannotFail(r.Rows.Count))
	})
}

// endless reports whether control never comes to the end of a loop.
func endless(loop *plan.Stmt) bool {
	n, ok := loop.Inner().(*ast.ForStmt)
	return ok && n.Cond == nil && !breaks(loop.Node, n.Body, false)
}

// breaks reports whether n, in the loop or statement that inner tells of,
// contains a break of the labelled statement loop.
func breaks(loop, n ast.Node, inner bool) (found bool) {
	ast.Inspect(n, func(m ast.Node) bool {
		if found || m == n {
			return !found
		}
		switch m := m.(type) {
		case *ast.FuncLit:
			return false
		case *ast.ForStmt, *ast.RangeStmt, *ast.SwitchStmt, *ast.TypeSwitchStmt, *ast.SelectStmt:
			found = breaks(loop, m, true)
			return false
		case *ast.BranchStmt:
			if m.Tok != token.BREAK {
				break
			}
			if m.Label == nil {
				found = !inner
				break
			}
			l, ok := loop.(*ast.LabeledStmt)
			found = ok && l.Label.Name == m.Label.Name
		}
		return !found
	})
	return found
}

// copies finds the variables of which a group needs the value that they have
// at its place, because the loop goes on to change them.
func (a *attempt) copies(g *plan.Group) {
	first, last := g.Stmts[0].Node, g.Stmts[len(g.Stmts)-1].Node
	byVar := make(map[*types.Var]*plan.Copy)
	for _, s := range g.Stmts {
		_, reads := s.Deferred()
		held := s.Holds()
		jumps := plan.JumpsFrom(s.Node)
		ast.Inspect(s.Node, func(n ast.Node) bool {
			if e, ok := n.(ast.Expr); ok && slices.Contains(held, e) {
				return false // evaluated in place
			}
			if jump, ok := n.(ast.Stmt); ok && n != s.Node && !a.loop.IsCall && slices.Contains(jumps, jump) {
				return false // the state has what it needs
			}
			if e, ok := n.(ast.Expr); ok && s.IsHere(e) {
				return false // evaluated, or assigned to, in place
			}
			if e, ok := n.(ast.Expr); ok && slices.ContainsFunc(reads, func(r *plan.Read) bool { return r.Operand == e && r.Rows == nil }) {
				return false // evaluated in place
			}
			id, ok := n.(*ast.Ident)
			if !ok {
				return true
			}
			v, ok := a.f.Info.Uses[id].(*types.Var)
			if !ok || v.IsField() || first.Pos() <= v.Pos() && v.Pos() < last.End() || !a.changesAfter(v, first) {
				return true
			}
			if byVar[v] == nil {
				byVar[v] = &plan.Copy{Var: v}
				g.Copies = append(g.Copies, byVar[v])
			}
			byVar[v].Uses = append(byVar[v].Uses, id)
			return true
		})
	}
}

// changesAfter reports whether a statement that runs ahead may give v, the
// same instance of it, another value after control has passed at.
func (a *attempt) changesAfter(v *types.Var, at ast.Stmt) bool {
	for _, u := range a.units {
		if a.stays(u) || u.Stmt.Declares[v] {
			continue
		}
		e := u.Effects
		if a.late[u] {
			e = u.Ahead
		}
		if _, ok := e.Writes[plan.Loc{Kind: plan.Var, Obj: v}]; !ok {
			continue
		}
		if u.Stmt.Node.Pos() > at.Pos() || !a.loop.Node.Pos().IsValid() {
			return true
		}
		if u.Stmt.IsLoop() && u.Stmt.Node.End() > at.Pos() {
			return true
		}
		for l := u.Stmt.Loop(); l != nil; l = l.Loop() {
			declaredIn := l.Node.Pos() <= v.Pos() && v.Pos() < l.Node.End()
			if !declaredIn && at.Pos() < l.Node.End() {
				return true // round the loop and there again
			}
		}
	}
	return false
}
