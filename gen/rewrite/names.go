package rewrite

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"slices"

	"github.com/asyncgen/asyncgen/gen/internal/load"
	"github.com/asyncgen/asyncgen/gen/internal/plan"
	"github.com/asyncgen/asyncgen/gen/internal/syntax"
)

// A namer gives names to what a plan declares.
type namer struct {
	*plan.Names
	f     *plan.Function
	later string // the first backlog
	row   string // the parameter of functions of one row, or "" if there is none yet
}

func newNamer(f *plan.Function) *namer { return &namer{Names: plan.NewNames(f), f: f} }

// name gives names to everything that d declares.
func (n *namer) name(d *plan.Deferral) {
	d.Laters = n.share(d.Laters)
	for _, l := range d.Laters {
		l.Name = n.Unused("later")
		n.exits(l)
	}
	if len(d.Laters) > 0 {
		n.later = d.Laters[0].Name
	}
	for _, l := range d.Laters {
		for _, r := range l.Regions {
			for _, o := range r.Onces {
				o.Name = n.Unused(o.Var.Name() + o.Method)
			}
			n.groups(r)
		}
	}
	for _, l := range d.Laters {
		l.KeepsReads = keepsReads(n.f, l)
	}
	for _, k := range d.Keeps {
		k.Param, k.Name = n.rowParam(), n.Unused(n.baseOf(k)+"Rows")
	}
}

// baseOf is what k is called after: the variable that its definition is of, or else what is computed.
func (n *namer) baseOf(k *plan.Keep) string {
	if a, ok := n.f.Parent(k.Expr).(*ast.AssignStmt); ok && a.Tok == token.DEFINE && len(a.Lhs) == 1 {
		return plan.BaseName(a.Lhs[0])
	}
	return plan.BaseName(k.Expr)
}

// rowParam is the name for what gives rows, in functions of one row.
func (n *namer) rowParam() string {
	if n.row == "" {
		n.row = n.Unused("row")
	}
	return n.row
}

// groups names what the entries of r need.
func (n *namer) groups(r *plan.Region) {
	var taken []taken
	for _, g := range r.Groups {
		n.results(g)
		taken = n.reads(g, r, taken)
		for _, c := range g.Copies {
			c.Name = n.Unused(c.Var.Name() + "At")
		}
	}
}

// exits names what the exits of the loops of l need.
func (n *namer) exits(l *plan.Later) {
	end, ok := "", ""
	slots := make(map[*types.Var]*plan.Slot)
	for _, r := range l.Regions {
		if r.Exits == nil {
			continue
		}
		if end == "" {
			end, ok = n.Unused("end"), n.Unused("ok")
		}
		r.Exits.End, r.Exits.OK = end, ok
		if len(r.Exits.Ways) > 1 {
			r.Exits.Which = n.Unused("exit")
			r.Exits.Behind = !r.Endless
			if r.Exits.Behind && !(r.Exits.TakenOnce(l) && len(r.Exits.Fields) == 0) {
				r.Exits.Ended = n.Unused("ended")
			}
		}
		if _, labelled := r.Loop.Node.(*ast.LabeledStmt); r.Exits.Labels && !labelled {
			r.Exits.Label = n.Unused("loop")
		}
		for _, s := range r.Exits.Fields {
			if slots[s.Var] == nil {
				slots[s.Var] = s
				l.State.Fields = append(l.State.Fields, s)
			}
		}
		for _, w := range r.Exits.Ways {
			outs := slices.Collect(maps.Values(w.Outs))
			for _, res := range w.Results {
				if res != nil && res.Out != nil {
					outs = append(outs, res.Out)
				}
			}
			for _, o := range outs {
				if o.Name == "" {
					o.Name = n.Unused(o.Var.Name() + "AtEnd")
					l.Outs = append(l.Outs, o)
				}
			}
		}
	}
	if len(l.State.Fields) > 0 {
		l.State.Type = n.Unused(load.Unexport(n.f.Decl.Name.Name) + "End")
	}
	fields := make(map[string]bool)
	for _, s := range l.State.Fields {
		s.Name = s.Var.Name()
		for i := 2; fields[s.Name]; i++ {
			s.Name = fmt.Sprintf("%s%d", s.Var.Name(), i)
		}
		fields[s.Name] = true
	}
	for _, r := range l.Regions {
		if r.Exits != nil {
			for _, s := range r.Exits.Fields {
				s.Name = slots[s.Var].Name
			}
		}
	}
	slices.SortFunc(l.Outs, func(a, b *plan.Out) int { return int(a.Var.Pos() - b.Var.Pos()) })
}

// hasExits reports whether a value ends a loop of l.
func hasExits(l *plan.Later) bool {
	return slices.ContainsFunc(l.Regions, func(r *plan.Region) bool { return r.Exits != nil })
}

// share lets a loop use the backlog of one before it, if that is in scope and
// nothing is deferred in between.
func (n *namer) share(laters []*plan.Later) []*plan.Later {
	var out []*plan.Later
next:
	for _, l := range laters {
		for _, first := range out {
			if !hasExits(first) && !hasExits(l) && n.inScope(first.Anchor, l.Anchor) {
				for _, r := range l.Regions {
					for _, g := range r.Groups {
						g.Later = first
					}
				}
				first.Regions = append(first.Regions, l.Regions...)
				continue next
			}
		}
		out = append(out, l)
	}
	return out
}

// inScope reports whether what is declared before a is in scope at b, without
// a defer between.
func (n *namer) inScope(a, b ast.Stmt) bool {
	found := false
	ast.Inspect(n.f.Decl.Body, func(m ast.Node) bool {
		i := slices.Index(syntax.List(m), a)
		if i < 0 {
			return !found
		}
		for _, s := range syntax.List(m)[i+1:] {
			found = found || s.Pos() <= b.Pos() && b.End() <= s.End()
		}
		return false
	})
	ast.Inspect(n.f.Decl.Body, func(m ast.Node) bool {
		if d, ok := m.(*ast.DeferStmt); ok && a.Pos() < d.Pos() && d.Pos() < b.Pos() {
			found = false
		}
		return found
	})
	return found
}

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
		changes := writes(s.Head, t.v)
		for _, read := range s.Reads {
			changes = changes || writes(read.Effects, t.v) // a closure that is called
		}
		if !changes {
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
