package blocking

import (
	"go/ast"
	"go/types"

	"github.com/asyncgen/asyncgen/analysis/tensorapi"
)

// maxRounds bounds the rounds until the summaries of functions that call each
// other agree. Callees come before callers, so two rounds are the rule; the
// bound is only reached by what a chain of recursion hides anyway.
const maxRounds = 8

// summarize computes the summaries of all functions, callees first.
func (a *analyzer) summarize() {
	order := a.components()
	a.keeps = a.keepers()
	for range maxRounds {
		changed := false
		for _, f := range order {
			s := a.summary(f)
			if !s.equal(&f.sum) {
				f.sum = s
				changed = true
			}
		}
		if !changed {
			return
		}
	}
}

// parts lists the functions whose bodies count to f's summary: itself and
// the literals that run as part of it.
func (f *Func) parts() []*Func {
	var list []*Func
	for g := range f.tree() {
		if g.owner() == f {
			list = append(list, g)
		}
	}
	return list
}

// summary computes the summary of f from those of its callees.
func (a *analyzer) summary(f *Func) Summary {
	var s Summary
	for _, g := range f.parts() {
		for _, c := range g.calls {
			a.addCall(&s, f, g, c)
		}
		g.addClocks(&s, f)
	}
	s.Results = a.results(f)
	s.Histories = a.histories(f)
	s.Keeps = a.keeps[f]
	s.Func = a.returned(f)
	return s
}

// returned is the summary of the function that f returns, or nil.
func (a *analyzer) returned(f *Func) *Summary {
	for i := range f.sig.Results().Len() {
		if !isFunc(f.sig.Results().At(i).Type()) {
			continue
		}
		if len(f.rets) != 1 || len(f.rets[0].Results) != f.sig.Results().Len() {
			return nil
		}
		s := *a.funcValue(f.rets[0].Results[i], 0).summary()
		s.Func = nil
		if s.isZero() {
			return nil
		}
		return &s
	}
	return nil
}

// addCall adds what the call c, in the part g of f, does.
func (a *analyzer) addCall(s *Summary, f, g *Func, c *Call) {
	s.Enqueues = s.Enqueues || c.enqueues()
	s.Mutates = s.Mutates || c.mutates()
	if c.away && c.in == g && isGo(c) {
		return // it waits on another goroutine
	}
	a.addCallbacks(s, f, g, c)
	if p := a.forwards(f, g, c); p != nil {
		s.Prints = p
	}
	if of, ok := a.builtOf(f, g, c); ok && !s.Builds {
		s.Builds, s.BuiltOf = true, of
	}
	s.Blocks = s.Blocks || c.api.Waits() || c.sum().Blocks || c.anyArg(func(s *Summary) bool { return s.Blocks })
	for _, w := range a.waits(c) {
		s.Waits = a.addWait(s.Waits, g, c, w)
		s.Blocks = true
	}
	a.addMethod(s, g, c)
	if !f.outermost().contains(tellsTime) {
		for _, w := range a.barriers(c) {
			s.Barriers = a.addWait(s.Barriers, g, c, w)
		}
	}
	s.Steps = s.Steps || c.steps()
	s.Trains = s.Trains || c.sum().Trains || a.trainsInLoop(f, g, c)
}

// trainsInLoop reports whether c takes a step of training in a loop of f that goes
// through data. g is a part of f. Where an operation is all that a graph computes,
// any loop of them takes as long.
func (a *analyzer) trainsInLoop(f, g *Func, c *Call) bool {
	if c.lib != nil && c.lib.Finishes && c.api.Enqueues() {
		return a.loops(g, c)
	}
	if c.steps() {
		for l := range a.loopsAround(g, c.Expr.Pos()) {
			if !(l.blocks == nil && l.fn == f) && a.isPass(l, f.wholeLoop()) {
				return true
			}
		}
	}
	return false
}

func isGo(c *Call) bool { _, ok := c.cur.Parent().Node().(*ast.GoStmt); return ok }

