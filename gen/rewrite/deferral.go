package rewrite

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"

	"github.com/asyncgen/asyncgen/gen/internal/load"
	"github.com/asyncgen/asyncgen/gen/internal/plan"
)

// Function plans what runs later in f. It returns nil if nothing can, and
// remarks on every read in a loop either way. kernel is the directive of f, or
// nil.
func Function(f *plan.Function, kernel *load.Kernel) (*plan.Deferral, []plan.Remark) {
	asked := withoutOff(kernel)
	d, remarks := deferred(f, asked)
	if len(remarks) == 0 {
		return d, inLiterals(f)
	}
	if waits(remarks) == 0 {
		return d, remarks
	}
	if f.HasLiterals() {
		again := f.Again()
		if better, fewer := deferred(again, asked); better != nil && waits(fewer) < waits(remarks) {
			f, d, remarks = again, better, fewer
		}
	}
	var forms []plan.Remark
	for _, step := range asked.steps {
		if step.form == nil {
			continue
		}
		other, changed := step.form(f)
		if other == nil {
			continue
		}
		if better, fewer := deferred(other, asked); better != nil && (waits(fewer) < waits(remarks) || d == nil && waits(fewer) == waits(remarks)) {
			f, d, remarks, forms = other, better, fewer, append(forms, changed...)
		}
	}
	restated, applied, refused := roundTrips(f, asked)
	if restated != nil {
		if better, fewer := deferred(restated, asked); better != nil && waits(fewer) < waits(remarks) {
			return better, slices.Concat(forms, applied, fewer, refused)
		}
	}
	return d, slices.Concat(forms, remarks, refused)
}

// waits is how many reads stay where they are by these remarks.
func waits(remarks []plan.Remark) (n int) {
	for _, r := range remarks {
		if r.Verdict == plan.Refused {
			n++
		}
	}
	return n
}

// deferred plans what runs later in f as it stands.
func deferred(f *plan.Function, kernel *directive) (*plan.Deferral, []plan.Remark) {
	p := &planner{f: f, kernel: kernel, d: &plan.Deferral{Function: f, Window: unbounded, Ahead: kernel.Ahead, Refusals: make(map[ast.Stmt]plan.Code)}}
	for _, step := range kernel.steps {
		if step.begin != nil {
			step.begin(p)
		}
	}
	p.statements(f.Decl.Body.List)
	for _, step := range kernel.steps {
		if step.end != nil {
			step.end(p)
		}
	}
	if len(p.d.Laters) == 0 && len(p.d.Keeps) == 0 {
		return nil, p.remarks
	}
	newNamer(f).name(p.d)
	return p.d, p.remarks
}

// A planner goes through one function.
type planner struct {
	f       *plan.Function
	kernel  *directive
	d       *plan.Deferral
	remarks []plan.Remark
}

// statements looks for the outermost loops among list.
func (p *planner) statements(list []ast.Stmt) {
	for _, s := range list {
		inner := s
		for {
			l, ok := inner.(*ast.LabeledStmt)
			if !ok {
				break
			}
			inner = l.Stmt
		}
		switch n := inner.(type) {
		case *ast.ForStmt, *ast.RangeStmt:
			p.outermost(s)
		case *ast.BlockStmt:
			p.statements(n.List)
		case *ast.IfStmt:
			p.ifs(n)
		case *ast.SwitchStmt:
			p.clauses(n.Body)
		case *ast.TypeSwitchStmt:
			p.clauses(n.Body)
		case *ast.SelectStmt:
			p.clauses(n.Body)
		}
	}
}

func (p *planner) ifs(n *ast.IfStmt) {
	p.statements(n.Body.List)
	switch e := n.Else.(type) {
	case *ast.BlockStmt:
		p.statements(e.List)
	case *ast.IfStmt:
		p.ifs(e)
	}
}

func (p *planner) clauses(body *ast.BlockStmt) {
	for _, c := range body.List {
		switch c := c.(type) {
		case *ast.CaseClause:
			p.statements(c.Body)
		case *ast.CommClause:
			p.statements(c.Body)
		}
	}
}

// outermost plans for a loop that no other loop is around: for all of it if
// possible, else for the loops in it.
func (p *planner) outermost(anchor ast.Stmt) {
	tree := p.f.Tree(anchor)
	if !looksAtValues(tree) {
		return
	}
	later := &plan.Later{Anchor: anchor}
	p.loop(tree, tree, later)
	if len(later.Regions) > 0 {
		p.d.Laters = append(p.d.Laters, later)
	}
}

