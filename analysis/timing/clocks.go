package timing

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"

	"github.com/asyncgen/asyncgen/analysis/blocking"
	"github.com/asyncgen/asyncgen/analysis/internal/syntax"
	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"golang.org/x/tools/go/ast/inspector"
)

// A clock is a reading of elapsed time that doesn't wait for the work which was enqueued since the
// clock was started.
type clock struct {
	Call *ast.CallExpr    // time.Since(start), end.Sub(start)
	Cur  inspector.Cursor // of Call
	Read token.Pos        // where the clock is read: Call, or where end is set
	Op   *ast.CallExpr    // enqueues work that may be unfinished then
	Fn   *blocking.Func
	// By is how messages call the function of the user that reads the clock; it is empty if Call itself
	// reads it. If By is set, Read is valid only if a wait before it helps.
	By string
	// Inside reports whether what is timed is a function that Call is given.
	Inside bool
}

// clocks lists the clocks of f, without those of its literals, in the order of the source. Clocks that
// only limit how long something may take are left out.
func clocks(f *blocking.Func) []clock {
	if f.Runs() == blocking.Deferred {
		return deferredClocks(f)
	}
	var list []clock
	starts := f.Starts()
	for _, c := range f.Calls {
		start, read := f.Elapsed(c)
		if start == nil || c.Away {
			continue
		}
		for _, d := range starts[start] {
			op := f.Unfinished(d.Pos, read, restarts(f, start, d.Pos))
			if op != nil && !readAgain(f, c, start, read) && !f.Package.Limits(c) {
				list = append(list, clock{Call: c.Expr, Cur: c.Cur, Read: read, Op: op.Expr, Fn: f})
				break
			}
		}
	}
	for _, c := range f.Calls {
		if op, read := measured(f, c, starts); op != nil {
			list = append(list, clock{Call: c.Expr, Cur: c.Cur, Read: read, Op: op.Expr, Fn: f, By: blocking.CalleeName(c)})
		} else if op := timesUnfinished(c); op != nil {
			list = append(list, clock{Call: c.Expr, Cur: c.Cur, Op: op.Expr, Fn: f, By: blocking.CalleeName(c), Inside: true})
		}
	}
	return list
}

// measured returns a call whose work may be unfinished when c tells how much time has passed; or nil. c
// calls a user's function. The second result is the place where a wait would help.
//
//	defer track(time.Now())
func measured(f *blocking.Func, c *blocking.Call, starts map[*types.Var][]blocking.Def) (op *blocking.Call, read token.Pos) {
	if blocking.IsGo(c) {
		return nil, 0
	}
	var from []token.Pos
	for i := range c.Expr.Args {
		if !c.Summary().Clocks.Has(i) || len(c.Operand(i)) != 1 {
			continue
		}
		if now := f.Package.Calls[syntax.AsCall(c.Operand(i)[0])]; now != nil && syntax.IsTime(now.Callee, "Now") {
			from = append(from, now.Expr.Pos())
		}
		for _, d := range starts[f.Package.Local(c.Operand(i)[0])] {
			from = append(from, d.Pos)
		}
	}
	var restarts []token.Pos
	if recv := c.Operand(tensorapi.Recv); c.Summary().Clocks.Has(tensorapi.Recv) && len(recv) == 1 {
		restarts = startedAt(f, f.Package.Local(recv[0]))
		from = append(from, restarts...)
	}
	if c.Summary().Timer && c.Maker != nil && c.Maker.In == f {
		from = append(from, c.Maker.Expr.Pos())
	}
	laps, set := lapsOf(f, c)
	from, restarts = append(from, laps...), append(restarts, set...)
	for _, pos := range from {
		if c.Away {
			op = unfinishedAtReturn(f, pos)
		} else {
			op, read = f.Unfinished(pos, c.Expr.Pos(), others(restarts, pos)), c.Expr.Pos()
		}
		if op != nil {
			return op, read
		}
	}
	return nil, 0
}

