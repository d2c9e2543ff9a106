package regrown

import (
	_ "embed"
	"go/ast"
	"go/types"
	"slices"

	"github.com/asyncgen/asyncgen/analysis/blocking"
	"github.com/asyncgen/asyncgen/analysis/internal/syntax"
	"github.com/asyncgen/asyncgen/analysis/lint"
	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"golang.org/x/tools/go/analysis"
)

//go:embed doc.go
var doc string

// Analyzer is rule AT035.
var Analyzer = rule.Analyzer()

var rule = &lint.Rule{ID: "AT035", Package: "regrown", Doc: doc, Values: true, Check: check}

func check(p *lint.Pass) {
	for _, f := range p.Funcs {
		for _, r := range regrowths(f) {
			p.Report(lint.Warning, analysis.Diagnostic{
				Pos:     r.Call.Expr.Pos(),
				End:     r.Call.Expr.End(),
				Message: r.Var.Name() + " is copied in each iteration to grow by a piece; collect the pieces in a list and concatenate once after the loop",
				Related: r.Loop.Related(),
			})
		}
	}
}

// A regrowth is a call in a loop that copies a tensor to add a piece to it.
type regrowth struct {
	Call *blocking.Call
	Var  *types.Var
	Loop *blocking.Loop
}

// regrowths lists those of f, not of the literals in it.
func regrowths(f *blocking.Func) []regrowth {
	var list []regrowth
	for _, c := range f.Calls {
		if c.Away || !tensorapi.Joins(c.Callee) {
			continue
		}
		assign, ok := c.Cur.Parent().Node().(*ast.AssignStmt)
		if !ok || len(assign.Lhs) != 1 {
			continue
		}
		v := f.Package.Local(assign.Lhs[0])
		if v == nil || !slices.ContainsFunc(c.Expr.Args, func(e ast.Expr) bool { return f.Package.Local(e) == v }) {
			continue
		}
		for l := range f.Package.LoopsAround(f, c.Expr.Pos()) {
			if isRegrown(f.Package, v, c, l) {
				list = append(list, regrowth{c, v, l})
				break
			}
		}
	}
	return list
}

// isRegrown reports whether c copies v, which begins outside of l, in each iteration of l to no other end than that it
// grows.
func isRegrown(pkg *blocking.Package, v *types.Var, c *blocking.Call, l *blocking.Loop) bool {
	if l.Stmt == nil || l.Small || l.Stmt.Pos() <= v.Pos() && v.Pos() < l.Stmt.End() || pkg.GuardOf(c.In, c.Expr.Pos(), l) != blocking.Always {
		return false
	}
	for _, d := range pkg.Defs[v] {
		if pkg.Contains(l, d.In, d.Pos) && (d.Kind != blocking.DefValue || ast.Unparen(d.Value) != c.Expr) {
			return false // it begins anew now and then
		}
	}
	for use := range pkg.UsesOf(v, l.Func) {
		if !pkg.Contains(l, pkg.FuncAt(use), use.Node().Pos()) || syntax.IsTarget(use) {
			continue
		}
		parent := use.Parent()
		if parent.Node() == c.Expr {
			continue
		}
		if sel, ok := parent.Node().(*ast.SelectorExpr); ok && sel.X == use.Node() {
			if call, ok := parent.Parent().Node().(*ast.CallExpr); ok && pkg.Calls[call] != nil && pkg.Calls[call].API.Kind == tensorapi.Meta {
				continue
			}
		}
		return false
	}
	return true
}
