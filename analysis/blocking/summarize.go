package blocking

import (
	"go/ast"
	"go/types"
	"slices"

	"github.com/asyncgen/asyncgen/analysis/tensorapi"
)

// Computing the summaries. Each is made of the calls in a function and of the summaries of their
// callees, so callees come first. Functions that call each other need each other's: rounds over all
// functions go on until no summary changes.
//
// The rounds start from zero summaries, which say that nothing waits. The more is known of the callees,
// the more is found about the callers. A later round can also take something back: isPass, for one,
// says no of a loop once the loop around it is found to train. So nothing guarantees an end, and
// maxRounds bounds the rounds.

// maxRounds bounds the rounds until the summaries of functions that call each other agree. Without
// recursion there are two, and the second finds nothing new. Recursion that needs more than maxRounds
// hides its waits in chains longer than maxChain.
const maxRounds = 8

// summarize computes the summaries of all functions, callees first, in rounds until they agree.
func summarize(pkg *Package) {
	order := components(pkg)
	pkg.keeps = keepers(pkg)
	addKept(pkg)
	for range maxRounds {
		changed := false
		for _, f := range order {
			s := summary(pkg, f)
			if !s.equal(&f.Summary) {
				f.Summary = s
				changed = true
			}
		}
		if !changed {
			return
		}
	}
}

// Parts lists the functions whose bodies make up f's summary: f, and the literals that run as part of
// it. See Owner for an example.
func (f *Func) Parts() []*Func {
	var list []*Func
	for g := range f.Tree() {
		if g.Owner() == f {
			list = append(list, g)
		}
	}
	return list
}

// summary computes the summary of f from the summaries of its callees.
func summary(pkg *Package, f *Func) Summary {
	var s Summary
	for _, g := range f.Parts() {
		for _, c := range g.Calls {
			addCall(pkg, &s, f, g, c)
		}
		g.addClocks(&s, f)
		s.Fits = s.Fits || slices.ContainsFunc(g.Flow().Loops, pkg.isFit)
	}
	s.Results = results(pkg, f)
	s.Makes = makesTensor(pkg, f)
	s.Compares = compared(pkg, f)
	s.Histories = histories(pkg, f)
	s.Keeps = pkg.keeps[f]
	s.Wraps = wrapped(pkg, f)
	s.Repeats = repeated(pkg, f)
	if funcs := returnedFuncs(pkg, f); funcs != nil {
		s.Func, s.More = &funcs[0], funcs[1:]
	}
	return s
}

// addCall adds to s what the call c does. It is in g, a part of f, whose summary s is. A call in a go
// statement enqueues and mutates like any other, but its waits hold up another goroutine, and don't
// count.
func addCall(pkg *Package, s *Summary, f, g *Func, c *Call) {
	s.Enqueues = s.Enqueues || c.Enqueues()
	s.Mutates = s.Mutates || c.Mutates()
	if c.Away && c.In == g && IsGo(c) {
		return // it waits on another goroutine
	}
	addCallbacks(pkg, s, f, g, c)
	if p := forwards(pkg, f, g, c); p != nil {
		s.Prints = p
	}
	if of, ok := builtOf(pkg, f, g, c); ok && !s.Builds {
		s.Builds, s.BuiltOf = true, of
	}
	s.Blocks = s.Blocks || c.API.Waits() || c.Summary().Blocks || c.anyArg(func(s *Summary) bool { return s.Blocks })
	for _, w := range pkg.Waits(c) {
		s.Waits = addWait(pkg, s.Waits, g, c, w)
		s.Blocks = true
	}
	addMethod(pkg, s, g, c)
	// Who reads a clock waits on purpose. Callers of such a function want its waits, too.
	if !f.Outermost().Contains(TellsTime) {
		for _, w := range pkg.Barriers(c) {
			s.Barriers = addWait(pkg, s.Barriers, g, c, w)
		}
	}
	s.Steps = s.Steps || c.Steps()
	s.Trains = s.Trains || c.Summary().Trains || trainsInLoop(pkg, f, g, c)
	s.Fits = s.Fits || c.Summary().Fits && !c.Away
}

