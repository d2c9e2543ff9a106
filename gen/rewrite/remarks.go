package rewrite

import (
	"fmt"
	"go/ast"
	"go/token"

	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"github.com/asyncgen/asyncgen/gen/internal/plan"
	"github.com/asyncgen/asyncgen/gen/rewrite/rows"
)

func (a *target) position(pos token.Pos) token.Position { return a.f.Position(pos) }

// explain adds to a reason the way on which the need for u to run later came
// about, and the read that it began with.
func (a *schedule) explain(u *plan.Unit, r plan.Reason) refuse {
	var via []plan.Related
	var read *plan.Read
	comesBack := false
	for w := u; ; {
		if len(w.Reads) > 0 {
			read = w.Reads[0]
		}
		step, ok := a.by[w]
		if !ok {
			break
		}
		comesBack = comesBack || step.From.Stmt.Node.Pos() >= w.Stmt.Node.Pos()
		via = append([]plan.Related{{Pos: a.position(step.Why.Pos), Text: dependence(step.Conflict)}}, via...)
		w = step.From
	}
	switch feeds := r.Code == plan.FeedsDevice || r.Code == plan.DecidesDevice; {
	case feeds && read != nil && a.isSame(read):
		r.Hint = "it is the same in every iteration: read it once, before the loop"
	case feeds && comesBack:
		r.Hint = "its value comes back in the next iteration: " + r.Hint
	}
	return refuse{r, via, read}
}

// isSame reports whether r reads what the loop does not change.
func (a *target) isSame(r *plan.Read) bool {
	if r.Effects == nil || a.loop.IsCall {
		return false
	}
	total, reads := a.loop.Total()
	same := !r.Effects.Needs(total)
	for _, o := range reads {
		same = same && !r.Effects.Needs(o.Effects)
	}
	ast.Inspect(r.Expr, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Ident:
			obj := a.f.Info.Uses[n]
			same = same && (obj == nil || obj.Pos() < a.loop.Node.Pos() || a.loop.Node.End() <= obj.Pos())
		case *ast.CallExpr:
			_, api, kind := a.f.Callee(n)
			same = same && kind == plan.CallsLibrary && (n == r.Expr || api.Kind == tensorapi.View || api.Kind == tensorapi.Op && api.Arg == tensorapi.None)
		}
		return same
	})
	return same
}

// dependence says what the second of two statements does that ties it to the
// first.
func dependence(c plan.Conflict) string {
	switch {
	case c.Second.Kind == plan.World:
		return "it " + c.Why.Text + ", in the same order"
	case c.Kind == plan.Flow && c.First.IsMemory() && c.First != c.Second:
		return "it " + c.Why.Text + ", which may share memory with what the value changes"
	case c.Kind == plan.Flow:
		return "it " + c.Why.Text + ", which depends on the value"
	case c.Kind == plan.Output:
		return "it " + c.Why.Text + ", which what is put off changes too"
	default:
		return "it " + c.Why.Text + ", which what is put off still needs"
	}
}

// refusal is the remark that the statement s, or the loop, stays as it is.
func (a *target) refusal(s *plan.Stmt, r refuse) plan.Remark {
	pos, what := s.Node.Pos(), "the loop stays as it is"
	if s != a.loop {
		what = "the statement stays as it is"
	}
	if r.read == nil {
		if _, reads := s.Total(); len(reads) > 0 {
			r.read = reads[0]
		}
	}
	if r.read != nil {
		pos, what = r.read.Expr.Pos(), r.read.What()+" can't come later"
	}
	because := append(r.via, plan.Related{Pos: a.position(r.Pos), Text: "it " + r.Text})
	if r.In != nil {
		because = append(because, plan.Related{Pos: a.position(r.In.Pos), Text: "the function " + r.In.Text})
	}
	return plan.Remark{
		Code: r.Code, Verdict: plan.Refused, Class: r.Code.Class(), Pos: a.position(pos), Function: a.f.Decl.Name.Name,
		Message: what + ": " + r.Code.Title(),
		Because: because,
		Hint:    r.Hint,
	}
}

// A report says of a schedule what runs later, and why the rest does not.
type report struct{ *schedule }

