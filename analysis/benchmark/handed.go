package benchmark

import (
	"go/ast"
	"slices"

	"github.com/asyncgen/asyncgen/analysis/blocking"
)

// A handedLoop is the loop of a benchmark in a function that is given what to do in each iteration.
//
//	func run(b *testing.B, f func()) {
//		for range b.N {
//			f()
//		}
//	}
//
//	run(b, func() { x.MatMul(w) })
type handedLoop struct {
	stmt ast.Stmt
	body *blocking.Func // what it is given
	op   *blocking.Call // enqueues work that may be unfinished when the clock stops
}

// handedLoops lists the loops of functions of the package to which f hands a function that enqueues work, if neither
// of the three waits.
func handedLoops(f *blocking.Func) (list []handedLoop) {
	for _, c := range f.Calls {
		h := c.Target
		if h == nil || h == f || h.Benchmark() == nil || c.Away {
			continue
		}
		for _, l := range h.Flow().Loops {
			stops, ok := h.IsBenchLoop(l, h.Benchmark())
			if !ok {
				continue
			}
			if body := bodyOf(c, h, l); body != nil {
				if op := enqueuesOnly(body); op != nil && !waitsIn(h, l, stops) && (stops || !isFollowedByWait(c)) {
					list = append(list, handedLoop{l.Stmt, body, op})
				}
			}
		}
	}
	return list
}

// bodyOf returns the function that c gives to h, which calls it in each iteration of l; or nil.
func bodyOf(c *blocking.Call, h *blocking.Func, l *blocking.Loop) *blocking.Func {
	pkg := c.In.Package
	for _, d := range h.Calls {
		v := pkg.Local(d.Expr.Fun)
		p := pkg.Params[v]
		if v == nil || p.Of != h || !h.InLoop(l, d.Expr.Pos()) || pkg.GuardOf(h, d.Expr.Pos(), l) != blocking.Always {
			continue
		}
		for _, e := range c.Operand(p.Operand) {
			if g := pkg.FuncValue(e, 0).Fn; g != nil {
				return g
			}
		}
	}
	return nil
}

// enqueuesOnly returns a call of f that enqueues work, or nil if there is none, or if f waits for anything.
func enqueuesOnly(f *blocking.Func) (op *blocking.Call) {
	for g := range f.Tree() {
		for _, c := range g.Calls {
			if c.Syncs(f.Body.Pos()) {
				return nil
			}
			if c.Enqueues() {
				op = c
			}
		}
	}
	return op
}

// waitsIn reports whether h waits in l or, with the clock running after l, behind it.
func waitsIn(h *blocking.Func, l *blocking.Loop, stops bool) bool {
	return slices.ContainsFunc(h.Calls, func(c *blocking.Call) bool {
		v := h.Package.Local(c.Expr.Fun)
		if v != nil && h.Package.Params[v].Of == h {
			return false // enqueuesOnly knows of that
		}
		return (h.InLoop(l, c.Expr.Pos()) || !stops && (c.Away || c.Expr.Pos() > l.Stmt.End())) && (c.Syncs(l.Pos) || anyDeferred(c, func(d *blocking.Call) bool { return d.Syncs(l.Pos) }))
	})
}
