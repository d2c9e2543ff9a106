package rewrite

import (
	"go/ast"
	"go/types"
	"slices"

	"github.com/asyncgen/asyncgen/gen/internal/plan"
)

// Hoist is the rewrite hoist: a value that is the same in all iterations, and that the loop needs at
// once, is read where it is needed first. No iteration after that waits or copies.
//
//	for _, x := range xs {              scaleItem := sync.OnceValue(scale.Item)
//		y := x.MulScalar(scale.Item())  for _, x := range xs {
//		total += y.Sum().Item()         	y := x.MulScalar(scaleItem())
//	}                                   	…
var Hoist = &Rewrite{
	Name: "hoist",
	Was:  "R6",
	Code: plan.HoistedRead,
	Does: "is read once, where the loop needs it first",
}

// hoistable are the methods of tensors whose results can be kept: numbers.
var hoistable = []string{"Item", "ItemInt"}

// hoist tries a loop that was refused again, with its reads of tensors that it does not
// change taken once. It returns nil if that does not help.
func (p *planner) hoist(_ *attempt, loop, outermost *plan.Stmt) (*attempt, *plan.Region, []plan.Remark) {
	e, reads := loop.Total()
	for _, r := range reads {
		e.Add(r.Effects)
	}
	var onces []*plan.Once
	hoisted := make(map[ast.Expr]bool)
	ast.Inspect(loop.Node, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			_, isLit := n.(*ast.FuncLit)
			return !isLit
		}
		v, method, ok := p.f.ReadOf(call)
		if !ok || !slices.Contains(hoistable, method) || !isInvariant(p.f, loop, e, v) {
			return true
		}
		hoisted[call] = true
		i := slices.IndexFunc(onces, func(o *plan.Once) bool { return o.Var == v && o.Method == method })
		if i < 0 {
			i = len(onces)
			onces = append(onces, &plan.Once{Var: v, Method: method})
		}
		onces[i].Uses = append(onces[i].Uses, call)
		return true
	})
	if len(onces) == 0 {
		return nil, nil, nil
	}
	f := p.f.Hoisting(hoisted)
	a := p.attempt(f, loop, outermost)
	region, refused := a.plan()
	if refused != nil {
		return nil, nil, nil
	}
	p.use(f)
	region.Onces = onces
	return a, region, nil
}

// isInvariant reports whether v is a variable from outside loop, which has the effects e
// and does not change it.
func isInvariant(f *plan.Function, loop *plan.Stmt, e *plan.Effects, v *types.Var) bool {
	if f.Visible(v) || e.Sets(v) {
		return false
	}
	if _, pointer := v.Type().Underlying().(*types.Pointer); !pointer {
		return false
	}
	return v.Pos() < loop.Node.Pos() || v.Pos() >= loop.Node.End()
}
