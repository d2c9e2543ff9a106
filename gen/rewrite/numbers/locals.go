package numbers

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"

	"github.com/asyncgen/asyncgen/gen/internal/plan"
)

// A definition gives a variable a value.
type definition struct {
	stmt  ast.Node    // *ast.AssignStmt, *ast.IncDecStmt or *ast.ValueSpec; *ast.RangeStmt or *ast.Field
	op    token.Token // of op=, ++ and --; else ILLEGAL
	value ast.Expr    // nil: a zero value, 1 after ++ and --, or one that has no expression of its own
	plain bool        // value is all that is assigned, or there is none because the variable is zero
}

// locals are the local variables of a function.
type locals struct {
	f      *plan.Function
	defs   map[*types.Var][]definition
	stores map[*types.Var][]definition // of elements of a slice of numbers
	uses   map[*types.Var][]*ast.Ident // other than definitions
	inner  map[*types.Var]bool         // a function literal uses it, or its address is taken
}

// newLocals finds the definitions and uses of the local variables of f.
func newLocals(f *plan.Function) *locals {
	r := &locals{f: f, defs: make(map[*types.Var][]definition), stores: make(map[*types.Var][]definition), uses: make(map[*types.Var][]*ast.Ident), inner: make(map[*types.Var]bool)}
	info := f.Info
	defining := make(map[*ast.Ident]bool)
	define := func(e ast.Expr, d definition) {
		if v, _ := element(f, e); v != nil {
			r.stores[v] = append(r.stores[v], d)
		}
		if id, ok := ast.Unparen(e).(*ast.Ident); ok {
			if v, ok := info.ObjectOf(id).(*types.Var); ok {
				defining[id] = true
				r.defs[v] = append(r.defs[v], d)
			}
		}
	}
	ast.Inspect(r.f.Decl, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for i, lhs := range n.Lhs {
				d := definition{stmt: n}
				if len(n.Lhs) == len(n.Rhs) {
					d.value, d.plain = n.Rhs[i], true
				}
				if n.Tok != token.ASSIGN && n.Tok != token.DEFINE {
					d.op = n.Tok - (token.ADD_ASSIGN - token.ADD)
				}
				define(lhs, d)
			}
		case *ast.ValueSpec:
			for i, name := range n.Names {
				d := definition{stmt: n, plain: len(n.Values) == 0}
				if len(n.Values) == len(n.Names) {
					d.value, d.plain = n.Values[i], true
				}
				define(name, d)
			}
		case *ast.IncDecStmt:
			op := token.ADD
			if n.Tok == token.DEC {
				op = token.SUB
			}
			define(n.X, definition{stmt: n, op: op, plain: true})
		case *ast.RangeStmt:
			for _, e := range []ast.Expr{n.Key, n.Value} {
				if e != nil {
					define(e, definition{stmt: n})
				}
			}
		case *ast.Field: // parameters and results
			for _, name := range n.Names {
				define(name, definition{stmt: n})
			}
		case *ast.UnaryExpr:
			if id, ok := ast.Unparen(n.X).(*ast.Ident); ok && n.Op == token.AND {
				if v, ok := info.ObjectOf(id).(*types.Var); ok {
					r.inner[v] = true
				}
			}
		case *ast.FuncLit:
			ast.Inspect(n, func(m ast.Node) bool {
				if id, ok := m.(*ast.Ident); ok {
					if v, ok := info.ObjectOf(id).(*types.Var); ok {
						r.inner[v] = true
					}
				}
				return true
			})
			return false
		case *ast.Ident:
			if v, ok := info.Uses[n].(*types.Var); ok && !v.IsField() && !defining[n] {
				r.uses[v] = append(r.uses[v], n)
			}
		}
		return true
	})
	return r
}

// returnsByName reports whether the function has a return without values.
func (r *locals) returnsByName() (found bool) {
	ast.Inspect(r.f.Decl.Body, func(n ast.Node) bool {
		s, ok := n.(*ast.ReturnStmt)
		found = found || ok && len(s.Results) == 0
		_, isLit := n.(*ast.FuncLit)
		return !found && !isLit
	})
	return found
}

// feeds reports whether an operation takes v, a float64, as a number, or something that is made of it.
func (r *locals) feeds(v *types.Var, seen map[*types.Var]bool) bool {
	if seen[v] {
		return false
	}
	seen[v] = true
	for _, id := range r.uses[v] {
		for n := ast.Node(id); n != nil; n = r.f.Parent(n) {
			if call, ok := r.f.Parent(n).(*ast.CallExpr); ok {
				if s, ok := sinkOf(r.f, call); ok && s.arg == n {
					return true
				}
			}
			if a, ok := r.f.Parent(n).(*ast.AssignStmt); ok {
				i := slices.Index(a.Rhs, ast.Expr(nil))
				if e, ok := n.(ast.Expr); ok {
					i = slices.Index(a.Rhs, e)
				}
				if i < 0 || len(a.Lhs) != len(a.Rhs) {
					break
				}
				if to, ok := ast.Unparen(a.Lhs[i]).(*ast.Ident); ok {
					if w, ok := r.f.Info.ObjectOf(to).(*types.Var); ok && isFloat64(w.Type()) && r.feeds(w, seen) {
						return true
					}
				}
				break
			}
		}
	}
	return false
}

// operands returns the local variables that e fails of if one of them has failed.
func (r *locals) operands(e ast.Expr) map[types.Object]bool {
	all := make(map[types.Object]bool)
	ast.Inspect(e, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			v, ok := r.f.Info.Uses[id].(*types.Var)
			if ok && !v.IsField() && !r.inner[v] && r.f.CanCopy(v) && fails(r.f, e, map[types.Object]bool{v: true}) {
				all[v] = true
			}
		}
		return true
	})
	return all
}
