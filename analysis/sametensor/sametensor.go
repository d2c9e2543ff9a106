package sametensor

import (
	_ "embed"
	"go/ast"
	"go/token"
	"go/types"

	"github.com/asyncgen/asyncgen/analysis/blocking"
	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/types/typeutil"
)

//go:embed doc.go
var doc string

// Analyzer is rule AT033.
var Analyzer = rule.Analyzer()

var rule = &blocking.Rule{ID: "AT033", Package: "sametensor", Doc: doc, Values: true, Check: check}

func check(p *blocking.Pass) {
	for cur := range p.Preorder((*ast.BinaryExpr)(nil), (*ast.CallExpr)(nil)) {
		switch n := cur.Node().(type) {
		case *ast.BinaryExpr:
			compare(p, n)
		case *ast.CallExpr:
			deepEqual(p, n)
		}
	}
}

func compare(p *blocking.Pass, n *ast.BinaryExpr) {
	if n.Op != token.EQL && n.Op != token.NEQ || !isTensor(p, n.X) || !isTensor(p, n.Y) {
		return
	}
	x, y := p.MadeBy(n.X), p.MadeBy(n.Y)
	severity := blocking.Info
	says := "compares two tensors by identity, not by value"
	switch {
	case p.IsCellValue(n.X) || p.IsCellValue(n.Y): // which changes when the cell is set
		return
	case disjoint(x, y) || p.MadeInside(x, n.Y) || p.MadeInside(y, n.X) || isCallOf(x, n.X) || isCallOf(y, n.Y),
		p.JustMade(n.X, n.Y) || p.JustMade(n.Y, n.X):
		severity = blocking.Warning
		says = "compares two tensors that are never the same one"
	}
	p.Report(severity, analysis.Diagnostic{
		Pos:     n.Pos(),
		End:     n.End(),
		Message: types.ExprString(n.X) + " " + n.Op.String() + " " + types.ExprString(n.Y) + " " + says + "; compare elements with Eq, or what they are read as",
	})
}

// isTensor reports whether e is a tensor, and not nil.
func isTensor(p *blocking.Pass, e ast.Expr) bool {
	tv := p.TypesInfo.Types[e]
	return !tv.IsNil() && blocking.IsTensor(tv.Type)
}

// disjoint reports whether both lists are known and have no call in common.
func disjoint(x, y []*ast.CallExpr) bool {
	if len(x) == 0 || len(y) == 0 {
		return false
	}
	for _, a := range x {
		for _, b := range y {
			if a == b {
				return false
			}
		}
	}
	return true
}

// isCallOf reports whether e itself is the one call: nobody else can have
// what it returns.
func isCallOf(calls []*ast.CallExpr, e ast.Expr) bool {
	return len(calls) == 1 && ast.Unparen(e) == calls[0]
}

func deepEqual(p *blocking.Pass, n *ast.CallExpr) {
	fn, ok := typeutil.Callee(p.TypesInfo, n).(*types.Func)
	if !ok || fn.FullName() != "reflect.DeepEqual" || len(n.Args) != 2 || !p.HoldsTensor(n.Args[0]) || !p.HoldsTensor(n.Args[1]) {
		return
	}
	p.Report(blocking.Warning, analysis.Diagnostic{
		Pos:     n.Pos(),
		End:     n.End(),
		Message: types.ExprString(n.Fun) + " compares how tensors are kept, not their values; compare elements with Eq, or what they are read as",
	})
}
