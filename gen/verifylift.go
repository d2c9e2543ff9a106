package gen

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strconv"

	"github.com/asyncgen/asyncgen/gen/internal/plan"
	"golang.org/x/tools/go/ast/astutil"
)

// undoneLift is [undone] for the variant of a function that is in two parts: put
// together again it is the original. source is the file of the original.
func undoneLift(text, source []byte, variant, original string, variants callees, packages map[string]*types.Package) []mismatch {
	return inPasses(func(pass int) ([]mismatch, int) {
		return undoneLiftOf(text, source, variant, original, variants, packages, pass)
	})
}

// undoneLiftOf is to undoneLift what [undoneOf] is to undone.
func undoneLiftOf(text, source []byte, variant, original string, variants callees, packages map[string]*types.Package, pass int) (found []mismatch, passes int) {
	generated, err := parse(text, packages)
	if err != nil {
		return []mismatch{{"", err.Error()}}, 0
	}
	originals, err := parse(source, packages)
	if err != nil {
		return []mismatch{{"", err.Error()}}, 0
	}
	g, o := generated.decls[variant], originals.decls[original]
	if g == nil || o == nil {
		return []mismatch{{variant, "it is missing"}}, 0
	}
	u := newUndoer(o, variants.in(variant))
	of := variants.functions[g.Name.Name]
	fits := of.path == "" || of.moved(g)
	u.path = of.path
	got, want := generated.side(g), originals.side(o)
	diff, passes := u.closures(g, o, pass)
	switch {
	case diff != "":
	case !fits:
		diff = "it has no receiver"
	case !u.join(g, o, variants.functions[g.Name.Name].here):
		diff = "it has no Later to read for"
	default:
		explicit(g)
		diff = u.difference(got, want, originals.dots)
	}
	if diff != "" {
		return []mismatch{{variant, diff}}, passes
	}
	return nil, passes
}

// join puts the two parts of g, a variant of o, together: what is returned takes the
// place of the statement that returns it, and the first parameter is dropped.
// here says which results g returns in their place, before the function that makes the others.
func (u *undoer) join(g, o *ast.FuncDecl, here []bool) bool {
	params := g.Type.Params.List
	if len(params) == 0 || len(params[0].Names) != 1 || u.known[params[0].Names[0].Name] || g.Type.Results == nil {
		return false
	}
	last := len(g.Type.Results.List) - 1
	rest, ok := g.Type.Results.List[last].Type.(*ast.FuncType)
	if !ok || last != count(here) {
		return false
	}
	if here != nil {
		if rest.Results = mergeTypes(g.Type.Results.List[:last], rest.Results, here, o); rest.Results == nil {
			return false
		}
	}
	u.own[params[0].Names[0].Name] = true
	explicit(o)
	g.Type.Params.List, g.Type.Results = params[1:], rest.Results
	if !nameResults(g, o) {
		return false
	}
	if g.Recv != nil && o.Recv != nil && len(o.Recv.List[0].Names) == 0 {
		g.Recv.List[0].Names = nil
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
		if len(r.Results) != last+1 {
			return false
		}
		lit, ok := r.Results[last].(*ast.FuncLit)
		if !ok || here != nil && !mergeResults(lit, r.Results[:last], here) {
			return false
		}
		sameResults(g.Type.Results, lit)
	}
	astutil.Apply(g.Body, nil, func(c *astutil.Cursor) bool {
		for _, r := range returns {
			if c.Node() == ast.Node(r) {
				for _, s := range r.Results[last].(*ast.FuncLit).Body.List {
					c.InsertBefore(s)
				}
				c.Delete()
			}
		}
		return true
	})
	return true
}