// looksAtValues reports whether there is anything to gain in a loop.
func looksAtValues(loop *plan.Stmt) bool {
	e, reads := loop.Total()
	return len(reads) > 0 || e.Waits != nil
}

// loop tries one loop and, if it is refused, the loops directly in it. outermost
// is the loop before which the backlog is made.
func (p *planner) loop(loop, outermost *plan.Stmt, later *plan.Later) {
	a, region, refused := p.try(loop, outermost)
	if refused != nil {
		if again, r := p.take(a, loop, outermost); again != nil {
			a, region, refused = again, r, nil
		}
	}
	for _, step := range p.kernel.steps {
		if refused == nil || step.again == nil {
			continue
		}
		if again, r, why := step.again(p, a, loop, outermost); again != nil {
			a, region, refused = again, r, why
		}
	}
	if refused == nil {
		for _, g := range region.Groups {
			g.Later = later
		}
		later.Regions = append(later.Regions, region)
		p.remarks = append(p.remarks, a.applied(p.d.Window)...)
		return
	}
	before := len(later.Regions)
	var inner, left []plan.Remark
	outer := p.remarks
	p.remarks = nil
	for s := range loop.All {
		if s != loop && s.IsLoop() && s.Loop() == loop && looksAtValues(s) {
			n := len(later.Regions)
			p.loop(p.f.Tree(s.Node), outermost, later)
			if s.Begins && len(later.Regions) > n {
				left = append(left, a.refusedHead(s))
			}
		}
	}
	inner, p.remarks = p.remarks, outer
	if len(later.Regions) > before {
		// What else was refused outside does not matter: nothing there waits as often.
		p.remarks = slices.Concat(p.remarks, left, inner)
		if len(left) > 0 {
			p.d.Refusals[loop.Node] = left[0].Code
		}
		return
	}
	p.d.Refusals[loop.Node] = refused[0].Code
	p.remarks = append(p.remarks, refused...)
}

// refusedHead is the remark that the head of s, a loop in the loop, waits.
func (a *attempt) refusedHead(s *plan.Stmt) plan.Remark {
	head := *s
	head.Bodies = nil
	return a.refusal(&head, refuse{Reason: plan.Reason{Code: plan.LoopHeader,
		Cause: plan.Cause{Pos: s.Node.Pos(), Text: "decides whether the loop goes on"}}})
}

// try plans for one loop. What is computed row by row in loops of it is
// computed together as far as these loops come later.
func (p *planner) try(loop, outermost *plan.Stmt) (*attempt, *plan.Region, []plan.Remark) {
	for apart := make(map[ast.Stmt]bool); ; {
		a := newAttempt(p.f, p.kernel, loop, outermost)
		batched := a.batch(apart)
		region, refused := a.plan()
		n := len(apart)
		for _, l := range batched {
			if refused != nil || !a.isLate(l) {
				apart[l.Node] = true
			}
		}
		if len(apart) == n {
			return a, region, refused
		}
		fresh := p.f.Tree(loop.Node)
		if outermost == loop {
			outermost = fresh
		}
		loop = fresh
	}
}

// An attempt decides, for each statement of a loop, whether it runs ahead, as
// written; later, when the values that it needs have arrived; or now, which is
// as written with everything before it done first.
type attempt struct {
	f         *plan.Function
	kernel    *directive
	loop      *plan.Stmt
	outermost *plan.Stmt // the loop that loop is in, or loop itself

	whole map[*plan.Stmt]bool   // compound statements that are moved, or stay, with all that is in them
	now   map[*plan.Stmt]refuse // the reason why a statement can't run later although it should
	units []*plan.Unit
	graph *plan.Graph
	late  map[*plan.Unit]bool
	by    map[*plan.Unit]plan.Step

	counts bool                // see isCount
	undone map[*plan.Stmt]bool // what changes memory of others ahead of values: see undo.go

	// Of exits, see exit.go and past.go.
	valued      map[types.Object]bool // what gets values later, if the loop's own condition needs that
	keep, tests []ast.Expr            // the parts of the loop's condition, if it is divided
	past        *past                 // what runs past the exits
	harm        *plan.Reason          // why no value may decide later that the loop ends
	contained   *plan.Reason          // why it may only if Iterate runs each iteration: see contain.go
	settled     []*plan.Stmt          // what runs now because it must not run past an exit
}

