package rewrite

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"

	"github.com/asyncgen/asyncgen/gen/internal/plan"
)

// A layout lays out a schedule: as regions, of groups that are entries of the backlog.
type layout struct{ *schedule }

// region lays out what has been decided.
func (a *layout) region() *plan.Region {
	r := &plan.Region{Loop: a.loop, Endless: endless(a.loop), Flushed: make(map[*plan.Stmt]bool)}
	if a.whole[a.loop] {
		a.list(r, []*plan.Stmt{a.loop})
	} else {
		for _, body := range a.loop.Bodies {
			a.list(r, body)
		}
	}
	for _, u := range a.units {
		r.Waits = r.Waits || a.stays(u) || u.Effects.Waits != nil && !a.jumpsOut(u.Stmt)
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

// list divides a list of statements into what stays and groups.
func (a *layout) list(r *plan.Region, list []*plan.Stmt) {
	var g *plan.Group
	for i, s := range list {
		if a.isLate(s) && (!s.IsCompound() || a.whole[s]) {
			// What is returned may be called twice, so what a group changes before is an entry of its own.
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
			} else if s.IsTest || len(g.Stmts) == 1 && onlyEnds(s) && (i+1 == len(list) || !mayLeave(list[i+1])) {
				g = nil // it is tested in another place, or its condition is the whole test
			}
			continue
		}
		g = nil
		if _, now := a.now[s]; now || a.jumpsOut(s) {
			r.Flushed[s] = i > 0 && slices.Contains(r.Flushes, list[i-1]) // that one queues nothing
			r.Flushes = append(r.Flushes, s)
			continue
		}
		for _, body := range s.Bodies {
			a.list(r, body)
		}
	}
}

// onlyEnds reports whether s is a condition and a jump.
func onlyEnds(s *plan.Stmt) bool {
	n, ok := s.Inner().(*ast.IfStmt)
	return ok && mayLeave(s) && n.Init == nil && n.Else == nil && len(n.Body.List) == 1
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
func (a *layout) polls(r *plan.Region) {
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
func (a *layout) separate(s *plan.Stmt) bool {
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
func (a *layout) copies(g *plan.Group) {
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
