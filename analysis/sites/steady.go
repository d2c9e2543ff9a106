package sites

import (
	"go/ast"
	"go/types"
	"slices"

	"github.com/asyncgen/asyncgen/analysis/blocking"
	"github.com/asyncgen/asyncgen/analysis/internal/syntax"
	"github.com/asyncgen/asyncgen/analysis/tensorapi"
)

// IsSteady reports whether e is computed in each iteration of l from what nothing in the package changes meanwhile:
// operands of the function around l or around e, fields, and what functions of the package compute from these, also
// behind an interface. It asks less than IsSame, which also wants to know that functions of others change nothing: for
// work that costs much.
//
//	for i := range x.Dim(0) {
//		inverse := g.cov().Inverse() // cov asks a kernel, which is an interface
//	}
//
// If e is in another function than l, one that l calls, the receiver of that counts as the same; its parameters don't.
func IsSteady(pkg *blocking.Package, e ast.Expr, l *blocking.Loop) bool {
	s := steady{pkg, l, make(map[any]bool)}
	return s.expr(e)
}

// A steady asks whether work is the same in all iterations of a loop.
type steady struct {
	*blocking.Package
	loop *blocking.Loop
	seen map[any]bool // variables and functions that were asked about before, or are being asked about
}

// expr asks about what e mentions and calls.
func (s *steady) expr(e ast.Node) bool {
	same := true
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			same = false
		case *ast.UnaryExpr:
			same = same && n.Op.String() != "<-"
		case *ast.CallExpr:
			if c := s.Calls[n]; c != nil {
				same = same && s.call(c)
			}
		case *ast.Ident:
			if v, ok := s.Info.Uses[n].(*types.Var); ok {
				same = same && s.variable(v.Origin())
			}
		}
		return same
	})
	return same
}

// variable asks whether v has the same value in all iterations.
func (s *steady) variable(v *types.Var) bool {
	if s.seen[v] {
		return true
	}
	s.seen[v] = true
	shared := v.IsField() || v.Parent() == s.Pass.Pkg.Scope()
	if s.IsOperand(v, s.loop) {
		return false
	}
	if p := s.Params[v]; !shared && p.Of != nil && p.Of != s.loop.Func && p.Operand != tensorapi.Recv {
		return false // of a function that the loop calls: what it passes may differ
	}
	for _, d := range s.Defs[v] {
		switch {
		case shared && (s.Contains(s.loop, d.In, d.Pos) || s.CalledFrom(s.loop, d.In)):
			return false
		case shared:
		case s.Contains(s.loop, d.In, d.Pos) && s.loop.Stmt != nil && !s.loop.Declares(v), d.Kind != blocking.DefValue || d.Value == nil:
			return false
		case s.Contains(s.loop, d.In, d.Pos) || d.In != s.loop.Func:
			if len(s.Defs[v]) != 1 || !s.expr(d.Value) {
				return false
			}
		}
	}
	return true
}

// call asks about the callee of c; its operands are parts of the expression.
func (s *steady) call(c *blocking.Call) bool {
	if c.Away {
		return false
	}
	switch c.API.Kind {
	case tensorapi.Op:
		return c.Lib == tensorapi.Ours() && !blocking.IsForward(c)
	case tensorapi.View, tensorapi.Meta, tensorapi.Pure:
		return true
	case tensorapi.Host:
		// Others may fill a list.
		return !slices.ContainsFunc(c.Expr.Args, func(e ast.Expr) bool {
			return syntax.ElementType(typeOf(s.Package, e)) != nil && !IsSame(s.Package, e, s.loop)
		})
	case tensorapi.Value:
		return blocking.IsParamValue(c) && !s.Any(s.loop, (*blocking.Call).Mutates)
	case tensorapi.Unknown:
	default:
		return false
	}
	if c.Callee != nil && c.Callee.Pkg() != nil && c.Callee.Pkg().Path() == "math" {
		return true
	}
	if c.Target != nil {
		return s.body(c.Target)
	}
	return len(c.Impls) > 0 && !slices.ContainsFunc(c.Impls, func(f *blocking.Func) bool { return !s.body(f) })
}

// body asks about a function that computes: what it calls, and the fields and variables of the package that it
// mentions.
func (s *steady) body(f *blocking.Func) bool {
	if s.seen[f] {
		return true
	}
	s.seen[f] = true
	if f.Cyclic || len(f.Parts()) != 1 || f.Sig.Results().Len() != 1 {
		return false
	}
	for cur := range f.Cur.Preorder((*ast.CallExpr)(nil), (*ast.Ident)(nil), (*ast.GoStmt)(nil), (*ast.SendStmt)(nil), (*ast.AssignStmt)(nil)) {
		switch n := cur.Node().(type) {
		case *ast.CallExpr:
			if c := s.Calls[n]; c != nil && !s.call(c) {
				return false
			}
		case *ast.Ident:
			v, ok := s.Info.Uses[n].(*types.Var)
			if ok && (v.IsField() || v.Parent() == s.Pass.Pkg.Scope() || v.Pkg() != s.Pass.Pkg) && !s.variable(v.Origin()) {
				return false
			}
		case *ast.AssignStmt:
			if slices.ContainsFunc(n.Lhs, func(e ast.Expr) bool { return !syntax.IsIdent(e) }) {
				return false // it fills something
			}
		default:
			return false
		}
	}
	return true
}

// isOfCopy reports whether e is a field of a struct that a local variable holds, and neither l nor anything else gets
// at its address: whatever functions l calls, they can't assign the field.
//
//	func (r Ratings) Users(yield func(int64) bool) { … r.User.AtInt(i) … }
func isOfCopy(pkg *blocking.Package, e ast.Expr, l *blocking.Loop) bool {
	sel, ok := ast.Unparen(e).(*ast.SelectorExpr)
	if !ok {
		return false
	}
	base, field := pkg.Local(sel.X), pkg.Variable(sel)
	if base == nil || field == nil || len(pkg.Defs[base]) > 0 {
		return false
	}
	_, isStruct := base.Type().Underlying().(*types.Struct)
	return isStruct && !slices.ContainsFunc(pkg.Defs[field], func(d blocking.Def) bool {
		return d.Kind == blocking.DefOther || pkg.Contains(l, d.In, d.Pos) || pkg.CalledFrom(l, d.In)
	})
}
