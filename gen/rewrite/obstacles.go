package rewrite

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"

	"github.com/asyncgen/asyncgen/gen/internal/plan"
)

// obstacles are why statements can't run later.
type obstacles struct{ *schedule }

// obstacle returns why u can't run later, or nil if it can.
func (a *obstacles) obstacle(u *plan.Unit) *plan.Reason {
	e := u.Effects
	if r := a.noExit(u); r != nil {
		return r
	}
	if jump := plan.Leaves(u.Stmt.Node); jump != nil && !a.isReturn(u.Stmt) && !mayLeave(u.Stmt) && (!u.Whole || skips(u.Stmt) == nil) {
		return &plan.Reason{Code: plan.DecidesExit, Cause: plan.Cause{Pos: jump.Pos(), Text: "decides whether the loop goes on"},
			Hint: a.testRarely(u.Stmt)}
	}
	for _, c := range []*plan.Cause{e.Barrier, e.Waits, e.HandsOut} {
		if c != nil {
			r := plan.ReasonOf(*c, plan.UnknownEffects)
			return &r
		}
	}
	if e.Ends != nil && (a.lastEntry(u) || a.loop.IsCall && a.neverReturns(u.Stmt)) {
		return &plan.Reason{Code: plan.DecidesExit, Cause: *e.Ends, Hint: "give the loop a condition, or return from it"}
	}
	if e.Enqueues != nil {
		r := plan.Reason{Code: plan.FeedsDevice, Cause: *e.Enqueues, Hint: a.onTensors(u, *e.Enqueues)}
		if u.Whole {
			r.Code = plan.DecidesDevice
		}
		return &r
	}
	for _, e := range u.Held {
		if !a.isThere(u, e) {
			return &plan.Reason{Code: plan.ReadsCell, Cause: plan.Cause{Pos: e.Pos(), Text: "takes " + types.ExprString(e) + " only where the value says so, and nothing before shows that this can't panic"},
				Hint: takeBefore(e, types.ExprString(e))}
		}
	}
	for _, set := range []map[plan.Loc]plan.Cause{e.Reads, e.Writes} {
		if c, ok := set[plan.Loc{Kind: plan.Cells}]; ok {
			return &plan.Reason{Code: plan.ReadsCell, Cause: c, Hint: a.takeNow(u, c)}
		}
	}
	if r := a.carried(u); r != nil {
		return r
	}
	for s := range u.Stmt.All {
		if (u.Whole || s == u.Stmt) && len(s.Reads) > 0 && !a.kernel.defers(s) {
			return a.kernel.switchedOff(s)
		}
	}
	return a.entangled(u)
}

// takeNow says how to take what c, in u, asks a cell for.
func (a *obstacles) takeNow(u *plan.Unit, c plan.Cause) string {
	var call *ast.CallExpr // the innermost there that asks
	ast.Inspect(u.Stmt.Node, func(n ast.Node) bool {
		if n, ok := n.(*ast.CallExpr); ok && n.Pos() == c.Pos {
			if _, asks := a.f.Effects(n).Reads[plan.Loc{Kind: plan.Cells}]; asks {
				call = n
			}
		}
		return true
	})
	if call == nil {
		return "call it before the statement that looks at a value, and use the variable with its result where it is called now"
	}
	if _, _, isLibrary := a.f.Library(call); !isLibrary { // it looks at the value, or decides itself what to ask for
		return "ask before the statement that looks at a value, and hand the result to the function that keeps it"
	}
	return takeBefore(call, types.ExprString(call))
}

// carried returns why u can't set what it sets later, or nil: of a variable that
// the head of a for statement declares, the next iteration has a copy, made
// when the iteration ends.
func (a *target) carried(u *plan.Unit) *plan.Reason {
	for s := u.Stmt; s != a.loop; {
		s = s.Loop()
		if _, ok := s.Inner().(*ast.ForStmt); !ok {
			continue // each iteration begins with a value of its own
		}
		var first *plan.Reason
		for v := range s.Declares {
			c, ok := u.Effects.Writes[plan.Loc{Kind: plan.Var, Obj: v}]
			if ok && (first == nil || c.Pos < first.Pos) {
				first = &plan.Reason{Code: plan.LoopHeader, Cause: plan.Cause{Pos: c.Pos, Text: "sets " + v.Name() + ", which the next iteration begins with"},
					Hint: "declare " + v.Name() + " before the loop"}
			}
		}
		if first != nil {
			return first
		}
	}
	return nil
}

// carrier returns the loop in the loop that can be put off whole where u, which is in it, can't
// because its head declares what u sets; or nil.
func (a *target) carrier(u *plan.Unit) *plan.Stmt {
	inner := u.Stmt.Loop()
	if u.Stmt == a.loop || inner == a.loop || a.carried(u) == nil {
		return nil
	}
	e, reads := inner.Total()
	if len(reads) > 0 || e.Enqueues != nil || e.Waits != nil || e.Barrier != nil {
		return nil
	}
	return inner
}

