package plan

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"

	"golang.org/x/tools/go/types/typeutil"
)

// polls reports whether s asks how far something outside the program is, and neither waits for that
// nor tells anybody: it has a default, and receives from channels of contexts, tickers and timers
// alone. A receive from another channel may let the goroutine go on that sends there, which may
// then look at what the statements before s have done.
func (f *Function) polls(s *ast.SelectStmt) bool {
	hasDefault := false
	for _, c := range s.Body.List {
		comm := c.(*ast.CommClause).Comm
		if comm == nil {
			hasDefault = true
			continue
		}
		if from := receives(comm); from == nil || !f.isSignal(from) {
			return false
		}
	}
	return hasDefault
}

// receives returns the channel from which a clause of a select statement receives to drop the value, or nil.
func receives(comm ast.Stmt) ast.Expr {
	x, ok := comm.(*ast.ExprStmt)
	if !ok {
		return nil
	}
	if u, ok := ast.Unparen(x.X).(*ast.UnaryExpr); ok && u.Op == token.ARROW {
		return u.X
	}
	return nil
}

// isSignal reports whether e is the channel of a context, a ticker or a timer, or a variable that
// is never anything else but nil.
func (f *Function) isSignal(e ast.Expr) bool {
	switch e := ast.Unparen(e).(type) {
	case *ast.CallExpr:
		fn, ok := typeutil.Callee(f.Info, e).(*types.Func)
		return ok && fn.FullName() == "(context.Context).Done"
	case *ast.SelectorExpr:
		v, ok := f.Info.Uses[e.Sel].(*types.Var)
		return ok && v.IsField() && v.Pkg() != nil && v.Pkg().Path() == "time"
	case *ast.Ident:
		v := f.variable(e)
		if v == nil || !f.isLocal(v) || v.Pos() < f.Decl.Body.Pos() {
			return false
		}
		values, none := f.values(v)
		return len(values)+none == f.Sets(v) && !slices.ContainsFunc(values, func(e ast.Expr) bool {
			_, name := ast.Unparen(e).(*ast.Ident)
			return !f.Info.Types[e].IsNil() && (name || !f.isSignal(e))
		})
	}
	return false
}

// values returns the expressions that statements of f assign to v, and how many declarations give it none.
func (f *Function) values(v *types.Var) (values []ast.Expr, none int) {
	ast.Inspect(f.Decl.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for i, lhs := range n.Lhs {
				if id, ok := lhs.(*ast.Ident); ok && f.variable(id) == v && len(n.Lhs) == len(n.Rhs) {
					values = append(values, n.Rhs[i])
				}
			}
		case *ast.ValueSpec:
			for i, name := range n.Names {
				switch {
				case f.variable(name) != v:
				case len(n.Values) == 0:
					none++
				case len(n.Names) == len(n.Values):
					values = append(values, n.Values[i])
				}
			}
		}
		return true
	})
	return values, none
}

// asks walks what a select statement that polls evaluates before it takes one of its clauses.
func (w *walker) asks(s *ast.SelectStmt) {
	for _, c := range s.Body.List {
		if comm := c.(*ast.CommClause).Comm; comm != nil {
			from := receives(comm)
			w.expr(from)
			note(&w.e.Polls, cause(from, "asks %s", text(from)))
		}
	}
}

// unready walks a select statement that may wait, or that other goroutines may notice.
func (w *walker) unready(s *ast.SelectStmt) {
	for _, c := range s.Body.List {
		if c.(*ast.CommClause).Comm == nil {
			note(&w.e.Barrier, cause(s, "takes part in what other goroutines do, even if it does not wait (a context is only asked: case <-ctx.Done())").as(Blocks).with(ifWork))
		}
	}
	note(&w.e.Barrier, cause(s, "waits for channels").as(Blocks).with(ifWork))
	w.outer().stmts(s.Body.List)
}
