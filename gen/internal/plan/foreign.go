package plan

import (
	"fmt"
	"go/ast"
	"go/types"
	"strings"
)

// IsForeign reports whether what is made of f stands in another package than f: its variant does, if functions of that
// package call it. There, the names of the package of f need its name in front of them, and a method is a function.
func (f *Function) IsForeign() bool { return f.Pkg.Types != f.Home.Types }

// notPassed returns why the variant of g, which is of another package, can't be called in the place of call, or nil.
func (f *Function) notPassed(g *Function, call *ast.CallExpr) *Cause {
	if g.Decl.Recv == nil {
		return nil
	}
	sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr)
	if !ok || f.Info.Selections[sel] == nil || f.Info.Selections[sel].Kind() != types.MethodVal {
		return &Cause{Pos: call.Pos(), Text: "is called as a method expression"}
	}
	if len(f.Info.Selections[sel].Index()) > 1 {
		return &Cause{Pos: call.Pos(), Text: "is called through an embedded field"}
	}
	return nil
}

// unfit returns why the text of l can't stand in the package that calls it, or nil.
func (l *Lift) unfit() *Cause {
	f := l.Function
	from, to := f.Pkg.Module, f.Home.Module
	if from == nil || to == nil || from.Path != to.Path {
		return &Cause{Pos: f.Decl.Name.Pos(), Text: "is in another module"}
	}
	if f.Decl.Recv != nil && f.Obj.Signature().RecvTypeParams().Len() > 0 {
		return &Cause{Pos: f.Decl.Name.Pos(), Text: "is a method of a generic type of another package"}
	}
	if !importable(f.Pkg.PkgPath, f.Home.PkgPath) {
		return &Cause{Pos: f.Decl.Name.Pos(), Text: "is in package " + f.Pkg.PkgPath + ", which the package of the loop may not import"}
	}
	if f.Analysis.InPlace && PlainUse(f.Pkg.Types) == "" {
		return &Cause{Pos: f.Decl.Name.Pos(), Text: "is in a package that exports nothing but what is generic"}
	}
	divided := l.dividedCalls()
	var found *Cause
	no := func(n ast.Node, format string, args ...any) bool {
		found = &Cause{Pos: n.Pos(), Text: fmt.Sprintf(format, args...) + ", and is in another package than the loop", Hint: "export that, or let the function return the tensor, and read it in the loop"}
		return false
	}
	visit := func(n ast.Node) bool {
		if found != nil {
			return false
		}
		switch n := n.(type) {
		case *ast.Ident:
			if obj := f.Info.Uses[n]; obj != nil && !divided[n] {
				if what := f.keptFrom(obj); what != "" {
					return no(n, "%s", what)
				}
			}
		case *ast.TypeSpec:
			return no(n, "declares the type %s", n.Name.Name)
		case *ast.StructType, *ast.InterfaceType:
			if name := unexportedMember(f.Info.TypeOf(n.(ast.Expr))); name != "" {
				return no(n, "has a type of its own with %s", name)
			}
		case *ast.CompositeLit:
			if len(n.Elts) == 0 {
				return true
			}
			if _, keyed := n.Elts[0].(*ast.KeyValueExpr); keyed {
				return true
			}
			t := f.Info.TypeOf(n)
			if p, ok := t.Underlying().(*types.Pointer); ok {
				t = p.Elem()
			}
			if _, ok := t.Underlying().(*types.Struct); ok {
				if name := unexportedMember(t); name != "" {
					return no(n, "sets %s", name)
				}
			}
		}
		return true
	}
	if f.Decl.Recv != nil {
		ast.Inspect(f.Decl.Recv, visit)
	}
	ast.Inspect(f.Decl.Type, visit)
	ast.Inspect(f.Decl.Body, visit)
	return found
}

