package blocking

import (
	"go/ast"
	"go/token"
	"go/types"
	"regexp"
	"slices"
	"strings"

	"github.com/asyncgen/asyncgen/analysis/internal/syntax"
	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"golang.org/x/tools/go/ast/edge"
	"golang.org/x/tools/go/cfg"
)

// Which loops are worth a finding. A wait in a loop over batches stops the device once per batch; one
// in a loop over epochs stops it once per epoch, which costs nothing to speak of:
//
//	for range epochs {                  // outer: IsOuter
//		for _, b := range batches { // a pass over data: isPass
//			for _, layer := range net { // parts of a model: OverParts
//				…
//			}
//		}
//		fmt.Println(total.Item())
//	}
//
// Loops don't say what they are over, so this file goes by signs: types of elements, what is assigned,
// whether the loop trains, whether its data is the same in each iteration of the loop around it. No
// sign is proof. Where the signs are missing, l is no outer loop, and rules report its waits.

// IsOuter reports whether l is an outer loop as seen from c, like one over epochs, in which a wait costs little: most
// iterations make a pass over data that c is no part of, or call something that trains in a loop of its own.
//
//	for epoch := range epochs { // outer for the read, not for step
//		for _, b := range batches {
//			total = total.Add(step(b))
//		}
//		fmt.Println(epoch, total.Item())
//	}
//
// The inner loop must not contain c: a wait for a batch, inside the loop over batches, is what costs.
// And it must run in most iterations; a rare evaluation doesn't make a loop over steps an outer one.
func (pkg *Package) IsOuter(l *Loop, c *Call) bool {
	// A loop inside l that is a pass over data, and that c is not in.
	for f := range l.Func.Tree() {
		inner := f.Flow().Loops
		if f.Runs() == Looping {
			inner = append(slices.Clip(inner), f.WholeLoop())
		}
		for _, m := range inner {
			if m != l && encloses(pkg, l, m, f) && !pkg.Contains(m, c.In, c.Expr.Pos()) && (isPass(pkg, m, l) || isChunk(pkg, m, l) || isIteration(pkg, m, l)) &&
				guardUnder(pkg, f.Flow().Conditions(m.Head), f, token.NoPos, l) != Rarely {
				return true
			}
		}
	}
	// Or a call in l that trains in a loop of its own.
	return pkg.Any(l, func(d *Call) bool {
		if d.iter != nil && ast.Stmt(d.iter) == l.Stmt {
			// An iterator that calls the body after each pass makes l an outer loop.
			cb := d.Callback(0) // the loop of the iterator is l itself
			return cb == nil && d.Summary().Trains || cb != nil && cb.Slow
		}
		return d != c && d.Expr != l.Func.ArgOf && (d.Summary().Trains || trainsBeside(pkg, d, l) || repeats(pkg, d, l) || goesOver(pkg, d, l) || pkg.IsBlock(d, l) || d.fits() || fitsApart(pkg, d, l)) && pkg.GuardOf(d.In, d.Expr.Pos(), l) != Rarely
	})
}

// trainsBeside reports whether d waits for goroutines that train: for those that it starts itself, as a function of the
// package, or for a group of those that l starts.
//
//	for i, c := range clients {
//		wg.Go(func() { updates[i] = c.Train() })
//	}
//	wg.Wait()
func trainsBeside(pkg *Package, d *Call, l *Loop) bool {
	if d.Away {
		return false
	}
	trains := func(e *Call) bool { return e.Summary().Trains }
	if waitsForGroup(d) {
		for f := range l.Func.Tree() {
			if f.Lit != nil && f.Parent != nil && pkg.Contains(l, f.Parent, f.Lit.Pos()) && f.isGoroutine() && f.Contains(trains) {
				return true
			}
		}
		return false
	}
	return d.Target != nil && d.Target.Contains(trains) && d.Target.Contains(waitsForGroup)
}

// waitsForGroup recognises calls that wait for a group of goroutines.
func waitsForGroup(c *Call) bool {
	return syntax.IsFullName(c.Callee, "(*sync.WaitGroup).Wait") || syntax.IsFullName(c.Callee, "(*golang.org/x/sync/errgroup.Group).Wait")
}

// fits reports whether d calls a function that nobody knows and that, by its name, trains from the beginning to
// the end. A function that takes a step would return a loss, or be given a batch.
func (d *Call) fits() bool {
	if !d.Dynamic || d.Away || d.API.Kind != tensorapi.Unknown || d.Impls != nil || d.TakesTensor() {
		return false
	}
	name := strings.ToLower(nameOf(d.Expr.Fun))
	return (strings.HasPrefix(name, "fit") || strings.HasPrefix(name, "train") || strings.HasPrefix(name, "learn")) && !strings.Contains(name, "step") && !strings.Contains(name, "batch") &&
		!slices.ContainsFunc(slices.Collect(d.In.Package.ResultsOf(d).Variables()), func(v *types.Var) bool { return IsTensor(v.Type()) })
}

// repeats reports whether d, in l, calls a method of the package that changes what it belongs to many times, as one
// that fits a model by a number of iterations. l is no loop over data, and doesn't train.
//
//	for range restarts {
//		m := newMixture(k)
//		m.fit(x, 500)
//		if score := m.likelihood(x).Item(); score > best {
func repeats(pkg *Package, d *Call, l *Loop) bool {
	f := d.Target
	if f == nil || d.Away || f == l.Func || f.SCC == l.Func.SCC || l.Stmt == nil || f.Sig.Recv() == nil || pkg.StepsItself(l) || pkg.OverData(l, l.Func.WholeLoop()) {
		return false
	}
	recv := f.Sig.Recv()
	return slices.ContainsFunc(f.Flow().Loops, func(m *Loop) bool {
		if m.Small || m.Stmt == nil || pkg.OverParts(m) || pkg.OverData(m, f.WholeLoop()) || !pkg.Any(m, (*Call).Enqueues) || f.Flow().Conditions(m.Head) != nil {
			return false
		}
		return pkg.assignsField(m, recv)
	})
}