// refusals are the remarks for a loop in which too much must run now.
func (a report) refusals() []plan.Remark {
	var rs []plan.Remark
	for _, u := range a.units {
		if r, ok := a.now[u.Stmt]; ok && a.matters(u) {
			rs = append(rs, a.refusal(u.Stmt, r))
		}
		if c := u.Effects.Waits; c != nil && !a.stays(u) {
			rs = append(rs, a.refusal(u.Stmt, refuse{Reason: plan.ReasonOf(*c, plan.OnlyNow)}))
		}
	}
	for _, u := range a.units { // what waits in some iterations, if nothing waits in all
		if r, ok := a.now[u.Stmt]; ok && len(rs) == 0 && len(u.Reads) > 0 {
			rs = append(rs, a.refusal(u.Stmt, r))
		}
	}
	if len(rs) == 0 {
		rs = append(rs, plan.Remark{Code: plan.NoRead, Verdict: plan.Skipped, Pos: a.position(a.loop.Node.Pos()), Function: a.f.Decl.Name.Name,
			Message: "the loop has no read in it that could come later"})
	}
	return rs
}

// matters reports whether u makes an iteration wait.
func (a *schedule) matters(u *plan.Unit) bool {
	loop := u.Stmt.Loop()
	if loop == nil {
		loop = a.loop
	}
	return a.spoils(u, loop)
}

// applied are the remarks for a loop that is rewritten.
func (a report) applied(window int) []plan.Remark {
	var rs []plan.Remark
	add := func(code plan.Code, rule string, pos token.Pos, message string) {
		rs = append(rs, plan.Remark{Code: code, Rule: rule, Verdict: plan.Applied, Pos: a.position(pos), Function: a.f.Decl.Name.Name, Message: message})
	}
	if window < unbounded {
		add(Bound.Code, Bound.Name, a.loop.Node.Pos(), "the loop "+fmt.Sprintf(Bound.Does, window))
	}
	for _, u := range a.units {
		if r, ok := a.now[u.Stmt]; ok && (len(u.Reads) > 0 || a.matters(u) || r.read != nil && u.Effects.Waits == nil) {
			rs = append(rs, a.refusal(u.Stmt, r))
			continue
		}
		if a.undone[u.Stmt] && !a.stays(u) && (!a.late[u] || len(u.Reads) > 0) {
			if c := aheadOf(u).Writes.First(plan.Loc.IsMemory); c != nil {
				add(Undone.Code, Undone.Name, c.Pos, "it "+c.Text+" "+Undone.Does)
			}
		}
		if !a.late[u] {
			if c := u.Effects.Waits; c != nil {
				rs = append(rs, a.refusal(u.Stmt, refuse{Reason: plan.ReasonOf(*c, plan.OnlyNow)}))
			}
			continue
		}
		for s := range u.Stmt.All {
			for _, r := range s.Reads {
				if u.Whole || s == u.Stmt {
					rw := of(s)
					add(rw.Code, rw.Name, r.Expr.Pos(), r.What()+" "+rw.Does)
					if b := rows.Made(r); b != nil {
						add(b.Code, b.Name, r.Expr.Pos(), r.What()+" "+b.Does)
					}
					if r.Lift != nil {
						add(Lifted.Code, Lifted.Name, r.Expr.Pos(), r.What()+" "+Lifted.Does)
					}
				}
			}
			if !u.Whole {
				break
			}
		}
		if a.leaves(u) && len(u.Reads) == 0 {
			add(Exit.Code, Exit.Name, u.Stmt.Node.Pos(), "the end of the loop is decided when the values have arrived, and the loop runs on until then")
		}
		if c := u.Effects.Stamps; c != nil {
			add(plan.LaterStamp, of(u.Stmt).Name, c.Pos, "the time in the log is that of the deferred call")
		}
		if c := u.Effects.Clock; c != nil {
			add(plan.LaterClock, of(u.Stmt).Name, c.Pos, "the clock is read when the value has arrived")
		}
	}
	for s := range a.loop.All {
		if c := looksOutside(s); c != nil {
			add(plan.LaterPoll, "", c.Pos, "a state outside the program is looked at while results are still on their way")
		}
	}
	return rs
}
