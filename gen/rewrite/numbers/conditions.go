package numbers

import (
	"go/ast"
	"go/token"
	"go/types"

	"github.com/asyncgen/asyncgen/gen/internal/plan"
)

// conditionOf returns the first expression by which s decides.
func conditionOf(s ast.Stmt) ast.Expr {
	switch s := s.(type) {
	case *ast.IfStmt:
		return s.Cond
	case *ast.SwitchStmt:
		if s.Tag != nil {
			return s.Tag
		}
		return s.Body.List[0].(*ast.CaseClause).List[0]
	}
	return nil
}

func notCompared(e ast.Expr) *misfit {
	return &misfit{plan.NoNumber, e.Pos(), "tests " + types.ExprString(e) + ", which numbers have no form of", "compare numbers of type float64 or int64, each with a name"}
}

// condition returns why the conditions of s have no form in numbers, or nil.
func (r *chooser) condition(s ast.Stmt, all []side, needs map[*types.Var]bool) *misfit {
	if n, ok := s.(*ast.IfStmt); ok && n.Init != nil {
		a, ok := n.Init.(*ast.AssignStmt)
		if !ok || a.Tok != token.DEFINE || len(a.Lhs) != len(a.Rhs) {
			return &misfit{plan.NoNumber, n.Init.Pos(), "has a statement in the head of the if that is not a definition", "put it before"}
		}
		for i, lhs := range a.Lhs {
			v, ok := r.f.Info.Defs[lhs.(*ast.Ident)].(*types.Var)
			if !ok || !isFloat64(v.Type()) && !isIndex(v.Type()) || !r.isValued(a.Rhs[i]) {
				return &misfit{plan.NoNumber, lhs.Pos(), "defines " + types.ExprString(lhs) + " in the head of the if", "put that before the if"}
			}
			needs[v] = true
		}
	}
	tag := tagOf(s)
	if tag != nil {
		if why := r.compared(tag, tag, true, needs); why != nil {
			return why
		}
	}
	for i, x := range all {
		for j, e := range x.when {
			var why *misfit
			if tag != nil {
				why = r.compared(e, tag, false, needs)
			} else {
				why = r.compares(e, i == 0 && j == 0, needs)
			}
			if why != nil {
				return why
			}
		}
	}
	return nil
}

// fitsBool is fits for e, a truth.
func (r *finder) fitsBool(e ast.Expr, needs map[*types.Var]bool) *misfit {
	if r.f.Info.Types[e].Value != nil {
		return nil
	}
	return r.compares(e, true, needs)
}

// compares returns why e, a condition, has no form in numbers, or nil. It may read values itself if first says that it
// is always evaluated.
func (r *finder) compares(e ast.Expr, first bool, needs map[*types.Var]bool) *misfit {
	if r.f.Info.Types[e].Value != nil {
		return &misfit{plan.NoNumber, e.Pos(), "tests " + types.ExprString(e) + ", a constant, together with values", "test it in an if of its own"}
	}
	switch x := ast.Unparen(e).(type) {
	case *ast.Ident:
		if v, ok := r.f.Info.Uses[x].(*types.Var); ok && isBool(v.Type()) && r.isValued(x) {
			needs[v] = true
			return nil
		}
	case *ast.UnaryExpr:
		if x.Op == token.NOT {
			return r.compares(x.X, first, needs)
		}
	case *ast.BinaryExpr:
		switch x.Op {
		case token.LAND, token.LOR:
			if why := r.compares(x.X, first, needs); why != nil {
				return why
			}
			return r.compares(x.Y, false, needs)
		case token.LSS, token.LEQ, token.GTR, token.GEQ, token.EQL, token.NEQ:
			if why := r.compared(x.X, e, first, needs); why != nil {
				return why
			}
			return r.compared(x.Y, e, first, needs)
		}
	case *ast.CallExpr:
		if arg, _, ok := asks(r.f, x); ok {
			return r.compared(arg, e, first, needs)
		}
	}
	return notCompared(e)
}

// compared returns why x, an operand of the condition in, has no form as a number, or nil.
func (r *finder) compared(x, in ast.Expr, first bool, needs map[*types.Var]bool) *misfit {
	if t := r.f.Info.TypeOf(x); !isFloat64(t) && !isIndex(t) && r.f.Info.Types[x].Value == nil || !first && len(itemsIn(r.f, x)) > 0 {
		return notCompared(in)
	}
	if !first {
		if why := r.panics(x, ifTested); why != nil {
			return why
		}
	}
	return r.fits(x, needs)
}
