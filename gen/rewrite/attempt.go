package rewrite

import (
	"fmt"
	"go/ast"
	"go/types"
	"slices"
	"strings"

	"github.com/asyncgen/asyncgen/gen/internal/plan"
)

// An attempt decides, for each statement of a loop, whether it runs ahead, as
// written; later, when the values that it needs have arrived; or now, which is
// as written with everything before it done first.
type attempt struct{ *obstacles }

// newAttempt returns an attempt at loop, a tree that is for nothing else.
func newAttempt(f *plan.Function, kernel *directive, loop, outermost *plan.Stmt) *attempt {
	return &attempt{&obstacles{&schedule{target: &target{f: f, kernel: kernel, loop: loop, outermost: outermost},
		whole: make(map[*plan.Stmt]bool), now: make(map[*plan.Stmt]refuse), undone: make(map[*plan.Stmt]bool)}}}
}

// plan returns the plan for the loop, or the remarks that refuse it.
func (a *attempt) plan() (*plan.Region, []plan.Remark) {
	if r := a.impossible(); r != nil {
		return nil, []plan.Remark{a.refusal(a.loop, *r)}
	}
	a.settle()
	if r, ok := a.now[a.loop]; ok {
		return nil, []plan.Remark{a.refusal(a.loop, r)}
	}
	// The part of the condition that is tested in the body is to come later.
	if a.loop.Tests != nil && !a.isLate(a.loop.Bodies[0][0]) {
		return nil, report{a.schedule}.refusals()
	}
	if !a.gains() {
		return nil, report{a.schedule}.refusals()
	}
	a.gather()
	l := &layout{a.schedule}
	r := l.region()
	if s, why := l.undeclarable(r); s != nil {
		i := slices.IndexFunc(a.units, func(u *plan.Unit) bool { return u.Stmt == s })
		a.stay(a.units[i], a.explain(a.units[i], why))
		return a.plan()
	}
	if why := l.exitsOf(r); why != nil {
		a.giveUp(why)
		return a.plan()
	}
	return r, nil
}

// settle finds what runs when.
func (a *attempt) settle() {
	for a.round() || a.disproves() {
	}
}

// impossible finds what rules out the loop at once.
func (a *target) impossible() *refuse {
	if g := a.f.Goto(); g != nil {
		return &refuse{Reason: plan.Reason{Code: plan.Jumps, Cause: *g, Hint: "use loops and labelled break or continue"}}
	}
	if u := a.f.Unsafe(); u != nil {
		return &refuse{Reason: plan.Reason{Code: plan.SharedMemory, Cause: *u, Hint: "leave what needs package unsafe to the callers of the function"}}
	}
	if r := a.timing(); r != nil {
		return r
	}
	for s := range a.outermost.All {
		if d, ok := s.Node.(*ast.DeferStmt); ok {
			return &refuse{Reason: plan.Reason{Code: plan.DeferInLoop, Cause: plan.Cause{Pos: d.Pos(), Text: "defers a call in the loop, which would run before what is put off"},
				Hint: "move the body of the loop into a function, or the defer out of it"}}
		}
	}
	for s := range a.loop.All {
		if a.kernel.Strict {
			for _, c := range []*plan.Cause{s.Head.Stamps, looksOutside(s), s.Head.Clock} {
				if c != nil {
					return &refuse{Reason: plan.Reason{Code: plan.Exempt, Cause: *c, Hint: "without strict, the difference in time is accepted"}}
				}
			}
		}
	}
	return nil
}

// looksOutside returns where s looks at a state outside the program, or nil: itself, or in a function that
// is called in two parts.
func looksOutside(s *plan.Stmt) *plan.Cause {
	c := s.Head.Polls
	for _, r := range s.Reads {
		c = plan.FirstOf(c, r.Effects.Polls)
	}
	return c
}

