package blocking

import (
	"go/ast"
	"go/token"
	"go/types"
	"math"
	"slices"
	"strings"

	"github.com/asyncgen/asyncgen/analysis/internal/syntax"
	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"golang.org/x/tools/go/ast/inspector"
)

// Clocks. A program that reads a clock around asynchronous calls measures how long enqueueing takes,
// unless something waits in between:
//
//	start := time.Now()
//	y := model.Forward(x)          // returns at once
//	fmt.Println(time.Since(start)) // measures nothing of use
//
// The questions here are which calls start and read a clock, and whether a wait lies on all ways
// between two places. Starts and readings are recognised in local variables, in fields of a stopwatch,
// across functions that are given the start (Summary.Clocks) or have made it (Summary.Timer), and in
// functions that measure a function which they are given (Callback.Timed).
//
// A place is a token.Pos. The place of a call is its last byte: operands are evaluated before it, so a
// wait among the operands comes first. Anything that may wait counts as a wait (Syncs), and a loop with
// a wait counts as passed at least once. Both silence findings that might be right, and cause none.

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

// times reports whether f takes the time of c, the call of a function that it was given, and doesn't
// wait between c and the reading.
//
//	func report(name string, work func()) {
//		start := time.Now()
//		work()
//		fmt.Println(name, time.Since(start))
//	}
//
// A caller of report is then to blame if work leaves something unfinished. If c returns tensors, f
// itself could wait for them, and the finding is about f.
func (f *Func) times(c *Call) bool {
	starts := f.Starts()
	if len(starts) == 0 || c.Away || c.unknownStep() || f.asksForTensors(c) {
		return false
	}
	// The last byte of c: its operands have been evaluated.
	at := c.Expr.End() - 1
	for g := range f.Tree() {
		if g != f && g.Runs() != Deferred {
			continue
		}
		for _, r := range g.Calls {
			start, read := g.Elapsed(r)
			// r reads the clock that f has started at d.
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
				// A deferred literal reads the clock at whatever return f takes, so any wait of f will
				// do.
				if g != f && len(syncs) == 0 || g == f && f.Leads(at, read, syncs) {
					return true
				}
			}
		}
	}
	return false
}

// asksForTensors reports whether c calls a function that f is given, without operands, for something with tensors. If
// f takes the time of that, it is the time in which the work for the tensors is enqueued.
//
//	func timed(f func() Result) (Result, time.Duration) {
func (f *Func) asksForTensors(c *Call) bool {
	_, isParam := f.Package.FuncParam(f, c.Expr.Fun)
	return isParam && len(c.Expr.Args) == 0 && c.API.Kind == tensorapi.Unknown && c.returnsTensors() && !c.looksUp()
}

// addClocks notes in s the clocks that f reads and that somebody else has started. f is a part of
// owner, whose summary s is. The start may be an operand of owner (Clocks), or a variable of the
// function that owner is written in (Timer). A clock with a wait before the reading is right, and is
// not noted.
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

// sinceField returns the receiver or parameter s of f if c is time.Since(s.start), and f doesn't set
// the field before; or nil.
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
	if base == nil || field == nil || !field.IsField() || slices.ContainsFunc(f.Package.Defs[field], func(d Def) bool { return d.In == f && f.Leads(d.Pos, c.Expr.Pos(), nil) }) {
		return nil
	}
	return base
}

// StartedBy returns the call that starts the clock in v, a local variable with a struct, where v is
// declared; or nil. It is a call of time.Now, or one of a function of the package whose only return
// statement has such a call.
//
//	s := span{name, time.Now()} // time.Now()
//	s := newSpan(name)          // newSpan(name)
func (f *Func) StartedBy(v *types.Var) *Call {
	d := f.Package.Defs[v]
	if len(d) != 1 || d[0].Kind != DefValue || d[0].In != f {
		return nil
	}
	value := ast.Unparen(d[0].Value)
	if c := f.Package.Calls[syntax.AsCall(value)]; c != nil && (c.Target != nil && c.Target.returnsClock() || c.Target == nil && c.Callee != nil && c.Callee.Signature().Recv() == nil && c.StartsClock()) {
		return c
	}
	return nowIn(f.Package, value)
}

