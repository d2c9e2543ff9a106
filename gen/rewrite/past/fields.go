package past

import (
	"go/ast"
	"go/types"
	"strings"

	"github.com/asyncgen/asyncgen/gen/internal/plan"
)

// A field is one of a struct that a local variable holds, or points to.
type field struct {
	root   *types.Var
	expr   ast.Expr // root.a.b
	behind plan.Loc // if root points to the struct
}

// field returns what stands for e, a field of root, as if it were a variable of its own; nil if others may lead to it.
func (p *known) field(e ast.Expr, root *types.Var) *types.Var {
	sel, ok := ast.Unparen(e).(*ast.SelectorExpr)
	var behind plan.Loc
	if ok && root == nil {
		root, behind = p.pointer(sel)
	}
	if !ok || root == nil || p.f.Visible(root) || !p.f.CanCopy(root) {
		return nil
	}
	text, exact := namesOf(p.f, sel)
	if !exact {
		return nil
	}
	for v, at := range p.fields {
		if at.root == root && v.Name() == text {
			return v.(*types.Var)
		}
	}
	v := types.NewVar(root.Pos(), root.Pkg(), text, p.f.Info.TypeOf(e))
	p.fields[v] = &field{root, e, behind}
	return v
}

// pointer returns the variable that sel, a field behind it, begins with, and the place of the
// field: if the variable is the same and not nil in all of the loop, which gives back what it
// changes there.
func (p *known) pointer(sel *ast.SelectorExpr) (*types.Var, plan.Loc) {
	v := p.f.Variable(sel.X)
	body := p.Stmt.Bodies[0]
	if v == nil || !p.f.IsFieldOf(sel, v) || p.GivesBack == 0 || p.f.Sets(v) != 1 || v.Pos() >= p.Stmt.Node.Pos() || len(body) == 0 {
		return nil, plan.Loc{}
	}
	if !p.f.LeadsBefore(v, p.Stmt) && (body[0].IsTest || body[0].IsCompound() || !p.f.FollowsFirst(v, body[0].Node)) {
		return nil, plan.Loc{}
	}
	return v, plan.FieldLoc(p.f.Info.Selections[sel])
}

// rootOf is [rootOf], or the pointer that e, a field, is behind.
func (p *known) rootOf(e ast.Expr) *types.Var {
	if v := rootOf(p.f, e); v != nil {
		return v
	}
	if sel, ok := ast.Unparen(e).(*ast.SelectorExpr); ok {
		return p.f.Variable(sel.X)
	}
	return nil
}

// rootOf returns the variable that a chain of fields and indices begins with,
// if it follows no pointer.
func rootOf(f *plan.Function, e ast.Expr) *types.Var {
	for {
		switch x := ast.Unparen(e).(type) {
		case *ast.Ident:
			v, _ := f.Info.ObjectOf(x).(*types.Var)
			return v
		case *ast.SelectorExpr:
			if sel := f.Info.Selections[x]; sel == nil || sel.Indirect() || isPointer(f.Info.TypeOf(x.X)) {
				return nil
			}
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		default:
			return nil
		}
	}
}

// namesOf returns the names on the way from a variable to e, with dots between them. It is not exact
// if e may be a part of what is there.
func namesOf(f *plan.Function, e ast.Expr) (names string, exact bool) {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		return e.Name, true
	case *ast.SelectorExpr:
		names, exact = namesOf(f, e.X)
		if sel := f.Info.Selections[e]; !exact || sel == nil || len(sel.Index()) > 1 {
			return names, false
		}
		return names + "." + e.Sel.Name, true
	case *ast.IndexExpr:
		names, _ = namesOf(f, e.X)
	}
	return names, false
}

// isField reports whether e is the field that v stands for.
func (p *known) isField(e ast.Expr, v types.Object) bool {
	names, exact := namesOf(p.f, e)
	return exact && names == v.Name() && p.rootOf(e) == p.root(v)
}

// root returns the variable that v is, or that it is a field of.
func (p *known) root(v types.Object) *types.Var {
	if at := p.fields[v]; at != nil {
		return at.root
	}
	return v.(*types.Var)
}

// writes reports whether u gives v another value. A field of a variable is left alone by what sets other fields.
func (p *known) writes(u *plan.Unit, v types.Object) bool {
	if at := p.fields[v]; at != nil && at.behind.Obj != nil {
		return u.All().Touches(at.behind)
	}
	if !u.All().Sets(p.root(v)) || p.fields[v] == nil {
		return u.All().Sets(p.root(v))
	}
	var set []ast.Expr
	switch n := u.Stmt.Inner().(type) {
	case *ast.AssignStmt:
		set = n.Lhs
	case *ast.IncDecStmt:
		set = []ast.Expr{n.X}
	}
	if len(set) == 0 || u.Whole {
		return true
	}
	for _, e := range set {
		text, _ := namesOf(p.f, e)
		if rootOf(p.f, e) == p.root(v) && (strings.HasPrefix(v.Name()+".", text+".") || strings.HasPrefix(text+".", v.Name()+".")) {
			return true
		}
	}
	return false
}

// elementOf returns the index expression that a chain of fields begins with.
func elementOf(e ast.Expr) (*ast.IndexExpr, bool) {
	for {
		switch x := ast.Unparen(e).(type) {
		case *ast.SelectorExpr:
			e = x.X
		case *ast.IndexExpr:
			return x, true
		default:
			return nil, false
		}
	}
}
