package blocking

import (
	"go/ast"
	"go/token"
	"go/types"
	"math"
	"slices"

	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"golang.org/x/tools/go/ast/inspector"
)

// A Clock is a reading of elapsed time that does not wait for work which was
// enqueued while the clock ran.
type Clock struct {
	Call *ast.CallExpr    // time.Since(start), end.Sub(start)
	Cur  inspector.Cursor // of Call
	Read token.Pos        // where the clock is read: Call, or where end is set
	Op   *ast.CallExpr    // enqueues work that may be unfinished then
	Fn   *Func
	// By is how messages call the function of the user that reads the clock, empty
	// if Call itself does. Read is not valid then unless a wait before it helps.
	By string
	// Inside reports whether what is timed is a function that Call is given.
	Inside bool
}

// Clocks lists the clocks of f, not of the literals in it, in the order of the
// source. A clock that merely limits how long something may take is none.
func (f *Func) Clocks() []Clock {
	if f.how() == deferred {
		return f.deferredClocks()
	}
	var list []Clock
	starts := f.starts()
	for _, c := range f.calls {
		start, read := f.elapsed(c)
		if start == nil || c.away {
			continue
		}
		for _, d := range starts[start] {
			op := f.unfinished(d.pos, read, f.restarts(start, d.pos))
			if op != nil && !f.readAgain(start, read) && !f.a.limits(c) {
				list = append(list, Clock{Call: c.Expr, Cur: c.cur, Read: read, Op: op.Expr, Fn: f})
				break
			}
		}
	}
	for _, c := range f.calls {
		if op, read := f.measured(c, starts); op != nil {
			list = append(list, Clock{Call: c.Expr, Cur: c.cur, Read: read, Op: op.Expr, Fn: f, By: calleeName(c)})
		} else if op := c.timesUnfinished(); op != nil {
			list = append(list, Clock{Call: c.Expr, Cur: c.cur, Op: op.Expr, Fn: f, By: calleeName(c), Inside: true})
		}
	}
	return list
}

// measured returns a call that enqueues work which may be unfinished when c, a call
// of a function of the user, tells how much time has passed, and where to wait for
// it; or nil.
func (f *Func) measured(c *Call, starts map[*types.Var][]def) (op *Call, read token.Pos) {
	if isGo(c) {
		return nil, 0
	}
	var from []token.Pos
	for i := range c.Expr.Args {
		if !c.sum().Clocks.Has(i) || len(c.operand(i)) != 1 {
			continue
		}
		if now := f.a.calls[asCall(c.operand(i)[0])]; now != nil && isTime(now.Callee, "Now") {
			from = append(from, now.Expr.Pos())
		}
		for _, d := range starts[f.a.local(c.operand(i)[0])] {
			from = append(from, d.pos)
		}
	}
	if c.sum().Timer && c.maker != nil && c.maker.in == f {
		from = append(from, c.maker.Expr.Pos())
	}
	for _, pos := range from {
		if c.away {
			op = f.unfinishedAtReturn(pos)
		} else {
			op, read = f.unfinished(pos, c.Expr.Pos(), nil), c.Expr.Pos()
		}
		if op != nil {
			return op, read
		}
	}
	return nil, 0
}

// timesUnfinished returns a call that enqueues work which may be unfinished when a
// function returns that c is given, and c tells how long that took; or nil.
func (c *Call) timesUnfinished() *Call {
	for i := range c.Expr.Args {
		cb := c.callback(i)
		if cb == nil || !cb.Timed {
			continue
		}
		for _, lit := range c.lits {
			if lit.argNo == i {
				return lit.leavesUnfinished()
			}
		}
		for _, arg := range c.args {
			if s := arg.summary(); arg.no == i && s.Enqueues && !s.Blocks {
				return c
			}
		}
	}
	return nil
}