// goesOver reports whether d, in l, calls a function of the package that goes over a loader: a data set for each
// iteration of l, which takes no step of training by itself.
func goesOver(pkg *Package, d *Call, l *Loop) bool {
	f := d.Target
	return f != nil && !d.Away && f.SCC != l.Func.SCC && !pkg.StepsItself(l) && slices.ContainsFunc(f.Flow().Loops, func(m *Loop) bool {
		s, ok := m.Stmt.(*ast.RangeStmt)
		if !ok || f.Flow().Conditions(m.Head) != nil {
			return false
		}
		c := pkg.Calls[syntax.AsCall(s.X)]
		return c != nil && c.IsFunc("Loader.All")
	})
}

// IsBlock reports whether d, in l, calls a function of the package that does as many steps of a computation as l says,
// and l goes on until a value is small enough or the like, or says by a name that it does something every so many
// steps, or by a number that they are many. It asks once for many steps.
//
//	for {
//		x = walk(x, block)
//		if spread(x).Item() < limit {
//			return x
//		}
//	}
func (pkg *Package) IsBlock(d *Call, l *Loop) bool {
	f := d.Target
	if f == nil || d.Away || l.Stmt == nil || f.SCC == l.Func.SCC || pkg.StepsItself(l) {
		return false
	}
	ends := pkg.EndsByValue(l)
	return slices.ContainsFunc(f.Flow().Loops, func(m *Loop) bool {
		var bound ast.Expr
		switch s := m.Stmt.(type) {
		case *ast.RangeStmt:
			bound = s.X
		case *ast.ForStmt:
			if b, ok := s.Cond.(*ast.BinaryExpr); ok && b.Op == token.LSS {
				bound = b.Y
			}
		}
		p := pkg.Params[pkg.Local(syntax.OrNil(bound))]
		if p.Of != f || f.Flow().Conditions(m.Head) != nil || !pkg.Any(m, (*Call).Enqueues) || !pkg.carriesTensors(m) {
			return false
		}
		return slices.ContainsFunc(d.Operand(p.Operand), func(e ast.Expr) bool {
			n, ok := syntax.IntConst(pkg.Info, e)
			return syntax.IsNumeric(pkg.Info.TypeOf(e)) && !pkg.Varies(e, l) && (ends && (!ok || n >= fewSteps) || n >= manySteps && !leavesEarly(m) || blockName.MatchString(nameOf(e)))
		})
	})
}

// leavesEarly reports whether l may end before its statement says so, as a loop with a limit does.
func leavesEarly(l *Loop) bool {
	blocks := l.Func.Flow().Blocks
	for b := range l.Blocks {
		if b != l.Head && slices.ContainsFunc(blocks[b].Succs, func(s *cfg.Block) bool { return !l.Blocks[s.Index] }) {
			return true
		}
	}
	return false
}

// blockName matches the names of numbers of steps after which something is looked at.
var blockName = regexp.MustCompile(`(?i)^(every|block|chunk|stride|interval|burst)|per(Block|Frame|Chunk|Check|Report)`)

// fewSteps are less than a block of steps: the leaps of one sample, the sweeps of one cycle.
const fewSteps = 10

// manySteps take so long that one wait for all of them costs nothing to speak of.
const manySteps = 50

// fitsApart reports whether d, in l, calls a function that fits something, and no iteration of l goes on with what the
// one before has computed: l goes over folds, sizes or restarts.
//
//	for k := 1; k <= 8; k++ {
//		m, likelihood := fit(x, k)
//		fmt.Println(k, likelihood, m.weights)
//	}
func fitsApart(pkg *Package, d *Call, l *Loop) bool {
	return d.Summary().Fits && !d.Away && l.Stmt != nil && !pkg.StepsItself(l) && !pkg.carriesTensors(l)
}

// isFit reports whether each iteration of m computes tensors from those of the one before, and m ends when a value that
// it reads, in each iteration or now and then, is small enough or the like.
func (pkg *Package) isFit(m *Loop) bool {
	return !m.Small && m.Stmt != nil && !pkg.OverParts(m) && pkg.Any(m, (*Call).Enqueues) && pkg.EndsByValue(m) && pkg.carriesTensors(m)
}

// carriesTensors reports whether m computes a tensor, or something with tensors, from the one that the iteration before
// has computed, or calls a method that changes what it belongs to. To add to a tensor or a list doesn't count.
func (pkg *Package) carriesTensors(m *Loop) bool {
	for v, defs := range pkg.Defs {
		if syntax.ElementType(v.Type()) != nil || !pkg.HoldsTensors(v.Type()) || m.Stmt.Pos() <= v.Pos() && v.Pos() < m.Stmt.End() {
			continue
		}
		if slices.ContainsFunc(defs, func(d Def) bool {
			return d.Kind == DefValue && pkg.Contains(m, d.In, d.Pos) && carries(pkg, m, d, v) && !(gathers(pkg, d.Value, v) && !addsToItself(pkg, m, d, v))
		}) {
			return true
		}
	}
	return pkg.Any(m, func(d *Call) bool {
		recv := d.Operand(tensorapi.Recv)
		return d.Target != nil && !d.Away && d.Target.Sig.Recv() != nil && len(recv) == 1 && pkg.Local(recv[0]) != nil && !pkg.Varies(recv[0], m) &&
			pkg.setsField(d.Target, d.Target.Sig.Recv(), m, 0)
	})
}

