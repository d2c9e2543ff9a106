package rewrite

import (
	"go/ast"
	"go/types"
	"slices"

	"github.com/asyncgen/asyncgen/gen/internal/plan"
	"github.com/asyncgen/asyncgen/gen/internal/syntax"
)

// What a cell or a field holds is taken before an entry that uses it, in the place of the entry, whether
// it will be used or not: that costs a few handles.
//
//	if l := loss.Item(); l < best {         snapshotAt := nn.Snapshot(net)
//		best, state = l, nn.Snapshot(net)   lossAt := later.Read(loss)
//	}                                       later.Do(func() {
//	                                        	if l := lossAt.Item(); l < best {
//	                                        		best, state = l, snapshotAt
//	                                        	}
//	                                        })

// isThere reports whether e, which takes what cells of variables hold in u, can do so in front of u: a
// call of the library on each of these variables has come before.
func (a *obstacles) isThere(u *plan.Unit, e ast.Expr) bool {
	if sel, ok := e.(*ast.SelectorExpr); ok {
		return a.f.LeadsTo(a.f.Variable(sel.X), a.loop, u.Stmt)
	}
	call := e.(*ast.CallExpr)
	return a.isCellThere(u, call)
}

// isCellThere is isThere for a call.
func (a *obstacles) isCellThere(u *plan.Unit, call *ast.CallExpr) bool {
	e := a.f.Effects(call)
	if plan.FirstOf(e.Barrier, e.Waits, e.Ends, e.HandsOut, e.Clock, e.Polls) != nil || len(e.Writes) > 0 {
		return false
	}
	return !slices.ContainsFunc(operandsOf(a.f, call), func(e ast.Expr) bool {
		v := a.f.Variable(e)
		return v == nil || a.f.Sets(v) > 1 || !a.usedBefore(v, u.Stmt)
	})
}

// operandsOf are the receiver of call, if it is one of a method, and its arguments.
func operandsOf(f *plan.Function, call *ast.CallExpr) []ast.Expr {
	operands := slices.Clone(call.Args)
	if sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr); ok && f.Info.Selections[sel] != nil {
		operands = append(operands, sel.X)
	}
	return operands
}

// usedBefore reports whether each way to s comes to a call of the library with the operand v.
func (a *obstacles) usedBefore(v *types.Var, s *plan.Stmt) bool {
	for n := ast.Node(s.Node); n != nil; n = a.f.Parent(n) {
		for _, before := range syntax.List(a.f.Parent(n)) {
			if before.Pos() >= n.Pos() {
				break
			}
			found := false
			ast.Inspect(before, func(m ast.Node) bool {
				call, ok := m.(*ast.CallExpr)
				if !ok || found {
					return !found
				}
				_, _, known := a.f.Library(call)
				found = known && a.f.AlwaysFirst(call, before) && slices.ContainsFunc(operandsOf(a.f, call), func(e ast.Expr) bool { return a.f.Variable(e) == v })
				return !found
			})
			if found {
				return true
			}
		}
	}
	return false
}