// leavesUnfinished returns a call in f that enqueues work, with a way from it to
// f's end on which nothing waits; or nil.
func (f *Func) leavesUnfinished() *Call {
	var syncs []token.Pos
	for _, c := range f.calls {
		if !c.away && c.syncs(f.block.Lbrace) {
			syncs = append(syncs, c.Expr.End()-1)
		}
	}
	for _, c := range slices.Backward(f.calls) {
		at := c.Expr.End() - 1
		if c.away || !c.enqueues() || c.syncs(f.block.Lbrace) || f.inAny(f.waitingLoops(syncs, token.NoPos), at) {
			continue
		}
		for _, blk := range f.flow().blocks {
			if !blk.Live || blk.Return() == nil {
				continue
			}
			if end := blk.Return().End() - 1; at == end || f.leads(at, end, syncs) {
				return c
			}
		}
	}
	return nil
}

// IsTimed reports whether f is a literal whose time is taken by the function that
// it is passed to.
func (f *Func) IsTimed() bool {
	c := f.PassedTo()
	if c == nil {
		return false
	}
	cb := c.callback(f.argNo)
	return cb != nil && cb.Timed
}

// times reports whether f reads a clock before and after the call c of a function that
// it is given, and waits for nothing in between. If c returns tensors, f itself is wrong.
func (f *Func) times(c *Call) bool {
	starts := f.starts()
	if len(starts) == 0 || c.away || c.unknownStep() {
		return false
	}
	at := c.Expr.End() - 1
	for g := range f.tree() {
		if g != f && g.how() != deferred {
			continue
		}
		for _, r := range g.calls {
			start, read := g.elapsed(r)
			for _, d := range starts[start] {
				if !f.leads(d.pos, at, nil) || f.a.limits(r) {
					continue
				}
				var syncs []token.Pos
				for _, s := range f.calls {
					if s != c && !s.away && s.syncs(d.pos) {
						syncs = append(syncs, s.Expr.End()-1)
					}
				}
				if g != f && len(syncs) == 0 || g == f && f.leads(at, read, syncs) {
					return true
				}
			}
		}
	}
	return false
}

// addClocks notes the clocks that f, a part of owner, reads and that somebody else
// has started: the caller, or the function that owner is written in.
func (f *Func) addClocks(s *Summary, owner *Func) {
	for _, r := range f.calls {
		start, read := f.elapsed(r)
		if start == nil || f.a.limits(r) || slices.ContainsFunc(f.calls, func(c *Call) bool {
			return !c.away && c.syncs(token.NoPos) && f.leads(c.Expr.Pos(), read, nil)
		}) {
			continue
		}
		defs := f.a.defs[start]
		if p, ok := f.a.params[start]; ok && p.of == owner && len(defs) == 0 {
			s.Clocks |= operands(p.operand)
		}
		if owner.parent != nil && len(defs) == 1 && defs[0].in == owner.parent {
			now := f.a.calls[asCall(orNil(defs[0].value))]
			s.Timer = s.Timer || now != nil && isTime(now.Callee, "Now")
		}
	}
}

// deferredClocks lists the clocks that f, a deferred literal, reads when the
// function around it returns, and that this has started. As a function may
// return in many places, one that waits anywhere is not asked where.
func (f *Func) deferredClocks() []Clock {
	var list []Clock
	around := f.parent
	starts := around.starts()
	for _, c := range f.calls {
		start, read := f.elapsed(c)
		if start == nil || c.away || f.a.limits(c) {
			continue
		}
		from := token.NoPos
		if d := starts[start]; len(d) == 1 && len(f.a.defs[start]) == 1 {
			from = d[0].pos
		} else if arg := f.boundTo(start); arg != nil && isTime(arg.Callee, "Now") {
			from = arg.Expr.Pos()
		}
		if !from.IsValid() {
			continue
		}
		if op := around.unfinishedAtReturn(from); op != nil {
			list = append(list, Clock{Call: c.Expr, Cur: c.cur, Read: read, Op: op.Expr, Fn: f})
		}
	}
	return list
}