// addsToItself reports whether what d adds to the tensor in v is computed from v, too: w = w.AddScaled(slope(w), -r).
func addsToItself(pkg *Package, m *Loop, d Def, v *types.Var) bool {
	return slices.ContainsFunc(pkg.Calls[syntax.AsCall(d.Value)].AllOperands(), func(e ast.Expr) bool {
		return !isScaled(pkg, e, v) && carries(pkg, m, Def{DefValue, d.In, d.Pos, e, 0}, v)
	})
}

// assignsField reports whether l assigns a field with tensors of the receiver recv of its function, by itself or by a
// method that it calls.
func (pkg *Package) assignsField(l *Loop, recv *types.Var) bool {
	return pkg.setsField(l.Func, recv, l, 0)
}

// setsField reports whether f assigns a field with tensors of what is in base, by itself or by methods of base that it
// calls, and l uses the field. If f is l's function, only what is in l counts. Depth bounds the methods.
func (pkg *Package) setsField(f *Func, base *types.Var, l *Loop, depth int) bool {
	for cur := range f.Cur.Preorder((*ast.AssignStmt)(nil)) {
		for _, lhs := range cur.Node().(*ast.AssignStmt).Lhs {
			sel, ok := ast.Unparen(lhs).(*ast.SelectorExpr)
			if ok && pkg.Local(sel.X) == base && pkg.HoldsTensors(pkg.Info.TypeOf(lhs)) && pkg.isUsedIn(pkg.Variable(sel), l) && (f != l.Func || pkg.Contains(l, pkg.FuncAt(cur), lhs.Pos())) {
				return true
			}
		}
	}
	return depth < 3 && slices.ContainsFunc(f.Calls, func(d *Call) bool {
		return d.Target != nil && d.Target != f && d.Target.Sig.Recv() != nil && (f != l.Func || pkg.Contains(l, f, d.Expr.Pos())) &&
			slices.ContainsFunc(d.Operand(tensorapi.Recv), func(e ast.Expr) bool { return pkg.Local(e) == base }) &&
			pkg.setsField(d.Target, d.Target.Sig.Recv(), l, depth+1)
	})
}

// isUsedIn reports whether l uses the field v, by itself or by functions that it calls, other than to set it.
func (pkg *Package) isUsedIn(v *types.Var, l *Loop) bool {
	for use := range pkg.UsesInPackage(v) {
		cur := use
		if use.ParentEdgeKind() == edge.SelectorExpr_Sel {
			cur = use.Parent()
		}
		if f := pkg.FuncAt(use); !syntax.IsTarget(cur) && f != nil && (pkg.Contains(l, f, use.Node().Pos()) || pkg.CalledFrom(l, f)) {
			return true
		}
	}
	return false
}

// recurs reports whether the call is the recursion that makes the whole body of l's function a loop.
// What such a call leads to is the work of other iterations, not of this one.
func (c *Call) recurs(l *Loop) bool {
	return l.Blocks == nil && l.Func.Runs() != Looping && c.Target != nil && c.Target.SCC == l.Func.SCC
}

// isPass reports whether the loop m goes through data, as one over batches does. Around is the loop
// around m, or the whole body of its function. The first of these that applies decides:
//
//   - A loop over the parts of a model, a search, and a loop that enqueues nothing are no passes.
//   - A loop that trains is one. The exception is a loop with no data of its own inside one that takes
//     steps itself: the extra updates of a critic are part of a step.
//   - A loop without a post statement that waits in each iteration goes on until something has
//     happened. It is one.
//   - Any other loop is one if it goes through data, nothing around it trains, and it is not recurrent:
//     a loop over the steps of a sequence is one computation.
func isPass(pkg *Package, m, around *Loop) bool {
	if m.Small || pkg.OverParts(m) || IsSearch(pkg, m) || !pkg.Any(m, func(d *Call) bool { return d.Enqueues() && !d.recurs(around) }) {
		return false
	}
	// A loop that trains.
	if pkg.Any(m, (*Call).Steps) {
		return !pkg.StepsItself(around) || pkg.OverData(m, around)
	}
	// A loop that goes on until something has happened.
	if s, ok := m.Stmt.(*ast.ForStmt); ok && s.Post == nil && pkg.Any(m, func(d *Call) bool { return d.API.Kind == tensorapi.Read || len(d.Summary().Waits) > 0 }) {
		return true
	}
	// Any other loop.
	return !pkg.Any(around, func(d *Call) bool { return d.Steps() && pkg.GuardOf(d.In, d.Expr.Pos(), around) != Rarely }) &&
		pkg.OverData(m, around) && !recurrent(pkg, m)
}

