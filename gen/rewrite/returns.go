package rewrite

import (
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"slices"

	"github.com/asyncgen/asyncgen/gen/internal/plan"
)

// Returns that values decide on become one way out of a loop if their results can be told by the time that the loop
// is left: literals stand in the state, and what only computes on the host is left behind by the test. There is one
// statement then where the loop is left.
//
//	if x.Max().Item() > high {                      maxAt := later.Read(x.Max())
//		return x, fmt.Errorf("step %d: large", i)   if end, ok := later.BreakIf(func() bool {
//	}                                               	if maxAt.Item() > high {
//	…                                               		errAtEnd = fmt.Errorf("step %d: large", i)
//	return x, errors.New("no number")               		return true
//	                                                	}
//	                                                	return false
//	                                                }, end{x}); ok {
//	                                                	return end.x, errAtEnd
//	                                                }

// joinReturns makes one way of the returns in x. One alone gains where the test has what its result is made of.
func (a *layout) joinReturns(r *plan.Region, x *plan.Exits) {
	var ways []*plan.Way
	results := a.f.Results()
	for _, w := range x.Ways {
		if n, ok := w.Jump.(*ast.ReturnStmt); ok {
			if len(n.Results) != len(results) || n.Results == nil || len(w.Restore) > 0 {
				return
			}
			ways = append(ways, w)
		}
	}
	if len(ways) == 0 {
		return
	}
	first := ways[0].Jump.(*ast.ReturnStmt)
	joined := &plan.Way{Jump: first, Uses: make(map[*ast.Ident]*plan.Slot), Outs: make(map[*ast.Ident]*plan.Out), Results: make([]*plan.ExitResult, len(first.Results))}
	copied := make(map[*ast.Ident]*plan.Group)
	for i, e := range first.Results {
		v := types.NewVar(results[i].Pos(), results[i].Pkg(), resultName(results[i]), results[i].Type())
		switch same := isSame(a.f, ways, i); {
		case !same && a.constant(r, ways, i):
			joined.Results[i] = &plan.ExitResult{Slot: &plan.Slot{Var: v}}
		case same && !isMadeIn(ways[0], e):
			joined.Take(ways[0], e)
		case a.tellable(r, ways, i, copied):
			joined.Results[i] = &plan.ExitResult{Out: &plan.Out{Var: v}}
		case same:
			joined.Take(ways[0], e)
		default:
			return
		}
	}
	if len(ways) == 1 && !slices.ContainsFunc(joined.Results, func(res *plan.ExitResult) bool { return res != nil }) {
		return
	}
	for id, g := range copied {
		v := a.f.Info.Uses[id].(*types.Var)
		c := slices.IndexFunc(g.Copies, func(c *plan.Copy) bool { return c.Var == v })
		if c < 0 {
			c = len(g.Copies)
			g.Copies = append(g.Copies, &plan.Copy{Var: v})
		}
		g.Copies[c].Uses = append(g.Copies[c].Uses, id)
	}
	for _, g := range r.Groups {
		slices.SortFunc(g.Copies, func(b, c *plan.Copy) int { return int(b.Var.Pos() - c.Var.Pos()) })
		for jump, w := range g.Jumps {
			if slices.Contains(ways, w) {
				g.Jumps[jump] = joined
			}
		}
	}
	x.Ways = append([]*plan.Way{joined}, slices.DeleteFunc(x.Ways, func(w *plan.Way) bool { return slices.Contains(ways, w) })...)
	x.Fields = slices.DeleteFunc(x.Fields, func(s *plan.Slot) bool {
		return !slices.ContainsFunc(x.Ways, func(w *plan.Way) bool { return w.Has(s) })
	})
	for _, res := range joined.Results {
		if res != nil && res.Slot != nil {
			x.Fields = append(x.Fields, res.Slot)
		}
	}
}

// constant reports whether result i of each of ways is a literal, the same in all returns of a group.
func (a *layout) constant(r *plan.Region, ways []*plan.Way, i int) bool {
	for _, g := range r.Groups {
		text := ""
		for jump, w := range g.Jumps {
			if !slices.Contains(ways, w) {
				continue
			}
			e := jump.(*ast.ReturnStmt).Results[i]
			if !isLiteral(a.f, e) || text != "" && text != types.ExprString(e) {
				return false
			}
			text = types.ExprString(e)
		}
	}
	return true
}

