package rewrite

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"github.com/asyncgen/asyncgen/gen/internal/plan"
)

// Lifted is split-call: the read is in a function that the loop calls, and makes what
// the function returns. A variant of the function does what comes before the
// read, and returns a function that does the rest.
//
//	total += mean(x)    meanAt := meanLater(later, x)
//	                    later.Do(func() { total += meanAt() })
//
//	func meanLater(later asyncrt.Reader, x *tensor.Tensor) func() float64 {
//		meanAt := later.Read(x.Mean())
//		return func() float64 { return meanAt.Item() }
//	}
var Lifted = &Rewrite{
	Name: "split-call",
	Was:  "R18",
	Code: plan.LiftedRead,
	Does: "reads when the values have arrived: its first half is called in its place",
}

// lift lets reads be taken out of functions that are called.
func (p *planner) lift() { p.use(p.f.Lifting()) }

// Divide decides what of f, which loops call, is done in its place and what
// later. If f can't be divided, it returns what is in the way.
func Divide(f *plan.Function) (*plan.Lift, *plan.Cause) {
	if f.Defers() {
		return nil, &plan.Cause{Pos: f.Decl.Pos(), Text: "defers a call, which would run before the values are there",
			Hint: "take the defer out of the function, or let that return the tensor, and read it in the loop"}
	}
	if g := f.Goto(); g != nil {
		return nil, g
	}
	if u := f.Unsafe(); u != nil {
		return nil, u
	}
	if f.IsLiteral() && f.Counts {
		if l, why := divide(f, true); why == nil {
			return l, nil
		}
	}
	l, why := divide(f, false)
	if why != nil && !f.IsLiteral() && f.HasLiterals() {
		if again, _ := divide(f.Again(), false); again != nil {
			return again, nil
		}
	}
	return l, why
}

// divide is [Divide] for a function that is not jumped about in, and defers nothing. counts says that what it changes
// of variables of the function that it is a literal of comes later, as far as the device has no need of it.
func divide(f *plan.Function, counts bool) (*plan.Lift, *plan.Cause) {
	for apart := make(map[ast.Stmt]bool); ; {
		body := f.Body()
		a := newAttempt(f, withoutOff(nil), body, body)
		a.counts = counts
		batched := a.batch(apart)
		l, why := a.divide()
		n := len(apart)
		for _, loop := range batched {
			if why != nil || !a.isLate(loop) {
				apart[loop.Node] = true
			}
		}
		if len(apart) == n {
			return l, why
		}
	}
}

// divide is the plan for the body of a function that is called.
func (a *attempt) divide() (*plan.Lift, *plan.Cause) {
	a.settle()
	if why := a.undivided(); why != nil {
		return nil, why
	}
	if why := a.mixedUp(); why != nil {
		return nil, why
	}
	a.gather()
	l := &plan.Lift{Function: a.f, Here: a.f.Here, Later: &plan.Later{}, Region: (&layout{a.schedule}).region(), Ahead: &plan.Effects{}, Late: &plan.Effects{}, Queued: &plan.Effects{}}
	for _, g := range l.Region.Groups {
		g.Later = l.Later
		l.Once = l.Once || g.Returns && keeps(g)
		for _, s := range g.Stmts {
			if e, _ := s.Total(); !g.Returns {
				l.Queued.Add(e)
			}
		}
	}
	for _, u := range a.units {
		if a.late[u] {
			l.Ahead.Add(u.Ahead)
			l.Late.Add(u.Effects)
		} else {
			l.Ahead.Add(u.All())
		}
	}
	l.Ahead, l.Late, l.Queued = a.f.Outside(l.Ahead), a.f.Outside(l.Late), a.f.Outside(l.Queued)
	if why := results(l); why != nil {
		return nil, why
	}
	return l, nil
}

// computesHere reports whether s, a return, computes something in its place.
func computesHere(s *plan.Stmt) bool {
	return slices.ContainsFunc(s.Inner().(*ast.ReturnStmt).Results, func(e ast.Expr) bool {
		_, name := ast.Unparen(e).(*ast.Ident)
		return !name && s.IsHere(e)
	})
}