// addWait adds to a list what the call c, in g, waits for.
func (a *analyzer) addWait(list []Wait, g *Func, c *Call, w wait) []Wait {
	if g.flow().blockAt(c.Expr.Pos()) < 0 {
		return list // dead code
	}
	var o Origin
	if w.operand == nil {
		o.Pending = true
	} else {
		o = a.origin(w.operand, g)
	}
	entry := Wait{
		Guarded: a.guardOf(g, c.Expr.Pos(), nil) != always,
		InLoop:  a.loopsOverData(g, c) || a.afterLoop(g, c) || a.beforeLoop(g, c),
		Chain:   []Link{{a.posOf(c.Expr.Pos()), a.callName(c, w)}},
	}
	if w.via != nil {
		entry.Guarded = entry.Guarded || w.via.Guarded
		entry.InLoop = entry.InLoop || w.via.InLoop || c.sum().Trains
		entry.Chain = append(entry.Chain, w.via.Chain...)
	}
	if o.Pending {
		entry.Operand = Own
		list = entry.addTo(list)
	}
	for op := tensorapi.Recv; op < 31; op++ {
		if o.From.Has(op) {
			entry.Operand = op
			list = entry.addTo(list)
		}
	}
	return list
}

// loops reports whether c runs in a loop of g, or of what g is part of.
func (a *analyzer) loops(g *Func, c *Call) bool {
	for l := range a.loopsAround(g, c.Expr.Pos()) {
		if !l.small && !(l.blocks == nil && l.fn == g.owner()) {
			return true
		}
	}
	return false
}

// loopsOverData is loops without those over the parts of a model, which are part of a
// step like any computation.
func (a *analyzer) loopsOverData(g *Func, c *Call) bool {
	for l := range a.loopsAround(g, c.Expr.Pos()) {
		if !l.small && !(l.blocks == nil && l.fn == g.owner()) && !a.overParts(l) {
			return true
		}
	}
	return false
}

// afterLoop reports whether g passes through data before c: then calls of g are few
// and long.
func (a *analyzer) afterLoop(g *Func, c *Call) bool {
	fl := g.flow()
	here := fl.blockAt(c.Expr.Pos())
	for _, l := range fl.loops {
		if l.blocks[here] || !a.isPass(l, g.owner().wholeLoop()) {
			continue
		}
		for b := range l.blocks {
			if fl.reaches(b, here, never) {
				return true
			}
		}
	}
	return false
}

// beforeLoop reports whether g goes on after c with a loop of its own that enqueues,
// be it over data or not, as one does that runs as often as c says: calls of g are long.
// An update of the parameters is no such loop, nor is any in a step of training.
func (a *analyzer) beforeLoop(g *Func, c *Call) bool {
	fl := g.flow()
	here := fl.blockAt(c.Expr.Pos())
	for _, l := range fl.loops {
		if l.small || l.blocks[here] || !fl.reaches(here, l.head, never) || a.overParts(l) ||
			!a.any(l, (*Call).enqueues) || a.stepsItself(g.owner().wholeLoop()) {
			continue
		}
		return true
	}
	return false
}

// addCallbacks notes which of f's function operands c calls.
func (a *analyzer) addCallbacks(s *Summary, f, g *Func, c *Call) {
	add := func(op int, when tensorapi.Calls, of Callback, args []Origin) {
		if a.loops(g, c) {
			when = tensorapi.Loop
		}
		s.addCall(Callback{op, when, of.Timed || g.times(c), of.Slow || a.isSlow(g, c), args})
	}
	args := func() []Origin {
		args := make([]Origin, len(c.Expr.Args))
		for i, arg := range c.Expr.Args {
			args[i] = a.origin(arg, g)
		}
		return args
	}
	if op, ok := a.funcParam(f, c.Expr.Fun); ok {
		add(op, tensorapi.Once, Callback{}, args())
	}
	if list := a.listOf(c.Expr.Fun); list != nil {
		v := a.local(list)
		if p, ok := a.params[v]; ok && p.of == f {
			when := tensorapi.Once
			for l := range a.loopsAround(g, c.Expr.Pos()) {
				s, ok := l.Stmt.(*ast.RangeStmt)
				if !l.small && !(l.blocks == nil && l.fn == g.owner()) && !(ok && a.local(s.X) == v) {
					when = tensorapi.Loop
				}
			}
			s.addCall(Callback{p.operand, when, g.times(c), a.isSlow(g, c), args()})
		}
	}
	for i, arg := range c.Expr.Args {
		op, ok := a.funcParam(f, arg)
		if !ok {
			continue
		}
		if when := c.calls(i); when == tensorapi.Once || when == tensorapi.Loop {
			var of Callback
			if cb := c.callback(i); cb != nil {
				of = *cb
			}
			add(op, when, of, a.handed(c, i, a.tracer(g)))
		}
	}
}

