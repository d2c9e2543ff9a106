package rewrite

import (
	"go/ast"

	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"github.com/asyncgen/asyncgen/gen/internal/plan"
	"golang.org/x/tools/go/types/typeutil"
)

// inLiterals are the remarks on reads in function literals of f, of which the own loops have none: in a loop of the
// literal, or in a literal that another function may call in a loop.
func inLiterals(f *plan.Function) (remarks []plan.Remark) {
	ast.Inspect(f.Decl.Body, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		if _, api, ok := f.Library(call); !ok || api.Kind != tensorapi.Read {
			return true
		}
		if why := calledOften(f, call); why != nil {
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
