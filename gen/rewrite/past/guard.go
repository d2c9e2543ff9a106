package past

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"

	"github.com/asyncgen/asyncgen/gen/internal/plan"
)

// guard is what compares an iteration with the one before, and looks at the
// types of elements; nil if there is no need.
func (p *floats) guard() *plan.Guard {
	g := &plan.Guard{}
	if len(p.given) == 0 && p.warm() > 0 && len(p.asked) == 0 {
		return nil
	}
	if g.First = len(p.given) == 0 && p.warm() == 0; g.First {
		g.Before = p.Stmt.Bodies[0][0]
	}
	for _, x := range p.given {
		g.Tensors = append(g.Tensors, x.tensor)
	}
	for _, x := range p.asked {
		g.Floats = append(g.Floats, x.tensor)
	}
	for _, x := range slices.Concat(p.given, p.asked) {
		if g.Before == nil || x.by.Node.Pos() < g.Before.Node.Pos() {
			g.Before = x.by
		}
	}
	return g
}

// unguarded returns that there is no place at which all that an iteration is
// given is known and none of it used, or nil.
func (p *floats) unguarded() *plan.Reason {
	if p.Contained {
		return nil // nothing has to be like before
	}
	g := p.guard()
	if g == nil {
		return nil
	}
	if g.First && g.Before.IsTest {
		return fails(plan.Cause{Pos: p.Stmt.Node.Pos(), Text: "tests values before it is known whether the iteration is like those before"})
	}
	hidden := func(x given) bool {
		return g.Before.Node.Pos() <= x.root.Pos() && x.root.Pos() < p.Stmt.Node.End() || g.Before.IsTest || !p.f.Sees(g.Before.Node.Pos(), x.root)
	}
	for _, x := range p.given {
		if hidden(x) {
			return fails(plan.Cause{Pos: x.tensor.Pos(), Text: "uses " + types.ExprString(x.tensor) + ", which may be of another shape each time"})
		}
		if x.by != g.Before && p.divides(x.tensor) {
			return fails(plan.Cause{Pos: x.tensor.Pos(), Text: "may divide by zero in " + types.ExprString(x.tensor) + ", which is compared before it is used"})
		}
	}
	for _, x := range p.asked {
		if hidden(x) {
			return fails(plan.Cause{Pos: x.tensor.Pos(), Text: "multiplies " + types.ExprString(x.tensor) + " or the like by a number, and may have integers"})
		}
	}
	return nil
}

// divides reports whether e has a division of integers that may fail: xs[i%len(xs)].
func (p *floats) divides(e ast.Expr) (found bool) {
	ast.Inspect(e, func(n ast.Node) bool {
		b, ok := n.(*ast.BinaryExpr)
		found = found || ok && (b.Op == token.REM || b.Op == token.QUO) && !isNonzero(p.f.Info, b.Y)
		return !found
	})
	return found
}