// isChunk reports whether the loop m does some steps of a computation that l continues in each
// iteration. What l does after m, it does once for many steps:
//
//	for !done {
//		for range 100 { u = u.Add(flow(u)) }
//		done = u.Norm().Item() < eps // once per 100 steps
//	}
//
// It is one if a tensor that is declared outside of both loops is computed from itself in m, or m calls a
// method that does so with a field, and m uses nothing that l assigns outside of m.
func isChunk(pkg *Package, m, l *Loop) bool {
	if m.Small || m.Stmt == nil || l.Stmt == nil || pkg.StepsItself(l) || pkg.OverParts(m) || pkg.OverData(l, l.Func.WholeLoop()) {
		return false
	}
	// own is whether m uses a variable that l assigns outside of m.
	own := false
	ast.Inspect(m.Stmt, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		if !ok || own {
			return !own
		}
		u, ok := pkg.Info.Uses[id].(*types.Var)
		own = ok && !m.Declares(u) && slices.ContainsFunc(pkg.Defs[u], func(d Def) bool {
			return d.Value != nil && pkg.Contains(l, d.In, d.Pos) && !pkg.Contains(m, d.In, d.Pos)
		})
		return !own
	})
	if own {
		return false
	}
	if !pkg.OverData(m, l) && pkg.Any(m, func(d *Call) bool { return pkg.advances(d, m) }) {
		return true
	}
	for v, defs := range pkg.Defs {
		if IsTensor(v.Type()) && !l.Declares(v) && slices.ContainsFunc(defs, func(d Def) bool {
			return d.Kind == DefValue && pkg.Contains(m, d.In, d.Pos) && carries(pkg, m, d, v) && (!gathers(pkg, d.Value, v) || pkg.Calls[syntax.AsCall(d.Value)].Callee.Name() == "AddScaled")
		}) {
			return true
		}
	}
	return false
}

// isIteration reports whether the loop m goes on with one computation for many steps, by its number or by the name of
// that, and each iteration of l begins one of its own, as for the next component. What l does after m, it does once for
// many steps.
//
//	for range n {
//		v := tensor.Randn(d)
//		for range iters { v = unit(cov.MatMul(v)) }
//		variances = append(variances, v.Dot(cov.MatMul(v)).Item())
//		cov = deflate(cov, v)
//	}
//
// A loop over the elements of a sequence is none: there are as many as the data has. Neither is a loop of fewer than
// manySteps if l goes over data: the items don't depend on each other.
func isIteration(pkg *Package, m, l *Loop) bool {
	if m.Stmt == nil || l.Stmt == nil || pkg.StepsItself(l) || pkg.OverParts(m) || pkg.OverData(m, l) || !recurrent(pkg, m) {
		return false
	}
	trips, bound := int64(ManyTrips), ast.Expr(nil)
	switch s := m.Stmt.(type) {
	case *ast.RangeStmt:
		trips, bound = RangeTrips(pkg.Info, s.X), s.X
	case *ast.ForStmt:
		trips = ForTrips(pkg.Info, s)
		if b, ok := s.Cond.(*ast.BinaryExpr); ok && b.Op == token.LSS {
			bound = b.Y
		}
	}
	names := iterationsName
	if pkg.OverData(l, l.Func.WholeLoop()) {
		if trips < manySteps {
			return false
		}
		names = sweepsName
	}
	return bound != nil && syntax.IsNumeric(pkg.Info.TypeOf(bound)) && (trips < ManyTrips && trips >= fewSteps || names.MatchString(nameOf(bound)))
}

// iterationsName matches the names of numbers of steps that an iterative method takes. The steps for each item of the
// data may be few, but not if they are called as sweepsName says.
var (
	iterationsName = regexp.MustCompile(`(?i)(^|n|num|max|inner|power)_?(iters?|iterations|sweeps|rounds|steps)$`)
	sweepsName     = regexp.MustCompile(`(?i)(^|n|num|max|inner|power)_?(iters?|iterations|sweeps)$`)
)

// advances reports whether d, in m, calls a method that computes a field with a tensor from itself. What
// has the field is the same in all iterations.
//
//	func (p *plate) tick() { p.u = p.u.Add(flow(p.u)) }
func (pkg *Package) advances(d *Call, m *Loop) bool {
	recv := d.Operand(tensorapi.Recv)
	if d.Away || len(recv) != 1 || pkg.Local(recv[0]) == nil || pkg.Varies(recv[0], m) {
		return false
	}
	if d.Target == nil {
		// A method of another package that computes, and is given the same each time. To call it again and again
		// is of no use unless it changes what it belongs to.
		return d.API.Kind == tensorapi.Unknown && !d.Dynamic && d.Callee != nil && d.Enqueues() && !slices.ContainsFunc(d.Expr.Args, func(e ast.Expr) bool { return pkg.Varies(e, m) })
	}
	if d.Target.Sig.Recv() == nil {
		return false
	}
	for v, defs := range pkg.Defs {
		if v.IsField() && IsTensor(v.Type()) && slices.ContainsFunc(defs, func(x Def) bool {
			return x.In == d.Target && x.Kind == DefValue && pkg.Mentions(x.Value, v)
		}) {
			return true
		}
	}
	return false
}

// Steps reports whether the call may take a step of training, as opt.Step() and p.Set(x) do, directly
// or through functions that it calls. Computing gradients, setting a rate or a seed, and setting a cell to
// zeros or random numbers, with which training begins, are no steps.
func (c *Call) Steps() bool {
	if c.API.Kind != tensorapi.Mutate {
		return c.Summary().Steps || c.anyArg(func(s *Summary) bool { return s.Steps }) || c.anyLit((*Call).Steps)
	}
	switch c.Callee.Name() {
	case "Backward", "ZeroGrad", "SetRate", "SetRateF64", "SetRates", "Seed", "Restore", "Sync", "Swap", "Changing":
		return false
	case "Set":
		return strings.HasSuffix(c.API.Name, ".Param).Set") && !begins(c)
	}
	return true
}

// begins reports whether c sets a cell to a tensor that is computed from nothing.
func begins(c *Call) bool {
	if len(c.Expr.Args) != 1 {
		return false
	}
	made := c.In.Package.Calls[syntax.AsCall(c.Expr.Args[0])]
	return made != nil && (made.API.Kind == tensorapi.Host || made.API.Kind == tensorapi.Draw)
}

