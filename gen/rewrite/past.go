package rewrite

import (
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"slices"

	"github.com/asyncgen/asyncgen/gen/internal/plan"
)

// past is the proof that what a loop does past an exit, until the exit is
// known, does no harm:
//
//   - what it changes is given back: variables by the state, cells by the library (cells.go).
//     Memory that others can see is never changed ahead of values;
//   - it can't fail where the iterations before did not: an iteration makes the same calls on
//     tensors of the same shapes, and what could fail on the host depends on nothing that changes. The
//     first iteration never runs past an exit: there are few tests in it, or Alike says that it is the first. Or
//     else what fails is dropped: see contain.go;
//   - it comes to an end.
//
// What may wait for the outside, and other statements that run now, are no
// concern: exits are settled before them.
type past struct {
	a       *attempt
	written []*types.Var   // variables that the loop changes ahead of values, in source order
	changed *plan.Effects  // all that the loop changes
	ahead   []*plan.Unit   // what runs past exits
	cells   []plan.CellsOf // that the loop changes and that may not say so
	given   []given
	floats  []given // that must have floating-point numbers

	shapes map[types.Object]shape
	fields map[types.Object]*field
	// tensors from before the loop that each iteration compares with those of the one before
	compared map[types.Object]bool
}

// A given is a tensor from outside, another one in each iteration, and the
// statement of the body in which it is used first.
type given struct {
	tensor ast.Expr
	root   *types.Var
	by     *plan.Stmt
}

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
	p := a.newPast()
	for _, u := range p.ahead {
		if c := u.All().Waits; c != nil && !a.late[u] && u.Stmt != a.loop {
			// Waiting past an exit, for what is never computed, would be a failure.
			a.stay(u, refuse{Reason: reason(*c, plan.WaitsInside)})
			a.settled = append(a.settled, u.Stmt)
			return true
		}
		r := p.of(u)
		if r == nil {
			continue
		}
		if u.Stmt == a.loop || p.always(u.Stmt) || a.contained != nil {
			a.contain(r)
			return true
		}
		a.stay(u, refuse{Reason: *r})
		a.settled = append(a.settled, u.Stmt)
		return true
	}
	if r := cmpOr(p.memory(), p.findCells(), p.guards()); r != nil {
		a.contain(r)
		return true
	}
	a.past = p
	return false
}

// giveUp makes exits wait for their values, because of r. What had to run now
// for their sake need not any more.
func (a *attempt) giveUp(r *plan.Reason) {
	a.harm = r
	a.unsettle()
}

// unsettle lets go what had to run now for the sake of exits.
func (a *attempt) unsettle() {
	for _, s := range a.settled {
		delete(a.now, s)
		delete(a.whole, s)
	}
	a.settled = nil
}

func cmpOr(reasons ...*plan.Reason) *plan.Reason {
	for _, r := range reasons {
		if r != nil {
			return r
		}
	}
	return nil
}

func (a *attempt) newPast() *past {
	p := &past{a: a, changed: &plan.Effects{}, shapes: make(map[types.Object]shape), fields: make(map[types.Object]*field), compared: make(map[types.Object]bool)}
	seen := make(map[*types.Var]bool)
	for _, u := range a.units {
		p.changed.Add(u.All())
		if a.stays(u) || a.exits(u.Stmt) {
			continue
		}
		e := u.Ahead
		if !a.late[u] {
			e = u.All()
		}
		p.ahead = append(p.ahead, u)
		for l := range e.Writes {
			v, ok := l.Obj.(*types.Var)
			if ok && l.Kind == plan.Var && !seen[v] {
				seen[v] = true
				p.written = append(p.written, v)
			}
		}
	}
	slices.SortFunc(p.written, func(v, w *types.Var) int { return int(v.Pos() - w.Pos()) })
	return p
}

// nodes are the parts of u that run ahead.
func (p *past) nodes(u *plan.Unit) (nodes []ast.Node) {
	if p.a.late[u] {
		for _, r := range u.Reads {
			if r.Rows != nil {
				nodes = append(nodes, r.Rows.Count) // what it computes fails where it is needed
				continue
			}
			if r.Assign != nil {
				nodes = append(nodes, r.Assign)
				continue
			}
			nodes = append(nodes, r.Operand)
		}
		for _, e := range u.Held {
			nodes = append(nodes, e)
		}
		return nodes
	}
	return p.a.inPlace(u)
}

