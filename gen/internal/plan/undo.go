package plan

import (
	"go/ast"
	"go/token"
	"go/types"
)

// A Place is memory that others can see and that a loop changes ahead of values. It is given back what it held if
// a value says that the program does not get there.
type Place struct {
	Path  string   // from a variable: t.w
	Elems bool     // it is the elements of Path
	Guard []string // pointers on the way, which may be nil
}

// Changes returns the effects of giving e, which is assigned to, another value.
func (f *Function) Changes(e ast.Expr) *Effects {
	w := &walker{f: f, e: &Effects{}}
	if e = ast.Unparen(e); e == nil || isBlank(e) {
		return w.e
	}
	if id, ok := e.(*ast.Ident); ok && f.variable(id) == nil {
		return w.e
	}
	w.change(e)
	return w.e
}

func isBlank(e ast.Expr) bool {
	id, ok := e.(*ast.Ident)
	return ok && id.Name == "_"
}

// Touches reports whether e changes a place of l, or a part of one.
func (e *Effects) Touches(l Loc) bool {
	for w := range e.Writes {
		if overlap(w, l) {
			return true
		}
	}
	return false
}

// Definition returns what the variable v of f is defined as, if it is so once, by v := e, and never gets another value.
func (f *Function) Definition(v *types.Var) (e ast.Expr) {
	if v.Pos() < f.Decl.Body.Pos() || f.Sets(v) != 1 {
		return nil
	}
	ast.Inspect(f.Decl.Body, func(n ast.Node) bool {
		if a, ok := n.(*ast.AssignStmt); ok && a.Tok == token.DEFINE && len(a.Lhs) == len(a.Rhs) {
			for i, lhs := range a.Lhs {
				if id, ok := lhs.(*ast.Ident); ok && f.Info.Defs[id] == types.Object(v) {
					e = a.Rhs[i]
				}
			}
		}
		return e == nil
	})
	return e
}

// Literal returns the function literal that call calls, through a variable that is nothing else or at once; or nil.
func (f *Function) Literal(call *ast.CallExpr) *ast.FuncLit {
	switch fun := ast.Unparen(call.Fun).(type) {
	case *ast.FuncLit:
		return fun
	case *ast.Ident:
		if v := f.variable(fun); v != nil {
			return f.closures[v]
		}
	}
	return nil
}
