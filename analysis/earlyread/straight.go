package earlyread

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"

	"github.com/asyncgen/asyncgen/analysis/blocking"
	"github.com/asyncgen/asyncgen/analysis/internal/syntax"
	"github.com/asyncgen/asyncgen/analysis/lint"
	"github.com/asyncgen/asyncgen/analysis/sites"
	"github.com/asyncgen/asyncgen/analysis/tensorapi"
)

// Waits outside of loops, between pieces of work that do not depend on each other.

// A straightRead is a wait outside of loops. Work that does not need the value is enqueued after it, and waited for in
// the same function.
type straightRead struct {
	Call *blocking.Call
	Name string
	// Work is a call that enqueues such work, and Next the next call that waits.
	Work, Next *blocking.Call
	// Heavy reports whether the work is surely more than a step or two.
	Heavy bool
}

// straightReads lists the straight reads of f: of several in a row, each is one but the last.
//
//	up := price(spot + h)   // reads
//	down := price(spot - h) // was enqueued late
func straightReads(f *blocking.Func) (list []straightRead) {
	if f.Name == "main" || f.Name == "init" || f.IsTest() || f.IsTried() || f.IsTimed() || f.Outermost().Contains(func(c *blocking.Call) bool {
		return blocking.TellsTime(c) || blocking.IsClock(c) || c.API.Kind == tensorapi.WaitAll
	}) {
		return nil
	}
	for _, c := range f.Calls {
		if s, ok := straightReadOf(f, c); ok {
			list = append(list, s)
		}
	}
	return list
}

// straightReadOf returns c as a straight read.
func straightReadOf(f *blocking.Func, c *blocking.Call) (s straightRead, ok bool) {
	pkg := f.Package
	w, waits := valueWait(c)
	if !waits || c.Away || c.Mutates() || sites.IsAllowed(c) || sites.Innermost(pkg, c) != nil || pkg.GuardOf(f, c.Expr.Pos(), nil) != blocking.Always ||
		w.Operand != nil && (!pkg.Fresh(w.Operand, f, f.WholeLoop()) || sites.WaitedBefore(pkg, c, w.Operand, f.WholeLoop())) {
		return s, false
	}
	at := c
	if wait := waitFor(f, c, w.Operand); wait != nil {
		at = wait
	}
	known := valuesOf(pkg, c)
	next := nextWait(f, c)
	if known == nil || next == nil || isBetween(f, c, next, func(d *blocking.Call) bool {
		return d.Mutates() || sites.IsOutside(d) || d.Dynamic && d.API.Kind == tensorapi.Unknown
	}) ||
		pkg.MentionsAny(next.Expr, known) || decides(f, known, next) {
		return s, false
	}
	s = straightRead{Call: at, Name: pkg.CallName(at, w), Next: next}
	ops := 0
	for _, d := range f.Calls {
		late := d == next || c.Expr.End() <= d.Expr.Pos() && d.Expr.Pos() < next.Expr.End()
		if !late || d.Away || !d.Enqueues() || d.API.Kind == tensorapi.View || !leadsTo(pkg, d, next) || pkg.MentionsAny(d.Expr, known) ||
			pkg.Local(w.Operand) != nil && isInLoopWith(d, known) {
			continue
		}
		if s.Work == nil {
			s.Work = d
		}
		ops++
		s.Heavy = s.Heavy || isHeavy(d, 0) || isInLoop(d)
	}
	s.Heavy = s.Heavy || ops > 2
	return s, s.Work != nil && (s.Heavy || !isOneOfMany(f, c))
}

// waitFor returns the call of Wait for the tensor in the variable e right before c, which reads it; or nil.
//
//	if err := y.Wait(); err != nil {
//		return err
//	}
//	v := y.Item()
func waitFor(f *blocking.Func, c *blocking.Call, e ast.Expr) *blocking.Call {
	var last *blocking.Call
	for _, d := range f.Calls {
		if !d.Away && d.Expr.End() <= c.Expr.Pos() && (d.Waits() || d.Enqueues()) && (last == nil || last.Expr.Pos() < d.Expr.Pos()) {
			last = d
		}
	}
	v := f.Package.Local(syntax.OrNil(e))
	if last == nil || v == nil || !isWait(last) || f.Package.Local(last.Operand(tensorapi.Recv)[0]) != v {
		return nil
	}
	return last
}

