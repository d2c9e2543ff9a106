package rewrite

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"

	"github.com/asyncgen/asyncgen/gen/internal/plan"
)

// What comes later may show a field that the loop changes ahead, such as a counter: then it takes what the field
// holds in its place.
//
//	loss := t.step(x)                            loss := t.step(x)
//	fmt.Println(t.steps, loss.Item())            stepsAt := t.steps
//	                                             lossAt := later.Read(loss)
//	                                             later.Do(func() { fmt.Println(stepsAt, lossAt.Item()) })

// It has no name of its own, since it only helps other rewrites.
//
// take tries again with such fields; a is the attempt at the loop that has been refused. It returns
// nil if that is of no use.
func (p *planner) take(a *attempt, loop, outermost *plan.Stmt) (*attempt, *plan.Region) {
	fields := a.fieldsInTheWay()
	if len(fields) == 0 {
		return nil, nil
	}
	takes := make(map[ast.Expr]bool)
	for _, e := range fields {
		takes[e] = true
	}
	again, region, refused := p.try(p.f.Taking(takes), loop, outermost)
	if refused != nil {
		return nil, nil
	}
	return again, region
}

// fieldsInTheWay returns the uses of fields with plain values in statements that look at values or
// show something, if what looks at no value changes these fields.
func (a *attempt) fieldsInTheWay() (fields []ast.Expr) {
	for _, u := range a.units {
		if u.Stmt.IsCompound() || len(u.Reads) == 0 && !a.shows(u.Effects, u.Stmt) || u.Effects.Enqueues != nil {
			continue
		}
		ast.Inspect(u.Stmt.Node, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncLit:
				return false
			case *ast.UnaryExpr:
				_, isField := ast.Unparen(n.X).(*ast.SelectorExpr)
				return !isField // its address, perhaps
			case *ast.AssignStmt:
				for _, e := range n.Rhs {
					fields = append(fields, a.plainFields(u, e)...)
				}
				return false
			case *ast.IncDecStmt:
				return false
			case ast.Expr:
				fields = append(fields, a.plainFields(u, n)...)
				return false
			}
			return true
		})
	}
	return fields
}

// plainFields returns the fields in e, a part of by, that something in the loop changes that looks
// at no value. Which comes first in one statement, a use of a field or a call that changes it, the
// language does not say.
func (a *attempt) plainFields(by *plan.Unit, e ast.Expr) (fields []ast.Expr) {
	ast.Inspect(e, func(n ast.Node) bool {
		if _, ok := n.(*ast.FuncLit); ok {
			return false
		}
		if x, ok := n.(*ast.UnaryExpr); ok && x.Op == token.AND {
			return false
		}
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		v := a.f.Variable(sel.X)
		if v == nil || !a.f.IsFieldOf(sel, v) || a.f.Sets(v) != 1 {
			return true
		}
		s := a.f.Info.Selections[sel]
		if _, plain := s.Type().Underlying().(*types.Basic); !plain || len(s.Index()) != 1 {
			return true
		}
		at := plan.FieldLoc(s)
		if !by.All().Touches(at) && slices.ContainsFunc(a.units, func(u *plan.Unit) bool {
			return u.Ahead.Touches(at) || len(u.Reads) == 0 && u.Effects.Touches(at)
		}) {
			fields = append(fields, sel)
		}
		return true
	})
	return fields
}
