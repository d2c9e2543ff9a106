package rewrite

import (
	"go/ast"
	"go/token"
	"maps"
	"slices"

	"github.com/asyncgen/asyncgen/gen/internal/load"
	"github.com/asyncgen/asyncgen/gen/internal/plan"
	"github.com/asyncgen/asyncgen/gen/rewrite/naming"
	"github.com/asyncgen/asyncgen/gen/rewrite/numbers"
	"github.com/asyncgen/asyncgen/gen/rewrite/rows"
)

// Function plans what runs later in f. It returns nil if nothing can, and remarks either way: on the reads in loops,
// but for those that wait in a loop in which another loop runs ahead, as they wait less often. kernel is the directive
// of f, or nil.
func Function(f *plan.Function, kernel *load.Kernel) (*plan.Deferral, []plan.Remark) {
	asked := withoutOff(kernel)
	whole := f
	d, remarks := deferrable(f, asked)
	inside := inLiterals(whole, remarks)
	if d == nil && (waits(remarks)+len(inside) > 0 || kernel == nil || kernel.Pos == token.NoPos) {
		return nil, append(remarks, inside...)
	}
	if d != nil {
		f = d.Function
	}
	for _, step := range asked.steps {
		if step.finish == nil {
			continue
		}
		other, changed := step.finish(f)
		if other == nil {
			continue
		}
		if better, fewer := planned(other, asked); waits(fewer) <= waits(remarks) {
			f, d, remarks = other, better, append(remarks, changed...)
		}
	}
	return d, append(remarks, inside...)
}

