package rewrite

import (
	"go/ast"
	"go/token"
	"slices"

	"github.com/asyncgen/asyncgen/gen/internal/plan"
)

// A statement of a loop's body that may go on to the next iteration, because of a
// value, can come later if all that follows it in the body comes with it: then going on
// is the end of the entry.
//
//	if math.IsNaN(loss.Item()) {    lossAt := later.Read(loss)
//		continue                    later.Do(func() {
//	}                               	if math.IsNaN(lossAt.Item()) {
//	n++                             		return
//	                                	}
//	                                	n++
//	                                })

// skips returns the jumps to the next iteration by which control may leave s, if
// it may not leave it in another way, and s is a compound statement of a loop's body.
func skips(s *plan.Stmt) []*ast.BranchStmt {
	if s.Parent == nil || !s.Parent.IsLoop() || !s.IsCompound() {
		return nil
	}
	goOn := goesOn(s)
	if len(goOn) < len(plan.JumpsFrom(s.Node)) {
		return nil
	}
	return goOn
}

// goesOn returns the jumps by which control may leave s, a statement of a loop's body, for the next iteration.
func goesOn(s *plan.Stmt) (found []*ast.BranchStmt) {
	loop, _ := s.Parent.Node.(*ast.LabeledStmt)
	for _, jump := range plan.JumpsFrom(s.Node) {
		if b, ok := jump.(*ast.BranchStmt); ok && b.Tok == token.CONTINUE && (b.Label == nil || loop != nil && loop.Label.Name == b.Label.Name) {
			found = append(found, b)
		}
	}
	return found
}

// cuts reports whether s may end an iteration, or the function that is divided, because of a value.
func cuts(s *plan.Stmt) bool {
	return isTail(s) || s.IsCompound() && s.Parent != nil && s.Parent.IsLoop() && len(goesOn(s)) > 0
}

// isSkipped reports whether v runs only in iterations in which s, which [cuts], does not
// go on to the next.
func isSkipped(s *plan.Stmt, v *plan.Unit) bool {
	return v.Stmt != s.Parent && v.Stmt.Within(s.Parent) && v.Stmt.Node.Pos() >= s.Node.End()
}

// skipping returns the statement that comes later and may go on to the next
// iteration before u, or nil.
func (a *schedule) skipping(u *plan.Unit) *plan.Stmt {
	for _, w := range a.units {
		if w.Whole && !a.stays(w) && w.Stmt != u.Stmt && cuts(w.Stmt) && isSkipped(w.Stmt, u) {
			return w.Stmt
		}
	}
	return nil
}

// skipped returns why r, a read of u, can't be taken before a statement that may
// skip u, or nil. The operand must be a variable that has its value before that.
func (a *obstacles) skipped(u *plan.Unit, r *plan.Read) *plan.Cause {
	s := a.skipping(u)
	if s == nil {
		return nil
	}
	if r.Plain != nil && r.Plain.Pos() < s.Node.Pos() {
		changed := slices.ContainsFunc(a.units, func(w *plan.Unit) bool {
			return (w.Stmt == s || isSkipped(s, w)) && w.All().Sets(r.Plain)
		})
		if !changed {
			return nil
		}
	}
	text := "computes a tensor only where the loop has not gone on before"
	if a.loop.IsCall {
		text = "computes a tensor only where the function has not returned before"
	}
	return &plan.Cause{Pos: r.Operand.Pos(), Text: text}
}

// keepSkips makes statements run now that would come later and skip others which can't. It
// reports whether there was one.
func (a *attempt) keepSkips() (changed bool) {
	for _, u := range a.units {
		if !a.late[u] || !cuts(u.Stmt) {
			continue
		}
		for _, v := range a.units {
			if isSkipped(u.Stmt, v) && !a.late[v] {
				jump := plan.JumpsFrom(u.Stmt.Node)[0]
				text := "decides whether the rest of the iteration runs"
				if a.loop.IsCall {
					text = "returns early, if a value says so"
				}
				r := plan.Reason{Code: plan.DecidesExit, Cause: plan.Cause{Pos: jump.Pos(), Text: text},
					Hint: "put what enqueues work before it, if that may also happen when the test says no"}
				a.stay(u, a.explain(u, r))
				changed = true
				break
			}
		}
	}
	return changed
}