// refuse is why a statement must run now.
type refuse struct {
	plan.Reason
	via  []plan.Related // how the need arose, first things first
	read *plan.Read     // what it began with, or nil
}

func newAttempt(f *plan.Function, kernel *directive, loop, outermost *plan.Stmt) *attempt {
	return &attempt{f: f, kernel: kernel, loop: loop, outermost: outermost, whole: make(map[*plan.Stmt]bool), now: make(map[*plan.Stmt]refuse), undone: make(map[*plan.Stmt]bool)}
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
	if a.tests != nil && !a.isLate(a.loop.Bodies[0][0]) {
		return nil, a.refusals()
	}
	if !a.gains() {
		return nil, a.refusals()
	}
	a.gather()
	r := a.region()
	if s, why := a.undeclarable(r); s != nil {
		i := slices.IndexFunc(a.units, func(u *plan.Unit) bool { return u.Stmt == s })
		a.stay(a.units[i], a.explain(a.units[i], why))
		return a.plan()
	}
	if why := a.exitsOf(r); why != nil {
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
func (a *attempt) impossible() *refuse {
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
			for _, c := range []*plan.Cause{s.Head.Stamps, polls(s), s.Head.Clock} {
				if c != nil {
					return &refuse{Reason: plan.Reason{Code: plan.Exempt, Cause: *c, Hint: "without strict, the difference in time is accepted"}}
				}
			}
		}
	}
	return nil
}

// polls returns where s looks at a state outside the program, or nil: itself, or in a function that
// is called in two parts.
func polls(s *plan.Stmt) *plan.Cause {
	c := s.Head.Polls
	for _, r := range s.Reads {
		c = firstOf(c, r.Effects.Polls)
	}
	return c
}

