package blocking

import (
	"go/ast"
	"go/token"
	"go/types"
	"math"
	"slices"

	"github.com/asyncgen/asyncgen/analysis/internal/syntax"
	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"golang.org/x/tools/go/ast/inspector"
)

// IsTimed reports whether f is a literal whose time is taken by the function that it is passed to:
//
//	report("train", func() { train(net) })
func (f *Func) IsTimed() bool {
	c := f.PassedTo()
	if c == nil {
		return false
	}
	cb := c.Callback(f.ArgNo)
	return cb != nil && cb.Timed
}

// times reports whether f takes the time of c, the call of a function that it was given, and doesn't wait in between.
// If c returns tensors, f itself is wrong: it could wait for them.
//
//	func report(name string, work func()) {
//		start := time.Now()
//		work()
//		fmt.Println(name, time.Since(start))
//	}
func (f *Func) times(c *Call) bool {
	starts := f.Starts()
	if len(starts) == 0 || c.Away || c.unknownStep() {
		return false
	}
	at := c.Expr.End() - 1
	for g := range f.Tree() {
		if g != f && g.Runs() != Deferred {
			continue
		}
		for _, r := range g.Calls {
			start, read := g.Elapsed(r)
			for _, d := range starts[start] {
				if !f.Leads(d.Pos, at, nil) || f.Package.Limits(r) {
					continue
				}
				var syncs []token.Pos
				for _, s := range f.Calls {
					if s != c && !s.Away && s.Syncs(d.Pos) {
						syncs = append(syncs, s.Expr.End()-1)
					}
				}
				if g != f && len(syncs) == 0 || g == f && f.Leads(at, read, syncs) {
					return true
				}
			}
		}
	}
	return false
}

// addClocks notes in s the clocks that f, a part of owner, reads and somebody else has started: the caller, who passes
// the start, or the function that owner is written in.
//
//	func since(start time.Time) { fmt.Println(time.Since(start)) }
func (f *Func) addClocks(s *Summary, owner *Func) {
	for _, r := range f.Calls {
		start, read := f.Elapsed(r)
		if base := f.sinceField(r); base != nil {
			start, read = base, r.Expr.Pos()
		}
		if start == nil || f.Package.Limits(r) || slices.ContainsFunc(f.Calls, func(c *Call) bool {
			return !c.Away && c.Syncs(token.NoPos) && f.Leads(c.Expr.Pos(), read, nil)
		}) {
			continue
		}
		defs := f.Package.Defs[start]
		if p, ok := f.Package.Params[start]; ok && p.Of == owner && len(defs) == 0 {
			s.Clocks |= operands(p.Operand)
		}
		if owner.Parent != nil && len(defs) == 1 && defs[0].In == owner.Parent {
			now := f.Package.Calls[syntax.AsCall(syntax.OrNil(defs[0].Value))]
			s.Timer = s.Timer || now != nil && syntax.IsTime(now.Callee, "Now")
		}
	}
}

// sinceField returns the receiver or parameter of f that has the time in a field since which c tells how much has
// passed; or nil.
//
//	func (s span) end() { log.Print(time.Since(s.start)) }
func (f *Func) sinceField(c *Call) *types.Var {
	if !syntax.IsTime(c.Callee, "Since") {
		return nil
	}
	sel, ok := ast.Unparen(c.Expr.Args[0]).(*ast.SelectorExpr)
	if !ok {
		return nil
	}
	field, base := f.Package.Variable(sel), f.Package.Local(sel.X)
	if base == nil || field == nil || !field.IsField() || slices.ContainsFunc(f.Package.Defs[field], func(d Def) bool { return d.In == f }) {
		return nil
	}
	return base
}

// StartedBy returns the call of time.Now that sets a field of what the local variable v holds, where v is declared, or
// the call of a function of the package that does so; or nil.
//
//	s := span{name, time.Now()}
func (f *Func) StartedBy(v *types.Var) *Call {
	d := f.Package.Defs[v]
	if len(d) != 1 || d[0].Kind != DefValue || d[0].In != f {
		return nil
	}
	value := ast.Unparen(d[0].Value)
	if c := f.Package.Calls[syntax.AsCall(value)]; c != nil && c.Target != nil && len(c.Target.Returns) == 1 && len(c.Target.Returns[0].Results) == 1 {
		if nowIn(f.Package, c.Target.Returns[0].Results[0]) != nil {
			return c
		}
		return nil
	}
	return nowIn(f.Package, value)
}

