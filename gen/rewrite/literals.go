package rewrite

import (
	"go/ast"
	"slices"

	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"github.com/asyncgen/asyncgen/gen/internal/plan"
	"golang.org/x/tools/go/types/typeutil"
)

// inLiterals are the remarks on reads in function literals of f, of which the others have none: in a loop of the
// literal, or in a literal that another function may call in a loop. Where a loop calls the literal by a name, the
// remark on that call is about what the literal does.
func inLiterals(f *plan.Function, others []plan.Remark) (remarks []plan.Remark) {
	ast.Inspect(f.Decl.Body, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		if _, api, ok := f.Library(call); !ok || api.Kind != tensorapi.Read {
			return true
		}
		why := calledOften(f, call)
		said := slices.ContainsFunc(others, func(r plan.Remark) bool { return r.Pos == f.Position(call.Pos()) })
		if why != nil && !said && (len(others) == 0 || !isCalledInLoop(f, call)) {
			code := plan.WaitsInside
			remarks = append(remarks, plan.Remark{
				Code: code, Verdict: plan.Refused, Class: code.Class(), Pos: f.Position(call.Pos()), Function: f.Decl.Name.Name,
				Message: (&plan.Read{Expr: call}).What() + " can't come later: " + code.Title(),
				Because: []plan.Related{{Pos: f.Position(why.Pos), Text: "it " + why.Text}}, Hint: why.Hint,
			})
		}
		return true
	})
	return remarks
}

// calledOften returns why n, in a function literal, may run many times, or nil if nothing says so.
func calledOften(f *plan.Function, n ast.Node) *plan.Cause {
	inLoop := false
	for n = f.Parent(n); n != nil; n = f.Parent(n) {
		switch n.(type) {
		case *ast.ForStmt, *ast.RangeStmt:
			inLoop = true
			continue
		case *ast.FuncLit:
		default:
			continue
		}
		if inLoop {
			return &plan.Cause{Pos: n.Pos(), Text: "is in a loop of a function literal", Hint: inLoopOf(f, n.(*ast.FuncLit))}
		}
		lit := n
		for {
			p, ok := f.Parent(n).(*ast.ParenExpr)
			if !ok {
				break
			}
			n = p
		}
		to, ok := f.Parent(n).(*ast.CallExpr)
		if !ok || to.Fun == n || f.IsStandard(to) {
			return nil
		}
		if _, _, isLibrary := f.Library(to); isLibrary {
			return nil
		}
		return &plan.Cause{Pos: lit.Pos(), Text: "is in a function literal that the called function may run in a loop",
			Hint: handedTo(f, to)}
	}
	return nil
}

// isCalledInLoop reports whether n is in a function literal that a loop of f calls by the name of a variable.
func isCalledInLoop(f *plan.Function, n ast.Node) bool {
	for ; n != nil; n = f.Parent(n) {
		if lit, ok := n.(*ast.FuncLit); ok && isNamedInLoop(f, lit) {
			return true
		}
	}
	return false
}

func isNamedInLoop(f *plan.Function, lit *ast.FuncLit) bool {
	var name *ast.Ident
	switch p := f.Parent(lit).(type) {
	case *ast.AssignStmt:
		if i := slices.Index(p.Rhs, ast.Expr(lit)); i >= 0 && len(p.Lhs) == len(p.Rhs) {
			name, _ = p.Lhs[i].(*ast.Ident)
		}
	case *ast.ValueSpec:
		if i := slices.Index(p.Values, ast.Expr(lit)); i >= 0 {
			name = p.Names[i]
		}
	}
	if name == nil {
		return false
	}
	called := false
	ast.Inspect(f.Decl.Body, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || called {
			return !called
		}
		if id, ok := ast.Unparen(call.Fun).(*ast.Ident); !ok || f.Info.ObjectOf(id) != f.Info.ObjectOf(name) {
			return true
		}
		for up := f.Parent(call); up != nil; up = f.Parent(up) {
			switch up.(type) {
			case *ast.ForStmt, *ast.RangeStmt:
				called = true
			}
		}
		return !called
	})
	return called
}

// inLoopOf says what to write instead of a loop in lit.
func inLoopOf(f *plan.Function, lit *ast.FuncLit) string {
	if f.ReturnsIterator(lit) {
		return "yield the tensor, and read it where the iterator is ranged over"
	}
	if p, ok := f.Parent(lit).(*ast.CallExpr); ok {
		if _, starts := f.Parent(p).(*ast.GoStmt); starts {
			return ""
		}
		if p.Fun != lit {
			return handedTo(f, p)
		}
	}
	return "write the loop in the body of a declared function"
}

// handedTo says what to write instead of a read in a function literal that call calls.
func handedTo(f *plan.Function, call *ast.CallExpr) string {
	if fn := typeutil.StaticCallee(f.Info, call); fn != nil && fn.Pkg() != nil {
		switch fn.Pkg().Path() {
		case "sort", "slices":
			return "read the values into a slice first, and let the literal look at those"
		case "sync", "golang.org/x/sync/errgroup": // it is a goroutine, or runs once
			return ""
		}
	}
	return "write the loop in place of the call, with what the literal does in it"
}
