package rewrite

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"

	"github.com/asyncgen/asyncgen/gen/internal/plan"
)

// A variable that an entry declares and others use is declared before the entry, which then
// assigns to it. In the statements between, its name must not have meant something else.

// declare finds the variables that have to be declared before the groups of r, and divides groups
// where that makes it unnecessary or possible.
func (a *layout) declare(r *plan.Region) {
	var groups []*plan.Group
	for todo := r.Groups; len(todo) > 0; {
		g := todo[0]
		todo = todo[1:]
		a.hoists(g)
		if first, rest, ok := a.divideGroup(g); ok {
			todo = slices.Concat(first, rest, todo)
			continue
		}
		groups = append(groups, g)
	}
	r.Groups = groups
}

// hoists finds the variables that a group declares and others use.
func (a *layout) hoists(g *plan.Group) {
	first, last := g.Stmts[0].Node, g.Stmts[len(g.Stmts)-1].Node
	for _, s := range g.Stmts {
		needed := a.assignsToo(s, first.Pos())
		for obj := range s.Declares {
			if !s.IsCompound() && !a.isHere(s, obj) {
				needed = needed || a.usedOutside(obj, first.Pos(), last.End())
			}
		}
		if !needed {
			continue
		}
		for obj := range s.Declares {
			if obj.Name() != "_" && !a.isHere(s, obj) {
				g.Hoists = append(g.Hoists, obj.(*types.Var))
			}
		}
	}
	slices.SortFunc(g.Hoists, func(x, y *types.Var) int { return int(x.Pos() - y.Pos()) })
}

// isHere reports whether s declares obj and gives it its value in its place, whatever else it does later.
func (a *layout) isHere(s *plan.Stmt, obj types.Object) bool {
	n, ok := s.Inner().(*ast.AssignStmt)
	return ok && slices.ContainsFunc(n.Lhs, func(e ast.Expr) bool { return s.IsHere(e) && a.f.Info.Defs[e.(*ast.Ident)] == obj })
}

// assignsToo reports whether s declares variables and, with the same :=, assigns to one that is
// declared before an entry which begins at pos: in the entry it would declare another one.
func (a *layout) assignsToo(s *plan.Stmt, pos token.Pos) bool {
	n, ok := s.Inner().(*ast.AssignStmt)
	return ok && n.Tok == token.DEFINE && slices.ContainsFunc(n.Lhs, func(e ast.Expr) bool {
		obj := a.f.Info.Uses[e.(*ast.Ident)]
		return obj != nil && obj.Pos() < pos && !s.IsHere(e)
	})
}

func (a *layout) usedOutside(obj types.Object, from, to token.Pos) bool {
	for id, o := range a.f.Info.Uses {
		if o == obj && (id.Pos() < from || id.Pos() >= to) {
			return true
		}
	}
	return false
}

// divideGroup divides a group before a statement that declares what statements before it
// have another of, and around one that only declares: that may as well stay where it is.
// A group that ends iterations is the last of them, and declares nothing for others.
func (a *layout) divideGroup(g *plan.Group) (first, rest []*plan.Group, ok bool) {
	part := func(stmts []*plan.Stmt) []*plan.Group {
		if len(stmts) == 0 {
			return nil
		}
		return []*plan.Group{{Stmts: stmts, Names: make(map[*plan.Read]string)}}
	}
	if len(g.Skips) > 0 {
		return nil, nil, false
	}
	for i, s := range g.Stmts {
		if !slices.ContainsFunc(g.Hoists, func(v *types.Var) bool { return s.Declares[v] }) || s.IsCompound() {
			continue
		}
		if onlyDeclares(s.Inner()) {
			return part(g.Stmts[:i]), part(g.Stmts[i+1:]), true
		}
		for _, v := range g.Hoists {
			if i > 0 && s.Declares[v] && len(a.namesakes(v, g.Stmts[:i])) > 0 {
				return part(g.Stmts[:i]), part(g.Stmts[i:]), true
			}
		}
	}
	return nil, nil, false
}

// onlyDeclares reports whether s declares variables without giving them values.
func onlyDeclares(s ast.Stmt) bool {
	d, ok := s.(*ast.DeclStmt)
	return ok && !slices.ContainsFunc(d.Decl.(*ast.GenDecl).Specs, func(spec ast.Spec) bool {
		vs, ok := spec.(*ast.ValueSpec)
		return !ok || len(vs.Values) > 0
	})
}

// namesakes returns the identifiers in stmts that have the name of v and mean something else.
func (a *layout) namesakes(v *types.Var, stmts []*plan.Stmt) (ids []*ast.Ident) {
	for _, s := range stmts {
		ast.Inspect(s.Node, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok && id.Name == v.Name() && a.f.Info.ObjectOf(id) != v {
				ids = append(ids, id)
			}
			return true
		})
	}
	return ids
}

// undeclarable finds a statement that declares a variable for others which can't be declared before
// it, and why: it uses another of its name, of which it can have no copy, or its type can't be
// written.
func (a *layout) undeclarable(r *plan.Region) (s *plan.Stmt, why plan.Reason) {
	for _, g := range r.Groups {
		for _, v := range g.Hoists {
			for _, s := range g.Stmts {
				if s.Node.Pos() > v.Pos() {
					break
				}
				if s.Declares[v] && !a.f.CanWrite(v.Type()) {
					return s, plan.Reason{Code: plan.Hidden, Cause: plan.Cause{Pos: v.Pos(), Text: "declares " + v.Name() + ", whose type has no name outside its package"},
						Hint: "keep what others need of it in variables of other types"}
				}
				for _, id := range a.namesakes(v, []*plan.Stmt{s}) {
					if !isMember(a.f.Info.Uses[id]) && !inOperand(s, id) && !a.copied(g, id) {
						return s, plan.Reason{Code: plan.Hidden, Cause: plan.Cause{Pos: id.Pos(), Text: "uses another " + id.Name}, Hint: "give the variable that it declares another name"}
					}
				}
			}
		}
	}
	return nil, plan.Reason{}
}

// inOperand reports whether id, in s, is part of what is read: that is evaluated before variables are declared.
func inOperand(s *plan.Stmt, id *ast.Ident) bool {
	_, reads := s.Deferred()
	return slices.ContainsFunc(reads, func(r *plan.Read) bool { return r.Operand.Pos() <= id.Pos() && id.End() <= r.Operand.End() })
}

// copied reports whether g has a copy of what id means, or makes one if nothing that runs later changes it.
func (a *layout) copied(g *plan.Group, id *ast.Ident) bool {
	v, ok := a.f.Info.Uses[id].(*types.Var)
	if !ok {
		return false
	}
	i := slices.IndexFunc(g.Copies, func(c *plan.Copy) bool { return c.Var == v })
	if i >= 0 && slices.Contains(g.Copies[i].Uses, id) {
		return true
	}
	if !a.f.CanCopy(v) || slices.ContainsFunc(a.units, func(u *plan.Unit) bool { return a.late[u] && u.Effects.Sets(v) }) {
		return false
	}
	if i < 0 {
		i = len(g.Copies)
		g.Copies = append(g.Copies, &plan.Copy{Var: v})
	}
	g.Copies[i].Uses = append(g.Copies[i].Uses, id)
	return true
}