// round finds what must run later, and reports whether that showed that a
// statement must be treated otherwise than the round assumed.
func (a *attempt) round() (changed bool) {
	a.units = plan.Units(a.loop, func(s *plan.Stmt) bool { return a.whole[s] })
	for _, u := range a.units {
		if c := u.Effects.Barrier; c != nil && !a.stays(u) {
			a.stay(u, refuse{Reason: reason(*c, plan.UnknownEffects)})
			return true
		}
	}
	a.graph = plan.NewGraph(a.units, a.follows)
	var seeds []*plan.Unit
	for _, u := range a.units {
		if !a.stays(u) && !a.exits(u.Stmt) && (len(u.Reads) > 0 || a.shows(u.Effects, u.Stmt) || a.isReturn(u.Stmt) || a.isCount(u)) {
			seeds = append(seeds, u)
		}
	}
	var reached []*plan.Unit
	reached, a.by = a.graph.Reach(seeds, a.passes)
	a.late = make(map[*plan.Unit]bool)
	for _, u := range reached {
		switch {
		case a.stays(u):
		case a.splits(u):
			if u.Stmt == a.loop {
				if root := a.rootWithoutValue(u); root != nil && root != u && a.runsAhead(root) {
					return true
				}
				a.valued = changedBy(slices.DeleteFunc(slices.Clone(reached), func(w *plan.Unit) bool { return w == u }))
				r := plan.Reason{Code: plan.LoopHeader, Cause: plan.Cause{Pos: u.Stmt.Node.Pos(), Text: "decides whether the loop goes on"}, Hint: a.ranged(u)}
				if v := a.seenCounter(u); v != nil {
					r = plan.Reason{Code: plan.SharedMemory, Cause: *v, Hint: keepLocal(*v)}
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
				if root := a.rootWithoutValue(u); root != nil && (r.Code == plan.FeedsDevice || root != u && r.Code == plan.DecidesDevice) && !a.isReturn(root.Stmt) {
					if a.runsAhead(root) {
						return true
					}
					// What that shows is the reason, not what this feeds; and if it runs in some iterations
					// only, it is what runs now.
					c := shown(a, root.Effects)
					why := refuse{Reason: plan.Reason{Code: plan.SharedMemory, Cause: c, Hint: keepLocal(c)}}
					if a.staySeldom(root, why) {
						return true
					}
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
	return changed || a.operands() || a.complete()
}

// ranged returns what to write where the head of the loop, u, ranges over memory that may be what a
// value is put into, or "".
func (a *attempt) ranged(u *plan.Unit) string {
	n, ok := u.Stmt.Inner().(*ast.RangeStmt)
	step := a.by[u]
	if !ok || !step.First.IsMemory() || !step.Second.IsMemory() || a.f.Variable(n.X) == nil {
		return ""
	}
	pkg := ""
	switch a.f.Info.TypeOf(n.X).Underlying().(type) {
	case *types.Slice:
		pkg = "slices"
	case *types.Map:
		pkg = "maps"
	default:
		return ""
	}
	return fmt.Sprintf("both may be the same memory: before the loop, mine := %s.Clone(%s), and range over mine", pkg, types.ExprString(n.X))
}

// passes reports whether u can be put off, so that what follows it has to be as well.
func (a *attempt) passes(u *plan.Unit) bool {
	return !a.stays(u) && !a.splits(u) && a.obstacle(u) == nil
}

// rootWithoutValue returns the unit because of which u would have to run later, if none on the way
// from there looks at a value: what it changes can be seen. Otherwise it returns nil.
func (a *attempt) rootWithoutValue(u *plan.Unit) *plan.Unit {
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
func (a *attempt) seenCounter(u *plan.Unit) (first *plan.Cause) {
	if _, reachedByValue := a.by[u]; reachedByValue || len(u.Reads) > 0 {
		return nil
	}
	for l, c := range u.Effects.Writes {
		if l.Kind == plan.Var && a.isShown(l) && (first == nil || c.Pos < first.Pos) {
			first = &c
		}
	}
	return first
}

// stays reports whether u has been found to run now.
func (a *attempt) stays(u *plan.Unit) bool { _, ok := a.now[u.Stmt]; return ok }

// splits reports whether u is the head of a compound statement, which can
// only go together with what it heads.
func (a *attempt) splits(u *plan.Unit) bool { return u.Stmt.IsCompound() && !u.Whole }

// stay makes u run now.
func (a *attempt) stay(u *plan.Unit, r refuse) {
	a.now[u.Stmt] = r
	if u.Stmt.IsCompound() {
		a.whole[u.Stmt] = true
	}
}

// follows reports why v, which does all, must be put off if u is.
func (a *attempt) follows(u, v *plan.Unit, all *plan.Effects) (plan.Conflict, bool) {
	if a.stays(v) || a.exits(v.Stmt) {
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

// shows reports whether e, which is of s, changes what others than this
// function can see, at the latest when it panics: then it may not run ahead of
// what may panic.
func (a *attempt) shows(e *plan.Effects, s *plan.Stmt) bool {
	for l := range e.Writes {
		if a.isShown(l) && !s.Declares[l.Obj] && !(l.IsMemory() && a.undone[s]) {
			return true
		}
	}
	return false
}

func (a *attempt) isShown(l plan.Loc) bool {
	switch l.Kind {
	case plan.Var, plan.Own:
		return a.f.Visible(l.Obj)
	}
	return l.Kind == plan.World || l.IsMemory()
}

// runsAhead makes the part of u that does not come later run ahead although it changes what others
// can see, and reports whether that can be.
func (a *attempt) runsAhead(u *plan.Unit) bool {
	return slices.ContainsFunc(a.kernel.steps, func(step *Step) bool { return step.ahead != nil && step.ahead(a, u) })
}

// exits reports whether s is a way out of the loop that is taken once at most:
// a jump, or a call that does not return. What is put off is done before it.
func (a *attempt) exits(s *plan.Stmt) bool {
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
func (a *attempt) neverReturns(s *plan.Stmt) bool {
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

// obstacle returns why u can't run later, or nil if it can.
func (a *attempt) obstacle(u *plan.Unit) *plan.Reason {
	e := u.Effects
	if r := a.noExit(u); r != nil {
		return r
	}
	if jump := plan.Leaves(u.Stmt.Node); jump != nil && !a.isReturn(u.Stmt) && !isExit(u.Stmt) && (!u.Whole || skips(u.Stmt) == nil) {
		return &plan.Reason{Code: plan.DecidesExit, Cause: plan.Cause{Pos: jump.Pos(), Text: "decides whether the loop goes on"},
			Hint: "test every so many iterations: the wait then comes as rarely"}
	}
	for _, c := range []*plan.Cause{e.Barrier, e.Waits, e.Leaves} {
		if c != nil {
			r := reason(*c, plan.UnknownEffects)
			return &r
		}
	}
	if e.Ends != nil && (a.lastEntry(u) || a.loop.IsCall && a.neverReturns(u.Stmt)) {
		return &plan.Reason{Code: plan.DecidesExit, Cause: *e.Ends, Hint: "give the loop a condition, or return from it"}
	}
	if e.Enqueues != nil {
		r := plan.Reason{Code: plan.FeedsDevice, Cause: *e.Enqueues, Hint: onTensors(*e.Enqueues)}
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
func (a *attempt) takeNow(u *plan.Unit, c plan.Cause) string {
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
func (a *attempt) carried(u *plan.Unit) *plan.Reason {
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
func (a *attempt) carrier(u *plan.Unit) *plan.Stmt {
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
func (a *attempt) lastEntry(u *plan.Unit) bool {
	for l := u.Stmt.Loop(); l != nil; l = l.Loop() {
		if !l.IsBounded() && (u.Stmt.Parent != l || a.continues(l)) {
			return true
		}
	}
	return false
}

// continues reports whether some iterations of loop may end before the end of
// its body.
func (a *attempt) continues(loop *plan.Stmt) bool {
	for s := range loop.All {
		if b, ok := s.Inner().(*ast.BranchStmt); ok && b.Tok == token.CONTINUE {
			return true
		}
	}
	return false
}

// entangled returns why the reads of u can't be taken before it, or nil.
func (a *attempt) entangled(u *plan.Unit) *plan.Reason {
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
func (a *attempt) conditional(u *plan.Unit, r *plan.Read) *plan.Cause {
	if r.Rows != nil || r.Fixed {
		return nil // it may be taken in vain
	}
	whole := u.Stmt.Node
	if r.Plain != nil && (whole.Pos() > r.Plain.Pos() || r.Plain.Pos() >= whole.End()) && !writes(u.Effects, r.Plain) {
		return nil
	}
	var start ast.Node = u.Stmt.Inner()
	if u.Stmt.IsTest {
		start = a.tests[0]
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

// changedBy returns the variables that units change.
func changedBy(units []*plan.Unit) map[types.Object]bool {
	objs := make(map[types.Object]bool)
	for _, u := range units {
		for l := range u.Effects.Writes {
			if l.Kind == plan.Var || l.Kind == plan.Own {
				objs[l.Obj] = true
			}
		}
	}
	return objs
}

func writes(e *plan.Effects, v *types.Var) bool {
	_, ok := e.Writes[plan.Loc{Kind: plan.Var, Obj: v}]
	return ok
}

// before returns a call with effects in u that the program makes before it
// evaluates the operand of r, or nil.
func (a *attempt) before(u *plan.Unit, r *plan.Read) (found *plan.Cause) {
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
		if c := firstOf(u.Ahead.Barrier, u.Ahead.Waits, u.Ahead.Leaves); c != nil {
			a.stay(u, a.explain(u, reason(*c, plan.FeedsDevice)))
			changed = true
			continue
		}
		if a.shows(u.Ahead, u.Stmt) && a.runsAhead(u) {
			changed = true
			continue
		}
		if a.shows(u.Ahead, u.Stmt) {
			c := shown(a, u.Ahead)
			a.stay(u, a.explain(u, plan.Reason{Code: plan.SharedMemory, Cause: c, Hint: keepLocal(c)}))
			changed = true
			continue
		}
		for _, w := range a.units {
			if !a.late[w] {
				continue
			}
			if c := plan.Overtakes(w.Effects, u.Ahead, u, a.f.CanCopy); len(c) > 0 {
				if root := a.rootWithoutValue(w); root != nil && a.runsAhead(root) {
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

func firstOf(causes ...*plan.Cause) *plan.Cause {
	for _, c := range causes {
		if c != nil {
			return c
		}
	}
	return nil
}

// shown returns the first change in e that others can see.
func shown(a *attempt, e *plan.Effects) (first plan.Cause) {
	for l, c := range e.Writes {
		if !a.isShown(l) {
			continue
		}
		if first.Pos == token.NoPos || c.Pos < first.Pos || c.Pos == first.Pos && c.Text < first.Text {
			first = c
		}
	}
	return first
}

// reason turns a cause into a reason.
func reason(c plan.Cause, otherwise plan.Code) plan.Reason {
	r := plan.Reason{Code: c.Code, Cause: c}
	if r.Code == "" {
		r.Code = otherwise
	}
	switch r.Code {
	case plan.UnknownEffects:
		r.Hint = "move the call out of the loop, or say what the function does with //asyncgen:pure or //asyncgen:effects"
	case plan.Blocks:
		r.Hint = "move it out of the loop, or do it every so many iterations"
	case plan.WaitsInside:
		r.Hint = "let the function return the tensor, and read it in the loop"
	case plan.OnlyNow:
		r.Hint = "read it with Item, At, Float32s or their like, or print the tensor itself"
	}
	return r
}