// mixedUp returns why what the function returns in its place can't be computed there, or nil:
// values decide whether it is what is returned, or reads come before it, which the program would
// make first.
func (a *schedule) mixedUp() *plan.Cause {
	if a.f.Here == nil {
		return nil
	}
	for s := range a.loop.All {
		n, ok := s.Inner().(*ast.ReturnStmt)
		if !ok {
			continue
		}
		i := slices.IndexFunc(a.units, func(u *plan.Unit) bool { return u.Stmt == s })
		if i < 0 {
			return &plan.Cause{Pos: n.Pos(), Text: "decides with a value which tensor it returns"}
		}
		for at, e := range n.Results {
			if _, name := ast.Unparen(e).(*ast.Ident); name || !a.f.Here[at] {
				continue
			}
			for _, r := range a.units[i].Reads {
				if r.Expr.Pos() < e.Pos() {
					return &plan.Cause{Pos: r.Expr.Pos(), Text: "reads " + r.What() + " before it computes a tensor in the same statement"}
				}
			}
		}
	}
	return nil
}

// undivided returns what in the function must wait in its place, or nil.
func (a *schedule) undivided() *plan.Cause {
	for _, u := range a.units {
		if r, ok := a.now[u.Stmt]; ok {
			c := r.Cause
			if c.Hint = r.Hint; c.Hint != "" && !strings.HasPrefix(c.Hint, "this can't") && !strings.HasPrefix(c.Hint, "in ") {
				c.Hint = "in " + a.f.Decl.Name.Name + ", " + c.Hint
			}
			switch {
			case r.Code == plan.FeedsDevice && a.isReturn(u.Stmt) && len(u.Reads) == 0:
				c.Text += " for what it returns, after it has looked at a value"
				c.Hint = ""
			case r.Code == plan.FeedsDevice && a.isReturn(u.Stmt) && isBesideReads(u, c.Pos):
				c.Text += " for one of its results, and another one is a value"
				c.Hint = ""
			case r.Code == plan.FeedsDevice:
				c.Text += ", which depends on a value"
			}
			return &c
		}
		if c := plan.FirstOf(u.Effects.Waits, u.Effects.Clock, u.Ahead.Clock); c != nil {
			return c
		}
	}
	return nil
}

// isBesideReads reports whether u is a return of several results, and the one at pos needs none of its reads.
func isBesideReads(u *plan.Unit, pos token.Pos) bool {
	for _, e := range u.Stmt.Inner().(*ast.ReturnStmt).Results {
		if e.Pos() <= pos && pos < e.End() {
			return !slices.ContainsFunc(u.Reads, func(r *plan.Read) bool { return e.Pos() <= r.Expr.Pos() && r.Expr.End() <= e.End() })
		}
	}
	return false
}

// results finds which of the named results of l are variables of the variant. It returns why they can't be, or nil.
func results(l *plan.Lift) *plan.Cause {
	f, named := l.Function, l.Function.NamedResults()
	read := make(map[*types.Var]bool)
	for id, obj := range f.Info.Uses {
		v, ok := obj.(*types.Var)
		if !ok || !slices.Contains(named, v) {
			continue
		}
		a, ok := f.Parent(id).(*ast.AssignStmt)
		read[v] = read[v] || !ok || a.Tok != token.ASSIGN || !slices.Contains(a.Lhs, ast.Expr(id))
		l.Outer = l.Outer || !slices.ContainsFunc(l.Region.Groups, func(g *plan.Group) bool {
			return g.Returns && g.Stmts[0].Node.Pos() <= id.Pos() && id.Pos() < g.Stmts[len(g.Stmts)-1].Node.End()
		})
	}
	if !l.Outer {
		return nil
	}
	for _, v := range named {
		if isRead, used := read[v]; used || f.ReturnsBare() {
			if !isRead && !f.ReturnsBare() || v.Name() == "_" {
				return &plan.Cause{Pos: v.Pos(), Text: "has a result, " + v.Name() + ", that it only sets"}
			}
			l.Results = append(l.Results, v)
		}
	}
	return nil
}

// isCount reports whether u, a statement of a function literal, changes variables of the function around it that have
// nothing to do with tensors. Others that use them mostly print them, or change them when values have arrived.
func (a *target) isCount(u *plan.Unit) bool {
	if !a.counts || u.Stmt.IsCompound() || u.Effects.Enqueues != nil {
		return false
	}
	for l := range u.Effects.Writes {
		if v, ok := l.Obj.(*types.Var); ok && (l.Kind == plan.Var || l.Kind == plan.Own) && a.f.Captures(v) && !a.f.Analysis.API.IsTensor(v.Type()) {
			return true
		}
	}
	return false
}