// returnsClock reports whether the only return statement of f has one result, a struct with a field that is time.Now().
func (f *Func) returnsClock() bool {
	return len(f.Returns) == 1 && len(f.Returns[0].Results) == 1 && nowIn(f.Package, f.Returns[0].Results[0]) != nil
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

// nowIn returns the call of time.Now that is a field of the literal e, or of &e; or nil. The literal
// may have keys or not.
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

// Starts finds the places where f sets local variables to time.Now(), or to time.Now().UnixNano() and its like.
func (f *Func) Starts() map[*types.Var][]Def {
	starts := make(map[*types.Var][]Def)
	for _, c := range f.Calls {
		if !syntax.IsTime(c.Callee, "Now") && !isStamp(f.Package, c) {
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

// isStamp recognises time.Now() as a number: time.Now().UnixNano().
func isStamp(pkg *Package, c *Call) bool {
	if c.Callee == nil || !strings.HasPrefix(c.Callee.FullName(), "(time.Time).Unix") {
		return false
	}
	now := pkg.Calls[syntax.AsCall(c.Operand(tensorapi.Recv)[0])]
	return now != nil && syntax.IsTime(now.Callee, "Now")
}

// Elapsed recognises time.Since(start), time.Now().Sub(start), end.Sub(start) and time.Now().UnixNano() - start. It
// returns the variable with the start, and the place where the clock is read: c itself, or for end the place where
// that was set. It returns nil if c is none of these.
func (f *Func) Elapsed(c *Call) (start *types.Var, read token.Pos) {
	if isStamp(f.Package, c) {
		if b, ok := c.Value().Parent().Node().(*ast.BinaryExpr); ok && b.Op == token.SUB && ast.Unparen(b.X) == c.Expr {
			return f.Package.Local(b.Y), c.Expr.Pos()
		}
		return nil, 0
	}
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

// WaitingLoops lists the loops of f in which something waits, at one of the places syncs. Work that
// such a loop enqueues is waited for there, except for that of the last iteration, which is little. The
// loop is taken to run at least once.
//
//	for _, b := range batches {
//		loss := step(b)
//		sum += loss.Item() // waits, so time.Since(start) after the loop is right
//	}
//
// Loops around start don't count: a wait at the beginning of their body waits for the work of the
// iteration before.
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

// Syncs reports whether the call may wait for work that was enqueued after from. A read of a tensor
// that is older than from doesn't. An unknown callee may wait, unless it returns tensors: then it is
// taken for a step, which enqueues. This errs to the side of a wait, so that rules about clocks stay
// silent.
func (c *Call) Syncs(from token.Pos) bool {
	switch c.API.Kind {
	case tensorapi.Unknown:
	case tensorapi.Read, tensorapi.Transfer, tensorapi.Save, tensorapi.Print, tensorapi.Wait:
		for _, e := range c.Operand(c.API.Arg) {
			if c.In.isOlder(e, from) && !c.In.isReturned(e) {
				return false
			}
		}
		return true
	// What a library does with a function is up to that function: see below.
	case tensorapi.Call:
	default:
		return c.API.Kind == tensorapi.WaitAll
	}
	// A function of a user, or one that isn't known.
	if c.Dynamic && !c.unknownStep() && !c.returnsTensors() && !c.isHost() || c.Summary().Blocks {
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

// isHost recognises methods of interfaces of the standard library that have nothing to do with tensors: those of a
// context.Context, an io.Writer, an http.ResponseWriter.
func (c *Call) isHost() bool {
	return c.Callee != nil && c.Callee.Pkg() != nil && slices.Contains([]string{"context", "hash", "io", "net", "net/http"}, c.Callee.Pkg().Path())
}

// unknownStep reports whether c calls a function value that returns tensors. Such a function is a step
// or a layer: it enqueues, and is not expected to wait.
func (c *Call) unknownStep() bool { return c.Dynamic && c.API.Kind == tensorapi.Unknown && c.makes() }

// returnsTensors reports whether c returns tensors, or something that holds some, like a batch.
func (c *Call) returnsTensors() bool {
	for v := range c.In.Package.ResultsOf(c).Variables() {
		if c.In.Package.HoldsTensors(v.Type()) {
			return true
		}
	}
	return false
}

// Unfinished returns a call of f that enqueues work between two places, or nil. Control must get from
// the first place to the call, and on to the second one, so that nothing after the call waits and the
// clock isn't set again. Of several such calls it returns the last one, which is the likeliest to be
// unfinished.
func (f *Func) Unfinished(from, to token.Pos, restarts []token.Pos) *Call {
	var syncs []token.Pos
	for _, c := range f.Calls {
		if !c.Away && c.Syncs(from) {
			syncs = append(syncs, c.Expr.End()-1)
		}
	}
	for _, c := range slices.Backward(f.Calls) {
		if c.Away || !c.Enqueues() && !f.asksForTensors(c) || c.Syncs(from) {
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

// isReturned reports whether e, in a deferred literal, is a named result of the function around it. A
// return statement assigns the result just before the literal runs, so it is newer than its assignments
// tell.
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

// isOlder reports whether e is a variable whose tensor can't depend on work enqueued after pos. Nothing
// assigns the variable after pos, neither further down in the text nor in another iteration of a loop
// around pos.
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

// Leads reports whether control can get from one place to another without passing a place to avoid. If
// a loop has such a place, whoever goes through the loop counts as passing it: the loop's head is avoided
// as well.
//
// Two places in one block are compared by their positions, as the nodes of a block stand in the order
// in which they run. Otherwise it is a search in the graph, where a block counts as avoided if any of
// its places is.
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
	loops := slices.DeleteFunc(f.WaitingLoops(avoid, token.NoPos), func(l *Loop) bool {
		return l.Blocks[b] && !l.Blocks[a] // its first iteration comes to b, perhaps before the place to avoid
	})
	return fl.Reaches(a, b, func(block int32) bool {
		return between(block, token.NoPos, end) || slices.ContainsFunc(loops, func(l *Loop) bool { return l.Head == block })
	})
}

// EndsMeasurement reports whether a clock runs while c waits, and is read when c has waited, before anything else is
// enqueued. A wait is what the time is taken of.
//
//	start := time.Now()
//	a.MatMul(b).Sum().Item() // ends the measurement
//	took := time.Since(start)
func (c *Call) EndsMeasurement() bool {
	f, at := c.In, c.Expr.End()-1
	if f.IsTimed() {
		return true
	}
	for l := range f.Package.LoopsAround(f, c.Expr.Pos()) {
		if _, ok := f.Package.IsMeasured(l); ok {
			return true
		}
	}
	starts := f.Starts()
	return slices.ContainsFunc(f.Calls, func(d *Call) bool {
		start, read := f.Elapsed(d)
		return start != nil && f.Leads(at, read, nil) && f.Unfinished(at, read, nil) == nil &&
			slices.ContainsFunc(starts[start], func(s Def) bool { return f.Leads(s.Pos, at, nil) })
	})
}

// Limits reports whether the elapsed time that c returns is only compared, directly or through a
// variable. Such a clock is a deadline and measures nothing, so it needs no wait:
//
//	for time.Since(start) < budget {
//
// A clock that each iteration starts and asks once measures how long an iteration takes, whatever it is
// compared with.
func (pkg *Package) Limits(c *Call) bool {
	cur := c.Cur
	for {
		up := cur.Parent()
		switch n := up.Node().(type) {
		case *ast.ParenExpr, *ast.BinaryExpr, *ast.SelectorExpr, *ast.CallExpr:
			cur = up
			continue
		case *ast.IfStmt, *ast.ForStmt, *ast.CaseClause:
			return !isRace(pkg, c.Cur, c.In) && !timesIteration(pkg, c)
		case *ast.AssignStmt:
			return len(n.Lhs) == 1 && onlyCompared(pkg, n.Lhs[0], c.In) && !timesIteration(pkg, c)
		}
		return false
	}
}

// timesIteration reports whether the innermost loop around c starts the clock that c reads.
func timesIteration(pkg *Package, c *Call) bool {
	start, _ := c.In.Elapsed(c)
	if start == nil || len(pkg.Defs[start]) != 1 {
		return false
	}
	for l := range pkg.LoopsAround(c.In, c.Expr.Pos()) {
		return l.Stmt != nil && bodyOf(l.Stmt).Pos() <= start.Pos() && start.Pos() < l.Stmt.End()
	}
	return false
}

// onlyCompared reports whether each use of the local variable lhs is in the condition of an if, for or
// case, and none of these is a race.
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

// isRace reports whether the elapsed time at cur is compared with another elapsed time, to tell which
// of two is faster. Such a time is a measurement and no limit.
//
//	if time.Since(start) < best {
func isRace(pkg *Package, cur inspector.Cursor, f *Func) bool {
	for up := cur.Parent(); ; up = up.Parent() {
		e, ok := up.Node().(ast.Expr)
		if !ok {
			return false
		}
		if b, ok := e.(*ast.BinaryExpr); ok && syntax.Negated[b.Op] != 0 {
			// other is the side of the comparison that cur is not on.
			other := b.X
			if other.Pos() <= cur.Node().Pos() && cur.Node().Pos() < other.End() {
				other = b.Y
			}
			return f.IsElapsed(other)
		}
	}
}

// IsElapsed reports whether an elapsed time occurs in e, or in what was assigned to a local variable in
// e.
func (f *Func) IsElapsed(e ast.Expr) bool {
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
