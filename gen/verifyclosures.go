package gen

import (
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"slices"
)

// literalOf returns the variable that s declares with a function literal, and nothing else, and the literal; or nil.
func literalOf(s ast.Stmt) (*ast.Ident, *ast.FuncLit) {
	var lhs, rhs ast.Expr
	switch s := s.(type) {
	case *ast.AssignStmt:
		if s.Tok != token.DEFINE || len(s.Lhs) != 1 || len(s.Rhs) != 1 {
			return nil, nil
		}
		lhs, rhs = s.Lhs[0], s.Rhs[0]
	case *ast.DeclStmt:
		g := s.Decl.(*ast.GenDecl)
		if g.Tok != token.VAR || len(g.Specs) != 1 {
			return nil, nil
		}
		vs := g.Specs[0].(*ast.ValueSpec)
		if len(vs.Names) != 1 || len(vs.Values) != 1 {
			return nil, nil
		}
		lhs, rhs = vs.Names[0], vs.Values[0]
	}
	lit, ok := ast.Unparen(rhs).(*ast.FuncLit)
	if !ok {
		return nil, nil
	}
	return lhs.(*ast.Ident), lit
}

// literals returns the function literals in n that statements declare variables with, in order, and these variables.
func literals(n ast.Node) (ids []*ast.Ident, lits []*ast.FuncLit) {
	ast.Inspect(n, func(n ast.Node) bool {
		if s, ok := n.(ast.Stmt); ok {
			if id, lit := literalOf(s); id != nil {
				ids, lits = append(ids, id), append(lits, lit)
			}
		}
		return true
	})
	return ids, lits
}

// closures puts the function literals of g, which are called in two parts, together again: they
// have the names of those of o, the original. Of a literal that is there in several forms, as
// written and as variants, only one stays, another one in each pass. It returns how g differs from
// what can be put together, or "", and how many passes there are.
func (u *undoer) closures(g, o *ast.FuncDecl, pass int) (text string, passes int) {
	c := &formChoice{undoer: u, pass: pass, passes: 1, weights: []int{1}, within: make(map[ast.Stmt]int), objs: make(map[*ast.Object]*ast.Object)}
	ast.Inspect(g.Body, c.visit)
	passes = c.passes
	ast.Inspect(g.Body, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && c.objs[id.Obj] != nil {
			id.Obj = c.objs[id.Obj]
		}
		return true
	})
	ids, lits := literals(g.Body)
	_, originals := literals(o.Body)
	for i, id := range ids {
		original := u.variants[id.Name].name
		if u.known[id.Name] || original == "" {
			continue
		}
		if i >= len(originals) {
			return id.Name + " is none of the function literals of the original", passes
		}
		lit, from := lits[i], originals[i]
		decl := &ast.FuncDecl{Type: lit.Type, Body: lit.Body}
		if !u.join(decl, &ast.FuncDecl{Type: from.Type, Body: from.Body}, u.variants[id.Name].here) {
			return id.Name + " has no Later to read for", passes
		}
		explicit(decl)
		id.Name, id.Obj.Name = original, original
	}
	return "", passes
}

// A formChoice leaves one form of each function literal that there are several of. So that each
// form that is in another one is chosen together with each of that, the digits of pass are the
// choices, the last digit that of the outermost literals.
type formChoice struct {
	*undoer
	pass    int
	passes  int                         // that there have to be
	within  map[ast.Stmt]int            // how many choices there are up to a form
	weights []int                       // the same for the nodes around the one that is visited
	objs    map[*ast.Object]*ast.Object // what stands for forms that are dropped
}

// visit is for ast.Inspect.
func (c *formChoice) visit(n ast.Node) bool {
	if n == nil {
		c.weights = c.weights[:len(c.weights)-1]
		return true
	}
	weight := c.weights[len(c.weights)-1]
	if s, ok := n.(ast.Stmt); ok && c.within[s] > 0 {
		weight = c.within[s]
	}
	c.weights = append(c.weights, weight)
	switch n := n.(type) {
	case *ast.BlockStmt:
		n.List = c.oneOf(n.List, weight)
	case *ast.CaseClause:
		n.Body = c.oneOf(n.Body, weight)
	case *ast.CommClause:
		n.Body = c.oneOf(n.Body, weight)
	}
	return true
}