// isWait recognises Tensor.Wait.
func isWait(c *blocking.Call) bool {
	return c.API.Kind == tensorapi.Wait && c.API.Arg == tensorapi.Recv
}

// isOneOfMany reports whether c is one of three or more reads in a statement, for which AT007 says more.
func isOneOfMany(f *blocking.Func, c *blocking.Call) bool {
	stmt, ok := lint.Statement(c.Cur)
	if !ok {
		return false
	}
	n, reads := stmt.Node(), 0
	for _, d := range f.Calls {
		if d.API.Kind == tensorapi.Read && n.Pos() <= d.Expr.Pos() && d.Expr.End() <= n.End() {
			reads++
		}
	}
	return reads > 2
}

// valueWait returns how c waits for a value, if it does and returns no tensors.
func valueWait(c *blocking.Call) (w blocking.CallWait, ok bool) {
	if _, prints := c.Printer(); prints || c.API.Kind != tensorapi.Read && c.API.Kind != tensorapi.Unknown || c.Target != nil && c.Target.SCC == c.In.Owner().SCC {
		return w, false
	}
	results := c.In.Package.ResultsOf(c)
	if results.Len() == 0 {
		return w, false
	}
	for v := range results.Variables() {
		if c.In.Package.HoldsTensors(v.Type()) {
			return w, false
		}
	}
	for _, w := range c.In.Package.Waits(c) {
		if w.Via == nil || !w.Via.Guarded && (w.Operand != nil || c.Enqueues()) {
			return w, true
		}
	}
	return w, false
}

// nextWait returns the next call in f after c that waits for a value, if each call of f that comes to c comes to it as
// well, unless something fails; or nil.
func nextWait(f *blocking.Func, c *blocking.Call) *blocking.Call {
	fl := f.Flow()
	var next *blocking.Call
	for _, d := range f.Calls {
		if d.Expr.Pos() < c.Expr.End() || next != nil && next.Expr.Pos() < d.Expr.Pos() || !d.Waits() {
			continue
		}
		next = d
	}
	if next == nil || next.Away {
		return nil
	}
	_, prints := next.Printer()
	if _, ok := valueWait(next); !ok && !prints && !isWait(next) || f.Package.GuardOf(f, next.Expr.Pos(), sites.Innermost(f.Package, next)) != blocking.Always ||
		!fl.Dominates(fl.BlockAt(c.Expr.Pos()), fl.BlockAt(next.Expr.Pos())) {
		return nil
	}
	return next
}

// isBetween reports whether a call after c, on the way to next, has a property.
func isBetween(f *blocking.Func, c, next *blocking.Call, has func(*blocking.Call) bool) bool {
	fl := f.Flow()
	to := fl.BlockAt(next.Expr.Pos())
	return slices.ContainsFunc(f.Calls, func(d *blocking.Call) bool {
		if d.Expr.Pos() < c.Expr.End() || next.Expr.End() <= d.Expr.Pos() || !has(d) {
			return false
		}
		at := fl.BlockAt(d.Expr.Pos())
		return at == to || fl.Reaches(at, to, func(int32) bool { return false })
	})
}

// valuesOf returns the variables that depend on the value of c. It is nil if the value is dropped, or goes where it
// can't be followed before the function goes on: to a field, or to a call other than arithmetic.
func valuesOf(pkg *blocking.Package, c *blocking.Call) map[types.Object]bool {
	vars := make(map[types.Object]bool)
	for cur := range c.Cur.Enclosing() {
		switch n := cur.Node().(type) {
		case *ast.CallExpr:
			if n != c.Expr && !pkg.Info.Types[n.Fun].IsType() && !isArithmetic(pkg.Calls[n]) {
				return nil
			}
			continue
		case *ast.AssignStmt:
			if n.Tok != token.ASSIGN && n.Tok != token.DEFINE {
				return nil
			}
			for i, lhs := range n.Lhs {
				if len(n.Rhs) == len(n.Lhs) && (n.Rhs[i].Pos() > c.Expr.Pos() || c.Expr.End() > n.Rhs[i].End()) {
					continue
				}
				id, ok := lhs.(*ast.Ident)
				if !ok {
					return nil
				}
				switch v := pkg.Info.ObjectOf(id); {
				case v == nil:
					return nil // nobody uses the value
				case !syntax.IsError(v.Type()):
					vars[v] = true
				}
			}
		case *ast.ReturnStmt:
		case *ast.ValueSpec:
			for _, id := range n.Names {
				vars[pkg.Info.Defs[id]] = true
			}
		case ast.Expr:
			continue
		default:
			return nil
		}
		break
	}
	for grown := true; grown; {
		grown = false
		for v, defs := range pkg.Defs {
			if !vars[v] && slices.ContainsFunc(defs, func(d blocking.Def) bool {
				return d.In == c.In && d.Value != nil && pkg.MentionsAny(d.Value, vars)
			}) {
				vars[v], grown = true, true
			}
		}
	}
	return vars
}

