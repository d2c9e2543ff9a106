package blocking

import (
	"go/ast"
	"go/types"
	"slices"

	"github.com/asyncgen/asyncgen/analysis/tensorapi"
)

// A BenchLoop is the loop of a benchmark whose work may be unfinished when the
// benchmark's clock stops.
type BenchLoop struct {
	Stmt ast.Stmt
	B    *types.Var // the *testing.B
	// Stops reports whether the end of the loop stops the clock, as with
	// b.Loop(), so that a wait after the loop comes too late.
	Stops bool
	Op    *ast.CallExpr // enqueues work that may be unfinished then
	Fn    *Func
}

// BenchLoops lists the benchmark loops of f that end before their work does.
// A loop that waits for something in each iteration is none of them.
func (f *Func) BenchLoops() []BenchLoop {
	b, run := f.Benchmark(), f.parallel()
	if run != nil {
		b = f.a.variable(run.operand(tensorapi.Recv)[0])
	}
	if b == nil {
		return nil
	}
	var list []BenchLoop
	for _, l := range f.flow().loops {
		stops, ok := f.isBenchLoop(l, b)
		if !ok {
			continue
		}
		if op := f.leftUnfinished(l, b, stops); op != nil && !(run != nil && run.isFollowedByWait()) {
			list = append(list, BenchLoop{l.Stmt, b, stops, op.Expr, f})
		}
	}
	return list
}

// parallel returns the call of b.RunParallel that f is passed to, or nil.
func (f *Func) parallel() *Call {
	if c := f.PassedTo(); c != nil && isFullName(c.Callee, "(*testing.B).RunParallel") {
		return c
	}
	return nil
}

// isFollowedByWait reports whether the function of the call waits after it, or when it
// returns.
func (c *Call) isFollowedByWait() bool {
	return slices.ContainsFunc(c.in.calls, func(d *Call) bool {
		if _, isDefer := d.cur.Parent().Node().(*ast.DeferStmt); isDefer {
			syncs := func(d *Call) bool { return d.syncs(c.Expr.Pos()) }
			return syncs(d) || d.anyDeferred(syncs)
		}
		return d.Expr.Pos() > c.Expr.End() && d.syncs(c.Expr.Pos()) && c.in.leads(c.Expr.End()-1, d.Expr.Pos(), nil)
	})
}

// isMeasured reports whether l is the loop of a benchmark, and whether its end
// stops the clock.
func (a *analyzer) isMeasured(l *Loop) (stops, ok bool) {
	for f := range l.fn.In() {
		if b := f.Benchmark(); b != nil {
			return l.fn.isBenchLoop(l, b)
		}
	}
	return false, false
}

// isBenchLoop recognises "for range b.N", "for i := 0; i < b.N; i++", "for n := b.N;
// n > 0; n--", "for b.Loop()" and "for pb.Next()", and reports whether it is the last but
// one. A variable may stand for b.N.
func (f *Func) isBenchLoop(l *Loop, b *types.Var) (stops, ok bool) {
	var over ast.Expr
	switch s := l.Stmt.(type) {
	case *ast.RangeStmt:
		over = s.X
	case *ast.ForStmt:
		over = s.Cond
	}
	if over == nil {
		return false, false
	}
	ast.Inspect(over, func(n ast.Node) bool {
		if id, isID := n.(*ast.Ident); isID {
			v := f.a.local(id)
			ok = ok || v != nil && slices.ContainsFunc(f.a.defs[v], func(d def) bool { return d.kind == defValue && f.a.isRounds(d.value, b) })
			return !ok
		}
		sel, isSel := n.(*ast.SelectorExpr)
		if !isSel {
			return true
		}
		if id, isID := sel.X.(*ast.Ident); isID && f.a.info.Uses[id] == b {
			stops = sel.Sel.Name == "Loop"
			ok = stops || sel.Sel.Name == "N"
		}
		ok = ok || sel.Sel.Name == "Next" && isTesting(f.a.info.TypeOf(sel.X), "PB")
		return !ok
	})
	return stops, ok
}

