// Package naming is the last stage of a plan: it says which loops share a backlog, and gives names to all that the plan
// declares. They mean nothing else anywhere in the function.
//
//	total += x.Loss().Item()    lossAt := later.Read(x.Loss())
//	                            later.Do(func() { total += lossAt.Item() })
//
// A name says what it is of: a Read of loss, or of x.Loss(), is lossAt, a copy of n is nAt, and what is computed for
// all rows of h is hRows. What is read twice has one name, as long as it is the same.
package naming

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

// Name gives names to everything that d declares.
func Name(d *plan.Deferral) {
	n := newNamer(d.Function)
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

// A namer gives names to what a plan declares.
type namer struct {
	*plan.Names
	f     *plan.Function
	later string // the first backlog
	row   string // the parameter of functions of one row, or "" if there is none yet
}

func newNamer(f *plan.Function) *namer { return &namer{Names: plan.NewNames(f), f: f} }

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