// isArithmetic recognises functions of package math.
func isArithmetic(c *blocking.Call) bool {
	return c != nil && c.Callee != nil && c.Callee.Pkg() != nil && c.Callee.Pkg().Path() == "math"
}

// decides reports whether the variables decide whether f comes to c.
func decides(f *blocking.Func, vars map[types.Object]bool, c *blocking.Call) bool {
	for _, cond := range f.Flow().Conditions(f.Flow().BlockAt(c.Expr.Pos())) {
		if cond.Expr == nil || f.Package.MentionsAny(cond.Expr, vars) {
			return true
		}
	}
	l := sites.Innermost(f.Package, c)
	if l == nil || l.Stmt == nil {
		return false
	}
	found := false // a condition in the loop, which may decide from what the next iteration goes on
	ast.Inspect(l.Stmt, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.IfStmt:
			found = found || f.Package.MentionsAny(n.Cond, vars)
		case *ast.CaseClause:
			found = found || slices.ContainsFunc(n.List, func(e ast.Expr) bool { return f.Package.MentionsAny(e, vars) })
		}
		return !found
	})
	return found
}

// leadsTo reports whether next waits for what d computes: it is d, d is a part of it, or it uses a variable that is
// computed from the result of d.
func leadsTo(pkg *blocking.Package, d, next *blocking.Call) bool {
	var within func(e ast.Expr, depth int) bool
	within = func(e ast.Expr, depth int) bool {
		if e.Pos() <= d.Expr.Pos() && d.Expr.End() <= e.End() {
			return true
		}
		found := false
		ast.Inspect(e, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok && !found && depth < 6 {
				if v := pkg.Local(id); v != nil {
					for _, def := range pkg.Defs[v] {
						found = found || def.Value != nil && within(def.Value, depth+1)
					}
				}
			}
			return !found
		})
		return found
	}
	return within(next.Expr, 0)
}

// isHeavy reports whether c enqueues more than a few operations: a network, gradients, or a function with a loop or
// many operations. Depth bounds the functions that it looks through.
func isHeavy(c *blocking.Call, depth int) bool {
	if blocking.IsForward(c) || c.IsFunc("Grad") {
		return true
	}
	if c.Target == nil || depth > 3 {
		return false
	}
	ops := 0
	for _, d := range c.Target.Calls {
		if d.Away || !d.Enqueues() {
			continue
		}
		if isInLoop(d) || isHeavy(d, depth+1) {
			return true
		}
		if d.API.Kind == tensorapi.Op {
			ops++
		}
	}
	return ops > 4
}

// isInLoop reports whether c is in a loop of its function.
func isInLoop(c *blocking.Call) bool { return sites.Innermost(c.In.Package, c) != nil }

// isInLoopWith reports whether c is in a loop of its function that uses one of the variables. A tensor that such a loop
// would read again and again is read before it, says AT006.
func isInLoopWith(c *blocking.Call, vars map[types.Object]bool) bool {
	for l := range c.In.Package.LoopsAround(c.In, c.Expr.Pos()) {
		if l.Stmt != nil && c.In.Package.MentionsAny(l.Stmt, vars) {
			return true
		}
	}
	return false
}

// severity is Warning if the work is heavy, or the function runs often.
func (s straightRead) severity(p *lint.Pass) lint.Severity {
	if s.Heavy || sites.RunsOften(p, s.Call) {
		return lint.Warning
	}
	return lint.Info
}
