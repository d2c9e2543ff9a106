package rewrite

import (
	"go/ast"
	"go/token"

	"github.com/asyncgen/asyncgen/gen/internal/plan"
	"github.com/asyncgen/asyncgen/gen/rewrite/past"
)

// disproves reports whether it has been found that an exit can't be decided
// later, or that a statement must run now, because of what would run past the exits.
func (a *attempt) disproves() bool {
	if a.harm != nil || !a.hasExits() {
		return false
	}
	if a.contained != nil && !a.isClosed() {
		a.contain(nil)
		return true
	}
	proof, harm := past.Prove(a.f, a.pastExits())
	switch {
	case harm == nil:
		a.past = proof
		return false
	case harm.By == nil:
		a.contain(harm.Reason)
	default:
		a.stay(harm.By, refuse{Reason: *harm.Reason})
		a.keptNow = append(a.keptNow, harm.By.Stmt)
	}
	return true
}

// pastExits is what the loop does past its exits, as far as it has been decided.
func (a *schedule) pastExits() *past.Loop {
	l := &past.Loop{Stmt: a.loop, Units: a.units, Late: a.late, Exits: a.loopExits(), GivesBack: len(a.undone), Contained: a.contained != nil}
	for _, u := range a.units {
		if !a.stays(u) && !a.jumpsOut(u.Stmt) {
			l.Ahead = append(l.Ahead, u)
		}
	}
	return l
}

// giveUp makes exits wait for their values, because of r. What had to run now
// for their sake need not any more.
func (a *attempt) giveUp(r *plan.Reason) {
	a.harm = r
	a.releaseKept()
}

// releaseKept lets go what had to run now for the sake of exits.
func (a *attempt) releaseKept() {
	for _, s := range a.keptNow {
		delete(a.now, s)
		delete(a.whole, s)
	}
	a.keptNow = nil
}

// contain decides what becomes of the exits of a loop of which r is the harm past its end: its
// iterations are run by Iterate, which drops a panic that the program does not come to (see past/contained.go), or the
// exits wait for their values.
func (a *attempt) contain(r *plan.Reason) {
	if a.contained != nil {
		if r == nil || r.Code == plan.PastFails {
			r = a.contained // what Iterate was to help with
		}
		a.contained = nil
	} else if r.Code == plan.PastFails && a.isClosed() {
		a.contained = r
		a.releaseKept()
		return
	}
	a.giveUp(r)
}

// isClosed reports whether control leaves an iteration of the loop at its end alone, or because of a value, or goes on
// to the next: so the body can be a function.
func (a *schedule) isClosed() bool {
	if a.loop.Tests != nil {
		return false
	}
	for _, s := range a.here() {
		if a.jumpsOut(s) {
			return false
		}
		b, ok := s.Inner().(*ast.BranchStmt)
		if !ok {
			continue
		}
		switch b.Tok {
		case token.BREAK:
			if b.Label != nil || s.Loop() == a.loop && !a.breaksInside(s) {
				return false
			}
		case token.CONTINUE:
			if b.Label != nil {
				return false
			}
		case token.GOTO:
			return false
		}
	}
	return true
}

// breaksInside reports whether s, a break without a label, is one of something in the loop.
func (a *target) breaksInside(s *plan.Stmt) bool {
	for p := s.Parent; p != nil && p != a.loop; p = p.Parent {
		if isBreakable(p) {
			return true
		}
	}
	return false
}

// restartsHere are the jumps to the next iteration in statements that do not come later: they end the
// function that an iteration is.
func (a *schedule) restartsHere() (jumps []*ast.BranchStmt) {
	for _, s := range a.here() {
		if s.Restarts(a.loop) {
			jumps = append(jumps, s.Inner().(*ast.BranchStmt))
		}
	}
	return jumps
}