// round finds what must run later, and reports whether that showed that a
// statement must be treated otherwise than the round assumed.
func (a *attempt) round() (changed bool) {
	a.units = plan.Units(a.loop, func(s *plan.Stmt) bool { return a.whole[s] })
	for _, u := range a.units {
		if c := u.Effects.Barrier; c != nil && !a.stays(u) {
			a.stay(u, refuse{Reason: plan.ReasonOf(*c, plan.UnknownEffects)})
			return true
		}
	}
	a.graph = plan.NewGraph(a.units, a.follows)
	var seeds []*plan.Unit
	for _, u := range a.units {
		if !a.stays(u) && !a.jumpsOut(u.Stmt) && (len(u.Reads) > 0 || a.shows(u.Effects, u.Stmt) || a.isReturn(u.Stmt) || a.isCount(u)) {
			seeds = append(seeds, u)
		}
	}
	var reached []*plan.Unit
	reached, a.by = a.graph.Reach(seeds, a.passes)
	a.late = make(map[*plan.Unit]bool)
	for _, u := range reached {
		switch {
		case a.stays(u):
		case a.isHead(u):
			if u.Stmt == a.loop {
				if root := a.rootWithoutValue(u); root != nil && root != u && a.letRunAhead(root) {
					return true
				}
				a.valued = plan.ChangedBy(slices.DeleteFunc(slices.Clone(reached), func(w *plan.Unit) bool { return w == u }))
				r := plan.Reason{Code: plan.LoopHeader, Cause: plan.Cause{Pos: u.Stmt.Node.Pos(), Text: "decides whether the loop goes on"}, Hint: a.ranged(u)}
				if v := a.seenCounter(u); v != nil {
					r = plan.Reason{Code: plan.SharedMemory, Cause: *v, Hint: a.keepLocal(*v)}
				}
				a.now[u.Stmt] = a.explain(u, r)
				return false
			}
			a.whole[u.Stmt] = true
			return true
		default:
			if l := a.carrier(u); l != nil && !a.whole[l] {
				a.whole[l] = true
				return true
			}
			if r := a.obstacle(u); r != nil {
				// No value asks for this, only what root shows: if that can be given back, root runs ahead after all.
				if root := a.rootWithoutValue(u); root != nil && (r.Code == plan.FeedsDevice || root != u && r.Code == plan.DecidesDevice) && !a.isReturn(root.Stmt) {
					if a.letRunAhead(root) {
						return true
					}
					// What that shows is the reason, not what this feeds; and if it runs in some iterations
					// only, it is what runs now.
					why := a.explain(u, *r)
					if c := root.Effects.Writes.First(a.isShown); c != nil {
						why = refuse{Reason: plan.Reason{Code: plan.SharedMemory, Cause: *c, Hint: a.keepLocal(*c)}}
					}
					if a.staySeldom(root, why) {
						return true
					}
					// Better that root runs now in some iterations than u in each.
					if !a.stays(root) && isConditional(root.Stmt, a.loop) && !isConditional(u.Stmt, a.loop) {
						a.stay(root, why)
						return true
					}
					a.stay(u, why)
				} else if why := a.explain(u, *r); !isConditional(u.Stmt, a.loop) && a.stayGuarded(u, why) {
					return true
				} else {
					a.stay(u, why)
				}
				changed = true
				continue
			}
			a.late[u] = true
		}
	}
	return changed || a.operands() || a.keepSkips()
}

// ranged returns what to write where the head of the loop, u, needs memory that may be what a value is put into, or "".
func (a *schedule) ranged(u *plan.Unit) string {
	const shared = "both may be the same memory: "
	n, ok := u.Stmt.Inner().(*ast.RangeStmt)
	step := a.by[u]
	switch f, isFor := u.Stmt.Inner().(*ast.ForStmt); {
	case isFor && isFieldCounter(f.Post):
		return fmt.Sprintf("let a variable of the function count, and set %s after the loop", types.ExprString(f.Post.(*ast.IncDecStmt).X))
	case isFor && f.Post != nil && step.First.Kind == plan.Var && step.From != nil && plan.Leaves(step.From.Stmt.Node) != nil &&
		a.f.Mentions(f.Post, map[types.Object]bool{step.First.Obj: true}):
		return fmt.Sprintf("set another variable than %s there: the loop counts in it", step.First.Obj.Name())
	case !step.First.IsMemory() || !step.Second.IsMemory():
		return ""
	case !ok:
		place, reads := strings.CutPrefix(step.Why.Text, "reads ")
		if !reads || !a.isBefore(place) {
			return ""
		}
		return fmt.Sprintf(shared+"write mine := %s before the loop, and mine in its head", place)
	}
	x := types.ExprString(n.X)
	switch a.f.Info.TypeOf(n.X).Underlying().(type) {
	case *types.Slice:
		return fmt.Sprintf(shared+"before the loop, mine := slices.Clone(%s), and range over mine", x)
	case *types.Map:
		return fmt.Sprintf(shared+"before the loop, mine := maps.Clone(%s), and range over mine", x)
	}
	return ""
}

// isFieldCounter reports whether s counts in something that is no variable: m.N++.
func isFieldCounter(s ast.Stmt) bool {
	inc, ok := s.(*ast.IncDecStmt)
	if ok {
		_, ok = ast.Unparen(inc.X).(*ast.SelectorExpr)
	}
	return ok
}

