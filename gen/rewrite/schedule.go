package rewrite

import (
	"go/ast"
	"go/types"
	"slices"

	"github.com/asyncgen/asyncgen/gen/internal/plan"
	"github.com/asyncgen/asyncgen/gen/rewrite/past"
)

// A target is the loop that an attempt is about, or the body of a function that is divided.
type target struct {
	f         *plan.Function
	kernel    *directive
	loop      *plan.Stmt // a tree that no other attempt has: taking rows together changes it
	outermost *plan.Stmt // the loop that loop is in, or loop itself
	counts    bool       // see isCount
}

// A schedule says what of a target runs when. An attempt fills it, the others only look.
type schedule struct {
	*target

	// What has been decided, and holds until it is found to be wrong.
	whole  map[*plan.Stmt]bool   // compound statements that are moved, or stay, with all that is in them
	now    map[*plan.Stmt]refuse // the reason why a statement can't run later although it should
	undone map[*plan.Stmt]bool   // what changes memory of others ahead of values: see undo.go

	// What follows from that: see round.
	units  []*plan.Unit
	graph  *plan.Graph
	late   map[*plan.Unit]bool
	by     map[*plan.Unit]plan.Step // by which step from another unit each is reached; seeds have none
	valued map[types.Object]bool    // what gets values later, if the loop's own condition needs that

	// Of exits, see exit.go and contain.go.
	past      *past.Proof  // that what runs past them does no harm
	harm      *plan.Reason // why no value may decide later that the loop ends
	contained *plan.Reason // why it may only if Iterate runs each iteration
	keptNow   []*plan.Stmt // what runs now because it must not run past an exit
}

// refuse is why a statement must run now.
type refuse struct {
	plan.Reason
	via  []plan.Related // how the need arose, first things first
	read *plan.Read     // what it began with, or nil
}

// stays reports whether u has been found to run now.
func (a *schedule) stays(u *plan.Unit) bool { _, ok := a.now[u.Stmt]; return ok }

// isHead reports whether u is the head of a compound statement, which can
// only go together with what it heads.
func (a *schedule) isHead(u *plan.Unit) bool { return u.Stmt.IsCompound() && !u.Whole }

func (a *schedule) isLate(s *plan.Stmt) bool {
	for _, u := range a.units {
		if u.Stmt == s {
			return a.late[u]
		}
	}
	return false
}

// leaves reports whether u is put off although it may end the loop.
func (a *schedule) leaves(u *plan.Unit) bool {
	return a.late[u] && mayLeave(u.Stmt) && !a.loop.IsCall
}

// hasExits reports whether there is any such unit.
func (a *schedule) hasExits() bool { return slices.ContainsFunc(a.units, a.leaves) }

// loopExits are the statements in which values decide whether the loop goes on.
func (a *schedule) loopExits() (all []*plan.Stmt) {
	for _, u := range a.units {
		if a.leaves(u) {
			all = append(all, u.Stmt)
		}
	}
	return all
}

// isPutOff reports whether v gets values later.
func (a *schedule) isPutOff(v *types.Var) bool {
	return slices.ContainsFunc(a.units, func(u *plan.Unit) bool { return a.late[u] && u.Effects.Sets(v) })
}

// shows reports whether e, which is of s, changes what others than this
// function can see, at the latest when it panics: then it may not run ahead of
// what may panic.
func (a *schedule) shows(e *plan.Effects, s *plan.Stmt) bool {
	for l := range e.Writes {
		if a.isShown(l) && !s.Declares[l.Obj] && !(l.IsMemory() && a.undone[s]) {
			return true
		}
	}
	return false
}

func (a *target) isShown(l plan.Loc) bool {
	switch l.Kind {
	case plan.Var, plan.Own:
		return a.f.Visible(l.Obj)
	}
	return l.Kind == plan.World || l.IsMemory()
}

// changesAfter reports whether a statement that runs ahead may give v, the
// same instance of it, another value after control has passed at.
func (a *schedule) changesAfter(v *types.Var, at ast.Stmt) bool {
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

// here are the statements in the loop that do not come later.
func (a *schedule) here() (all []*plan.Stmt) {
	for _, u := range a.units {
		switch {
		case a.late[u]:
		case u.Whole:
			all = slices.AppendSeq(all, u.Stmt.All)
		default:
			all = append(all, u.Stmt)
		}
	}
	return all
}

// jumpsOut reports whether s is a way out of the loop that no value decides, and that is taken once at most:
// a jump, or a call that does not return. What is put off is done before it.
func (a *target) jumpsOut(s *plan.Stmt) bool {
	if a.loop.IsCall {
		return false
	}
	switch s.Inner().(type) {
	case *ast.ReturnStmt:
		return true
	case *ast.BranchStmt:
		return leavesLoop(a.loop, s)
	}
	return a.neverReturns(s)
}

// neverReturns reports whether s is a call that does not return.
func (a *target) neverReturns(s *plan.Stmt) bool {
	x, ok := s.Inner().(*ast.ExprStmt)
	if !ok {
		return false
	}
	call, ok := x.X.(*ast.CallExpr)
	return ok && a.f.NeverReturns(call)
}

// leavesLoop reports whether the jump s ends loop without passing the end of it.
func leavesLoop(loop, s *plan.Stmt) bool {
	b := s.Inner().(*ast.BranchStmt)
	if b.Label == nil {
		return false
	}
	for p := s.Parent; p != nil; p = p.Parent {
		if l, ok := p.Node.(*ast.LabeledStmt); ok && l.Label.Name == b.Label.Name {
			return false
		}
		if p == loop {
			return true
		}
	}
	return true
}