// StartsClock reports whether f, a method, sets a field of its receiver to time.Now().
//
//	func (s *stopwatch) Start() { s.start = time.Now() }
func (f *Func) StartsClock() bool {
	return f.Sig.Recv() != nil && slices.ContainsFunc(f.Calls, func(c *Call) bool {
		assign, ok := c.Cur.Parent().Node().(*ast.AssignStmt)
		if !ok || !syntax.IsTime(c.Callee, "Now") || len(assign.Lhs) != 1 {
			return false
		}
		sel, ok := assign.Lhs[0].(*ast.SelectorExpr)
		return ok && f.Package.Local(sel.X) == f.Sig.Recv()
	})
}

// nowIn returns the call of time.Now that is a field of the literal e, or of what e points to; or nil.
func nowIn(pkg *Package, e ast.Expr) *Call {
	if u, ok := ast.Unparen(e).(*ast.UnaryExpr); ok {
		e = u.X
	}
	lit, ok := ast.Unparen(e).(*ast.CompositeLit)
	if !ok {
		return nil
	}
	for _, e := range lit.Elts {
		if kv, ok := e.(*ast.KeyValueExpr); ok {
			e = kv.Value
		}
		if c := pkg.Calls[syntax.AsCall(e)]; c != nil && syntax.IsTime(c.Callee, "Now") {
			return c
		}
	}
	return nil
}

// Starts finds the places where f sets local variables to time.Now().
func (f *Func) Starts() map[*types.Var][]Def {
	starts := make(map[*types.Var][]Def)
	for _, c := range f.Calls {
		if !syntax.IsTime(c.Callee, "Now") {
			continue
		}
		for cur := range c.Cur.Enclosing((*ast.AssignStmt)(nil), (*ast.ValueSpec)(nil)) {
			for _, lhs := range targets(cur.Node()) {
				v := f.Package.Variable(lhs)
				for _, d := range f.Package.Defs[v] {
					if v != nil && !v.IsField() && d.In == f && ast.Unparen(syntax.OrNil(d.Value)) == c.Expr {
						starts[v] = append(starts[v], d)
					}
				}
			}
			break
		}
	}
	return starts
}

// targets lists what an assignment or a declaration assigns to.
func targets(n ast.Node) []ast.Expr {
	switch n := n.(type) {
	case *ast.AssignStmt:
		return n.Lhs
	case *ast.ValueSpec:
		list := make([]ast.Expr, len(n.Names))
		for i, name := range n.Names {
			list[i] = name
		}
		return list
	}
	return nil
}

// Elapsed recognises time.Since(start), time.Now().Sub(start) and end.Sub(start). It returns the variable that holds
// the start, nil if c is none of these, and the place where the clock is read: that of c, or where end was set.
func (f *Func) Elapsed(c *Call) (start *types.Var, read token.Pos) {
	since := syntax.IsTime(c.Callee, "Since")
	if !since && !syntax.IsTime(c.Callee, "Sub") || len(c.Expr.Args) != 1 {
		return nil, 0
	}
	id, ok := ast.Unparen(c.Expr.Args[0]).(*ast.Ident)
	if !ok {
		return nil, 0
	}
	start, _ = f.Package.Info.Uses[id].(*types.Var)
	if since {
		return start, c.Expr.Pos()
	}
	sel, ok := ast.Unparen(c.Expr.Fun).(*ast.SelectorExpr)
	if !ok {
		return nil, 0
	}
	switch end := ast.Unparen(sel.X).(type) {
	case *ast.CallExpr:
		if now := f.Package.Calls[end]; now != nil && syntax.IsTime(now.Callee, "Now") {
			return start, end.Pos()
		}
	case *ast.Ident:
		v, _ := f.Package.Info.Uses[end].(*types.Var)
		if defs := f.Package.Defs[v]; len(defs) == 1 && defs[0].In == f && defs[0].Kind == DefValue {
			if now := f.Package.Calls[syntax.AsCall(defs[0].Value)]; now != nil && syntax.IsTime(now.Callee, "Now") {
				return start, defs[0].Pos
			}
		}
	}
	return nil, 0
}

