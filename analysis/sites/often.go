package sites

import (
	"go/ast"
	"go/types"

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
	if depth > 3 || pkg.GuardOf(c.In, c.Expr.Pos(), nil) == blocking.Rarely {
		return false
	}
	for l := range pkg.LoopsAround(c.In, c.Expr.Pos()) {
		if pace := paceOf(pkg, c, l, false); pace != idle {
			return pace == busy && pkg.GuardOf(c.In, c.Expr.Pos(), l) != blocking.Rarely && !pkg.Any(l, IsStreamed) && !IsPaced(pkg, l)
		}
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

// GoesBack reports whether the function around l computes with the value of c on the device, or with a number or a list
// that is made of it: a mean by which a tensor is divided.
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
