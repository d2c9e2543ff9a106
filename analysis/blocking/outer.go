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
// Loops don't say what they are over, so the answer goes by signs: what elsewhere.go says of calls, overdata.go of
// elements and carried.go of what iterations take over from each other. No sign is proof. Where the signs are missing,
// l is no outer loop, and rules report its waits.

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
			if m != l && encloses(pkg, l, m, f) && !pkg.Contains(m, c.In, c.Expr.Pos()) && (isPass(pkg, m, l) || isChunk(pkg, m, l) || isIteration(pkg, m, l) || isOfEpoch(pkg, m, l)) &&
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
	if !pkg.OverData(m, l) && (pkg.Any(m, func(d *Call) bool { return pkg.advances(d, m) }) || pkg.overwrites(m, l)) {
		return true
	}
	for v, defs := range pkg.Defs {
		if IsTensor(v.Type()) && !l.Declares(v) && slices.ContainsFunc(defs, func(d Def) bool {
			return d.Kind == DefValue && pkg.Contains(m, d.In, d.Pos) && carries(pkg, m, d, v) && (!gathers(pkg, d.Value, v) || pkg.Calls[syntax.AsCall(d.Value)].Callee.Name() == "AddScaled" || addsToItself(pkg, m, d, v))
		}) {
			return true
		}
	}
	return false
}

// overwrites reports whether m replaces a tensor in each iteration that nothing in m uses, and that l makes anew:
// only the last one counts, so the calls before it are steps of something that they change.
//
//	var loss *tensor.Tensor
//	for range 10 { loss = m.step(x) }
//	now := loss.Item() // once per ten steps
func (pkg *Package) overwrites(m, l *Loop) bool {
	replaced := make(map[*types.Var]bool)
	assigned := make(map[*ast.Ident]bool)
	ast.Inspect(m.Stmt, func(n ast.Node) bool {
		s, ok := n.(*ast.AssignStmt)
		if !ok || s.Tok != token.ASSIGN {
			return true
		}
		for _, left := range s.Lhs {
			id, ok := ast.Unparen(left).(*ast.Ident)
			if !ok {
				continue
			}
			if v, ok := pkg.Info.Uses[id].(*types.Var); ok && IsTensor(v.Type()) && l.Declares(v) && !m.Declares(v) && syntax.AsCall(s.Rhs[0]) != nil {
				replaced[v], assigned[id] = true, true
			}
		}
		return true
	})
	ast.Inspect(m.Stmt, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && !assigned[id] {
			if v, ok := pkg.Info.Uses[id].(*types.Var); ok {
				delete(replaced, v)
			}
		}
		return true
	})
	return len(replaced) > 0
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
	trips, bound := int64(ManyTrips), boundOf(m)
	switch s := m.Stmt.(type) {
	case *ast.RangeStmt:
		trips = RangeTrips(pkg.Info, s.X)
	case *ast.ForStmt:
		trips = ForTrips(pkg.Info, s)
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

// isOfEpoch reports whether the loop m hands items to a function that nobody knows, and l is over epochs by the name of
// their number. The function may train.
//
//	for range epochs {
//		for _, i := range tensor.Permutation(n).Int64s() {
//			visit(i)
//		}
//	}
func isOfEpoch(pkg *Package, m, l *Loop) bool {
	bound := boundOf(l)
	return bound != nil && !pkg.StepsItself(l) && epochsName.MatchString(nameOf(bound)) && syntax.IsNumeric(pkg.Info.TypeOf(bound)) &&
		pkg.Any(m, func(d *Call) bool { return d.Dynamic && !d.Away && d.API.Kind == tensorapi.Unknown && d.Target == nil })
}

// epochsName matches the names of numbers of epochs.
var epochsName = regexp.MustCompile(`(?i)(^|[a-z_])epochs$`)

// boundOf returns how often l runs, if its statement says so, or what it ranges over; or nil.
func boundOf(l *Loop) ast.Expr {
	switch s := l.Stmt.(type) {
	case *ast.RangeStmt:
		return s.X
	case *ast.ForStmt:
		if b, ok := s.Cond.(*ast.BinaryExpr); ok && b.Op == token.LSS {
			return b.Y
		}
	}
	return nil
}

// iterationsName matches the names of numbers of steps that an iterative method takes. The steps for each item of the
// data may be few, but not if they are called as sweepsName says.
var (
	iterationsName = regexp.MustCompile(`(?i)(^|n|num|max|inner|power)_?(iters?|iterations|sweeps|rounds|steps)$`)
	sweepsName     = regexp.MustCompile(`(?i)(^|n|num|max|inner|power)_?(iters?|iterations|sweeps)$`)
)

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

// GuardOfLoop says how often calls of the function with the loop l come to it.
func (pkg *Package) GuardOfLoop(l *Loop) Guard {
	return guardUnder(pkg, l.Func.Flow().Conditions(l.Head), l.Func, l.Pos, nil)
}