// WaitingLoops lists the loops of f that have one of the places in them, at which something waits. Work that is
// enqueued in such a loop is waited for there, but for that of the last iteration, which is little. The loop is taken
// to run at least once. Loops around start don't count: a wait at their beginning waits for the work of the iteration
// before.
func (f *Func) WaitingLoops(syncs []token.Pos, start token.Pos) []*Loop {
	var list []*Loop
	for _, l := range f.Flow().Loops {
		if f.InLoop(l, syncs...) && !f.InLoop(l, start) {
			list = append(list, l)
		}
	}
	return list
}

// InLoop reports whether one of the places is in l, a loop of f.
func (f *Func) InLoop(l *Loop, places ...token.Pos) bool {
	return slices.ContainsFunc(places, func(p token.Pos) bool { return l.Blocks[f.Flow().BlockAt(p)] })
}

// Syncs reports whether the call may wait for work that was enqueued after from. A call of which nothing is known may,
// unless it returns tensors.
func (c *Call) Syncs(from token.Pos) bool {
	switch c.API.Kind {
	case tensorapi.Unknown:
	case tensorapi.Read, tensorapi.Transfer, tensorapi.Print, tensorapi.Wait:
		for _, e := range c.Operand(c.API.Arg) {
			if c.In.isOlder(e, from) && !c.In.isReturned(e) {
				return false
			}
		}
		return true
	case tensorapi.Call:
	default:
		return c.API.Kind == tensorapi.WaitAll
	}
	// A function of a user, or one that isn't known.
	if c.Dynamic && !c.unknownStep() && !c.returnsTensors() || c.Summary().Blocks {
		return true
	}
	for _, e := range c.In.Package.Printed(c) {
		if !c.In.isOlder(e, from) || c.In.isReturned(e) {
			return true
		}
	}
	for _, lit := range c.Lits {
		if slices.ContainsFunc(lit.Calls, func(c *Call) bool { return c.Syncs(from) }) {
			return true
		}
	}
	return false
}

// unknownStep reports whether c calls a function value that returns tensors. That is a step or a layer, which
// enqueues.
func (c *Call) unknownStep() bool { return c.Dynamic && c.API.Kind == tensorapi.Unknown && c.makes() }

// returnsTensors reports whether c returns tensors, or what holds some, as what loads data does.
func (c *Call) returnsTensors() bool {
	for v := range c.In.Package.ResultsOf(c).Variables() {
		if c.In.Package.HoldsTensors(v.Type()) {
			return true
		}
	}
	return false
}

// Unfinished returns a call of f between two places that enqueues work, or nil. There must be a way from the call to
// the second place on which nothing waits and the clock isn't restarted.
func (f *Func) Unfinished(from, to token.Pos, restarts []token.Pos) *Call {
	var syncs []token.Pos
	for _, c := range f.Calls {
		if !c.Away && c.Syncs(from) {
			syncs = append(syncs, c.Expr.End()-1)
		}
	}
	for _, c := range slices.Backward(f.Calls) {
		if c.Away || !c.Enqueues() || c.Syncs(from) {
			continue
		}
		at := c.Expr.End() - 1 // operands are evaluated first
		waited := slices.ContainsFunc(f.WaitingLoops(syncs, from), func(l *Loop) bool { return f.InLoop(l, at) })
		if f.Leads(from, at, restarts) && f.Leads(at, to, slices.Concat(syncs, restarts, []token.Pos{from})) && !waited {
			return c
		}
	}
	return nil
}

// isReturned reports whether e, in a deferred literal, is a named result of the function around it. Return statements
// assign it, so it is new there.
func (f *Func) isReturned(e ast.Expr) bool {
	if f.Runs() != Deferred {
		return false
	}
	v := f.Package.Local(e)
	for r := range f.Parent.Sig.Results().Variables() {
		if r == v {
			return true
		}
	}
	return false
}

// isOlder reports whether e is a tensor variable that isn't assigned after pos, and not by another iteration of a loop
// around pos. A wait for it waits for nothing that was enqueued after pos.
func (f *Func) isOlder(e ast.Expr, pos token.Pos) bool {
	pkg := f.Package
	id, ok := ast.Unparen(e).(*ast.Ident)
	if !ok {
		return false
	}
	v, ok := pkg.Info.Uses[id].(*types.Var)
	return ok && IsTensor(v.Type()) && !slices.ContainsFunc(pkg.Defs[v], func(d Def) bool {
		return d.Pos > pos || d.In == f && f.Leads(pos, d.Pos, nil)
	})
}