// unfinishedAtReturn returns a call after from that enqueues work, if f waits for
// nothing that is enqueued then; or nil.
func (f *Func) unfinishedAtReturn(from token.Pos) *Call {
	if f.contains(func(c *Call) bool { return c.syncs(from) }) {
		return nil
	}
	for _, op := range slices.Backward(f.calls) {
		if !op.away && op.enqueues() && f.leads(from, op.Expr.End()-1, nil) {
			return op
		}
	}
	return nil
}

// boundTo returns the call whose result a parameter of f is bound to where f,
// a literal, is called on the spot; or nil.
func (f *Func) boundTo(v *types.Var) *Call {
	p, ok := f.a.params[v]
	if !ok || p.of != f || f.arg == nil || p.operand < 0 || p.operand >= len(f.arg.Args) {
		return nil
	}
	return f.a.calls[asCall(f.arg.Args[p.operand])]
}

// starts lists where local variables are set to time.Now().
func (f *Func) starts() map[*types.Var][]def {
	starts := make(map[*types.Var][]def)
	for _, c := range f.calls {
		if !isTime(c.Callee, "Now") {
			continue
		}
		for cur := range c.cur.Enclosing((*ast.AssignStmt)(nil), (*ast.ValueSpec)(nil)) {
			for _, lhs := range targets(cur.Node()) {
				v := f.a.variable(lhs)
				for _, d := range f.a.defs[v] {
					if v != nil && !v.IsField() && d.in == f && ast.Unparen(orNil(d.value)) == c.Expr {
						starts[v] = append(starts[v], d)
					}
				}
			}
			break
		}
	}
	return starts
}

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

func isTime(fn *types.Func, name string) bool {
	return fn != nil && fn.Pkg() != nil && fn.Pkg().Path() == "time" && fn.Name() == name
}

// elapsed recognises time.Since(start), time.Now().Sub(start) and
// end.Sub(start), and says where the clock is read.
func (f *Func) elapsed(c *Call) (start *types.Var, read token.Pos) {
	since := isTime(c.Callee, "Since")
	if !since && !isTime(c.Callee, "Sub") || len(c.Expr.Args) != 1 {
		return nil, 0
	}
	id, ok := ast.Unparen(c.Expr.Args[0]).(*ast.Ident)
	if !ok {
		return nil, 0
	}
	start, _ = f.a.info.Uses[id].(*types.Var)
	if since {
		return start, c.Expr.Pos()
	}
	sel, ok := ast.Unparen(c.Expr.Fun).(*ast.SelectorExpr)
	if !ok {
		return nil, 0
	}
	switch end := ast.Unparen(sel.X).(type) {
	case *ast.CallExpr:
		if now := f.a.calls[end]; now != nil && isTime(now.Callee, "Now") {
			return start, end.Pos()
		}
	case *ast.Ident:
		v, _ := f.a.info.Uses[end].(*types.Var)
		if defs := f.a.defs[v]; len(defs) == 1 && defs[0].in == f && defs[0].kind == defValue {
			if now := f.a.calls[asCall(defs[0].value)]; now != nil && isTime(now.Callee, "Now") {
				return start, defs[0].pos
			}
		}
	}
	return nil, 0
}

func asCall(e ast.Expr) *ast.CallExpr {
	call, _ := ast.Unparen(e).(*ast.CallExpr)
	return call
}

// restarts lists where f sets a clock anew that it has started at a place.
func (f *Func) restarts(start *types.Var, at token.Pos) (places []token.Pos) {
	for _, d := range f.a.defs[start] {
		if d.in == f && d.pos != at {
			places = append(places, d.pos)
		}
	}
	return places
}

// unfinished returns a call that enqueues work between the two places, with a
// way from it to the second place on which nothing waits, and which does not come
// to one of the restarts; or nil.
func (f *Func) unfinished(from, to token.Pos, restarts []token.Pos) *Call {
	var syncs []token.Pos
	for _, c := range f.calls {
		if !c.away && c.syncs(from) {
			syncs = append(syncs, c.Expr.End()-1)
		}
	}
	for _, c := range slices.Backward(f.calls) {
		if c.away || !c.enqueues() || c.syncs(from) {
			continue
		}
		at := c.Expr.End() - 1 // operands are evaluated first
		if f.leads(from, at, restarts) && f.leads(at, to, slices.Concat(syncs, restarts)) && !f.inAny(f.waitingLoops(syncs, from), at) {
			return c
		}
	}
	return nil
}

