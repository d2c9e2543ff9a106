package rewrite

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"

	"github.com/asyncgen/asyncgen/gen/internal/plan"
)

// Exit is speculate: a value decides whether the loop goes on. The loop runs on
// without it, and the decision comes when the value has arrived. If the loop
// was to end, what was done since is dropped, and variables and cells get back
// what they held. What runs past the end must do no harm: see package past. A
// cell holds a tensor that can be replaced by another, such as a parameter.
// The last argument of BreakIf is the state: what variables hold here. Cells
// get back theirs from BreakIf.
//
//	if r.Norm().Item() < tol {    normAt := later.Read(r.Norm())
//		return x, k               if end, ok := later.BreakIf(func() bool { return normAt.Item() < tol }, solveEnd{x, k}); ok {
//	}                             	return end.x, end.k
//	                              }
var Exit = &Rewrite{
	Name: "speculate",
	Was:  "R11",
	Code: plan.RunsPast,
	Does: "decides when it has arrived, and the loop runs on until then",
}

// mayLeave reports whether something in s, a compound statement or a test, jumps out of it: if s looks at a value, that
// may decide whether the loop goes on.
func mayLeave(s *plan.Stmt) bool {
	return s.IsTest || s.IsCompound() && plan.Leaves(s.Node) != nil && skips(s) == nil
}

// noExit returns why u, in which something jumps out of it, can't decide later; or nil.
func (a *obstacles) noExit(u *plan.Unit) *plan.Reason {
	if !mayLeave(u.Stmt) {
		return nil
	}
	if a.loop.IsCall {
		return a.noReturn(u)
	}
	if !a.kernel.defers(u.Stmt) {
		return a.kernel.switchedOff(u.Stmt)
	}
	if a.harm != nil {
		return a.harm
	}
	jumps := plan.JumpsFrom(u.Stmt.Node)
	if len(jumps) == 0 {
		return nil
	}
	no := &plan.Reason{Code: plan.DecidesExit, Cause: plan.Cause{Pos: jumps[0].Pos(), Text: "decides whether the loop goes on"},
		Hint: a.testRarely(u.Stmt)}
	if l := u.Stmt.Loop(); l != nil && l != a.loop || a.skipping(u) != nil && u.Stmt.Parent != a.loop {
		return no
	}
	for _, jump := range jumps {
		if !a.leads(u.Stmt, jump) && !a.isEnd(u.Stmt, jump) {
			return no
		}
	}
	return nil
}

// isEnd reports whether jump, which leaves s, is one to the next iteration: then all that
// follows s in the body comes with it, see [cuts].
func (a *target) isEnd(s *plan.Stmt, jump ast.Stmt) bool {
	b, ok := jump.(*ast.BranchStmt)
	return ok && s.Parent == a.loop && slices.Contains(goesOn(s), b)
}

// leads reports whether jump, which leaves s, leaves the loop as well.
func (a *target) leads(s *plan.Stmt, jump ast.Stmt) bool {
	b, ok := jump.(*ast.BranchStmt)
	if !ok {
		return true
	}
	for p := s.Parent; p != nil; p = p.Parent {
		switch {
		case b.Label != nil:
			if l, ok := p.Node.(*ast.LabeledStmt); ok && l.Label.Name == b.Label.Name {
				return p == a.loop && b.Tok == token.BREAK
			}
		case b.Tok == token.CONTINUE:
			return false
		case isBreakable(p):
			return p == a.loop
		}
	}
	return b.Label != nil
}

// isBreakable reports whether a break without a label can be for s.
func isBreakable(s *plan.Stmt) bool {
	switch s.Inner().(type) {
	case *ast.ForStmt, *ast.RangeStmt, *ast.SwitchStmt, *ast.TypeSwitchStmt, *ast.SelectStmt:
		return true
	}
	return false
}

// splitCondition tries the loop of a again, with the part of its condition that needs values tested in the
// body, if there is such a part.
func (p *planner) splitCondition(a *attempt, _, _ *plan.Stmt) (*attempt, *plan.Region, []plan.Remark) {
	s := a.withTests()
	if s == nil {
		return nil, nil, nil
	}
	region, refused := s.plan()
	return s, region, refused
}

// withTests returns an attempt at the same loop in which the part of its condition
// that needs values is tested in the body; nil if there is no such part.
func (a *attempt) withTests() *attempt {
	n, ok := a.loop.Inner().(*ast.ForStmt)
	if !ok || n.Cond == nil {
		return nil
	}
	parts := plan.Conjuncts(n.Cond)
	needs := func(e ast.Expr) bool {
		found := a.readIn(e)
		ast.Inspect(e, func(m ast.Node) bool {
			if id, ok := m.(*ast.Ident); ok {
				found = found || a.valued[a.f.Info.Uses[id]]
			}
			return !found
		})
		return found
	}
	first := slices.IndexFunc(parts, needs)
	if first < 0 {
		return nil
	}
	keep, tests := slices.Clone(parts[:first]), []ast.Expr(nil)
	for _, e := range parts[first:] {
		// A comparison of variables can't fail: it may as well come first.
		if !needs(e) && !slices.ContainsFunc(tests, a.readIn) && isComparison(e) {
			keep = append(keep, e)
			continue
		}
		tests = append(tests, e)
	}
	loop := a.f.SplitTree(a.loop.Node, keep, tests)
	outermost := a.outermost
	if outermost == a.loop {
		outermost = loop
	}
	return newAttempt(a.f, a.kernel, loop, outermost)
}

// readIn reports whether a value is read in e.
func (a *target) readIn(e ast.Expr) bool {
	return slices.ContainsFunc(a.loop.Reads, func(r *plan.Read) bool { return e.Pos() <= r.Expr.Pos() && r.Expr.End() <= e.End() })
}

// isComparison reports whether e compares variables, constants and lengths.
func isComparison(e ast.Expr) bool {
	simple := true
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case nil, *ast.Ident, *ast.BasicLit, *ast.ParenExpr:
		case *ast.BinaryExpr:
			simple = simple && n.Op.Precedence() <= token.LEQ.Precedence()
		case *ast.UnaryExpr:
			simple = simple && n.Op == token.NOT
		case *ast.CallExpr:
			id, ok := n.Fun.(*ast.Ident)
			simple = simple && ok && id.Name == "len"
		default:
			simple = false
		}
		return simple
	})
	return simple
}

// contains reports whether pos is in n.
func contains(n ast.Node, pos token.Pos) bool { return n.Pos() <= pos && pos < n.End() }

func isFunc(t types.Type) bool { _, ok := t.Underlying().(*types.Signature); return ok }