// passes reports whether u can be put off, so that what follows it has to be as well.
func (a *attempt) passes(u *plan.Unit) bool {
	return !a.stays(u) && !a.isHead(u) && a.obstacle(u) == nil
}

// rootWithoutValue returns the unit because of which u would have to run later, if none on the way
// from there looks at a value: what it changes can be seen. Otherwise it returns nil.
func (a *schedule) rootWithoutValue(u *plan.Unit) *plan.Unit {
	for {
		step, ok := a.by[u]
		switch {
		case len(u.Reads) > 0:
			return nil
		case !ok:
			return u
		}
		u = step.From
	}
}

// staySeldom makes what u shows run now if that is in some iterations only, and reports whether it is.
func (a *attempt) staySeldom(u *plan.Unit, r refuse) (found bool) {
	for s := range u.Stmt.All {
		if _, stays := a.now[s]; !stays && !s.IsCompound() && isConditional(s, a.loop) && a.shows(s.Head, s) {
			a.now[s] = r
			found = true
		}
	}
	if found {
		delete(a.whole, u.Stmt)
	}
	return found
}

// stayGuarded makes reads because of which u, which runs in every iteration, would have to run later, run now if they
// are in some iterations only. It reports whether there are any.
func (a *attempt) stayGuarded(u *plan.Unit, r refuse) (found bool) {
	root := u
	for len(root.Reads) == 0 {
		step, ok := a.by[root]
		if !ok {
			return false
		}
		root = step.From
	}
	if root == u {
		return false
	}
	for s := range root.Stmt.All {
		if _, stays := a.now[s]; !stays && !s.IsCompound() && len(s.Reads) > 0 && isConditional(s, a.loop) {
			a.now[s] = r
			found = true
		}
	}
	if found {
		delete(a.whole, root.Stmt)
	}
	return found
}

// seenCounter returns that the head of the loop, u, changes a variable that others see, such as a deferred
// function, and that this alone is why it would have to run later; or nil.
func (a *schedule) seenCounter(u *plan.Unit) *plan.Cause {
	if _, reachedByValue := a.by[u]; reachedByValue || len(u.Reads) > 0 {
		return nil
	}
	return u.Effects.Writes.First(func(l plan.Loc) bool { return l.Kind == plan.Var && a.isShown(l) })
}

// stay makes u run now.
func (a *attempt) stay(u *plan.Unit, r refuse) {
	a.now[u.Stmt] = r
	if u.Stmt.IsCompound() {
		a.whole[u.Stmt] = true
	}
}

// follows reports why v, which does all, must be put off if u is.
func (a *attempt) follows(u, v *plan.Unit, all *plan.Effects) (plan.Conflict, bool) {
	if a.stays(v) || a.jumpsOut(v.Stmt) {
		return plan.Conflict{}, false // everything before it is done first
	}
	if u.Whole && cuts(u.Stmt) && isSkipped(u.Stmt, v) {
		return plan.Conflict{Why: plan.Cause{Pos: v.Stmt.Node.Pos(), Text: "runs only if the iteration has not ended before"}}, true
	}
	found := plan.Overtakes(u.Effects, all, v, func(obj types.Object) bool {
		return a.f.CanCopy(obj) && !a.onlyFor(v, obj)
	})
	if len(found) == 0 {
		return plan.Conflict{}, false
	}
	return found[0], true
}

// onlyFor reports whether v, a simple statement on the host, only keeps obj up
// to date for statements that run later, so that it may as well go with them.
func (a *attempt) onlyFor(v *plan.Unit, obj types.Object) bool {
	if v.Stmt.IsCompound() || len(v.Reads) > 0 || a.obstacle(v) != nil {
		return false
	}
	at := plan.Loc{Kind: plan.Var, Obj: obj}
	for _, w := range a.units {
		if w == v || a.stays(w) {
			continue
		}
		if _, reads := w.Effects.Reads[at]; reads && !a.shows(w.Effects, w.Stmt) && len(w.Reads) == 0 {
			return false
		}
		if _, reads := w.Ahead.Reads[at]; reads {
			return false
		}
	}
	return true
}

// letRunAhead makes the part of u that does not come later run ahead although it changes what others
// can see, and reports whether that can be.
func (a *attempt) letRunAhead(u *plan.Unit) bool {
	return slices.ContainsFunc(a.kernel.steps, func(step *Step) bool { return step.ahead != nil && step.ahead(a, u) })
}