// trainsInLoop reports whether c takes a step of training in a loop of f over data. c is in g, a part
// of f. Where a library computes a whole graph by one call, any loop of such calls counts: it takes as
// long.
func trainsInLoop(pkg *Package, f, g *Func, c *Call) bool {
	if c.Lib != nil && c.Lib.Finishes && c.API.Enqueues() {
		return pkg.RunsInLoop(g, c)
	}
	if c.Steps() {
		for l := range pkg.LoopsAround(g, c.Expr.Pos()) {
			if !(l.Blocks == nil && l.Func == f) && isPass(pkg, l, f.WholeLoop()) {
				return true
			}
		}
	}
	return false
}

// IsGo reports whether c is the call of a go statement.
func IsGo(c *Call) bool { _, ok := c.Cur.Parent().Node().(*ast.GoStmt); return ok }

// addWait adds to list what follows for g's owner from w, one thing that the call c in g waits for. If
// the tensor is one that the owner may have made, it is a wait for Own; if it may be an operand's, a
// wait for that operand; if it may be either, both.
func addWait(pkg *Package, list []Wait, g *Func, c *Call, w CallWait) []Wait {
	if g.Flow().BlockAt(c.Expr.Pos()) < 0 {
		return list // dead code
	}
	// Whose tensor it is that c waits for.
	var o Origin
	if w.Operand == nil {
		o.Pending = true
	} else {
		o = pkg.OriginOf(w.Operand, g)
		o.Pending = o.Pending || w.Set
	}
	entry := Wait{
		Guarded: pkg.GuardOf(g, c.Expr.Pos(), nil) != Always || w.Operand != nil && pkg.OfLastCall(w.Operand, g, c.Expr.Pos()),
		InLoop:  loopsOverData(pkg, g, c) || pkg.AfterLoop(g, c) || pkg.BeforeLoop(g, c),
		Chain:   []Link{{pkg.PosOf(c.Expr.Pos()), pkg.CallName(c, w)}},
	}
	// The callee waits: its chain goes on from here.
	if w.Via != nil {
		entry.Guarded = entry.Guarded || w.Via.Guarded
		entry.InLoop = entry.InLoop || w.Via.InLoop || c.Summary().Trains
		entry.Chain = append(entry.Chain, w.Via.Chain...)
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

// RunsInLoop reports whether c runs in a loop of g, or of the function that g is a part of, and not only until it
// succeeds.
func (pkg *Package) RunsInLoop(g *Func, c *Call) bool {
	for l := range pkg.LoopsAround(g, c.Expr.Pos()) {
		if !l.Small && !(l.Blocks == nil && l.Func == g.Owner()) && !pkg.IsRetry(c, l) {
			return true
		}
	}
	return false
}

// loopsOverData is RunsInLoop without loops over the parts of a model. Such a loop is part of a step,
// like any computation, so a wait in it is as frequent as the calls of the function.
func loopsOverData(pkg *Package, g *Func, c *Call) bool {
	for l := range pkg.LoopsAround(g, c.Expr.Pos()) {
		if !l.Small && !(l.Blocks == nil && l.Func == g.Owner()) && !pkg.OverParts(l) {
			return true
		}
	}
	return false
}

// AfterLoop reports whether g goes through data before it comes to c, or fits something. Then calls of g take long and
// are few, and a wait at their end costs little.
//
//	func epoch(data []batch) float64 {
//		for _, b := range data {
//			sum = sum.Add(step(b))
//		}
//		return sum.Item()
//	}
func (pkg *Package) AfterLoop(g *Func, c *Call) bool {
	fl := g.Flow()
	here := fl.BlockAt(c.Expr.Pos())
	for _, l := range fl.Loops {
		if l.Blocks[here] || !isPass(pkg, l, g.Owner().WholeLoop()) && !pkg.isFit(l) {
			continue
		}
		for b := range l.Blocks {
			if fl.Reaches(b, here, never) {
				return true
			}
		}
	}
	return false
}

// BeforeLoop reports whether g goes on after c with a loop of its own that enqueues, other than an
// update of parameters. Then calls of g take long, and one wait before the loop costs little.
//
//	func sample(n int) {
//		limit := x.Max().Item()
//		for range n { … }
//	}
func (pkg *Package) BeforeLoop(g *Func, c *Call) bool {
	fl := g.Flow()
	here := fl.BlockAt(c.Expr.Pos())
	for _, l := range fl.Loops {
		if l.Small || l.Blocks[here] || !fl.Reaches(here, l.Head, never) || pkg.OverParts(l) ||
			!pkg.Any(l, (*Call).Enqueues) || pkg.StepsItself(g.Owner().WholeLoop()) {
			continue
		}
		return true
	}
	return false
}

// addCallbacks notes in s the operands of f, functions, that run because of c. There are three ways: c
// calls the operand; c calls an element of it, if it is a list; or c passes it on to a function that
// calls it.
//
//	func run(xs []T, f func(T), hooks ...func()) {
//		for _, x := range xs { f(x) }    // calls operand 1, in a loop
//		for _, h := range hooks { h() }  // calls operand 2, each element once
//		each(xs, f)                      // passes operand 1 on
//	}
func addCallbacks(pkg *Package, s *Summary, f, g *Func, c *Call) {
	add := func(op int, when tensorapi.Calls, of Callback, args []Origin) {
		if pkg.RunsInLoop(g, c) {
			when = tensorapi.Loop
		}
		s.addCall(Callback{op, when, of.Timed || g.times(c), of.Slow || isSlow(pkg, g, c), of.Rare || pkg.GuardOf(g, c.Expr.Pos(), nil) == Rarely, args})
	}
	args := func() []Origin {
		args := make([]Origin, len(c.Expr.Args))
		for i, arg := range c.Expr.Args {
			args[i] = pkg.OriginOf(arg, g)
		}
		return args
	}
	// c calls an operand of f.
	if op, ok := pkg.FuncParam(f, c.Expr.Fun); ok {
		add(op, tensorapi.Once, Callback{}, args())
	}
	// c calls the elements of a list of functions that f is given. The loop over the list calls each of them once.
	if list := listOf(pkg, c.Expr.Fun); list != nil {
		v := pkg.Local(list)
		if p, ok := pkg.Params[v]; ok && p.Of == f {
			when := tensorapi.Once
			for l := range pkg.LoopsAround(g, c.Expr.Pos()) {
				s, ok := l.Stmt.(*ast.RangeStmt)
				if !l.Small && !(l.Blocks == nil && l.Func == g.Owner()) && !(ok && pkg.Local(s.X) == v) {
					when = tensorapi.Loop
				}
			}
			s.addCall(Callback{p.Operand, when, g.times(c), isSlow(pkg, g, c), pkg.GuardOf(g, c.Expr.Pos(), nil) == Rarely, args()})
		}
	}
	// c passes an operand of f on to a function that calls it.
	for i, arg := range c.Expr.Args {
		op, ok := pkg.FuncParam(f, arg)
		if !ok {
			continue
		}
		if when := c.CallsArg(i); when == tensorapi.Once || when == tensorapi.Loop {
			var of Callback
			if cb := c.Callback(i); cb != nil {
				of = *cb
			}
			add(op, when, of, handed(pkg, c, i, newTracer(pkg, g)))
		}
	}
}

// isSlow reports whether the innermost loop around c, in g, is an outer loop, such as one over epochs.
func isSlow(pkg *Package, g *Func, c *Call) bool {
	for l := range pkg.LoopsAround(g, c.Expr.Pos()) {
		if !l.Small {
			return pkg.IsOuter(l, c)
		}
	}
	return false
}

// handed says where the tensors come from that c's callee passes to the function which is c's operand
// with the given number. It is what the callee's summary says, in terms of c's own function.
func handed(pkg *Package, c *Call, operand int, t *tracer) []Origin {
	cb := c.Callback(operand)
	if cb == nil {
		return nil
	}
	args := make([]Origin, len(cb.Args))
	for i, o := range cb.Args {
		args[i] = t.translate(o, c)
	}
	return args
}

// FuncParam returns the number of the parameter of f that e is, if that is a function.
func (pkg *Package) FuncParam(f *Func, e ast.Expr) (int, bool) {
	id, ok := ast.Unparen(e).(*ast.Ident)
	if !ok {
		return 0, false
	}
	v, ok := pkg.Info.Uses[id].(*types.Var)
	if !ok {
		return 0, false
	}
	p, ok := pkg.Params[v]
	if _, isFunc := v.Type().Underlying().(*types.Signature); !ok || !isFunc || p.Of != f {
		return 0, false
	}
	return p.Operand, true
}

// results says of each result of f where its tensors come from; nil if it knows of none.
func results(pkg *Package, f *Func) []Origin {
	n := f.Sig.Results().Len()
	list := make([]Origin, n)
	if n == 0 {
		return nil
	}
	for _, ret := range f.Returns {
		for i := range list {
			list[i] = list[i].union(result(pkg, f, ret, i))
		}
	}
	for _, o := range list {
		if o != (Origin{}) {
			return list
		}
	}
	return nil
}

// result is the origin of result number i at a return statement of f. The statement may list the
// results, name none, or have one call for all.
func result(pkg *Package, f *Func, ret *ast.ReturnStmt, i int) Origin {
	v := f.Sig.Results().At(i)
	if !ofParam(v.Type()) && !pkg.HoldsTensors(v.Type()) {
		return Origin{}
	}
	switch {
	case len(ret.Results) == 0 && isReplaced(pkg, f, v), len(ret.Results) == f.Sig.Results().Len() && isReplaced(pkg, f, pkg.Local(ret.Results[i])):
		return Origin{} // from an earlier call
	case len(ret.Results) == 0:
		return newTracer(pkg, f).variable(v)
	case len(ret.Results) == f.Sig.Results().Len():
		return pkg.OriginOf(ret.Results[i], f)
	}
	return newTracer(pkg, f).expr(ret.Results[0], i, f)
}

// ofParam reports whether t is a type parameter, or a struct that is made of some.
func ofParam(t types.Type) bool {
	switch t := types.Unalias(t).(type) {
	case *types.TypeParam:
		return true
	case *types.Pointer:
		return ofParam(t.Elem())
	case *types.Named:
		return slices.ContainsFunc(slices.Collect(t.TypeArgs().Types()), ofParam)
	}
	return false
}

// isReplaced reports whether v, a variable of f, holds an element of a list in a field that f then replaces, as a ring
// does. An earlier call has put it there.
//
//	old := r.buf[r.at]
//	r.buf[r.at] = t
//	return old
func isReplaced(pkg *Package, f *Func, v *types.Var) bool {
	d := pkg.Defs[v]
	if v == nil || len(d) != 1 || d[0].Kind != DefValue || d[0].In != f {
		return false
	}
	x, ok := ast.Unparen(d[0].Value).(*ast.IndexExpr)
	if !ok || pkg.Variable(x) == nil || !pkg.Variable(x).IsField() {
		return false
	}
	for cur := range f.Cur.Preorder((*ast.AssignStmt)(nil)) {
		n := cur.Node().(*ast.AssignStmt)
		for _, lhs := range n.Lhs {
			if n.End() > d[0].Pos && types.ExprString(lhs) == types.ExprString(x) {
				return true
			}
		}
	}
	return false
}

// components orders the functions so that callees come before callers, by Tarjan's algorithm for
// strongly connected components ("Depth-First Search and Linear Graph Algorithms", 1972). It sets SCC
// and Cyclic: functions that call each other are one component.
func components(pkg *Package) []*Func {
	var (
		order   []*Func
		stack   []*Func
		index   = make(map[*Func]int)
		low     = make(map[*Func]int)
		onStack = make(map[*Func]bool)
		visit   func(f *Func)
	)
	// Functions on the stack are in a component that isn't complete. low is the least index of a function on the
	// stack that is reached from one; where it is the function's own index, the component is complete.
	visit = func(f *Func) {
		index[f] = len(index) + 1
		low[f] = index[f]
		stack = append(stack, f)
		onStack[f] = true
		for _, g := range edges(pkg, f) {
			if index[g] == 0 {
				visit(g)
				low[f] = min(low[f], low[g])
			} else if onStack[g] {
				low[f] = min(low[f], index[g])
			}
			f.Cyclic = f.Cyclic || f == g
		}
		if low[f] != index[f] {
			return
		}
		for {
			g := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			onStack[g] = false
			g.SCC = index[f]
			g.Cyclic = g.Cyclic || g != f
			order = append(order, g)
			if g == f {
				return
			}
			f.Cyclic = true
		}
	}
	for _, f := range pkg.Funcs {
		if index[f] == 0 {
			visit(f)
		}
	}
	return order
}

// edges lists the functions of the package whose summaries f's summary may be made of: those that it
// calls or passes to others, and the literals in it.
func edges(pkg *Package, f *Func) []*Func {
	var list []*Func
	for _, c := range f.Calls {
		if c.Target != nil {
			list = append(list, c.Target)
		}
		list = append(list, c.Impls...)
		for _, v := range c.Each {
			if v.Fn != nil {
				list = append(list, v.Fn)
			} else if v.maker != nil && v.maker.Target != nil {
				list = append(list, v.maker.Target)
			}
		}
		for _, arg := range c.FuncArgs {
			if arg.Fn != nil {
				list = append(list, arg.Fn)
			}
		}
	}
	return append(list, f.Nested...)
}
