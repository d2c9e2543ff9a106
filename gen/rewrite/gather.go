package rewrite

import (
	"go/ast"
	"go/types"
	"slices"

	"github.com/asyncgen/asyncgen/gen/internal/plan"
)

// gains reports whether a wait goes away: whether a read is put off in a loop in which nothing else
// makes every iteration wait for what has been queued, or for the tensor that is read. A statement that waits for other
// tensors than that, as a call of a function that trains does, is one wait; the read would be another.
func (a *schedule) gains() bool {
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
func (a *schedule) spoils(u *plan.Unit, loop *plan.Stmt) bool {
	if !u.Stmt.Within(loop) || a.jumpsOut(u.Stmt) {
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

// readBefore returns the variables that the run of late statements at the end
// of list reads.
func (a *schedule) readBefore(list []*plan.Stmt) map[*types.Var]bool {
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
