package gen

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"

	"golang.org/x/tools/go/ast/astutil"
)

// That the text of a function is the same does not say that its names mean the same: a variable
// that is declared earlier than in the original may hide another.

// A declared is a place where a function declares a variable with a statement.
type declared struct {
	object *ast.Object
	bare   bool // without a value
}

// declaredIn lists the declarations of n by name, in order.
func declaredIn(n ast.Node) map[string][]declared {
	m := make(map[string][]declared)
	add := func(e ast.Expr, bare bool) {
		if id, ok := e.(*ast.Ident); ok && id.Obj != nil && id.Obj.Pos() == id.Pos() {
			m[id.Name] = append(m[id.Name], declared{id.Obj, bare})
		}
	}
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			if n.Tok == token.DEFINE {
				for _, lhs := range n.Lhs {
					add(lhs, false)
				}
			}
		case *ast.ValueSpec:
			for _, name := range n.Names {
				add(name, len(n.Values) == 0)
			}
		}
		return true
	})
	return m
}

// hoisted returns the variables of fn that are declared without a value where the original, with the same declarations
// in the same order, gives them one.
func (u *undoer) hoisted(fn *ast.FuncDecl) map[*ast.Object]bool {
	objs := make(map[*ast.Object]bool)
	for name, now := range declaredIn(fn) {
		before := u.declared[name]
		for i := range now {
			if len(now) == len(before) && now[i].bare && !before[i].bare {
				objs[now[i].object] = true
			}
		}
	}
	return objs
}

// bareDecl returns the variable that a statement declares without a value, if it declares one.
func bareDecl(n ast.Node) *ast.Ident {
	d, ok := n.(*ast.DeclStmt)
	if !ok {
		return nil
	}
	g := d.Decl.(*ast.GenDecl)
	if g.Tok != token.VAR || len(g.Specs) != 1 {
		return nil
	}
	vs := g.Specs[0].(*ast.ValueSpec)
	if len(vs.Names) != 1 || len(vs.Values) > 0 {
		return nil
	}
	return vs.Names[0]
}

// declaredLast puts each declaration of a variable without a value right before the first statement that names it.
func declaredLast(list []ast.Stmt) []ast.Stmt {
	var out, open []ast.Stmt
	for _, s := range list {
		if bareDecl(s) != nil {
			open = append(open, s)
			slices.SortStableFunc(open, func(a, b ast.Stmt) int { return strings.Compare(bareDecl(a).Name, bareDecl(b).Name) })
			continue
		}
		named := names(s)
		open = slices.DeleteFunc(open, func(d ast.Stmt) bool {
			if named[bareDecl(d).Name] {
				out = append(out, d)
				return true
			}
			return false
		})
		out = append(out, s)
	}
	return append(out, open...)
}

// oneByOne makes each declaration of several variables declarations of one, as far as they are not
// given values together.
func oneByOne(fn *ast.FuncDecl) {
	astutil.Apply(fn.Body, nil, func(c *astutil.Cursor) bool {
		d, ok := c.Node().(*ast.DeclStmt)
		if !ok || c.Index() < 0 {
			return true
		}
		g := d.Decl.(*ast.GenDecl)
		if g.Tok != token.VAR {
			return true
		}
		for _, spec := range g.Specs {
			vs := spec.(*ast.ValueSpec)
			specs := []*ast.ValueSpec{vs}
			if len(vs.Values) == 0 && len(vs.Names) > 1 {
				specs = nil
				for _, name := range vs.Names {
					specs = append(specs, &ast.ValueSpec{Names: []*ast.Ident{name}, Type: vs.Type})
				}
			}
			for _, one := range specs {
				c.InsertBefore(&ast.DeclStmt{Decl: &ast.GenDecl{Tok: token.VAR, Specs: []ast.Spec{one}}})
			}
		}
		c.Delete()
		return true
	})
}

// A side is one of two functions that are compared.
type side struct {
	*ast.FuncDecl
	pos, end token.Pos           // of what was parsed
	free     map[*ast.Ident]bool // declared in no function
}

// meaning returns the variable, label or type of the function that id stands for; or that it stands
// for none, which is certain only if known says so: what undoing has made has no meaning. A function that calls
// itself declares its name, but not in itself.
func (s side) meaning(id *ast.Ident) (obj *ast.Object, known bool) {
	switch {
	case id.Obj != nil && id.Obj.Kind != ast.Fun && s.pos <= id.Obj.Pos() && id.Obj.Pos() < s.end:
		return id.Obj, true
	case id.Obj != nil || s.free[id]:
		return nil, true
	}
	return nil, false
}

func (s side) names() (ids []*ast.Ident) {
	add := func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			ids = append(ids, id)
		}
		return true
	}
	if s.Recv != nil {
		ast.Inspect(s.Recv, add)
	}
	ast.Inspect(s.Type, add)
	ast.Inspect(s.Body, add)
	return ids
}

// otherMeaning returns how a name in got means something else than the same name in want, or "".
// The two are the same as text. What is computed for all rows is declared once, however often it is
// asked for: own has these variables.
func otherMeaning(got, want side, own map[*ast.Object]bool) string {
	g, w := got.names(), want.names()
	if len(g) != len(w) {
		return "it has not the names of the original"
	}
	forth, back := make(map[*ast.Object]*ast.Object), make(map[*ast.Object]*ast.Object)
	for i := range g {
		if g[i].Name != w[i].Name {
			return "it has the name " + g[i].Name + " where the original has " + w[i].Name
		}
		now, known := got.meaning(g[i])
		before, sure := want.meaning(w[i])
		if !known || !sure || own[now] {
			continue
		}
		if (now == nil) != (before == nil) || now != nil && (forth[now] != nil && forth[now] != before || back[before] != nil && back[before] != now) {
			return g[i].Name + " means something else in it than in the original"
		}
		if now != nil {
			forth[now], back[before] = before, now
		}
	}
	return ""
}

// rowVars returns the variables that functions of one row have.
func (u *undoer) rowVars() map[*ast.Object]bool {
	objs := make(map[*ast.Object]bool)
	for _, r := range u.rows {
		for _, d := range r.defs {
			for _, list := range declaredIn(d) {
				for _, v := range list {
					objs[v.object] = true
				}
			}
		}
	}
	return objs
}
