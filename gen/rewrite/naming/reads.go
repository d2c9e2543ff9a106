package naming

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"

	"github.com/asyncgen/asyncgen/gen/internal/plan"
)

// taken is a Read that a group has named, and where it is in scope.
type taken struct {
	v     *types.Var
	name  string
	group *plan.Group
	used  []use
}

// A use is a read of what has been taken, in a statement that always comes to it.
type use struct {
	in   *plan.Stmt
	read *plan.Read
}

// reads names the reads of a group. The same value of the same variable is
// read once.
func (n *namer) reads(g *plan.Group, r *plan.Region, before []taken) []taken {
	for _, s := range g.Stmts {
		var raised []*plan.Read
		held := s.Holds()
		holds := func(before token.Pos) { // in the order in which the program evaluates them
			for ; len(held) > 0 && (held[0].Pos() < before || before == token.NoPos); held = held[1:] {
				g.Takes = append(g.Takes, plan.Take{Held: held[0], Name: n.Unused(baseOfHeld(held[0]) + "At")})
			}
		}
		_, reads := s.Deferred()
		slices.SortFunc(reads, func(x, y *plan.Read) int { return int(x.Expr.Pos() - y.Expr.Pos()) })
		for at, read := range reads {
			holds(read.Expr.Pos())
			if i := slices.IndexFunc(before, func(t taken) bool { return t.v == read.Plain && t.v != nil && n.visible(t, g, r) }); i >= 0 {
				g.Names[read] = before[i].name
				continue
			}
			if read.Rows != nil {
				n.rows(g, read)
				continue
			}
			name := n.Unused(plan.BaseName(read.Operand) + "At")
			g.Names[read] = name
			take := plan.Take{Read: read, Name: name}
			if read.Plain == nil && !read.Fixed {
				for _, o := range reads[:at] {
					if o.Raises() && !slices.ContainsFunc(raised, func(p *plan.Read) bool { return n.alike(g, o, p) }) && !n.hasRaised(before, g, s, o) {
						take.Raise = append(take.Raise, o)
						raised = append(raised, o)
					}
				}
			}
			g.Takes = append(g.Takes, take)
			before = append(before, taken{v: read.Plain, name: name, group: g})
			if read.Lift != nil && read.Lift.Closure != nil {
				n.closure(read.Lift)
			} else if read.Lift != nil {
				nameLift(read.Lift)
			}
		}
		holds(token.NoPos)
		n.note(before, g, s, reads)
	}
	return before
}

// baseOfHeld is the name that what is taken of a cell or a field is called after.
func baseOfHeld(e ast.Expr) string {
	if call, ok := e.(*ast.CallExpr); ok {
		return plan.BaseName(call.Fun)
	}
	return plan.BaseName(e)
}

// note notes which of the Reads in all s always uses.
func (n *namer) note(all []taken, g *plan.Group, s *plan.Stmt, reads []*plan.Read) {
	if s.IsTest {
		return
	}
	for _, r := range reads {
		if !n.f.AlwaysFirst(r.Expr, s.Inner()) {
			continue
		}
		for i := range all {
			if all[i].name == g.Names[r] {
				all[i].used = append(all[i].used, use{s, r})
			}
		}
	}
}

// hasRaised reports whether an entry before s, a statement of g, always raises the error of r.
func (n *namer) hasRaised(all []taken, g *plan.Group, s *plan.Stmt, r *plan.Read) bool {
	return slices.ContainsFunc(all, func(t taken) bool {
		return t.name == g.Names[r] && slices.ContainsFunc(t.used, func(u use) bool {
			return isRaisedBy(u.read, r) && comesBefore(u.in, s)
		})
	})
}

// alike reports whether r raises in g what o does.
func (n *namer) alike(g *plan.Group, r, o *plan.Read) bool {
	return g.Names[r] == g.Names[o] && isRaisedBy(o, r)
}

// isRaisedBy reports whether o raises what r does if they are reads of one value. Others may
// complain about its shape or type, or about their arguments.
func isRaisedBy(o, r *plan.Read) bool {
	if o.Func != nil || r.Func != nil {
		return o.Func != nil && r.Func != nil && types.ExprString(o.Func) == types.ExprString(r.Func)
	}
	return o.Method == r.Method && r.Method != "At" && r.Method != "AtInt"
}

// comesBefore reports whether a stands before b in one list of statements, or before one that b is in.
func comesBefore(a, b *plan.Stmt) bool {
	for b != nil && !sameList(a, b) {
		b = b.Parent
	}
	return b != nil && a.Node.Pos() < b.Node.Pos()
}

// rows names what is computed for all rows. The same is computed once.
func (n *namer) rows(g *plan.Group, r *plan.Read) {
	for _, t := range g.Takes {
		if t.Read != nil && t.Read.Rows != nil && t.Read.Rows.Loop == r.Rows.Loop && slices.Equal(t.Read.Rows.Defs, r.Rows.Defs) &&
			types.ExprString(t.Read.Operand) == types.ExprString(r.Operand) {
			g.Names[r] = t.Name
			return
		}
	}
	r.Rows.Param = n.rowParam()
	of := r.Operand
	if call, ok := ast.Unparen(of).(*ast.CallExpr); ok && slices.Contains(r.Rows.Calls, call) {
		of = ast.Unparen(call.Fun).(*ast.SelectorExpr).X
	}
	g.Names[r] = n.Unused(plan.BaseName(of) + "Rows")
	g.Takes = append(g.Takes, plan.Take{Read: r, Name: g.Names[r]})
}

// visible reports whether the Read t, taken by an earlier group, is in scope in
// g and of the value that its variable has there.
func (n *namer) visible(t taken, g *plan.Group, r *plan.Region) bool {
	from, to := t.group.Stmts[0], g.Stmts[0]
	if t.group != g && !comesBefore(from, to) {
		return false
	}
	for s := range r.Loop.All {
		calls := slices.ContainsFunc(s.Reads, func(read *plan.Read) bool { return read.Effects.Sets(t.v) }) // a closure
		if !s.Head.Sets(t.v) && !calls {
			continue
		}
		if from.Node.Pos() <= s.Node.Pos() && s.Node.Pos() <= to.Node.Pos() {
			return false
		}
		for l := to.Loop(); l != nil && !from.Within(l); l = l.Loop() {
			if s.Within(l) {
				return false
			}
		}
	}
	return true
}

// sameList reports whether two statements are in one list.
func sameList(a, b *plan.Stmt) bool {
	if a.Parent != b.Parent || a.Parent == nil {
		return false
	}
	for _, body := range a.Parent.Bodies {
		if slices.Contains(body, a) {
			return slices.Contains(body, b)
		}
	}
	return false
}
