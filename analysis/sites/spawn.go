package sites

import (
	"go/ast"
	"slices"

	"github.com/asyncgen/asyncgen/analysis/blocking"
	"github.com/asyncgen/asyncgen/analysis/tensorapi"
)

// A Spawn is a call in a loop that makes something wait for the device elsewhere or later, once for
// each iteration: on a goroutine, or in a deferred call.
type Spawn struct {
	Call *blocking.Call
	// Lits are the literals that run elsewhere; there are none if the callee itself does.
	Lits []*blocking.Func
	// Read is the call that waits, and Name how messages call it.
	Read *ast.CallExpr
	Name string
	Loop *blocking.Loop
	// Prints reports whether nothing becomes of the value but that it is printed.
	Prints bool
}

// Spawns finds the calls in loops that wait elsewhere for what the loop has enqueued. literals lists,
// for each call, the literals that do so; itself reports whether the callee does. waits lists what a call
// waits for.
func Spawns(pkg *blocking.Package, literals func(*blocking.Call) []*blocking.Func, itself func(*blocking.Call) bool, waits func(*blocking.Call) []blocking.CallWait) []*Spawn {
	var list []*Spawn
	for _, f := range pkg.Funcs {
		for _, c := range f.Calls {
			lits := literals(c)
			if lits == nil && !itself(c) {
				continue
			}
			l := hotNatural(f.Package, c)
			if l == nil || f.Package.GuardOf(f, c.Expr.Pos(), l) != blocking.Always {
				continue
			}
			if d, w, ok := waitsLater(f.Package, c, lits, l, waits); ok {
				list = append(list, &Spawn{c, lits, d.Expr, f.Package.CallName(d, w), l, onlyPrints(f.Package, d, w)})
			}
		}
	}
	slices.SortStableFunc(list, func(x, y *Spawn) int { return int(x.Call.Expr.Pos() - y.Call.Expr.Pos()) })
	return list
}

// onlyPrints reports whether the call d, which waits for w, prints it, or gives it to something that does.
func onlyPrints(pkg *blocking.Package, d *blocking.Call, w blocking.CallWait) bool {
	switch w.Kind {
	case blocking.WaitPrint:
		return d.API.Kind == tensorapi.Unknown // not a text for other ends
	case blocking.WaitRead:
		places := Uses(pkg, d, d.In.WholeLoop())
		return len(places) > 0 && !slices.ContainsFunc(places, func(p Place) bool { return p.Use != Printed })
	}
	return d.Target != nil && slices.ContainsFunc(d.Target.Calls, func(e *blocking.Call) bool {
		return slices.ContainsFunc(pkg.Waits(e), func(w blocking.CallWait) bool { return w.Kind == blocking.WaitPrint && e.API.Kind == tensorapi.Unknown })
	})
}

// hotNatural returns the innermost loop of the function around c, or nil if that is a small one.
func hotNatural(pkg *blocking.Package, c *blocking.Call) *blocking.Loop {
	fl := c.In.Flow()
	b := fl.BlockAt(c.Expr.Pos())
	for _, l := range slices.Backward(fl.Loops) {
		if b >= 0 && l.Blocks[b] {
			if l.Small {
				return nil
			}
			return l
		}
	}
	return nil
}

// waitsLater returns the call that waits for something that l or the literal has enqueued: one in the
// literals or, if there are none, c itself.
func waitsLater(pkg *blocking.Package, c *blocking.Call, lits []*blocking.Func, l *blocking.Loop, waits func(*blocking.Call) []blocking.CallWait) (*blocking.Call, blocking.CallWait, bool) {
	if len(lits) == 0 {
		for _, w := range waits(c) {
			if w.Via != nil && (w.Via.Guarded || w.Operand == nil && (w.Via.InLoop || !c.Enqueues())) {
				continue
			}
			if w.Operand == nil || pkg.Fresh(w.Operand, c.In, l) {
				return c, w, true
			}
		}
		return nil, blocking.CallWait{}, false
	}
	for _, lit := range lits {
		for g := range lit.Tree() {
			if !runsIn(g, lit) {
				continue
			}
			for _, d := range g.Calls {
				if d.Away || pkg.RunsInLoop(g, d) || pkg.AfterLoop(g, d) || pkg.BeforeLoop(g, d) || pkg.GuardOf(g, d.Expr.Pos(), nil) != blocking.Always {
					continue
				}
				for _, w := range waits(d) {
					if w.Via != nil && (w.Via.InLoop || w.Via.Guarded) {
						continue
					}
					if w.Operand == nil || pkg.Fresh(w.Operand, g, l) || madeIn(pkg, w.Operand, g, lit) {
						return d, w, true
					}
				}
			}
		}
	}
	return nil, blocking.CallWait{}, false
}

// runsIn reports whether the body of g, a literal in lit, runs as a part of lit.
func runsIn(g, lit *blocking.Func) bool {
	for g != lit {
		if h := g.Runs(); h != blocking.Once && h != blocking.Looping {
			return false
		}
		g = g.Parent
	}
	return true
}

// madeIn reports whether e stands for a tensor that lit has enqueued the work for.
func madeIn(pkg *blocking.Package, e ast.Expr, g, lit *blocking.Func) bool {
	body := &blocking.Loop{Pos: lit.Body.Pos(), Func: lit} // all of it
	return pkg.Fresh(e, g, body)
}