// StepsItself reports whether most iterations of l take a step of training outside of all loops in l.
func (pkg *Package) StepsItself(l *Loop) bool {
	return pkg.Any(l, func(d *Call) bool {
		if !d.Steps() || d.Summary().Trains || pkg.GuardOf(d.In, d.Expr.Pos(), l) == Rarely {
			return false
		}
		for m := range pkg.LoopsAround(d.In, d.Expr.Pos()) {
			return m == l
		}
		return true
	})
}

// OverParts reports whether m goes through the parts of a model: functions and values that map tensors to tensors,
// cells, and what has parameters. Such a loop is one computation. If it assigns the cells that it goes through, and
// nothing else, it is one step of training:
//
//	for _, p := range params {
//		p.Set(p.Value().Sub(p.Grad().MulScalar(rate)))
//	}
func (pkg *Package) OverParts(m *Loop) bool {
	if pkg.Any(m, (*Call).Mutates) {
		return !pkg.Any(m, func(d *Call) bool { return d.Mutates() && !assignsPart(pkg, d, m) })
	}
	s, ok := m.Stmt.(*ast.RangeStmt)
	return ok && computes(pkg, Iterated(pkg.Info.TypeOf(s.X)))
}

// Iterated returns the type of what a loop over a value of type t is about: the elements of a list, the
// last variable that an iterator yields, or the one before an error. For other types it returns the
// invalid type.
func Iterated(t types.Type) types.Type {
	if elem := syntax.ElementType(t); elem != nil {
		return elem
	}
	if sig, ok := t.Underlying().(*types.Signature); ok && sig.Params().Len() == 1 {
		if yield, ok := sig.Params().At(0).Type().Underlying().(*types.Signature); ok && yield.Params().Len() > 0 {
			last := yield.Params().Len() - 1
			if last > 0 && types.Identical(yield.Params().At(last).Type(), types.Universe.Lookup("error").Type()) {
				last--
			}
			return yield.Params().At(last).Type()
		}
	}
	return types.Typ[types.Invalid]
}

// assignsPart reports whether the call assigns a cell, or the cells of an optimiser, and each iteration
// of m has another one: p.Set(…) in a loop over p does, net.bias.Set(…) doesn't.
func assignsPart(pkg *Package, d *Call, m *Loop) bool {
	// The cells: the receiver of Set, or whatever a user's function is given that can be set.
	var operands []ast.Expr
	if d.API.Kind == tensorapi.Mutate {
		operands = d.Operand(tensorapi.Recv)
	} else {
		operands = slices.DeleteFunc(slices.Concat(d.Operand(tensorapi.Recv), d.Expr.Args), func(e ast.Expr) bool { return !pkg.IsCell(pkg.Info.TypeOf(e)) })
	}
	return slices.ContainsFunc(operands, func(e ast.Expr) bool {
		made := pkg.Calls[syntax.AsCall(e)]
		if made == nil || made.API.Kind == tensorapi.Unknown {
			return pkg.Varies(e, m)
		}
		// An optimiser that is made for one step: its cells count, and not its rate.
		return slices.ContainsFunc(slices.Concat(made.Operand(tensorapi.Recv), made.Expr.Args), func(e ast.Expr) bool {
			return !syntax.IsNumeric(pkg.Info.TypeOf(e)) && pkg.Varies(e, m)
		})
	})
}

// IsCell recognises types that hold one tensor and can be given another, such as *tensor.Param: those
// with the methods Value and Set of a library. A type of a user that embeds such a cell counts as well.
func (pkg *Package) IsCell(t types.Type) bool {
	if t == nil || IsTensor(t) {
		return false
	}
	value, set := false, false
	methods := types.NewMethodSet(t)
	for i := range methods.Len() {
		if fn, ok := methods.At(i).Obj().(*types.Func); ok {
			api, _ := lookup(fn)
			value = value || api.Kind == tensorapi.Value && fn.Name() == "Value"
			set = set || api.Kind == tensorapi.Mutate && fn.Name() == "Set"
		}
	}
	return value && set
}