// inPlace are the parts of u, which looks at no value, if none of it comes later.
func (a *attempt) inPlace(u *plan.Unit) (nodes []ast.Node) {
	if !u.Stmt.IsCompound() {
		return []ast.Node{u.Stmt.Inner()}
	}
	add := func(list ...ast.Node) {
		for _, n := range list {
			switch n := n.(type) {
			case ast.Stmt, ast.Expr:
				if !isNil(n) {
					nodes = append(nodes, n)
				}
			}
		}
	}
	switch n := u.Stmt.Inner().(type) {
	case *ast.IfStmt:
		for {
			add(n.Init, n.Cond)
			e, ok := n.Else.(*ast.IfStmt)
			if !ok {
				break
			}
			n = e
		}
	case *ast.ForStmt:
		if u.Stmt != a.loop {
			add(n.Init)
		}
		if u.Stmt == a.loop && a.tests != nil {
			for _, e := range a.keep {
				add(e)
			}
		} else {
			add(n.Cond)
		}
		add(n.Post)
	case *ast.RangeStmt:
		if u.Stmt != a.loop {
			add(n.X)
		}
	case *ast.SwitchStmt:
		add(n.Init, n.Tag)
		for _, c := range n.Body.List {
			for _, e := range c.(*ast.CaseClause).List {
				add(e)
			}
		}
	case *ast.TypeSwitchStmt:
		add(n.Init, n.Assign)
	case *ast.SelectStmt:
		for _, c := range n.Body.List {
			add(c.(*ast.CommClause).Comm)
		}
	}
	return nodes
}

// isNil reports whether an interface holds a nil node.
func isNil(n ast.Node) bool {
	switch n := n.(type) {
	case ast.Expr:
		return n == nil
	case ast.Stmt:
		return n == nil
	}
	return true
}