// lapsOf lists the places where f starts the clock that c, a call of a literal of f, reads: where f sets its variable,
// and the other calls of the literal, if that sets the variable again.
//
//	lap := func(name string) { took[name] = time.Since(start); start = time.Now() }
func lapsOf(f *blocking.Func, c *blocking.Call) (places, restarts []token.Pos) {
	g := c.Target
	if g == nil || g.Lit == nil || g.Parent != f || c.Away {
		return nil, nil
	}
	for _, r := range g.Calls {
		start, _ := g.Elapsed(r)
		if start == nil || f.Package.Limits(r) || g.Contains(func(d *blocking.Call) bool { return d.Syncs(token.NoPos) }) {
			continue
		}
		again := false
		for _, d := range f.Package.Defs[start] {
			now := f.Package.Calls[syntax.AsCall(syntax.OrNil(d.Value))]
			switch {
			case now == nil || !syntax.IsTime(now.Callee, "Now"):
				return nil, nil
			case d.In == g:
				again = true
			case d.In == f:
				places = append(places, d.Pos)
			}
		}
		for _, d := range f.Calls {
			if again && d.Target == g && d != c {
				places = append(places, d.Expr.End()-1)
			}
		}
		return places, places
	}
	return nil, nil
}

// startedAt lists the places where f starts the stopwatch in the variable v: where the stopwatch is
// made, and where a method sets its clock.
func startedAt(f *blocking.Func, v *types.Var) (places []token.Pos) {
	if v == nil {
		return nil
	}
	if now := f.StartedBy(v); now != nil {
		places = append(places, now.Expr.Pos())
	}
	for _, d := range f.Calls {
		if recv := d.Operand(tensorapi.Recv); d.StartsClock() && !d.Away && len(recv) == 1 && f.Package.Local(recv[0]) == v {
			places = append(places, d.Expr.Pos())
		}
	}
	return places
}

// others lists all places but one.
func others(places []token.Pos, but token.Pos) []token.Pos {
	return slices.DeleteFunc(slices.Clone(places), func(p token.Pos) bool { return p == but })
}

// timesUnfinished returns a call in a function that c is given, and whose time c takes. The call's work
// may be unfinished when the function returns. It returns nil if there is none.
//
//	timed("product", func() { y = x.MatMul(w) })
func timesUnfinished(c *blocking.Call) *blocking.Call {
	for i := range c.Expr.Args {
		cb := c.Callback(i)
		if cb == nil || !cb.Timed {
			continue
		}
		for _, lit := range c.Lits {
			if lit.ArgNo == i {
				return leavesUnfinished(lit)
			}
		}
		for _, arg := range c.FuncArgs {
			if s := arg.Summary(); arg.No == i && s.Enqueues && !s.Blocks {
				return c
			}
		}
	}
	return nil
}

// leavesUnfinished returns a call in f that enqueues work, if control can get from it to the end of f
// without a wait; or nil.
func leavesUnfinished(f *blocking.Func) *blocking.Call {
	var syncs []token.Pos
	for _, c := range f.Calls {
		if !c.Away && c.Syncs(f.Body.Lbrace) {
			syncs = append(syncs, c.Expr.End()-1)
		}
	}
	for _, c := range slices.Backward(f.Calls) {
		at := c.Expr.End() - 1
		if c.Away || !c.Enqueues() || c.Syncs(f.Body.Lbrace) || inAny(f, f.WaitingLoops(syncs, token.NoPos), at) {
			continue
		}
		for _, blk := range f.Flow().Blocks {
			if !blk.Live || blk.Return() == nil {
				continue
			}
			ret := blk.Return()
			waits := slices.ContainsFunc(syncs, func(p token.Pos) bool { return at < p && ret.Pos() <= p && p < ret.End() })
			if end := ret.End() - 1; at == end || !waits && f.Leads(at, end, syncs) {
				return c
			}
		}
	}
	return nil
}

// deferredClocks lists the clocks that f, a deferred literal, reads, and that the function around it
// has started. That function may return in many places. If it waits anywhere, it counts as waiting.
func deferredClocks(f *blocking.Func) []clock {
	var list []clock
	around := f.Parent
	starts := around.Starts()
	for _, c := range f.Calls {
		start, read := f.Elapsed(c)
		if start == nil || c.Away || f.Package.Limits(c) {
			continue
		}
		from := token.NoPos
		if d := starts[start]; len(d) == 1 && len(f.Package.Defs[start]) == 1 {
			from = d[0].Pos
		} else if arg := boundTo(f, start); arg != nil && syntax.IsTime(arg.Callee, "Now") {
			from = arg.Expr.Pos()
		}
		if !from.IsValid() {
			continue
		}
		if op := unfinishedAtReturn(around, from); op != nil {
			list = append(list, clock{Call: c.Expr, Cur: c.Cur, Read: read, Op: op.Expr, Fn: f})
		}
	}
	return list
}

