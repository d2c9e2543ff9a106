package plan

import (
	"go/ast"
	"go/token"

	"github.com/asyncgen/asyncgen/gen/internal/load"
)

// IsChoice reports whether call lets the device choose between what two functions compute:
// asyncrt.Either, as functions that are restated have it, with two literals, or one and nil, and
// the variables that they assign to.
func (f *Function) IsChoice(call *ast.CallExpr) bool {
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || sel.Sel.Name != "Either" {
		return false
	}
	id, ok := sel.X.(*ast.Ident)
	return ok && id.Name == load.RestatedRuntime
}

// Sides are the literals that a choice is given.
func Sides(choice *ast.CallExpr) (lits []*ast.FuncLit) {
	for _, arg := range choice.Args[1:] {
		if lit, ok := arg.(*ast.FuncLit); ok {
			lits = append(lits, lit)
		}
	}
	return lits
}

// choice walks a choice: both sides may run, and what they assign to may stay as it is.
func (w *walker) choice(call *ast.CallExpr) {
	note(&w.e.Enqueues, cause(call, "lets the device choose"))
	w.expr(call.Args[0])
	for _, lit := range Sides(call) {
		w.run(lit, call, "a function literal")
	}
	for _, arg := range call.Args[1:] {
		if u, ok := arg.(*ast.UnaryExpr); ok && u.Op == token.AND {
			w.expr(u.X)
		}
	}
}