// keptFrom returns what use of obj, in f, the package that f is to stand in can't make, or "".
func (f *Function) keptFrom(obj types.Object) string {
	pkg, isPackage := obj.(*types.PkgName)
	switch {
	case isPackage:
		if path := pkg.Imported().Path(); !importable(path, f.Home.PkgPath) {
			return "uses package " + path + ", which others may not import"
		}
	case obj.Pkg() == nil:
		if f.Home.Types.Scope().Lookup(obj.Name()) != nil { // a builtin, which this hides
			return "uses " + obj.Name() + ", which is something else in package " + f.Home.Name
		}
	case isLabelOrLocal(obj) || obj.Exported():
	default:
		what := obj.Name()
		if v, ok := obj.(*types.Var); ok && v.IsField() {
			what = "field " + what
		}
		return "uses the unexported " + what + " of package " + obj.Pkg().Name()
	}
	return ""
}

// isLabelOrLocal reports whether obj is declared in a function.
func isLabelOrLocal(obj types.Object) bool {
	if _, ok := obj.(*types.Label); ok {
		return true
	}
	if v, ok := obj.(*types.Var); ok && v.IsField() {
		return false
	}
	return obj.Parent() != nil && obj.Parent() != obj.Pkg().Scope()
}

// unexportedMember returns the name of a field or a method that t, a struct or an interface, keeps
// for its package, or "".
func unexportedMember(t types.Type) string {
	switch t := t.Underlying().(type) {
	case *types.Struct:
		for v := range t.Fields() {
			if !v.Exported() {
				return v.Name()
			}
		}
	case *types.Interface:
		for m := range t.ExplicitMethods() {
			if !m.Exported() {
				return m.Name()
			}
		}
	}
	return ""
}

// PlainUse returns a declaration that uses something of pkg, and does nothing, with %s for the name
// of pkg in front of it. It is "" if all that pkg exports has type parameters. A file may have
// called pkg for nothing but a function whose variant it calls now.
func PlainUse(pkg *types.Package) string {
	for _, name := range pkg.Scope().Names() {
		obj := pkg.Scope().Lookup(name)
		if !obj.Exported() {
			continue
		}
		switch obj := obj.(type) {
		case *types.Func:
			if obj.Signature().TypeParams().Len() == 0 {
				return "var _ = %s" + name
			}
		case *types.Var:
			return "var _ = &%s" + name
		case *types.Const:
			return "const _ = %s" + name
		case *types.TypeName:
			if _, isStruct := obj.Type().Underlying().(*types.Struct); isStruct && !isGeneric(obj.Type()) {
				return "var _ *%s" + name
			}
		}
	}
	return ""
}

func isGeneric(t types.Type) bool {
	n, ok := types.Unalias(t).(*types.Named)
	return ok && n.TypeParams().Len() > 0
}

// dividedCalls returns the names of functions in l that its variant does not call, but theirs.
func (l *Lift) dividedCalls() map[*ast.Ident]bool {
	names := make(map[*ast.Ident]bool)
	for _, g := range l.Region.Groups {
		for _, s := range g.Stmts {
			_, reads := s.Deferred()
			for _, r := range reads {
				if call, ok := r.Expr.(*ast.CallExpr); ok && r.Lift != nil {
					names[CalleeName(call.Fun)] = true
				}
			}
		}
	}
	return names
}

// CalleeName is the name of the function in fun, the operand of a call; or nil if it is another expression than a name.
func CalleeName(fun ast.Expr) *ast.Ident {
	switch f := ast.Unparen(fun).(type) {
	case *ast.IndexExpr:
		return CalleeName(f.X)
	case *ast.IndexListExpr:
		return CalleeName(f.X)
	case *ast.SelectorExpr:
		return f.Sel
	case *ast.Ident:
		return f
	}
	return nil
}

// importable reports whether the go command lets the package by import the one at path.
func importable(path, by string) bool {
	elements := strings.Split(path, "/")
	for i, e := range elements {
		root := strings.Join(elements[:i], "/")
		if e == "internal" && by != root && !strings.HasPrefix(by, root+"/") {
			return false
		}
	}
	return true
}