// sameResults makes the named results of lit, which is part of a function now, those of that.
func sameResults(results *ast.FieldList, lit *ast.FuncLit) {
	objs := make(map[*ast.Object]*ast.Object)
	if results != nil && lit.Type.Results != nil {
		outer, inner := namesOf(results), namesOf(lit.Type.Results)
		for i := range min(len(outer), len(inner)) {
			objs[inner[i].Obj] = outer[i].Obj
		}
	}
	ast.Inspect(lit.Body, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && id.Obj != nil && objs[id.Obj] != nil {
			id.Obj = objs[id.Obj]
		}
		return true
	})
}

// namesOf are the names in a list of fields.
func namesOf(list *ast.FieldList) (ids []*ast.Ident) {
	for _, field := range list.List {
		ids = append(ids, field.Names...)
	}
	return ids
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
	fun := calleeName(call.Fun)
	if fun == nil || u.variants[fun.Name].name == "" || len(call.Args) == 0 {
		return false
	}
	if later, ok := call.Args[0].(*ast.Ident); !ok || !u.laters[later.Name] {
		return false
	}
	v := u.variants[fun.Name]
	fun.Name = v.name
	call.Args = call.Args[1:]
	switch {
	case v.method:
		if len(call.Args) == 0 || call.Fun != ast.Expr(fun) {
			return false
		}
		call.Fun, call.Args = &ast.SelectorExpr{X: receiverOf(call.Args[0]), Sel: fun}, call.Args[1:]
	case v.path != "" && v.path != u.path:
		call.Fun = qualifiedBy(v.path, call.Fun)
	}
	u.stands[name] = call
	u.halves[call] = true
	return true
}

// receiverOf is arg, a receiver that a variant of a method is given, as it stands in front of the method.
func receiverOf(arg ast.Expr) ast.Expr {
	switch x := arg.(type) {
	case *ast.UnaryExpr:
		if x.Op == token.AND {
			return x.X
		}
	case *ast.StarExpr:
		return x.X
	}
	return arg
}

// qualifiedBy is fun, the operand of a call, with the package at path in front of its name.
func qualifiedBy(path string, fun ast.Expr) ast.Expr {
	switch f := fun.(type) {
	case *ast.IndexExpr:
		f.X = qualifiedBy(path, f.X)
	case *ast.IndexListExpr:
		f.X = qualifiedBy(path, f.X)
	case *ast.Ident:
		return &ast.SelectorExpr{X: ast.NewIdent(strconv.Quote(path)), Sel: f}
	}
	return fun
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
	if !ok || u.mixed[id.Name] != nil {
		return false
	}
	half, ok := u.stands[id.Name].(*ast.CallExpr)
	return ok && u.halves[half] && u.uses[id.Name] > 2 // with the definition
}

// variantKey is the key of the variant of l.
func variantKey(l *plan.Lift) string {
	v := *l.Function.Decl
	v.Name = &ast.Ident{NamePos: token.NoPos, Name: l.Name}
	if l.Function.IsForeign() {
		v.Recv = nil
	}
	return key(&v)
}

// calleeOf is the function of l.
func calleeOf(l *plan.Lift) callee {
	c := callee{name: l.Function.Decl.Name.Name, here: l.Here}
	if l.Function.IsForeign() {
		c.path, c.method = l.Function.Pkg.PkgPath, l.Function.Decl.Recv != nil
	}
	return c
}

// moved makes g, the variant of c, which is of another package, what it would be in that package.
// It reports whether it can be that.
func (c callee) moved(g *ast.FuncDecl) bool {
	astutil.Apply(g, nil, func(at *astutil.Cursor) bool {
		if sel, ok := at.Node().(*ast.SelectorExpr); ok && isName(sel.X, strconv.Quote(c.path)) {
			at.Replace(sel.Sel)
		}
		return true
	})
	if !c.method {
		return true
	}
	params := g.Type.Params.List
	if len(params) < 2 || g.Recv != nil || len(params[1].Names) != 1 {
		return false
	}
	g.Recv = &ast.FieldList{List: params[1:2:2]}
	g.Type.Params.List = slices.Concat(params[:1], params[2:])
	return true
}