// OverData reports whether m goes through data. Around is the loop around m. There are three ways: a
// range over batches, over a channel, or over something that is the same in each iteration of around; a
// counter that is used as an index, as a bound of a slice, or as an argument that fetches a part; a
// condition or body that asks for the next part:
//
//	for _, b := range batches {}
//	for i := 0; i < n; i += size { x := data[i : i+size] }
//	for loader.Next() {}
//
// Lists that m assigns are a state, and lists of tensors in a loop over tensors are weights. Neither
// are data.
func (pkg *Package) OverData(m, around *Loop) bool {
	// First what the loop's clauses say: what it ranges over, or a condition that asks for more.
	var body ast.Node
	counters := make(map[types.Object]bool)
	switch s := m.Stmt.(type) {
	case *ast.RangeStmt:
		body = s.Body
		switch t := pkg.Info.TypeOf(s.X).Underlying().(type) {
		case *types.Chan:
			return true
		case *types.Slice, *types.Array, *types.Pointer, *types.Map, *types.Signature:
			if elem := Iterated(t); pkg.IsData(elem) && !assignsIn(pkg, m, s.X) {
				if IsTensor(elem) && (overTensors(pkg, around) || isOfParts(pkg, s.X, 0)) {
					return false // the loop around it goes over the data, and this list is weights
				}
				if !dependsOnIteration(pkg, s.X, around) || !IsTensor(elem) && pkg.HoldsTensors(elem) {
					return true
				}
			}
		}
		for _, e := range []ast.Expr{s.Key, s.Value} {
			if id, ok := e.(*ast.Ident); ok {
				counters[pkg.Info.ObjectOf(id)] = true
			}
		}
	case *ast.ForStmt:
		body = s
		if c := pkg.Calls[syntax.AsCall(syntax.OrNil(s.Cond))]; c != nil && c.API.Kind == tensorapi.Unknown && !readsTensor(pkg, s.Cond, 0) {
			return true
		}
		if s.Init != nil {
			if assign, ok := s.Init.(*ast.AssignStmt); ok {
				for _, e := range assign.Lhs {
					if v := pkg.Variable(e); v != nil {
						counters[v] = true
					}
				}
			}
		}
	default:
		return true // a function that is called in a loop, or goto
	}
	// Then what the body does with the counters: it takes another part of something in each iteration.
	found := false
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.UnaryExpr:
			found = found || n.Op == token.ARROW
		case *ast.IndexExpr:
			found = found || pkg.MentionsAny(n.Index, counters) && pkg.IsData(pkg.Info.TypeOf(n)) && !dependsOnIteration(pkg, n.X, around) &&
				!assignsIn(pkg, m, n.X) && !(IsTensor(pkg.Info.TypeOf(n)) && (overTensors(pkg, around) || isOfParts(pkg, n.X, 0)))
		case *ast.SliceExpr:
			found = found || (pkg.MentionsAny(n.Low, counters) || pkg.MentionsAny(n.High, counters)) && !dependsOnIteration(pkg, n.X, around)
		case *ast.CallExpr:
			found = found || fetches(pkg, pkg.Calls[n], counters, around)
		}
		return !found
	})
	return found
}

// isOfParts reports whether the list e has a tensor for each parameter of a model: gradients that tensor.Grad returns,
// values or gradients of parameters that are appended, and lists that are as long as such a list. Depth bounds how many
// lists and callers it looks through.
func isOfParts(pkg *Package, e ast.Expr, depth int) bool {
	v := pkg.Variable(e)
	if v == nil || depth > 3 || !IsTensors(v.Type()) {
		return false
	}
	if p, ok := pkg.Params[v]; ok {
		return slices.ContainsFunc(pkg.callers()[p.Of], func(c *Call) bool {
			return slices.ContainsFunc(c.Operand(p.Operand), func(e ast.Expr) bool { return isOfParts(pkg, e, depth+1) })
		})
	}
	return slices.ContainsFunc(pkg.Defs[v], func(d Def) bool {
		call := syntax.AsCall(syntax.OrNil(d.Value))
		if call == nil || d.Kind != DefValue {
			return false
		}
		if syntax.IsBuiltin(pkg.Info, call, "make") && len(call.Args) == 2 {
			n := syntax.AsCall(call.Args[1])
			return n != nil && syntax.IsBuiltin(pkg.Info, n, "len") && isOfParts(pkg, n.Args[0], depth+1)
		}
		if syntax.IsBuiltin(pkg.Info, call, "append") {
			return slices.ContainsFunc(call.Args[1:], func(e ast.Expr) bool {
				c := pkg.Calls[syntax.AsCall(e)]
				return c != nil && (IsParamValue(c) || strings.HasSuffix(c.API.Name, ".Param).Grad"))
			})
		}
		c := pkg.Calls[call]
		return c != nil && isGrad(c)
	})
}

// assignsIn reports whether m assigns to the list e or to its elements. Then e is a state, like
// weights, and no data.
func assignsIn(pkg *Package, m *Loop, e ast.Expr) bool {
	v := pkg.Variable(e)
	return v != nil && slices.ContainsFunc(pkg.Defs[v], func(d Def) bool { return pkg.Contains(m, d.In, d.Pos) })
}

// overTensors reports whether l ranges over tensors, or over structs or lists with tensors. Then these
// are the data, and a list of tensors that an iteration goes through is weights or the like.
func overTensors(pkg *Package, l *Loop) bool {
	s, ok := l.Stmt.(*ast.RangeStmt)
	return ok && pkg.HoldsTensors(Iterated(pkg.Info.TypeOf(s.X)))
}

// fetches reports whether the call takes a part of data: data.Batch(i), where counters has i, or
// loader.Next(). Neither the receiver nor an argument with tensors may depend on the iteration of
// around: a call with these computes something.
func fetches(pkg *Package, c *Call, counters map[types.Object]bool, around *Loop) bool {
	if c == nil || c.API.Kind != tensorapi.Unknown && c.API.Kind != tensorapi.View {
		return false
	}
	if slices.ContainsFunc(c.Operand(tensorapi.Recv), func(e ast.Expr) bool { return dependsOnIteration(pkg, e, around) }) {
		return false
	}
	if c.API.Kind == tensorapi.View && slices.ContainsFunc(c.Operand(tensorapi.Recv), func(e ast.Expr) bool { return pkg.dependsOnState(e, around) }) {
		return false
	}
	named := false
	for _, e := range c.Expr.Args {
		if pkg.HoldsTensors(pkg.Info.TypeOf(e)) && dependsOnIteration(pkg, e, around) {
			return false
		}
		named = named || pkg.MentionsAny(e, counters)
	}
	if c.API.Kind == tensorapi.View {
		return named
	}
	holds := false
	sig, ok := pkg.Info.TypeOf(c.Expr.Fun).Underlying().(*types.Signature)
	if !ok {
		return false
	}
	for v := range sig.Results().Variables() {
		holds = holds || pkg.HoldsTensors(v.Type())
	}
	return holds && (named || len(c.Expr.Args) == 0 && !c.Summary().Enqueues)
}