// isReturn reports whether s is a return of a function that is divided.
func (a *target) isReturn(s *plan.Stmt) bool {
	_, ok := s.Inner().(*ast.ReturnStmt)
	return ok && a.loop.IsCall
}

// isTail reports whether s is a compound statement of the body of a function that is divided, in
// which values may decide to return: all that follows it comes later, too.
func isTail(s *plan.Stmt) bool {
	return s.Parent != nil && s.Parent.IsCall && s.IsCompound() && plan.Leaves(s.Node) != nil
}

// noReturn returns why u can't decide later whether the function returns, or nil.
func (a *obstacles) noReturn(u *plan.Unit) *plan.Reason {
	for _, jump := range plan.JumpsFrom(u.Stmt.Node) {
		if _, ok := jump.(*ast.ReturnStmt); !ok || !isTail(u.Stmt) {
			return &plan.Reason{Code: plan.DecidesExit, Cause: plan.Cause{Pos: jump.Pos(), Text: "decides with a value whether to go on"},
				Hint: "this can't be helped while " + a.f.Decl.Name.Name + " ends by a value"}
		}
	}
	return nil
}

// ends marks the entries of a function that is divided which are what it returns: those that
// end with a return, and what is last in the body if a value may decide to return before, or there is no result.
func (a *layout) ends(g *plan.Group) {
	last := g.Stmts[len(g.Stmts)-1]
	if a.isReturn(last) {
		g.Returns = true
		return
	}
	body := a.loop.Bodies[0]
	g.Returns = last == body[len(body)-1] && (a.f.Decl.Type.Results == nil || slices.ContainsFunc(g.Stmts, isTail))
}

// keeps reports whether the statements of g change variables of the function that they do not
// declare: then they must not run twice.
func keeps(g *plan.Group) bool {
	for _, s := range g.Stmts {
		e, _ := s.Total()
		for l := range e.Writes {
			if (l.Kind == plan.Var || l.Kind == plan.Own) && !slices.ContainsFunc(g.Stmts, func(s *plan.Stmt) bool {
				return s.Node.Pos() <= l.Obj.Pos() && l.Obj.Pos() < s.Node.End()
			}) {
				return true
			}
		}
	}
	return false
}

// restBefore returns that another divided call comes before r in u, and that its second half has effects: then the
// tensor of r can't be computed before it. Without effects that half may run twice, once to raise what it would raise.
func restBefore(u *plan.Unit, r *plan.Read) *plan.Cause {
	for _, o := range u.Reads {
		if o.Lift == nil || o.Expr.Pos() >= r.Expr.Pos() {
			continue
		}
		if o.Lift.Once {
			return &plan.Cause{Pos: o.Expr.Pos(), Text: "first calls " + o.What() + ", which can be called once"}
		}
		if c := o.Lift.Late.Writes.First(func(plan.Loc) bool { return true }); c != nil {
			return &plan.Cause{Pos: o.Expr.Pos(), Text: "first calls " + o.What() + ", which " + c.Text}
		}
	}
	return nil
}

// overtaken returns what u evaluates before it calls the function of r and must not after what that
// puts into the backlog, or nil.
func (a *obstacles) overtaken(u *plan.Unit, r *plan.Read) (found *plan.Cause) {
	if r.Lift == nil {
		return nil
	}
	ast.Inspect(u.Stmt.Node, func(n ast.Node) bool {
		e, ok := n.(ast.Expr)
		if !ok || found != nil {
			return found == nil
		}
		if e.Pos() >= r.Expr.Pos() {
			return false
		}
		if e.End() > r.Expr.Pos() {
			return true
		}
		if c := plan.Overtakes(a.f.Effects(e), r.Lift.Queued, u, func(types.Object) bool { return false }); len(c) > 0 {
			found = &plan.Cause{Pos: e.Pos(), Text: "evaluates " + types.ExprString(e) + " before it " + c[0].Why.Text}
		}
		return false
	})
	return found
}