// deferrable is Function without the steps that finish it.
func deferrable(f *plan.Function, asked *directive) (*plan.Deferral, []plan.Remark) {
	d, remarks := deferred(f, asked)
	if waits(remarks) == 0 {
		return d, remarks
	}
	if f.HasLiterals() {
		again := f.Again()
		if better, fewer := deferred(again, asked); better != nil && waits(fewer) < waits(remarks) {
			f, d, remarks = again, better, fewer
		}
	}
	type version struct {
		f     *plan.Function
		forms []plan.Remark
	}
	now, others := version{f, nil}, []version(nil)
	for _, step := range asked.steps {
		if step.form == nil {
			continue
		}
		other, changed := step.form(now.f)
		if other == nil {
			continue
		}
		next := version{other, slices.Concat(now.forms, changed)}
		if better, fewer := deferred(other, asked); better != nil && (waits(fewer) < waits(remarks) || d == nil && waits(fewer) == waits(remarks)) {
			now, d, remarks = next, better, fewer
		} else {
			others = append(others, next)
		}
	}
	var why []plan.Remark // numbers stay on the host
	all, left := slices.Concat(now.forms, remarks), waits(remarks)
	candidates := append([]version{now}, others...)
	if prepared := numbers.Prepare(now.f); prepared != nil && left > 0 {
		candidates = append(candidates, version{prepared, now.forms})
	}
	for _, v := range candidates {
		if left == 0 {
			break
		}
		restated, applied, refused := numbers.Restate(v.f, asked.numbers())
		if why == nil {
			why = refused
		}
		if restated == nil {
			continue
		}
		if better, fewer := deferred(restated, asked); better != nil && waits(fewer) < left {
			d, left, all, why = better, waits(fewer), slices.Concat(v.forms, applied, fewer, refused), []plan.Remark{}
		}
	}
	return d, slices.Concat(all, why)
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

// deferred plans what runs later in f as it stands. The plan is nil if nothing does.
func deferred(f *plan.Function, kernel *directive) (*plan.Deferral, []plan.Remark) {
	d, remarks := planned(f, kernel)
	if len(d.Laters) == 0 && len(d.Keeps) == 0 {
		return nil, remarks
	}
	return d, remarks
}

// planned is deferred with a plan in any case.
func planned(f *plan.Function, kernel *directive) (*plan.Deferral, []plan.Remark) {
	p := &planner{kernel: kernel, d: &plan.Deferral{Window: unbounded, Ahead: kernel.Ahead, Refusals: make(map[ast.Stmt]plan.Code)}}
	p.use(f)
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
	naming.Name(p.d)
	return p.d, p.remarks
}

// keep has rows computed together that nobody looks at.
func (p *planner) keep() { p.remarks = append(p.remarks, rows.Keep(p.d)...) }

// A planner goes through one function.
type planner struct {
	f       *plan.Function
	kernel  *directive
	d       *plan.Deferral
	remarks []plan.Remark
}

// use goes on with f, which is the function with more allowed.
func (p *planner) use(f *plan.Function) { p.f, p.d.Function = f, f }

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
// is the loop before which the backlog is made. Both are only looked at: each attempt makes a tree of its own.
func (p *planner) loop(loop, outermost *plan.Stmt, later *plan.Later) {
	a, region, refused := p.try(p.f, loop, outermost)
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
	before, refusals := len(later.Regions), maps.Clone(p.d.Refusals)
	if refused == nil {
		made := report{a.schedule}.applied(p.d.Window)
		if a.endsInside() { // a loop that itself runs past its end waits less
			f := p.f
			left, inner := p.inner(a, loop, outermost, later)
			if len(later.Regions) > before && waits(left)+waits(inner) == 0 {
				p.remarks = append(p.remarks, inner...)
				return
			}
			later.Regions, p.d.Refusals = later.Regions[:before], refusals
			p.use(f)
		}
		for _, g := range region.Groups {
			g.Later = later
		}
		later.Regions = append(later.Regions, region)
		p.remarks = append(p.remarks, made...)
		return
	}
	left, inner := p.inner(a, loop, outermost, later)
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

// inner plans the loops that are directly in loop, after the attempt a at loop itself. It returns remarks on the heads
// of these loops, and all others.
func (p *planner) inner(a *attempt, loop, outermost *plan.Stmt, later *plan.Later) (heads, remarks []plan.Remark) {
	outer := p.remarks
	p.remarks = nil
	for s := range loop.All {
		if s != loop && s.IsLoop() && s.Loop() == loop && looksAtValues(s) {
			n := len(later.Regions)
			p.loop(p.f.Tree(s.Node), outermost, later)
			if s.Begins && len(later.Regions) > n {
				heads = append(heads, a.refusedHead(s))
			}
		}
	}
	remarks, p.remarks = p.remarks, outer
	return heads, remarks
}

// endsInside reports whether a loop in the loop waits for a value that ends it.
func (a *schedule) endsInside() bool {
	for s, r := range a.now {
		if r.Code == plan.DecidesExit && s.Loop() != nil && s.Loop() != a.loop {
			return true
		}
	}
	return false
}

// refusedHead is the remark that the head of s, a loop in the loop, waits.
func (a *target) refusedHead(s *plan.Stmt) plan.Remark {
	head := *s
	head.Bodies = nil
	return a.refusal(&head, refuse{Reason: plan.Reason{Code: plan.LoopHeader,
		Cause: plan.Cause{Pos: s.Node.Pos(), Text: "decides whether the loop goes on"}}})
}

// try plans for one loop of f, which is the planner's or allows more. What is computed row by row in loops of it is
// computed together as far as these loops come later.
func (p *planner) try(f *plan.Function, loop, outermost *plan.Stmt) (*attempt, *plan.Region, []plan.Remark) {
	for apart := make(map[ast.Stmt]bool); ; {
		a := p.attempt(f, loop, outermost)
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
	}
}

// attempt returns an attempt at loop, a loop of f, with a tree of its own.
func (p *planner) attempt(f *plan.Function, loop, outermost *plan.Stmt) *attempt {
	tree := f.Tree(loop.Node)
	if outermost == loop {
		outermost = tree
	}
	return newAttempt(f, p.kernel, tree, outermost)
}

// batch finds the outermost loops of a.loop in which everything that is computed and read is of
// rows, and makes each one unit. It returns them. Loops in apart are left alone.
func (a *attempt) batch(apart map[ast.Stmt]bool) (loops []*plan.Stmt) {
	var visit func(s *plan.Stmt)
	visit = func(s *plan.Stmt) {
		if s.IsLoop() && !apart[s.Node] && rows.Together(a.f, s, a.kernel.rows()) {
			a.whole[s] = true
			loops = append(loops, s)
			return
		}
		for c := range s.Children {
			visit(c)
		}
	}
	visit(a.loop)
	return loops
}
