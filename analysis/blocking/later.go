package blocking

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"

	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"golang.org/x/tools/go/ast/inspector"
)

// A Spawn is a call that makes something wait for the device elsewhere, or
// later, once for each iteration of a loop.
type Spawn struct {
	Call *ast.CallExpr
	Cur  inspector.Cursor // of Call
	// Read is the call that waits, and Name how messages call it.
	Read *ast.CallExpr
	Name string
	Loop *Loop
	// Ack is what receives, in the same iteration, what the goroutine sends, or waits for its
	// end; or nil.
	Ack ast.Expr
}

// Deferred lists the calls in loops that are deferred and wait, when the
// function returns, for what the loop has enqueued. They pile up, and with them
// the tensors.
func (r *Result) Deferred() []*Spawn {
	return r.spawns(func(c *Call) []*Func {
		if _, ok := c.cur.Parent().Node().(*ast.DeferStmt); !ok {
			return nil
		}
		return c.lits
	}, func(c *Call) bool { _, ok := c.cur.Parent().Node().(*ast.DeferStmt); return ok })
}

// Goroutines lists the calls in loops that start a goroutine which waits for
// what the loop or the goroutine has enqueued, and ends.
func (r *Result) Goroutines() []*Spawn {
	return r.spawns(func(c *Call) []*Func {
		if isGo(c) || startsGoroutine(c.Callee) && !c.isBounded() {
			return c.lits
		}
		return nil
	}, isGo)
}

// isBounded reports whether c's function sets a limit for the group that c starts a
// goroutine of.
func (c *Call) isBounded() bool {
	group := c.in.a.variable(c.operand(tensorapi.Recv)[0])
	return c.in.outermost().contains(func(d *Call) bool {
		return isFullName(d.Callee, "(*golang.org/x/sync/errgroup.Group).SetLimit") && c.in.a.variable(d.operand(tensorapi.Recv)[0]) == group
	})
}

// startsGoroutine recognises the methods that run their operand on a goroutine.
func startsGoroutine(fn *types.Func) bool {
	if fn == nil || fn.Pkg() == nil || fn.Name() != "Go" {
		return false
	}
	path := fn.Pkg().Path()
	return path == "sync" || path == "golang.org/x/sync/errgroup"
}

// spawns finds the calls in loops whose literals, or that themselves where
// that is asked for, wait for what the loop has enqueued.
func (r *Result) spawns(literals func(*Call) []*Func, itself func(*Call) bool) []*Spawn {
	var list []*Spawn
	for _, f := range r.Funcs {
		for _, c := range f.calls {
			lits := literals(c)
			if lits == nil && !itself(c) {
				continue
			}
			l := f.a.hotNatural(c)
			if l == nil || f.a.guardOf(f, c.Expr.Pos(), l) != always {
				continue
			}
			if d, w, ok := f.a.waitsLater(c, lits, l); ok {
				list = append(list, &Spawn{Call: c.Expr, Cur: c.cur, Read: d.Expr, Name: f.a.callName(d, w), Loop: l, Ack: f.a.ackOf(c, lits, l)})
			}
		}
	}
	slices.SortStableFunc(list, func(x, y *Spawn) int { return int(x.Call.Pos() - y.Call.Pos()) })
	return list
}

// ackOf returns the expression that in each iteration of l, after c has started a goroutine with the
// literals, waits for their group or receives from a channel to which they send or which they
// close; or nil.
func (a *analyzer) ackOf(c *Call, lits []*Func, l *Loop) ast.Expr {
	sent := make(map[*types.Var]bool)
	for _, lit := range lits {
		for cur := range lit.cur.Preorder((*ast.SendStmt)(nil), (*ast.CallExpr)(nil)) {
			switch n := cur.Node().(type) {
			case *ast.SendStmt:
				sent[a.variable(n.Chan)] = true
			case *ast.CallExpr:
				if id, ok := n.Fun.(*ast.Ident); ok && id.Name == "close" && a.info.Types[id].IsBuiltin() {
					sent[a.variable(n.Args[0])] = true
				}
			}
		}
	}
	for _, d := range c.in.calls {
		if d.Expr.Pos() > c.Expr.End() && a.in(l, d.in, d.Expr.Pos()) && a.waitsForGroup(d, c, lits) && a.isUnconditional(c.in, d.Expr.Pos(), l) {
			return d.Expr
		}
	}
	for _, e := range a.receivesOf(l) {
		v := a.variable(e.X)
		if v != nil && sent[v] && e.Pos() > c.Expr.End() && a.isUnconditional(c.in, e.Pos(), l) {
			return e
		}
	}
	return nil
}