// Leads reports whether control can get from one place to another without passing a place to avoid, or the head of a
// loop that contains one of these.
func (f *Func) Leads(from, to token.Pos, avoid []token.Pos) bool {
	fl := f.Flow()
	a, b := fl.BlockAt(from), fl.BlockAt(to)
	if a < 0 || b < 0 {
		return false
	}
	between := func(block int32, lo, hi token.Pos) bool {
		return slices.ContainsFunc(avoid, func(p token.Pos) bool { return fl.BlockAt(p) == block && lo < p && p < hi })
	}
	const end = token.Pos(math.MaxInt)
	if a == b && from < to {
		return !between(a, from, to) // straight on in one block
	}
	if between(a, from, end) || between(b, token.NoPos, to) {
		return false // no way out of the first block, or into the last
	}
	loops := f.WaitingLoops(avoid, token.NoPos)
	return fl.Reaches(a, b, func(block int32) bool {
		return between(block, token.NoPos, end) || slices.ContainsFunc(loops, func(l *Loop) bool { return l.Head == block })
	})
}

// Limits reports whether an elapsed time is only compared, directly or by way of a variable. It is a deadline then,
// and measures nothing:
//
//	for time.Since(start) < budget {
func (pkg *Package) Limits(c *Call) bool {
	cur := c.Cur
	for {
		up := cur.Parent()
		switch n := up.Node().(type) {
		case *ast.ParenExpr, *ast.BinaryExpr, *ast.SelectorExpr, *ast.CallExpr:
			cur = up
			continue
		case *ast.IfStmt, *ast.ForStmt, *ast.CaseClause:
			return !isRace(pkg, c.Cur, c.In)
		case *ast.AssignStmt:
			return len(n.Lhs) == 1 && onlyCompared(pkg, n.Lhs[0], c.In)
		}
		return false
	}
}

// onlyCompared reports whether all uses of the local variable lhs are conditions that compare it, and are no race.
func onlyCompared(pkg *Package, lhs ast.Expr, f *Func) bool {
	v := pkg.Variable(lhs)
	if v == nil || v.IsField() {
		return false
	}
	uses := 0
	for use := range pkg.UsesOf(v, f) {
		if syntax.IsTarget(use) {
			continue
		}
		compared := false
		for cur := use.Parent(); ; cur = cur.Parent() {
			if _, ok := cur.Node().(ast.Expr); ok {
				continue
			}
			switch cur.Node().(type) {
			case *ast.IfStmt, *ast.ForStmt, *ast.CaseClause:
				compared = !isRace(pkg, use, f)
			}
			break
		}
		if !compared {
			return false
		}
		uses++
	}
	return uses > 0
}

// isRace reports whether the elapsed time at cur is compared with another one, to tell which of two is faster. Such a
// time is no limit.
//
//	if time.Since(start) < best {
func isRace(pkg *Package, cur inspector.Cursor, f *Func) bool {
	for up := cur.Parent(); ; up = up.Parent() {
		e, ok := up.Node().(ast.Expr)
		if !ok {
			return false
		}
		if b, ok := e.(*ast.BinaryExpr); ok && syntax.Negated[b.Op] != 0 {
			other := b.X
			if other.Pos() <= cur.Node().Pos() && cur.Node().Pos() < other.End() {
				other = b.Y
			}
			return f.isElapsed(other)
		}
	}
}

// isElapsed reports whether e is made of an elapsed time, directly or by way of a local variable.
func (f *Func) isElapsed(e ast.Expr) bool {
	found := false
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			found = found || f.readsElapsed(n)
		case *ast.Ident:
			v, ok := f.Package.Info.Uses[n].(*types.Var)
			found = found || ok && !v.IsField() && slices.ContainsFunc(f.Package.Defs[v], func(d Def) bool {
				return d.Kind == DefValue && f.readsElapsed(syntax.AsCall(d.Value))
			})
		}
		return !found
	})
	return found
}

// readsElapsed reports whether call returns an elapsed time, as time.Since does.
func (f *Func) readsElapsed(call *ast.CallExpr) bool {
	c := f.Package.Calls[call]
	if c == nil {
		return false
	}
	start, _ := f.Elapsed(c)
	return start != nil
}