// IsData reports whether a loop over data may go through values of type t: tensors, structs with
// tensors, strings and others. Numbers are counters, and types that compute are layers.
func (pkg *Package) IsData(t types.Type) bool {
	basic, ok := t.Underlying().(*types.Basic)
	return !computes(pkg, t) && (!ok || basic.Info()&types.IsString != 0)
}

// MentionsAny reports whether one of the variables occurs in e, which may be nil.
func (pkg *Package) MentionsAny(e ast.Expr, vars map[types.Object]bool) bool {
	found := false
	ast.Inspect(syntax.OrNil(e), func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		found = found || ok && vars[pkg.Info.Uses[id]]
		return !found
	})
	return found
}

// dependsOnIteration reports whether e is made of something that each iteration of l has anew, directly
// or through variables. A call alone makes nothing new: data that is shuffled in each epoch is the same
// data.
//
//	for epoch := range epochs {
//		list := shuffled(data) // doesn't depend on the iteration
//		part := data[epoch]    // does
//	}
func dependsOnIteration(pkg *Package, e ast.Expr, l *Loop) bool {
	return pkg.reaches(e, func(v *types.Var) bool { return pkg.IsOperand(v, l) && l.Func.Runs() == Looping }, func(v *types.Var, d Def) (found, goOn bool) {
		if !pkg.Contains(l, d.In, d.Pos) {
			return false, false
		}
		own := l.Stmt != nil && d.Pos == bodyOf(l.Stmt).Lbrace // a variable of l's clauses
		return own || d.Value == nil, true
	})
}

// dependsOnState reports whether e is computed from a tensor that each iteration of l computes from the one before.
func (pkg *Package) dependsOnState(e ast.Expr, l *Loop) bool {
	if l.Stmt == nil {
		return false
	}
	return pkg.reaches(e, func(*types.Var) bool { return false }, func(v *types.Var, d Def) (found, goOn bool) {
		if v.IsField() || !IsTensors(v.Type()) || d.Value == nil || !pkg.Contains(l, d.In, d.Pos) {
			return false, false
		}
		return !l.Declares(v) && d.Kind == DefValue && carries(pkg, l, d, v), true
	})
}

// reaches reports whether is holds for a variable that e is computed from, or by for a definition of one. It goes on to
// what a definition assigns if by says so.
func (pkg *Package) reaches(e ast.Expr, is func(v *types.Var) bool, by func(v *types.Var, d Def) (found, goOn bool)) bool {
	seen := make(map[*types.Var]bool)
	var visit func(e ast.Expr) bool
	visit = func(e ast.Expr) bool {
		found := false
		ast.Inspect(e, func(n ast.Node) bool {
			id, ok := n.(*ast.Ident)
			if !ok || found {
				return !found
			}
			v, ok := pkg.Info.Uses[id].(*types.Var)
			if !ok || seen[v] {
				return true
			}
			seen[v] = true
			found = is(v)
			for _, d := range pkg.Defs[v] {
				if found {
					break
				}
				reached, goOn := by(v, d)
				found = reached || goOn && visit(d.Value)
			}
			return !found
		})
		return found
	}
	return visit(e)
}

// bodyOf returns the body of a for or range statement, the statements that a Loop can have.
func bodyOf(loop ast.Stmt) *ast.BlockStmt {
	if s, ok := loop.(*ast.ForStmt); ok {
		return s.Body
	}
	return loop.(*ast.RangeStmt).Body
}

// recurrent reports whether m computes a tensor from the one that the iteration before has computed,
// like the state of a network or a power iteration. To add to a tensor, compare it or join it doesn't
// count:
//
//	h = cell.Forward(x, h) // recurrent
//	sum = sum.Add(loss)    // not
//
// The iterations of a recurrent loop can't be reordered or batched, so it is one long computation.
func recurrent(pkg *Package, m *Loop) bool {
	for v, defs := range pkg.Defs {
		if !IsTensor(v.Type()) || m.Stmt != nil && m.Stmt.Pos() <= v.Pos() && v.Pos() < m.Stmt.End() {
			continue
		}
		for _, d := range defs {
			if d.Kind == DefValue && pkg.Contains(m, d.In, d.Pos) && carries(pkg, m, d, v) && !gathers(pkg, d.Value, v) {
				return true
			}
		}
	}
	return false
}

// gathers reports whether e adds the tensor in v to something, joins it or compares it: e is an
// operation such as Add or Concat, and exactly one of its operands mentions v. This operand is v, perhaps
// scaled: m.MatMul(v).Add(b) computes another v.
func gathers(pkg *Package, e ast.Expr, v *types.Var) bool {
	c := pkg.Calls[syntax.AsCall(e)]
	if c == nil || c.API.Kind != tensorapi.Op {
		return false
	}
	switch c.Callee.Name() {
	case "Add", "AddScaled", "Sub", "Mul", "Maximum", "Minimum", "And", "Or", "Concat", "Stack":
	default:
		return false
	}
	at := 0
	for _, e := range slices.Concat(c.Operand(tensorapi.Recv), c.Expr.Args) {
		switch {
		case isScaled(pkg, e, v):
			at++
		case pkg.Mentions(e, v):
			return false
		}
	}
	return at == 1
}

// isScaled reports whether e is the tensor in v, a view of it, or its product or sum with a number.
func isScaled(pkg *Package, e ast.Expr, v *types.Var) bool {
	c := pkg.Calls[syntax.AsCall(e)]
	if c == nil {
		return pkg.Variable(e) == v
	}
	recv := c.Operand(tensorapi.Recv)
	if c.API.Kind == tensorapi.Op {
		switch c.Callee.Name() {
		case "MulScalar", "DivScalar", "AddScalar", "SubScalar", "As", "Detach":
		default:
			return false
		}
	} else if c.API.Kind != tensorapi.View {
		return false
	}
	return len(recv) == 1 && isScaled(pkg, recv[0], v)
}