// isLiteral reports whether e means the same everywhere: a literal of a basic type, or a name that the language has.
func isLiteral(f *plan.Function, e ast.Expr) bool {
	switch e := ast.Unparen(e).(type) {
	case *ast.BasicLit:
		return true
	case *ast.Ident:
		return f.Info.Uses[e] != nil && f.Info.Uses[e].Parent() == types.Universe
	case *ast.UnaryExpr:
		return (e.Op == token.SUB || e.Op == token.ADD) && isLiteral(f, e.X)
	}
	return false
}

// isSame reports whether result i of all ways is the same.
func isSame(f *plan.Function, ways []*plan.Way, i int) bool {
	result := func(w *plan.Way) string { return wayKey(f, w.Jump.(*ast.ReturnStmt).Results[i]) }
	return !slices.ContainsFunc(ways, func(w *plan.Way) bool { return result(w) != result(ways[0]) })
}

// isMadeIn reports whether e, a result of w, is more than a variable, and made of one that only the test knows.
func isMadeIn(w *plan.Way, e ast.Expr) (found bool) {
	ast.Inspect(e, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		found = found || ok && id != ast.Unparen(e) && w.Outs[id] != nil
		return !found
	})
	return found
}

// tellable reports whether the tests can compute result i of each of ways. It notes the names of variables that have to
// be copied for that.
func (a *layout) tellable(r *plan.Region, ways []*plan.Way, i int, copied map[*ast.Ident]*plan.Group) bool {
	copies := make(map[*ast.Ident]*plan.Group)
	for _, g := range r.Groups {
		for jump, w := range g.Jumps {
			if slices.Contains(ways, w) && !a.tells(g, jump.(*ast.ReturnStmt).Results[i], copies) {
				return false
			}
		}
	}
	maps.Copy(copied, copies)
	return true
}

// tells reports whether the test of g can compute e, a result of a return that it decides on: that does nothing but
// compute on the host, and needs nothing that runs ahead but variables, of which a copy will do.
func (a *layout) tells(g *plan.Group, e ast.Expr, copied map[*ast.Ident]*plan.Group) bool {
	does := a.f.Effects(e)
	if plan.FirstOf(does.Enqueues, does.Waits, does.Barrier, does.Clock, does.Polls, does.Stamps, does.HandsOut, does.Ends, does.Unsafe) != nil || len(does.Writes) > 0 {
		return false
	}
	named := make(map[types.Object]bool)
	ok := true
	ast.Inspect(e, func(n ast.Node) bool {
		id, isID := n.(*ast.Ident)
		if _, lit := n.(*ast.FuncLit); lit || !ok || !isID {
			ok = ok && !lit
			return ok
		}
		v, isVar := a.f.Info.Uses[id].(*types.Var)
		if !isVar || v.IsField() {
			return true
		}
		named[v] = true
		first, last := g.Stmts[0].Node, g.Stmts[len(g.Stmts)-1].Node
		if (v.Pos() < first.Pos() || last.End() <= v.Pos()) && a.changesAfter(v, first) {
			ok = a.f.CanCopy(v)
			copied[id] = g
		}
		return ok
	})
	ahead := &plan.Effects{}
	for _, u := range a.units {
		if a.late[u] {
			ahead.Add(u.Ahead)
		} else {
			ahead.Add(u.All())
		}
	}
	ahead = ahead.Without(func(l plan.Loc) bool { return (l.Kind == plan.Var || l.Kind == plan.Own) && named[l.Obj] })
	return ok && !does.Needs(ahead)
}

// resultName is what a variable for the result v is called after.
func resultName(v *types.Var) string {
	if v.Name() != "" && v.Name() != "_" {
		return v.Name()
	}
	if types.Identical(v.Type(), types.Universe.Lookup("error").Type()) {
		return "err"
	}
	if b, ok := v.Type().Underlying().(*types.Basic); ok {
		switch {
		case b.Info()&types.IsBoolean != 0:
			return "ok"
		case b.Info()&types.IsInteger != 0:
			return "n"
		case b.Info()&types.IsString != 0:
			return "text"
		}
		return "value"
	}
	return "result"
}
