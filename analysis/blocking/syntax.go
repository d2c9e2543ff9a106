package blocking

import (
	"go/ast"
	"go/types"
	"slices"

	"github.com/asyncgen/asyncgen/analysis/internal/syntax"
	"golang.org/x/tools/go/ast/inspector"
)

// Small questions about expressions, variables and types that several files and rules ask. Those that
// need no [Package] are in analysis/internal/syntax.

// Local returns the local variable or parameter that e names, or nil. Fields and package variables are
// none.
func (pkg *Package) Local(e ast.Expr) *types.Var {
	id, ok := ast.Unparen(e).(*ast.Ident)
	if !ok {
		return nil
	}
	v, ok := pkg.Info.Uses[id].(*types.Var)
	if !ok || v.IsField() || v.Parent() == pkg.Pass.Pkg.Scope() {
		return nil
	}
	return v
}

// UsesOf yields the identifiers that refer to v, in f and all functions around f. For a local variable
// these are all uses.
func (pkg *Package) UsesOf(v *types.Var, f *Func) func(func(inspector.Cursor) bool) {
	for f.Parent != nil {
		f = f.Parent
	}
	return func(yield func(inspector.Cursor) bool) {
		for c := range f.Cur.Preorder((*ast.Ident)(nil)) {
			if pkg.Info.Uses[c.Node().(*ast.Ident)] == v && !yield(c) {
				return
			}
		}
	}
}

// FuncAt returns the innermost function around cur, nil at package level.
func (pkg *Package) FuncAt(cur inspector.Cursor) *Func {
	for c := range cur.Enclosing((*ast.FuncLit)(nil), (*ast.FuncDecl)(nil)) {
		switch n := c.Node().(type) {
		case *ast.FuncLit:
			return pkg.Lits[n]
		case *ast.FuncDecl:
			if fn, ok := pkg.Info.Defs[n.Name].(*types.Func); ok {
				return pkg.Decls[fn]
			}
		}
	}
	return nil
}

// IsResult reports whether v is a named result of f.
func (pkg *Package) IsResult(v *types.Var, f *Func) bool {
	for i := range f.Sig.Results().Len() {
		if f.Sig.Results().At(i) == v {
			return true
		}
	}
	return false
}

// SelfAppend returns the call of append if d is v = append(v, x), or nil. An append to one of many
// lists, m[k] = append(m[k], x), is none.
func (pkg *Package) SelfAppend(v *types.Var, d Def) *ast.CallExpr {
	if d.Kind != DefValue {
		return nil
	}
	call := syntax.AsCall(d.Value)
	if call == nil || len(call.Args) < 2 || pkg.Variable(call.Args[0]) != v {
		return nil
	}
	id, ok := ast.Unparen(call.Fun).(*ast.Ident)
	if !ok || pkg.Info.Uses[id] != types.Universe.Lookup("append") {
		return nil
	}
	if _, indexed := ast.Unparen(call.Args[0]).(*ast.IndexExpr); indexed {
		return nil // one of many lists
	}
	return call
}

// DropsFirst reports whether the list v is a queue, from which the first elements are taken in time: v = v[1:].
func (pkg *Package) DropsFirst(v *types.Var) bool {
	return slices.ContainsFunc(pkg.Defs[v], func(d Def) bool {
		s, ok := ast.Unparen(syntax.OrNil(d.Value)).(*ast.SliceExpr)
		return ok && s.Low != nil && pkg.Variable(s.X) == v
	})
}

// IsFailure reports whether e, with the given outcome, says that something failed: err != nil where it
// holds, or err == nil where it doesn't.
func (pkg *Package) IsFailure(e ast.Expr, holds bool) bool {
	b, ok := ast.Unparen(e).(*ast.BinaryExpr)
	if !ok {
		return false
	}
	op := b.Op
	if !holds {
		op = syntax.Negated[op]
	}
	return op.String() == "!=" && (syntax.IsNil(pkg.Info, b.Y) && syntax.IsError(pkg.Info.TypeOf(b.X)) || syntax.IsNil(pkg.Info, b.X) && syntax.IsError(pkg.Info.TypeOf(b.Y)))
}