// lastEntry reports whether u may be put off and nothing after it, in a loop
// that has no other end: it would never run.
func (a *obstacles) lastEntry(u *plan.Unit) bool {
	for l := u.Stmt.Loop(); l != nil; l = l.Loop() {
		if !l.IsBounded() && (u.Stmt.Parent != l || continues(l)) {
			return true
		}
	}
	return false
}

// continues reports whether some iterations of loop may end before the end of
// its body.
func continues(loop *plan.Stmt) bool {
	for s := range loop.All {
		if b, ok := s.Inner().(*ast.BranchStmt); ok && b.Tok == token.CONTINUE {
			return true
		}
	}
	return false
}

// entangled returns why the reads of u can't be taken before it, or nil.
func (a *obstacles) entangled(u *plan.Unit) *plan.Reason {
	for _, r := range u.Reads {
		c := a.conditional(u, r)
		if c == nil && r.Plain == nil {
			c = restBefore(u, r)
		}
		if c == nil {
			c = a.overtaken(u, r)
		}
		if c == nil {
			c = a.skipped(u, r)
		}
		if c == nil && r.Plain == nil && r.Rows == nil && !r.Fixed {
			c = a.before(u, r)
		}
		if c != nil {
			return &plan.Reason{Code: plan.Entangled, Cause: *c, Hint: "name the tensor before the statement"}
		}
	}
	return nil
}

// conditional returns that the operand of r does not have one value, computed
// whenever u runs, or nil if it does. Taking the Read of a variable costs
// nothing and never fails, so it may be taken in vain.
func (a *obstacles) conditional(u *plan.Unit, r *plan.Read) *plan.Cause {
	if r.Rows != nil || r.Fixed {
		return nil // it may be taken in vain
	}
	whole := u.Stmt.Node
	if r.Plain != nil && (whole.Pos() > r.Plain.Pos() || r.Plain.Pos() >= whole.End()) && !u.Effects.Sets(r.Plain) {
		return nil
	}
	var start ast.Node = u.Stmt.Inner()
	if u.Stmt.IsTest {
		start = a.loop.Tests[0]
	}
	if a.f.AlwaysFirst(r.Expr, start) && r.Plain == nil {
		for _, o := range u.Reads { // which may fail there or not be read at all
			if o.Raises() && o.Expr.Pos() < r.Expr.Pos() && !a.f.AlwaysFirst(o.Expr, start) {
				return &plan.Cause{Pos: r.Operand.Pos(), Text: fmt.Sprintf("computes %s after it reads %s, which it does not always do", types.ExprString(r.Operand), o.What())}
			}
		}
		return nil
	}
	if !u.Whole && r.Plain != nil {
		return nil
	}
	return &plan.Cause{Pos: r.Operand.Pos(), Text: fmt.Sprintf("computes %s only where it is read", types.ExprString(r.Operand))}
}

// before returns a call with effects in u that the program makes before it
// evaluates the operand of r, or nil.
func (a *obstacles) before(u *plan.Unit, r *plan.Read) (found *plan.Cause) {
	ast.Inspect(u.Stmt.Node, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || found != nil {
			return found == nil
		}
		for _, o := range u.Reads {
			if o.Operand.Pos() <= call.Pos() && call.End() <= o.Operand.End() {
				return false
			}
		}
		if call.End() <= r.Operand.Pos() {
			for l, c := range a.f.Effects(call).Writes {
				if l.Kind != plan.Drafts && (found == nil || c.Text < found.Text) {
					found = &plan.Cause{Pos: call.Pos(), Text: "first " + c.Text}
				}
			}
		}
		return true
	})
	return found
}

// operands finds reads whose tensors can't be computed in place because that
// needs what runs later, and reports whether there was one.
func (a *attempt) operands() (changed bool) {
	for _, u := range a.units {
		if !a.late[u] || len(u.Reads) == 0 && len(u.Held) == 0 && u.Stmt.Here == nil {
			continue
		}
		if c := plan.FirstOf(u.Ahead.Barrier, u.Ahead.Waits, u.Ahead.HandsOut); c != nil {
			a.stay(u, a.explain(u, plan.ReasonOf(*c, plan.FeedsDevice)))
			changed = true
			continue
		}
		if a.shows(u.Ahead, u.Stmt) && a.letRunAhead(u) {
			changed = true
			continue
		}
		if a.shows(u.Ahead, u.Stmt) {
			c := u.Ahead.Writes.First(a.isShown)
			a.stay(u, a.explain(u, plan.Reason{Code: plan.SharedMemory, Cause: *c, Hint: a.keepLocal(*c)}))
			changed = true
			continue
		}
		for _, w := range a.units {
			if !a.late[w] {
				continue
			}
			if c := plan.Overtakes(w.Effects, u.Ahead, u, a.f.CanCopy); len(c) > 0 {
				if root := a.rootWithoutValue(w); root != nil && a.letRunAhead(root) {
					return true
				}
				a.stay(u, a.explain(u, plan.Reason{Code: plan.FeedsDevice, Cause: c[0].Why, Hint: "keep the computation on tensors"}))
				changed = true
				break
			}
		}
	}
	return changed
}
