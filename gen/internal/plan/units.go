package plan

import (
	"go/ast"
	"go/types"
)

// ChangedBy returns the variables that units change.
func ChangedBy(units []*Unit) map[types.Object]bool {
	objs := make(map[types.Object]bool)
	for _, u := range units {
		for l := range u.Effects.Writes {
			if l.Kind == Var || l.Kind == Own {
				objs[l.Obj] = true
			}
		}
	}
	return objs
}

// InPlace are the parts of u, which looks at no value, if none of it comes later.
func (u *Unit) InPlace() (nodes []ast.Node) {
	if !u.Stmt.IsCompound() {
		return []ast.Node{u.Stmt.Inner()}
	}
	add := func(list ...ast.Node) {
		for _, n := range list {
			if n != nil {
				nodes = append(nodes, n)
			}
		}
	}
	switch n := u.Stmt.Inner().(type) {
	case *ast.IfStmt:
		for {
			add(n.Init, n.Cond)
			e, ok := n.Else.(*ast.IfStmt)
			if !ok {
				break
			}
			n = e
		}
	case *ast.ForStmt:
		if u.Stmt.Parent != nil {
			add(n.Init)
		}
		for _, e := range u.Stmt.Condition() {
			add(e)
		}
		add(n.Post)
	case *ast.RangeStmt:
		if u.Stmt.Parent != nil {
			add(n.X)
		}
	case *ast.SwitchStmt:
		add(n.Init, n.Tag)
		for _, c := range n.Body.List {
			for _, e := range c.(*ast.CaseClause).List {
				add(e)
			}
		}
	case *ast.TypeSwitchStmt:
		add(n.Init, n.Assign)
	case *ast.SelectStmt:
		for _, c := range n.Body.List {
			add(c.(*ast.CommClause).Comm)
		}
	}
	return nodes
}