// unfinishedAtReturn returns a call of f after from that enqueues work, if nothing in f waits for work
// enqueued after from; or nil.
func unfinishedAtReturn(f *blocking.Func, from token.Pos) *blocking.Call {
	if f.Contains(func(c *blocking.Call) bool { return c.Syncs(from) }) {
		return nil
	}
	for _, op := range slices.Backward(f.Calls) {
		if !op.Away && op.Enqueues() && f.Leads(from, op.Expr.End()-1, nil) {
			return op
		}
	}
	return nil
}

// boundTo returns the call whose result is passed for the parameter v of f, a literal that is called on
// the spot; or nil.
//
//	defer func(start time.Time) { … }(time.Now())
func boundTo(f *blocking.Func, v *types.Var) *blocking.Call {
	p, ok := f.Package.Params[v]
	if !ok || p.Of != f || f.ArgOf == nil || p.Operand < 0 || p.Operand >= len(f.ArgOf.Args) {
		return nil
	}
	return f.Package.Calls[syntax.AsCall(f.ArgOf.Args[p.Operand])]
}

// restarts lists the places where f sets a clock anew that it has started at another place.
func restarts(f *blocking.Func, start *types.Var, at token.Pos) (places []token.Pos) {
	for _, d := range f.Package.Defs[start] {
		if d.In == f && d.Pos != at {
			places = append(places, d.Pos)
		}
	}
	return places
}

// inAny reports whether pos is in one of the loops of f.
func inAny(f *blocking.Func, loops []*blocking.Loop, pos token.Pos) bool {
	return slices.ContainsFunc(loops, func(l *blocking.Loop) bool { return f.InLoop(l, pos) })
}

// readAgain reports whether the clock that first reads is read once more after a wait. No other work is enqueued in
// between, or one call prints both times. The program then tells them apart, that of enqueueing and that of the work.
//
//	asked := time.Since(start)
//	total := tensor.Stack(0, losses...)
//	asyncrt.WaitIdle()
//	fmt.Println("asked in", asked, "computed in", time.Since(start))
func readAgain(f *blocking.Func, first *blocking.Call, start *types.Var, read token.Pos) bool {
	for _, c := range f.Calls {
		v, again := f.Elapsed(c)
		restarted := slices.ContainsFunc(f.Package.Defs[start], func(d blocking.Def) bool { return read < d.Pos && d.Pos < again })
		if v != start || again == read || restarted || f.Package.Limits(c) {
			continue
		}
		for _, s := range f.Calls {
			if !s.Away && s.Syncs(token.NoPos) && f.Leads(read, s.Expr.Pos(), nil) && f.Leads(s.Expr.Pos(), again, nil) && (!worksBetween(f, read, again) || printedTogether(f, first, c)) {
				return true
			}
		}
	}
	return false
}

// printedTogether reports whether a call in f prints the results of both, themselves or by way of variables.
func printedTogether(f *blocking.Func, first, second *blocking.Call) bool {
	has := func(p, c *blocking.Call) bool {
		return slices.ContainsFunc(p.Expr.Args, func(e ast.Expr) bool {
			e = f.Package.OnlyValue(e)
			return e.Pos() <= c.Expr.Pos() && c.Expr.End() <= e.End()
		})
	}
	return slices.ContainsFunc(f.Calls, func(p *blocking.Call) bool {
		_, prints := p.Printer()
		return prints && has(p, first) && has(p, second)
	})
}

// worksBetween reports whether f enqueues anything between two readings of a clock, apart from what waits itself. Then
// the second reading is about that work, too.
func worksBetween(f *blocking.Func, read, again token.Pos) bool {
	return slices.ContainsFunc(f.Calls, func(c *blocking.Call) bool {
		isOperand := slices.ContainsFunc(f.Calls, func(s *blocking.Call) bool {
			return s != c && s.Expr.Pos() <= c.Expr.Pos() && c.Expr.End() <= s.Expr.End() && s.Syncs(token.NoPos)
		})
		return !c.Away && !isOperand && c.Enqueues() && !c.Syncs(token.NoPos) && f.Leads(read, c.Expr.Pos(), nil) && f.Leads(c.Expr.Pos(), again, nil)
	})
}

// inLoop reports whether the syntax at pos in f runs in a loop.
func inLoop(f *blocking.Func, pos token.Pos) bool {
	for range f.Package.LoopsAround(f, pos) {
		return true
	}
	return false
}
