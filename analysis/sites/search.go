package sites

import (
	"go/ast"

	"github.com/asyncgen/asyncgen/analysis/blocking"
	"golang.org/x/tools/go/ast/inspector"
)

// Loops of trials, each of which decides whether there is another.

// isCascade reports whether l asks one network after the other until the answer of one is good enough. It waits so that
// the others need not run. The parameters of one network are no answers: all of them are there.
//
//	for _, net := range nets {
//		if y := net.Forward(x); y.Max().Item() > sure {
//			return y
//		}
//	}
func isCascade(pkg *blocking.Package, l *blocking.Loop) bool {
	s, ok := l.Stmt.(*ast.RangeStmt)
	return ok && !pkg.IsCell(blocking.Iterated(typeOf(pkg, s.X))) && !pkg.Any(l, (*blocking.Call).Mutates) && pkg.OverParts(l) && pkg.EndsByValue(l)
}

// isInSearch reports whether the value at p is asked for by the condition of a loop that looks for a number, as a line
// search does, or in such a loop that multiplies its counter. Each trial decides whether there is another. The search
// must be in a loop of steps: it is a part of a step then, and short beside the others.
func isInSearch(pkg *blocking.Package, p Place) bool {
	for cur := range p.Cur.Enclosing((*ast.ForStmt)(nil)) {
		if !isInLoop(cur) {
			return false
		}
		n := cur.Node().(*ast.ForStmt)
		for _, l := range p.in.Flow().Loops {
			if l.Stmt == n {
				asks := n.Cond != nil && n.Cond.Pos() <= p.Pos && p.Pos < n.Cond.End() || multiplies(l)
				return asks && blocking.IsSearch(pkg, l)
			}
		}
		return false
	}
	return false
}

// isInLoop reports whether there is a loop around the statement at cur, in the same function.
func isInLoop(cur inspector.Cursor) bool {
	for around := range cur.Parent().Enclosing((*ast.ForStmt)(nil), (*ast.RangeStmt)(nil), (*ast.FuncLit)(nil)) {
		_, isLit := around.Node().(*ast.FuncLit)
		return !isLit
	}
	return false
}