// waitingLoops lists the loops of f in which one of the places is. What is
// enqueued in such a loop is waited for there, up to what the last iteration
// leaves, which is little; and the loop is taken to run at least once, so that
// after it, what was enqueued before it is finished. Loops around the start of
// the clock don't count: what waits there may come too late.
func (f *Func) waitingLoops(syncs []token.Pos, start token.Pos) []*Loop {
	var list []*Loop
	for _, l := range f.flow().loops {
		if f.inLoop(l, syncs...) && !f.inLoop(l, start) {
			list = append(list, l)
		}
	}
	return list
}

func (f *Func) inLoop(l *Loop, places ...token.Pos) bool {
	return slices.ContainsFunc(places, func(p token.Pos) bool { return l.blocks[f.flow().blockAt(p)] })
}

func (f *Func) inAny(loops []*Loop, pos token.Pos) bool {
	return slices.ContainsFunc(loops, func(l *Loop) bool { return f.inLoop(l, pos) })
}

// syncs reports whether the call may wait for work that was enqueued after
// from. A call that nothing is known about may, unless it returns tensors.
func (c *Call) syncs(from token.Pos) bool {
	switch c.api.Kind {
	case tensorapi.Unknown:
	case tensorapi.Read, tensorapi.Transfer, tensorapi.Print, tensorapi.Wait:
		for _, e := range c.operand(c.api.Arg) {
			if c.in.isOlder(e, from) && !c.in.isReturned(e) {
				return false
			}
		}
		return true
	case tensorapi.Call:
	default:
		return c.api.Kind == tensorapi.WaitAll
	}
	if c.dynamic && !c.unknownStep() || c.sum().Blocks {
		return true
	}
	for _, e := range c.in.a.printed(c) {
		if !c.in.isOlder(e, from) || c.in.isReturned(e) {
			return true
		}
	}
	for _, lit := range c.lits {
		if slices.ContainsFunc(lit.calls, func(c *Call) bool { return c.syncs(from) }) {
			return true
		}
	}
	return false
}

// unknownStep reports whether c calls a function value that returns tensors: a step or a layer, which enqueues.
func (c *Call) unknownStep() bool { return c.dynamic && c.api.Kind == tensorapi.Unknown && c.makes() }

// isReturned reports whether e, in a deferred literal, is a result of the
// function around it, which return statements assign.
func (f *Func) isReturned(e ast.Expr) bool {
	if f.how() != deferred {
		return false
	}
	v := f.a.local(e)
	for r := range f.parent.sig.Results().Variables() {
		if r == v {
			return true
		}
	}
	return false
}

// isOlder reports whether e is a variable that is not assigned after pos, also
// not by another iteration of a loop around pos, so that waiting for it in f
// waits for nothing enqueued since.
func (f *Func) isOlder(e ast.Expr, pos token.Pos) bool {
	a := f.a
	id, ok := ast.Unparen(e).(*ast.Ident)
	if !ok {
		return false
	}
	v, ok := a.info.Uses[id].(*types.Var)
	return ok && isTensor(v.Type()) && !slices.ContainsFunc(a.defs[v], func(d def) bool {
		return d.pos > pos || d.in == f && f.leads(pos, d.pos, nil)
	})
}

// readAgain reports whether the same clock is read once more after a wait:
// then the two readings tell enqueueing and finishing apart.
func (f *Func) readAgain(start *types.Var, read token.Pos) bool {
	for _, c := range f.calls {
		v, again := f.elapsed(c)
		restarted := slices.ContainsFunc(f.a.defs[start], func(d def) bool { return read < d.pos && d.pos < again })
		if v != start || again == read || restarted || f.a.limits(c) {
			continue
		}
		for _, s := range f.calls {
			if !s.away && s.syncs(token.NoPos) && f.leads(read, s.Expr.Pos(), nil) && f.leads(s.Expr.Pos(), again, nil) {
				return true
			}
		}
	}
	return false
}