// oneOf drops, of forms of a function literal that stand one after the other, all but one.
func (c *formChoice) oneOf(list []ast.Stmt, weight int) (out []ast.Stmt) {
	for len(list) > 0 {
		n := c.forms(list)
		chosen := list[c.pass/weight%n]
		if n > 1 {
			c.within[chosen] = weight * n
			c.passes = max(c.passes, weight*n)
			id, _ := literalOf(chosen)
			for _, s := range list[:n] {
				if other, _ := literalOf(s); other != id {
					c.objs[other.Obj] = id.Obj
				}
			}
		}
		out, list = append(out, chosen), list[n:]
	}
	return out
}

// forms is how many statements list begins with that declare forms of one function literal; 1 if there are none.
func (c *formChoice) forms(list []ast.Stmt) (n int) {
	first, _ := literalOf(list[0])
	if first == nil {
		return 1
	}
	original := first.Name
	if !c.known[original] {
		original = c.variants[original].name
	}
	for n = 1; n < len(list); n++ {
		id, _ := literalOf(list[n])
		if id == nil || c.known[id.Name] || original == "" || c.variants[id.Name].name != original {
			break
		}
	}
	return n
}

// variants are the function literals of a function that are called in two parts.
type variants struct {
	called map[types.Object]*ast.FuncLit // by the variables that stand for them
	// by the variables that stand for what they return: that may be one of several
	rests map[types.Object][]*ast.FuncLit
}

// variantLiterals finds those of fn. names has the names of the variables of the originals by theirs.
func variantLiterals(fn *ast.FuncDecl, info *types.Info, names map[string]callee) variants {
	vs := variants{make(map[types.Object]*ast.FuncLit), make(map[types.Object][]*ast.FuncLit)}
	ids, lits := literals(fn.Body)
	for i, id := range ids {
		if names[id.Name].name != "" && isVariant(lits[i].Type) {
			vs.called[info.Defs[id]] = lits[i]
		}
	}
	ast.Inspect(fn.Body, func(n ast.Node) bool {
		a, ok := n.(*ast.AssignStmt)
		if !ok || len(a.Rhs) != 1 {
			return true
		}
		id, ok := a.Lhs[len(a.Lhs)-1].(*ast.Ident)
		if call, isCall := a.Rhs[0].(*ast.CallExpr); ok && isCall {
			if lit := vs.calledBy(call, info); lit != nil {
				rest := info.ObjectOf(id)
				for _, e := range returned(lit.Body) {
					vs.rests[rest] = append(vs.rests[rest], e.lit)
				}
			}
		}
		return true
	})
	return vs
}

// isVariant reports whether functions of type t are called with a backlog, and return a function,
// perhaps after other results.
func isVariant(t *ast.FuncType) bool {
	if len(t.Params.List) == 0 || len(t.Params.List[0].Names) != 1 || t.Results == nil || len(t.Results.List) == 0 {
		return false
	}
	s, ok := t.Params.List[0].Type.(*ast.SelectorExpr)
	_, returns := t.Results.List[len(t.Results.List)-1].Type.(*ast.FuncType)
	return ok && s.Sel.Name == "Reader" && returns
}

// calledBy returns the literal whose first part call calls, or nil.
func (vs variants) calledBy(call *ast.CallExpr, info *types.Info) *ast.FuncLit {
	id, ok := call.Fun.(*ast.Ident)
	if !ok {
		return nil
	}
	return vs.called[info.Uses[id]]
}

func (vs variants) has(lit *ast.FuncLit) bool { return slices.Contains(vs.inOrder(), lit) }

// inOrder are the literals in the order of the text.
func (vs variants) inOrder() []*ast.FuncLit {
	return slices.SortedFunc(maps.Values(vs.called), func(a, b *ast.FuncLit) int { return int(a.Pos() - b.Pos()) })
}

// declares reports whether a literal that fn may call, and that is not around it, declares v: each
// call has another one then.
func (vs variants) declares(v *types.Var, fn *ast.FuncDecl) bool {
	return slices.ContainsFunc(vs.inOrder(), func(lit *ast.FuncLit) bool {
		around := lit.Pos() <= fn.Body.Pos() && fn.Body.End() <= lit.End()
		return !around && lit.Pos() <= v.Pos() && v.Pos() < lit.End()
	})
}