// waitsForGroup reports whether d waits for the group of goroutines that c starts one of, or whose
// literals tell the group that they are done.
func (a *analyzer) waitsForGroup(d, c *Call, lits []*Func) bool {
	if !isFullName(d.Callee, "(*sync.WaitGroup).Wait") && !isFullName(d.Callee, "(*golang.org/x/sync/errgroup.Group).Wait") {
		return false
	}
	group := a.variable(d.operand(tensorapi.Recv)[0])
	if group == nil {
		return false
	}
	if startsGoroutine(c.Callee) {
		return a.variable(c.operand(tensorapi.Recv)[0]) == group
	}
	return slices.ContainsFunc(lits, func(lit *Func) bool {
		return lit.contains(func(e *Call) bool {
			return isFullName(e.Callee, "(*sync.WaitGroup).Done") && a.variable(e.operand(tensorapi.Recv)[0]) == group
		})
	})
}

// isUnconditional reports whether all iterations of l but those that leave it come to pos, in f.
func (a *analyzer) isUnconditional(f *Func, pos token.Pos, l *Loop) bool {
	conditions := append(a.shortCircuits(pos), f.flow().conditions(f.flow().blockAt(pos))...)
	return !slices.ContainsFunc(conditions, func(c condition) bool { return c.divides(l) })
}

// hotNatural returns the innermost loop of the function around c, unless that
// is a small one.
func (a *analyzer) hotNatural(c *Call) *Loop {
	fl := c.in.flow()
	b := fl.blockAt(c.Expr.Pos())
	for _, l := range slices.Backward(fl.loops) {
		if b >= 0 && l.blocks[b] {
			if l.small {
				return nil
			}
			return l
		}
	}
	return nil
}

// waitsLater returns the call in the literals, or c itself if there are none,
// that waits for what l, or the literal itself, enqueues.
func (a *analyzer) waitsLater(c *Call, lits []*Func, l *Loop) (*Call, wait, bool) {
	if len(lits) == 0 {
		for _, w := range a.waits(c) {
			if w.via != nil && (w.via.Guarded || w.operand == nil && (w.via.InLoop || !c.enqueues())) {
				continue
			}
			if w.operand == nil || a.fresh(w.operand, c.in, l) {
				return c, w, true
			}
		}
		return nil, wait{}, false
	}
	for _, lit := range lits {
		for g := range lit.tree() {
			if !runsIn(g, lit) {
				continue
			}
			for _, d := range g.calls {
				if d.away || a.loops(g, d) || a.afterLoop(g, d) || a.beforeLoop(g, d) || a.guardOf(g, d.Expr.Pos(), nil) != always {
					continue
				}
				for _, w := range a.waits(d) {
					if w.via != nil && (w.via.InLoop || w.via.Guarded) {
						continue
					}
					if w.operand == nil || a.fresh(w.operand, g, l) || a.madeIn(w.operand, g, lit) {
						return d, w, true
					}
				}
			}
		}
	}
	return nil, wait{}, false
}

// runsIn reports whether the body of g, a literal in lit, runs as part of lit.
func runsIn(g, lit *Func) bool {
	for g != lit {
		if h := g.how(); h != once && h != looping {
			return false
		}
		g = g.parent
	}
	return true
}

// madeIn reports whether e stands for a tensor that lit enqueues the work for.
func (a *analyzer) madeIn(e ast.Expr, g, lit *Func) bool {
	body := &Loop{Pos: lit.block.Pos(), fn: lit} // all of it
	return a.fresh(e, g, body)
}

// An Early is a site that holds up a training step which the same iteration
// enqueues after it.
type Early struct {
	*Site
	Step *ast.CallExpr
	By   string // how messages call the step
}

// Early lists the sites that the iteration comes to before a training step
// that does not need the value.
func (r *Result) Early() []Early {
	var list []Early
	for _, s := range r.Sites {
		switch s.Pattern() {
		case Reading, Printing, Calling, LastWins, Hidden:
		default:
			continue
		}
		if s.Uses&(Decides|Computes) != 0 {
			continue // the step may need the value
		}
		if d := s.in.a.stepAfter(s); d != nil {
			list = append(list, Early{s, d.Expr, calleeName(d)})
		}
	}
	return list
}

