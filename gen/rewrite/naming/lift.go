package naming

import (
	"go/ast"
	"slices"

	"github.com/asyncgen/asyncgen/gen/internal/plan"
)

// results names what g, a return, computes in its place, if it computes the tensors of its reads as
// well: these come after it.
func (n *namer) results(g *plan.Group) {
	s := g.Stmts[len(g.Stmts)-1]
	if _, ok := s.Inner().(*ast.ReturnStmt); !ok || s.Here == nil || !slices.ContainsFunc(s.Reads, func(r *plan.Read) bool { return r.Plain == nil }) {
		return
	}
	for _, e := range s.Inner().(*ast.ReturnStmt).Results {
		if _, name := ast.Unparen(e).(*ast.Ident); !name && s.IsHere(e) {
			g.Here = append(g.Here, plan.Result{Expr: e, Name: n.Unused("result")})
		}
	}
}

// nameLift names what a variant declares, and those of the functions that it calls.
func nameLift(l *plan.Lift) {
	if l.Later.Name != "" {
		return
	}
	n := newNamer(l.Function)
	n.later = n.Unused("later")
	l.Later.Name = n.later
	n.groups(l.Region)
}

// closure names what the variant of a function literal declares. Its parameter may hide the backlog.
func (n *namer) closure(l *plan.Lift) {
	if l.Name != "" {
		return
	}
	name := l.Closure.Var.Name() + "Later"
	for l.Name = n.Unused(name); n.f.Analysis.IsTaken(n.f.Home, l.Name); {
		l.Name = n.Unused(name)
	}
	l.Later.Name = n.later
	n.groups(l.Region)
}