// leads reports whether control can get from one place to another without
// passing any of the places to avoid, or a loop around one of these.
func (f *Func) leads(from, to token.Pos, avoid []token.Pos) bool {
	fl := f.flow()
	a, b := fl.blockAt(from), fl.blockAt(to)
	if a < 0 || b < 0 {
		return false
	}
	between := func(block int32, lo, hi token.Pos) bool {
		return slices.ContainsFunc(avoid, func(p token.Pos) bool { return fl.blockAt(p) == block && lo < p && p < hi })
	}
	const end = token.Pos(math.MaxInt)
	if a == b && from < to {
		return !between(a, from, to)
	}
	if between(a, from, end) || between(b, token.NoPos, to) {
		return false
	}
	loops := f.waitingLoops(avoid, token.NoPos)
	return fl.reaches(a, b, func(block int32) bool {
		return between(block, token.NoPos, end) || slices.ContainsFunc(loops, func(l *Loop) bool { return l.head == block })
	})
}

// limits reports whether an elapsed time is only compared: it is a deadline.
func (a *analyzer) limits(c *Call) bool {
	cur := c.cur
	for {
		up := cur.Parent()
		switch n := up.Node().(type) {
		case *ast.ParenExpr, *ast.BinaryExpr, *ast.SelectorExpr, *ast.CallExpr:
			cur = up
			continue
		case *ast.IfStmt, *ast.ForStmt, *ast.CaseClause:
			return !a.isRace(c.cur, c.in)
		case *ast.AssignStmt:
			return len(n.Lhs) == 1 && a.onlyCompared(n.Lhs[0], c.in)
		}
		return false
	}
}

func (a *analyzer) onlyCompared(lhs ast.Expr, f *Func) bool {
	v := a.variable(lhs)
	if v == nil || v.IsField() {
		return false
	}
	uses := 0
	for use := range a.usesOf(v, f) {
		if isTarget(use) {
			continue
		}
		compared := false
		for cur := use.Parent(); ; cur = cur.Parent() {
			if _, ok := cur.Node().(ast.Expr); ok {
				continue
			}
			switch cur.Node().(type) {
			case *ast.IfStmt, *ast.ForStmt, *ast.CaseClause:
				compared = !a.isRace(use, f)
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

// isRace reports whether the elapsed time at cur is compared with another elapsed time, which
// tells what of two is faster: such a time is no limit.
func (a *analyzer) isRace(cur inspector.Cursor, f *Func) bool {
	for up := cur.Parent(); ; up = up.Parent() {
		e, ok := up.Node().(ast.Expr)
		if !ok {
			return false
		}
		if b, ok := e.(*ast.BinaryExpr); ok && negated[b.Op] != 0 {
			other := b.X
			if other.Pos() <= cur.Node().Pos() && cur.Node().Pos() < other.End() {
				other = b.Y
			}
			return f.isElapsed(other)
		}
	}
}

// isElapsed reports whether e is made of an elapsed time, directly or by way of a variable.
func (f *Func) isElapsed(e ast.Expr) bool {
	found := false
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			found = found || f.readsElapsed(n)
		case *ast.Ident:
			v, ok := f.a.info.Uses[n].(*types.Var)
			found = found || ok && !v.IsField() && slices.ContainsFunc(f.a.defs[v], func(d def) bool {
				return d.kind == defValue && f.readsElapsed(asCall(d.value))
			})
		}
		return !found
	})
	return found
}

func (f *Func) readsElapsed(call *ast.CallExpr) bool {
	c := f.a.calls[call]
	if c == nil {
		return false
	}
	start, _ := f.elapsed(c)
	return start != nil
}

// InLoop reports whether the syntax at pos in f runs in a loop.
func (f *Func) InLoop(pos token.Pos) bool {
	for range f.a.loopsAround(f, pos) {
		return true
	}
	return false
}

// Name is the name of the declared function that f is or is part of.
func (f *Func) Name() string { return f.outermost().name }