// isSlow reports whether the innermost loop around c, in g, is an outer one.
func (a *analyzer) isSlow(g *Func, c *Call) bool {
	for l := range a.loopsAround(g, c.Expr.Pos()) {
		if !l.small {
			return a.isOuter(l, c)
		}
	}
	return false
}

// handed says where the tensors come from that the callee of c hands to the
// function that is its operand.
func (a *analyzer) handed(c *Call, operand int, t *tracer) []Origin {
	cb := c.callback(operand)
	if cb == nil {
		return nil
	}
	args := make([]Origin, len(cb.Args))
	for i, o := range cb.Args {
		args[i] = t.translate(o, c)
	}
	return args
}

// funcParam returns the operand of f that e stands for, if it is a function.
func (a *analyzer) funcParam(f *Func, e ast.Expr) (int, bool) {
	id, ok := ast.Unparen(e).(*ast.Ident)
	if !ok {
		return 0, false
	}
	v, ok := a.info.Uses[id].(*types.Var)
	if !ok {
		return 0, false
	}
	p, ok := a.params[v]
	if _, isFunc := v.Type().Underlying().(*types.Signature); !ok || !isFunc || p.of != f {
		return 0, false
	}
	return p.operand, true
}

// results says where the tensors come from that f returns.
func (a *analyzer) results(f *Func) []Origin {
	n := f.sig.Results().Len()
	list := make([]Origin, n)
	if n == 0 {
		return nil
	}
	for _, ret := range f.rets {
		for i := range list {
			list[i] = list[i].union(a.result(f, ret, i))
		}
	}
	for _, o := range list {
		if o != (Origin{}) {
			return list
		}
	}
	return nil
}

func (a *analyzer) result(f *Func, ret *ast.ReturnStmt, i int) Origin {
	v := f.sig.Results().At(i)
	if !a.holdsTensor(v.Type()) {
		return Origin{}
	}
	switch {
	case len(ret.Results) == 0:
		return a.tracer(f).variable(v)
	case len(ret.Results) == f.sig.Results().Len():
		return a.origin(ret.Results[i], f)
	}
	return a.tracer(f).expr(ret.Results[0], i, f)
}

// components orders the functions so that callees come before callers, and
// finds those that call each other: Tarjan's algorithm for strongly connected
// components.
func (a *analyzer) components() []*Func {
	var (
		order   []*Func
		stack   []*Func
		index   = make(map[*Func]int)
		low     = make(map[*Func]int)
		onStack = make(map[*Func]bool)
		visit   func(f *Func)
	)
	visit = func(f *Func) {
		index[f] = len(index) + 1
		low[f] = index[f]
		stack = append(stack, f)
		onStack[f] = true
		for _, g := range a.edges(f) {
			if index[g] == 0 {
				visit(g)
				low[f] = min(low[f], low[g])
			} else if onStack[g] {
				low[f] = min(low[f], index[g])
			}
			f.cyclic = f.cyclic || f == g
		}
		if low[f] != index[f] {
			return
		}
		for {
			g := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			onStack[g] = false
			g.scc = index[f]
			g.cyclic = g.cyclic || g != f
			order = append(order, g)
			if g == f {
				return
			}
			f.cyclic = true
		}
	}
	for _, f := range a.funcs {
		if index[f] == 0 {
			visit(f)
		}
	}
	return order
}

// edges lists the functions that f calls or contains.
func (a *analyzer) edges(f *Func) []*Func {
	var list []*Func
	for _, c := range f.calls {
		if c.target != nil {
			list = append(list, c.target)
		}
		list = append(list, c.impls...)
		for _, v := range c.each {
			if v.fn != nil {
				list = append(list, v.fn)
			} else if v.maker != nil && v.maker.target != nil {
				list = append(list, v.maker.target)
			}
		}
		for _, arg := range c.args {
			if arg.fn != nil {
				list = append(list, arg.fn)
			}
		}
	}
	return append(list, f.nested...)
}