// isRounds recognises b.N.
func (a *analyzer) isRounds(e ast.Expr, b *types.Var) bool {
	sel, ok := ast.Unparen(e).(*ast.SelectorExpr)
	return ok && sel.Sel.Name == "N" && b != nil && a.local(sel.X) == b
}

// leftUnfinished returns a call in l that enqueues work which nothing waits for
// before the clock stops.
func (f *Func) leftUnfinished(l *Loop, b *types.Var, stops bool) *Call {
	var op *Call
	for g := range f.tree() {
		for _, c := range g.calls {
			if !f.a.in(l, g, c.Expr.Pos()) {
				continue
			}
			if c.syncs(l.Pos) && f.a.guardOf(g, c.Expr.Pos(), l) != rarely {
				return nil
			}
			if c.enqueues() {
				op = c
			}
		}
	}
	if op == nil || !stops && f.waitsAtEnd(l, b) {
		return nil
	}
	return op
}

// waitsAtEnd reports whether something waits on all ways from l to where the
// clock stops: at b.StopTimer or when f and what it defers has returned.
func (f *Func) waitsAtEnd(l *Loop, b *types.Var) bool {
	syncs := func(c *Call) bool { return c.syncs(l.Pos) }
	fl := f.flow()
	byBlock := make(map[int32][]*Call)
	for _, c := range f.calls {
		if c.away {
			if _, isDefer := c.cur.Parent().Node().(*ast.DeferStmt); isDefer && (syncs(c) || c.anyDeferred(syncs)) {
				return true
			}
			continue
		}
		at := fl.blockAt(c.Expr.Pos())
		byBlock[at] = append(byBlock[at], c)
	}
	var loops []*Loop // that wait
	for _, m := range fl.loops {
		for at := range m.blocks {
			if slices.ContainsFunc(byBlock[at], syncs) {
				loops = append(loops, m)
				break
			}
		}
	}
	seen := make(map[int32]bool)
	var ends func(at int32) bool // without a wait
	ends = func(at int32) bool {
		if seen[at] || slices.ContainsFunc(loops, func(m *Loop) bool { return m.head == at }) {
			return false
		}
		seen[at] = true
		for _, c := range byBlock[at] {
			switch {
			case f.stopsClock(c, b):
				return true
			case syncs(c), neverReturns(f.a.info, c.Expr):
				return false
			}
		}
		succs := fl.blocks[at].Succs
		for _, s := range succs {
			if ends(s.Index) {
				return true
			}
		}
		return len(succs) == 0
	}
	for at := range l.blocks {
		for _, s := range fl.blocks[at].Succs {
			if !l.blocks[s.Index] && ends(s.Index) {
				return false
			}
		}
	}
	return true
}

// anyDeferred reports whether a literal that is deferred has a call with the
// given property.
func (c *Call) anyDeferred(has func(*Call) bool) bool {
	return slices.ContainsFunc(c.lits, func(lit *Func) bool { return slices.ContainsFunc(lit.calls, has) })
}

func (f *Func) stopsClock(c *Call, b *types.Var) bool {
	sel, ok := ast.Unparen(c.Expr.Fun).(*ast.SelectorExpr)
	if !ok || sel.Sel.Name != "StopTimer" {
		return false
	}
	id, ok := sel.X.(*ast.Ident)
	return ok && f.a.info.Uses[id] == b
}

// About returns the names and texts that say what f is about: of the functions
// that it is written in, and what is passed beside it where it is an operand.
func (f *Func) About() []string {
	var words []string
	for g := range f.In() {
		words = append(words, g.name)
		if g.arg == nil {
			continue
		}
		for _, arg := range g.arg.Args {
			if v := f.a.info.Types[arg].Value; v != nil {
				words = append(words, v.ExactString())
			}
		}
	}
	return words
}
