package gen

import (
	"go/ast"
	"go/token"
	"go/types"

	"golang.org/x/tools/go/ast/astutil"
)

// undoneLift is [undone] for the variant of a function that is in two parts: put
// together again it is the original. source is the file of the original.
func undoneLift(text, source []byte, variant, original string, variants map[string]string, packages map[string]*types.Package) []mismatch {
	generated, err := parse(text, packages)
	if err != nil {
		return []mismatch{{"", err.Error()}}
	}
	originals, err := parse(source, packages)
	if err != nil {
		return []mismatch{{"", err.Error()}}
	}
	g, o := generated.decls[variant], originals.decls[original]
	if g == nil || o == nil {
		return []mismatch{{variant, "it is missing"}}
	}
	u := newUndoer(o, variants)
	got, want := generated.side(g), originals.side(o)
	if !u.join(g, o) {
		return []mismatch{{variant, "it has no Later to read for"}}
	}
	explicit(g)
	if text := u.difference(got, want, originals.dots); text != "" {
		return []mismatch{{variant, text}}
	}
	return nil
}

// join puts the two parts of g, a variant of o, together: what is returned takes the
// place of the statement that returns it, and the first parameter is dropped.
func (u *undoer) join(g, o *ast.FuncDecl) bool {
	params := g.Type.Params.List
	if len(params) == 0 || len(params[0].Names) != 1 || u.known[params[0].Names[0].Name] || g.Type.Results == nil {
		return false
	}
	rest, ok := g.Type.Results.List[0].Type.(*ast.FuncType)
	if !ok {
		return false
	}
	u.own = params[0].Names[0].Name
	explicit(o)
	g.Type.Params.List, g.Type.Results = params[1:], rest.Results
	if !nameResults(g, o) {
		return false
	}
	for i, field := range g.Type.Params.List {
		if i < len(o.Type.Params.List) && len(o.Type.Params.List[i].Names) == 0 {
			field.Names = nil
		}
	}
	var returns []*ast.ReturnStmt
	ast.Inspect(g.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.ReturnStmt:
			returns = append(returns, n)
		}
		return true
	})
	for _, r := range returns {
		if len(r.Results) != 1 {
			return false
		}
		if _, ok := r.Results[0].(*ast.FuncLit); !ok {
			return false
		}
	}
	astutil.Apply(g.Body, nil, func(c *astutil.Cursor) bool {
		for _, r := range returns {
			if c.Node() == ast.Node(r) {
				for _, s := range r.Results[0].(*ast.FuncLit).Body.List {
					c.InsertBefore(s)
				}
				c.Delete()
			}
		}
		return true
	})
	return true
}

// nameResults gives the results of g the names that they have in o, if g has none. It reports whether g declares
// variables of these names and types first, those that o uses.
func nameResults(g, o *ast.FuncDecl) bool {
	if g.Type.Results == nil || len(g.Type.Results.List[0].Names) > 0 || len(o.Type.Results.List[0].Names) == 0 {
		return true
	}
	var rest []ast.Expr
	var results []*ast.Field
	used := names(o.Body)
	for _, field := range g.Type.Results.List {
		rest = append(rest, field.Type)
	}
	for _, field := range o.Type.Results.List {
		result := &ast.Field{}
		for _, id := range field.Names {
			if len(rest) == 0 || types.ExprString(field.Type) != types.ExprString(rest[0]) {
				return false
			}
			result.Type, rest = rest[0], rest[1:]
			if !used[id.Name] {
				result.Names = append(result.Names, ast.NewIdent(id.Name))
				continue
			}
			name := bareDecl(g.Body.List[0])
			if name == nil || name.Name != id.Name || types.ExprString(field.Type) != types.ExprString(typeDeclared(g.Body.List[0])) {
				return false
			}
			result.Names = append(result.Names, name)
			g.Body.List = g.Body.List[1:]
		}
		results = append(results, result)
	}
	g.Type.Results = &ast.FieldList{List: results}
	return len(rest) == 0
}

// typeDeclared is the type in a statement "var name T".
func typeDeclared(s ast.Stmt) ast.Expr {
	return s.(*ast.DeclStmt).Decl.(*ast.GenDecl).Specs[0].(*ast.ValueSpec).Type
}

// explicit makes the returns of fn say which named results they return.
func explicit(fn *ast.FuncDecl) {
	if fn.Type.Results == nil || len(fn.Type.Results.List[0].Names) == 0 {
		return
	}
	ast.Inspect(fn.Body, func(n ast.Node) bool {
		if r, ok := n.(*ast.ReturnStmt); ok && len(r.Results) == 0 {
			for _, field := range fn.Type.Results.List {
				for _, id := range field.Names {
					r.Results = append(r.Results, ast.NewIdent(id.Name))
				}
			}
		}
		_, inner := n.(*ast.FuncLit)
		return !inner
	})
}

// learnCall records that the name stands for a call whose second half is called
// under it, if call is one of a variant. It reports whether it is.
func (u *undoer) learnCall(name string, call *ast.CallExpr) bool {
	callee := calleeName(call.Fun)
	if callee == nil || u.variants[callee.Name] == "" || len(call.Args) == 0 {
		return false
	}
	if later, ok := call.Args[0].(*ast.Ident); !ok || !u.laters[later.Name] {
		return false
	}
	callee.Name = u.variants[callee.Name]
	call.Args = call.Args[1:]
	u.stands[name] = call
	u.halves[call] = true
	return true
}

// calleeName is the name of the function in the operand of a call, or nil.
func calleeName(fun ast.Expr) *ast.Ident {
	switch f := fun.(type) {
	case *ast.IndexExpr:
		return calleeName(f.X)
	case *ast.IndexListExpr:
		return calleeName(f.X)
	case *ast.SelectorExpr:
		return f.Sel
	case *ast.Ident:
		return f
	}
	return nil
}

// isHalf reports whether s is only the call of a second half that is called
// again: it raises what that would raise.
func (u *undoer) isHalf(s ast.Stmt) bool {
	x, ok := s.(*ast.ExprStmt)
	if !ok {
		return false
	}
	call, ok := x.X.(*ast.CallExpr)
	if !ok || len(call.Args) > 0 {
		return false
	}
	id, ok := call.Fun.(*ast.Ident)
	if !ok {
		return false
	}
	half, ok := u.stands[id.Name].(*ast.CallExpr)
	return ok && u.halves[half] && u.uses[id.Name] > 2 // with the definition
}

// variantKey is the key of the variant called name of decl.
func variantKey(decl *ast.FuncDecl, name string) string {
	v := *decl
	v.Name = &ast.Ident{NamePos: token.NoPos, Name: name}
	return key(&v)
}