// IsSearch reports whether l looks for a number, as a line search does. A value that it reads must end
// it, and all that it carries from one iteration to the next must be numbers which it steps. Such a
// loop is short, and part of a step:
//
//	for rate := 1.0; loss(rate).Item() > limit; rate /= 2 {}
func IsSearch(pkg *Package, l *Loop) bool {
	s, ok := l.Stmt.(*ast.ForStmt)
	if !ok || pkg.Any(l, (*Call).Mutates) || !pkg.EndsByValue(l) {
		return false
	}
	for v, defs := range pkg.Defs {
		if s.Pos() <= v.Pos() && v.Pos() < s.End() && (s.Init == nil || v.Pos() >= s.Init.End()) {
			continue // each iteration has its own
		}
		for _, d := range defs {
			// A number may be carried on, unless it was read.
			steps := syntax.IsNumeric(v.Type()) && (d.Kind != DefValue || !readsTensor(pkg, d.Value, 0))
			if !steps && pkg.Contains(l, d.In, d.Pos) && carries(pkg, l, d, v) {
				return false
			}
		}
	}
	return true
}

// EndsByValue reports whether a condition that can leave l compares a value that was read from a
// tensor.
func (pkg *Package) EndsByValue(l *Loop) bool {
	fl := l.Func.Flow()
	for b := range l.Blocks {
		blk := fl.Blocks[b]
		if len(blk.Succs) != 2 || len(blk.Nodes) == 0 || l.Blocks[blk.Succs[0].Index] && l.Blocks[blk.Succs[1].Index] {
			continue
		}
		if e, ok := blk.Nodes[len(blk.Nodes)-1].(ast.Expr); ok && comparesValue(pkg, e) {
			return true
		}
	}
	return false
}

// comparesValue reports whether e compares a number that was read from a tensor, itself or in an
// operand of && and ||. Only comparisons of numbers count: a loop that asks for err != nil doesn't
// search for a value.
func comparesValue(pkg *Package, e ast.Expr) bool {
	b, ok := ast.Unparen(e).(*ast.BinaryExpr)
	if !ok {
		return false
	}
	if b.Op == token.LAND || b.Op == token.LOR {
		return comparesValue(pkg, b.X) || comparesValue(pkg, b.Y)
	}
	return syntax.IsNumeric(pkg.Info.TypeOf(b.X)) && readsTensor(pkg, b, 0)
}

// carries reports whether d, an assignment to v in l, may use the value that an earlier iteration has
// assigned to v: v += 1, or v = f(w) after w = v. It ignores the order of the assignments in l, so it
// also says yes where this iteration has assigned v before.
func carries(pkg *Package, l *Loop, d Def, v *types.Var) bool {
	seen := make(map[*types.Var]bool)
	var depends func(e ast.Expr) bool
	depends = func(e ast.Expr) bool {
		found := false
		ast.Inspect(e, func(n ast.Node) bool {
			id, ok := n.(*ast.Ident)
			if !ok || found {
				return !found
			}
			u, ok := pkg.Info.Uses[id].(*types.Var)
			if found = ok && u == v; !ok || found || seen[u] {
				return !found
			}
			seen[u] = true
			for _, d := range pkg.Defs[u] {
				found = found || d.Value != nil && pkg.Contains(l, d.In, d.Pos) && depends(d.Value)
			}
			return !found
		})
		return found
	}
	return d.Kind != DefValue || depends(d.Value)
}

// computes reports whether values of type t are layers or parameters: functions from tensors to
// tensors, types with such a method, or types with the method Value of a parameter.
func computes(pkg *Package, t types.Type) bool {
	if sig, ok := t.Underlying().(*types.Signature); ok {
		return mapsTensors(sig)
	}
	if IsTensor(t) {
		return false
	}
	methods := types.NewMethodSet(t)
	if _, isPointer := t.(*types.Pointer); !isPointer && !types.IsInterface(t) {
		methods = types.NewMethodSet(types.NewPointer(t))
	}
	for i := range methods.Len() {
		if sig, ok := methods.At(i).Type().(*types.Signature); ok && mapsTensors(sig) {
			return true
		}
		if fn, ok := methods.At(i).Obj().(*types.Func); ok {
			if api, ok := lookup(fn); ok && api.Kind == tensorapi.Value {
				return true // a parameter
			}
		}
	}
	return false
}

// mapsTensors reports whether a function takes a tensor and returns one.
func mapsTensors(sig *types.Signature) bool {
	takes, makes := false, false
	for v := range sig.Params().Variables() {
		takes = takes || IsTensor(v.Type())
	}
	for v := range sig.Results().Variables() {
		makes = makes || IsTensor(v.Type())
	}
	return takes && makes
}

// encloses reports whether m, a loop of f, is inside l. In one graph, the blocks of m must be a proper
// part of those of l; in a literal in l, the literal must run in l.
func encloses(pkg *Package, l, m *Loop, f *Func) bool {
	if f != l.Func {
		return pkg.Contains(l, f, token.NoPos)
	}
	if l.Blocks == nil {
		return m.Blocks != nil
	}
	if m.Blocks == nil || len(m.Blocks) >= len(l.Blocks) {
		return false
	}
	for b := range m.Blocks {
		if !l.Blocks[b] {
			return false
		}
	}
	return true
}
