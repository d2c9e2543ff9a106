package sites

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"

	"github.com/asyncgen/asyncgen/analysis/blocking"
	"github.com/asyncgen/asyncgen/analysis/internal/syntax"
	"github.com/asyncgen/asyncgen/analysis/lint"
	"github.com/asyncgen/asyncgen/analysis/tensorapi"
)

// How often a wait holds up the device, as the loops around it tell.

// A pace says how often a loop comes to a call.
type pace uint8

const (
	idle  pace = iota // the loop enqueues nothing or is short: ask the one around it
	busy              // often, and it keeps the device busy meanwhile
	outer             // now and then: once per epoch, in the loops around, too
)

// paceOf returns the pace of l, a loop around c. enqueues says that c enqueues work, even if l doesn't show it.
func paceOf(pkg *blocking.Package, c *blocking.Call, l *blocking.Loop, enqueues bool) pace {
	switch {
	case l.Small || !enqueues && !pkg.Any(l, (*blocking.Call).Enqueues) && !takesInput(pkg, l) || pkg.AppliesList(c, l):
		return idle
	case pkg.IsOuter(l, c) || doubles(pkg, l):
		return outer
	}
	return busy
}

// RunsOften reports whether c runs in each iteration of a loop that keeps the device busy, as one over batches or
// steps, or in a function that is called in such a loop or is a step itself. What c waits for doesn't matter.
func RunsOften(p *lint.Pass, c *blocking.Call) bool {
	return runsOften(p.Package, resultOf(p).repeated, c, 0)
}

// runsOften is RunsOften with what repeatedFuncs has found. Depth bounds the callers.
func runsOften(pkg *blocking.Package, repeated map[*blocking.Func]*blocking.Loop, c *blocking.Call, depth int) bool {
	if depth > 3 {
		return false
	}
	for l := range pkg.LoopsAround(c.In, c.Expr.Pos()) {
		if pace := paceOf(pkg, c, l, false); pace != idle {
			return pace == busy && pkg.GuardOf(c.In, c.Expr.Pos(), l) != blocking.Rarely && pkg.GuardOfLoop(l) != blocking.Rarely && !pkg.Any(l, IsStreamed) && !IsPaced(pkg, l)
		}
	}
	if pkg.GuardOf(c.In, c.Expr.Pos(), nil) == blocking.Rarely {
		return false
	}
	f := c.In.Owner()
	if l := repeated[f]; l != nil && l.Why != blocking.Accumulating {
		return true
	}
	for _, d := range pkg.CallersOf(f) {
		if !d.Away && d.In.Owner() != f && runsOften(pkg, repeated, d, depth+1) {
			return true
		}
	}
	return false
}

// GoesBack reports whether the function around l computes on the device with the value of c, or with a number or list
// made from it. An example is a mean that a tensor is divided by.
func GoesBack(pkg *blocking.Package, c *blocking.Call, l *blocking.Loop) bool {
	vars := make(map[types.Object]bool)
	for _, p := range Uses(pkg, c, l) {
		if p.Use == Computes {
			return true
		}
		addAssigned(pkg, p, vars, holdsNumbers)
	}
	f := c.In.Owner()
	for grown := len(vars) > 0; grown; {
		grown = false
		for v, defs := range pkg.Defs {
			if vars[v] || !holdsNumbers(v.Type()) {
				continue
			}
			for _, d := range defs {
				if d.Value != nil && d.In != nil && d.In.Owner() == f && mentionsValue(pkg, d.Value, vars) {
					vars[v], grown = true, true
				}
			}
		}
	}
	for _, g := range f.Parts() {
		for _, d := range g.Calls {
			if d.API.Kind != tensorapi.Op && !makesTensors(d) {
				continue
			}
			for _, e := range d.Expr.Args {
				if mentionsValue(pkg, e, vars) {
					return true
				}
			}
		}
	}
	return false
}

// holdsNumbers reports whether t is a number or a list of numbers.
func holdsNumbers(t types.Type) bool { return syntax.IsNumeric(t) || isNumbers(t) }

// mentionsValue reports whether e is computed from one of vars, by more than its length.
func mentionsValue(pkg *blocking.Package, e ast.Expr, vars map[types.Object]bool) bool {
	found := false
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			return !found && !syntax.IsBuiltin(pkg.Info, n, "len")
		case *ast.Ident:
			found = found || vars[pkg.Info.Uses[n]]
		}
		return !found
	})
	return found
}

// IsOwnPace reports whether w, a wait of c's callee, gets no worse by a loop around c. It is a rare
// one, or in or beside a loop of the callee.
func IsOwnPace(c *blocking.Call, w blocking.CallWait) bool {
	return w.Via != nil && (w.Via.InLoop && (w.Operand == nil || c.Enqueues()) || w.Via.Guarded || c.Summary().Trains || c.Target != nil && c.Target.SCC == c.In.Owner().SCC)
}

// isBesideStep reports whether a loop over batches takes a step of training in each iteration, and then
// evaluates the model by c. The callee of c waits after a loop over other data.
//
//	for _, b := range batches {
//		opt.Minimize(loss(b))
//		fmt.Println(accuracy(valid)) // after every step
//	}
func isBesideStep(pkg *blocking.Package, c *blocking.Call, w blocking.CallWait) bool {
	if w.Via == nil || !w.Via.InLoop || w.Via.Guarded || w.Operand != nil || c.Summary().Steps || c.Target != nil && c.Target.SCC == c.In.Owner().SCC {
		return false
	}
	for l := range pkg.LoopsAround(c.In, c.Expr.Pos()) {
		if !l.Small {
			return l.Blocks != nil && pkg.StepsItself(l) && !pkg.IsOuter(l, c) && pkg.OverData(l, l.Func.WholeLoop())
		}
	}
	return false
}