// always reports whether s runs in every iteration, and as often in each.
func (p *past) always(s *plan.Stmt) bool {
	for c := s; c.Parent != nil; c = c.Parent {
		if c.Parent == p.a.loop {
			return !p.skipped(c)
		}
		switch n := c.Parent.Inner().(type) {
		case *ast.BlockStmt:
		case *ast.RangeStmt:
			if !p.fixed(n.X) {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// skipped reports whether some iterations end before they come to s, a
// statement of the body.
func (p *past) skipped(s *plan.Stmt) bool { return p.skippedIn(p.a.loop, s) }

// skippedIn is skipped for an inner loop.
func (p *past) skippedIn(loop, s *plan.Stmt) bool {
	for _, c := range loop.Bodies[0] {
		if c == s {
			return false
		}
		for d := range c.All {
			if restarts(d, loop) {
				return true
			}
		}
	}
	return false
}

// of returns the harm that u could do past an exit, or nil.
func (p *past) of(u *plan.Unit) *plan.Reason {
	e := u.Ahead
	if !p.a.late[u] {
		e = u.All()
	}
	if c, ok := e.Writes[plan.Loc{Kind: plan.Random}]; ok {
		return &plan.Reason{Code: plan.PastRandom, Cause: c, Hint: "draw them before the loop, or with tensor.Rand"}
	}
	if c := firstOf(e.Ends, e.Waits); c != nil {
		return p.fails(*c)
	}
	always := u.Stmt == p.a.loop || p.always(u.Stmt)
	if c := p.endless(u); c != nil {
		return p.fails(*c)
	}
	for _, n := range p.nodes(u) {
		if c := p.partial(n, always, u.Stmt); c != nil {
			return p.fails(*c)
		}
	}
	return nil
}

func (p *past) fails(c plan.Cause) *plan.Reason {
	hint := sooner(c)
	c.Text += ", and the loop runs past its end until the value is there"
	return &plan.Reason{Code: plan.PastFails, Cause: c, Hint: hint}
}

// fixed reports whether e has the same value in every iteration.
func (p *past) fixed(e ast.Expr) bool {
	if tv := p.a.f.Info.Types[e]; tv.Value != nil || tv.IsType() {
		return true
	}
	if v := p.field(e, rootOf(p.a.f, e)); v != nil {
		return !slices.ContainsFunc(p.a.units, func(u *plan.Unit) bool { return p.writes(u, v) })
	}
	found := p.a.f.Effects(e)
	return found.Barrier == nil && found.Clock == nil && found.Polls == nil && !found.Needs(p.changed)
}

// endless returns that an inner loop may not come to an end, or nil.
func (p *past) endless(u *plan.Unit) *plan.Cause {
	n, ok := u.Stmt.Inner().(*ast.ForStmt)
	if !ok || u.Stmt == p.a.loop || p.tests(u.Stmt) {
		return nil
	}
	cond, ok := ast.Unparen(n.Cond).(*ast.BinaryExpr)
	id, isUp := p.counter(n.Post)
	if n.Cond != nil && ok && id != nil {
		counter := p.a.f.Info.ObjectOf(id)
		x, isID := ast.Unparen(cond.X).(*ast.Ident)
		up := isUp && (cond.Op == token.LSS || cond.Op == token.LEQ)
		down := !isUp && (cond.Op == token.GTR || cond.Op == token.GEQ)
		if isID && p.a.f.Info.ObjectOf(x) == counter && (up || down) && p.changedOnlyBy(counter, n) && !p.a.f.Mentions(cond.Y, changedIn(p.a.units, u.Stmt)) {
			return nil
		}
	}
	return &plan.Cause{Pos: n.Pos(), Text: "may go on for ever"}
}

// tests reports whether each iteration of loop, an inner one, comes to a test that ends the loop that is planned. Such a
// loop comes to an end: so many tests are ahead of their values at most.
func (p *past) tests(loop *plan.Stmt) bool {
	return slices.ContainsFunc(p.a.loopExits(), func(s *plan.Stmt) bool {
		for ; s != nil && s != loop; s = s.Parent {
			if _, isBlock := s.Parent.Inner().(*ast.BlockStmt); s.Parent != loop && !isBlock || s.Parent == loop && p.skippedIn(loop, s) {
				return false
			}
		}
		return s == loop
	})
}

// counter returns the variable that the post statement of a loop counts up or down, or nil. By more than 1 it is an int
// or int64, which does not come near to its end in the time that there is.
func (p *past) counter(post ast.Stmt) (id *ast.Ident, isUp bool) {
	switch n := post.(type) {
	case *ast.IncDecStmt:
		id, _ = n.X.(*ast.Ident)
		return id, n.Tok == token.INC
	case *ast.AssignStmt:
		if n.Tok != token.ADD_ASSIGN && n.Tok != token.SUB_ASSIGN {
			return nil, false
		}
		step := p.a.f.Info.Types[n.Rhs[0]].Value
		if step == nil || step.Kind() != constant.Int || constant.Sign(step) <= 0 || constant.BitLen(step) > 31 {
			return nil, false
		}
		id, ok := n.Lhs[0].(*ast.Ident)
		if !ok {
			return nil, false
		}
		b, ok := p.a.f.Info.TypeOf(id).Underlying().(*types.Basic)
		if !ok || b.Kind() != types.Int && b.Kind() != types.Int64 {
			return nil, false
		}
		return id, n.Tok == token.ADD_ASSIGN
	}
	return nil, false
}

// changedOnlyBy reports whether nothing in the body of n changes v.
func (p *past) changedOnlyBy(v types.Object, n *ast.ForStmt) bool {
	for _, u := range p.a.units {
		if n.Body.Pos() <= u.Stmt.Node.Pos() && u.Stmt.Node.Pos() < n.Body.End() && writes(u.Effects, v.(*types.Var)) {
			return false
		}
	}
	return true
}

// changedIn returns the variables that units in s change.
func changedIn(units []*plan.Unit, s *plan.Stmt) map[types.Object]bool {
	var in []*plan.Unit
	for _, u := range units {
		if u.Stmt.Within(s) {
			in = append(in, u)
		}
	}
	return changedBy(in)
}

// carried reports whether v keeps its value from one iteration to the next.
func (p *past) carried(v types.Object) bool {
	loop := p.a.loop.Node
	return v.Pos() < loop.Pos() || loop.End() <= v.Pos()
}