// stepAfter returns a call after s, in the same iteration, that assigns cells;
// or nil.
func (a *analyzer) stepAfter(s *Site) *Call {
	l := s.Loop
	if l.handed || s.at.mutates() {
		return nil
	}
	fl := s.in.flow()
	here := fl.blockAt(s.Call.Pos())
	for _, d := range s.in.calls {
		if d.away || !d.mutates() || d.target != nil && d.target.scc == s.in.owner().scc || d.Expr.Pos() < s.Call.End() || !a.in(l, s.in, d.Expr.Pos()) {
			continue
		}
		there := fl.blockAt(d.Expr.Pos())
		nextIteration := func(b int32) bool { return l.blocks != nil && l.fn == s.in && b == l.head }
		if (there == here || fl.reaches(here, there, nextIteration)) && a.guardOf(s.in, d.Expr.Pos(), l) != rarely {
			return d
		}
	}
	return nil
}

// A Repeat is a read shortly after another, with which it could be one.
type Repeat struct {
	Call  *ast.CallExpr
	Name  string
	First *ast.CallExpr
	// Same reports whether both read the same.
	Same bool
}

// Repeats lists the reads in loops that the iteration comes to right after
// another read that does not decide about them.
func (r *Result) Repeats() []Repeat {
	var list []Repeat
	for _, f := range r.Funcs {
		for _, c := range f.calls {
			if c.away || c.api.Kind != tensorapi.Read || f.a.innermost(c) == nil {
				continue
			}
			if first := f.a.readBefore(c); first != nil && f.a.guardOf(f, c.Expr.Pos(), f.a.innermost(c)) != rarely {
				list = append(list, Repeat{c.Expr, f.a.callName(c, wait{kind: ReadSite}), first.Expr, true})
			}
		}
	}
	for i, s := range r.Sites {
		if i == 0 {
			continue
		}
		if first := r.Sites[i-1]; first.in.a.couldJoin(first, s) {
			list = append(list, Repeat{s.Call, s.Name, first.Call, false})
		}
	}
	slices.SortStableFunc(list, func(x, y Repeat) int { return int(x.Call.Pos() - y.Call.Pos()) })
	return list
}

// readBefore returns the call that reads, always before c in the same
// iteration, what c reads again; or nil.
func (a *analyzer) readBefore(c *Call) *Call {
	operands := c.operand(c.api.Arg)
	if len(operands) != 1 {
		return nil
	}
	v := a.local(operands[0])
	if v == nil || slices.ContainsFunc(c.Expr.Args, func(e ast.Expr) bool { return !isPlain(e) }) {
		return nil
	}
	fl := c.in.flow()
	l := a.innermost(c)
	here := fl.blockAt(c.Expr.Pos())
	text := types.ExprString(c.Expr)
	for _, d := range c.in.calls {
		there := fl.blockAt(d.Expr.Pos())
		if d.away || d.Expr.End() > c.Expr.Pos() || d.Callee != c.Callee || types.ExprString(d.Expr) != text ||
			!a.in(l, d.in, d.Expr.Pos()) || !fl.dominates(there, here) || len(a.shortCircuits(d.Expr.Pos())) > 0 {
			continue
		}
		if !a.assignedBetween(c.Expr, d.Expr.End(), c.Expr.Pos()) {
			return d
		}
	}
	return nil
}

// assignedBetween reports whether a variable that e mentions may be assigned
// between two places.
func (a *analyzer) assignedBetween(e ast.Expr, from, to token.Pos) bool {
	found := false
	ast.Inspect(e, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			if v, ok := a.info.Uses[id].(*types.Var); ok {
				for _, d := range a.defs[v] {
					found = found || d.kind == defOther || from <= d.pos && d.pos <= to
				}
			}
		}
		return !found
	})
	return found
}

// couldJoin reports whether two sites read one number each, the second right
// after the first and whatever that was.
func (a *analyzer) couldJoin(first, second *Site) bool {
	if first.Kind != ReadSite || second.Kind != ReadSite || first.in != second.in || first.Loop != second.Loop || first.Loop.handed {
		return false
	}
	if !a.isNumber(first.Call) || !a.isNumber(second.Call) || first.Call.End() > second.Call.Pos() {
		return false
	}
	fl := first.in.flow()
	if fl.blockAt(first.Call.Pos()) != fl.blockAt(second.Call.Pos()) {
		return false
	}
	return !slices.ContainsFunc(a.uses(first.at, first.Loop), func(p place) bool {
		return p.use != Kept && p.use != Printed && first.Call.End() <= p.pos && p.pos < second.Call.End()
	})
}

func (a *analyzer) isNumber(e ast.Expr) bool { return isNumeric(a.info.TypeOf(e)) }

func isNumeric(t types.Type) bool {
	basic, ok := t.Underlying().(*types.Basic)
	return ok && basic.Info()&types.IsNumeric != 0
}