// isGivenBack reports whether the callee of c waits in a loop of its own, and a loop around c makes tensors of
// what it returns, or computes with it, in each iteration. Both loops wait: no iteration of the outer one can be
// enqueued before the one before has ended.
//
//	for range rounds {
//		s := best(x, y.Sub(pred)) // reads a score for each feature
//		pred = pred.Add(apply(s, x))
//	}
func isGivenBack(pkg *blocking.Package, c *blocking.Call, w blocking.CallWait) bool {
	if w.Via == nil || !w.Via.InLoop || w.Via.Guarded || c.Summary().Trains || c.Summary().Mutates || c.Target == nil || c.Target.SCC == c.In.Owner().SCC || c.Target.Contains(asksWorld) {
		return false
	}
	for v := range pkg.ResultsOf(c).Variables() {
		if pkg.HoldsTensors(v.Type()) {
			return false // nobody needs to have waited for these
		}
	}
	for l := range pkg.LoopsAround(c.In, c.Expr.Pos()) {
		if l.Small {
			continue
		}
		return l.Stmt != nil && slices.ContainsFunc(Uses(pkg, c, l), func(p Place) bool {
			d := pkg.Calls[syntax.AsCall(nodeOf(p.Cur.Parent()))]
			return p.Use == Computes || p.Use == Passed && d != nil && d.API.Kind == tensorapi.Unknown && !d.Away && d.Enqueues()
		})
	}
	return false
}

// hotLoop returns the innermost loop around c that enqueues what c waits for in each of many iterations; or nil.
func hotLoop(pkg *blocking.Package, c *blocking.Call, w blocking.CallWait) *blocking.Loop {
	own := computesSize(c)
	for l := range pkg.LoopsAround(c.In, c.Expr.Pos()) {
		if isComparison(pkg, l) && pkg.Varies(c.Expr, l) && (w.Operand == nil || !pkg.IsHostList(w.Operand)) {
			return l
		}
		switch paceOf(pkg, c, l, own) {
		case idle:
			continue
		case outer:
			return nil // and so is every loop around it
		}
		if pkg.IsBlock(c, l) {
			return nil // one wait for many steps
		}
		if gathers(c) && !pkg.Any(l, func(d *blocking.Call) bool { return d.Enqueues() && d.Target != c.Target }) {
			continue
		}
		if stops, _ := pkg.IsMeasured(l); stops && w.Kind != blocking.WaitPrint {
			return nil // it has to wait while the clock runs
		}
		if w.Operand == nil && pkg.Any(l, (*blocking.Call).Enqueues) || w.Kind == blocking.WaitPrint && !blocking.IsTensor(typeOf(pkg, w.Operand)) && pkg.SetsIn(typeOf(pkg, w.Operand), l) || w.Operand != nil && (own && pkg.Varies(w.Operand, l) || pkg.Fresh(w.Operand, c.In, l) || pkg.Arrives(w.Operand, c.In, l)) {
			if pkg.IsDelayed(c, w, l) || pkg.Any(l, IsStreamed) || IsPaced(pkg, l) {
				return nil
			}
			return l
		}
	}
	return nil
}

// gathers reports whether c calls a function of the package that enqueues nothing but to join tensors, in order to read
// all of them at once. That is no work for which the device has to be kept busy.
//
//	func (m *meter) values() []float32 { return tensor.Stack(0, m.sum, m.top).Float32s() }
func gathers(c *blocking.Call) bool {
	return c.Target != nil && c.API.Kind == tensorapi.Unknown && !c.Target.Contains(func(d *blocking.Call) bool {
		read := c.In.Package.Calls[readOf(d)]
		return d.Enqueues() && (!tensorapi.Joins(d.Callee) && !d.IsFunc("Stack") || read == nil || read.API.Kind != tensorapi.Read)
	})
}

// readOf returns the method call on the result of d, or nil.
func readOf(d *blocking.Call) *ast.CallExpr {
	sel := d.Value().Parent()
	if _, ok := sel.Node().(*ast.SelectorExpr); !ok {
		return nil
	}
	call, _ := sel.Parent().Node().(*ast.CallExpr)
	return call
}

// computesSize reports whether c computes a tensor whose size depends on values, as Unique and NonZero do. It waits
// for its own work, even if its operand is finished.
func computesSize(c *blocking.Call) bool {
	return c.API.Kind == tensorapi.Read && c.Lib == tensorapi.Ours() && blocking.IsTensor(typeOf(c.In.Package, c.Expr))
}

// doubles reports whether l multiplies an integer counter in each iteration. There are few.
//
//	for n := 100; len(trials) > 1; n *= 2 {
func doubles(pkg *blocking.Package, l *blocking.Loop) bool {
	s, ok := l.Stmt.(*ast.ForStmt)
	if !ok {
		return false
	}
	assign, ok := s.Post.(*ast.AssignStmt)
	if !ok || assign.Tok != token.MUL_ASSIGN && assign.Tok != token.SHL_ASSIGN {
		return false
	}
	basic, ok := typeOf(pkg, assign.Lhs[0]).Underlying().(*types.Basic)
	return ok && basic.Info()&types.IsInteger != 0
}

// isComparison reports whether l is the body of a literal by which something is sorted. It reads each element more
// than once, whoever has enqueued the work.
func isComparison(pkg *blocking.Package, l *blocking.Loop) bool {
	return l.Blocks == nil && l.Func.Runs() == blocking.Looping && syntax.IsSorter(pkg.Calls[l.Func.ArgOf].Callee)
}
