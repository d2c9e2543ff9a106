package sametensor

import (
	_ "embed"
	"go/ast"
	"go/token"
	"go/types"
	"slices"

	"github.com/asyncgen/asyncgen/analysis/blocking"
	"github.com/asyncgen/asyncgen/analysis/internal/syntax"
	"github.com/asyncgen/asyncgen/analysis/lint"
	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/ast/inspector"
	"golang.org/x/tools/go/types/typeutil"
)

//go:embed doc.go
var doc string

// Analyzer is rule AT033.
var Analyzer = rule.Analyzer()

var rule = &lint.Rule{ID: "AT033", Package: "sametensor", Doc: doc, Values: true, InTests: true, Check: check}

func check(p *lint.Pass) {
	for cur := range p.Preorder((*ast.BinaryExpr)(nil), (*ast.CallExpr)(nil)) {
		switch n := cur.Node().(type) {
		case *ast.BinaryExpr:
			if n.Op == token.EQL || n.Op == token.NEQ {
				compare(p, n, n.X, n.Y, types.ExprString(n.X)+" "+n.Op.String()+" "+types.ExprString(n.Y), n.Op == token.EQL && isRefused(p, cur))
			}
		case *ast.CallExpr:
			deepEqual(p, n)
			if c := p.Calls[n]; c != nil {
				compareBy(p, c)
			}
		}
	}
}

// compare reports a comparison of x and y, written as text, if both are tensors. refused means that a
// test fails if the two are the same tensor.
func compare(p *lint.Pass, n, x, y ast.Expr, text string, refused bool) {
	if refused || !isTensor(p, x) || !isTensor(p, y) || isCellValue(p.Package, x, 0) || isCellValue(p.Package, y, 0) {
		return // what a cell holds changes when it is set
	}
	severity := lint.Info
	says := "compares two tensors by identity, not by value"
	a, b := p.MadeBy(x), p.MadeBy(y)
	if disjoint(a, b) || madeInside(p.Package, a, y) || madeInside(p.Package, b, x) || isCallOf(a, x) || isCallOf(b, y) ||
		justMade(p.Package, x, y) || justMade(p.Package, y, x) {
		severity = lint.Warning
		says = "compares two tensors that are never the same one"
	}
	report(p, severity, n, text+" "+says)
}

// report reports a comparison of tensors.
func report(p *lint.Pass, s lint.Severity, n ast.Expr, says string) {
	p.Report(s, analysis.Diagnostic{Pos: n.Pos(), End: n.End(), Message: says + "; compare elements with Eq, or what they are read as"})
}

// isRefused reports whether cur is the condition under which a test fails. The test then wants two
// different tensors, as one does that checks that a function returns a new one.
//
//	if got == x {
//		t.Error("changed in place")
//	}
func isRefused(p *lint.Pass, cur inspector.Cursor) bool {
	stmt, ok := cur.Parent().Node().(*ast.IfStmt)
	if !ok {
		return false
	}
	fails := false
	for c := range cur.Parent().Preorder((*ast.CallExpr)(nil)) {
		call := p.Calls[c.Node().(*ast.CallExpr)]
		fails = fails || call != nil && stmt.Body.Pos() <= call.Expr.Pos() && call.Expr.Pos() < stmt.Body.End() && blocking.FailsTest(call.Callee)
	}
	return fails
}

// compareBy reports a call of a function that compares tensors by ==. That is a generic function, or
// one of package slices that looks for a tensor, if the tensor was made for this call.
//
//	slices.Index(keys, x.Flatten())
func compareBy(p *lint.Pass, c *blocking.Call) {
	var operands []ast.Expr
	for i, e := range c.Expr.Args {
		if c.Summary().Compares.Has(i) {
			operands = append(operands, e)
		}
	}
	if len(operands) == 2 {
		compare(p, c.Expr, operands[0], operands[1], types.ExprString(c.Expr), false)
	}
	for _, name := range []string{"slices.Index", "slices.Contains"} {
		if syntax.IsFullName(c.Callee, name) {
			operands = c.Expr.Args
		}
	}
	if len(operands) != 2 || isTensor(p, operands[0]) == isTensor(p, operands[1]) {
		return
	}
	for _, e := range operands {
		if isTensor(p, e) && isCallOf(p.MadeBy(e), e) {
			report(p, lint.Warning, c.Expr, blocking.CalleeName(c)+" looks for a tensor that was just made, and so is in no list")
		}
	}
}

// isTensor reports whether e is a tensor, and not nil.
func isTensor(p *lint.Pass, e ast.Expr) bool {
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

// isCallOf reports whether e itself is the only call in the list. Nobody else can have what it returns.
func isCallOf(calls []*ast.CallExpr, e ast.Expr) bool {
	return len(calls) == 1 && ast.Unparen(e) == calls[0]
}

func deepEqual(p *lint.Pass, n *ast.CallExpr) {
	fn, ok := typeutil.Callee(p.TypesInfo, n).(*types.Func)
	if !ok || fn.FullName() != "reflect.DeepEqual" || len(n.Args) != 2 || !holdsTensor(p.Package, n.Args[0]) || !holdsTensor(p.Package, n.Args[1]) {
		return
	}
	report(p, lint.Warning, n, types.ExprString(n.Fun)+" compares how tensors are kept, not their values")
}

// holdsTensor reports whether e is a tensor or contains some, in elements, fields
// or what it points to.
func holdsTensor(pkg *blocking.Package, e ast.Expr) bool {
	tv := pkg.Info.Types[e]
	return tv.Type != nil && !tv.IsNil() && pkg.HoldsTensors(tv.Type)
}

// isCellValue reports whether e is what a cell holds, or a local variable that is only ever set to that.
func isCellValue(pkg *blocking.Package, e ast.Expr, depth int) bool {
	switch e := ast.Unparen(e).(type) {
	case *ast.CallExpr:
		c := pkg.Calls[e]
		return c != nil && c.API.Kind == tensorapi.Value
	case *ast.Ident:
		v, ok := pkg.Info.Uses[e].(*types.Var)
		if !ok || v.IsField() || len(pkg.Defs[v]) == 0 || depth > 4 {
			return false
		}
		return !slices.ContainsFunc(pkg.Defs[v], func(d blocking.Def) bool { return d.Kind != blocking.DefValue || !isCellValue(pkg, d.Value, depth+1) })
	}
	return false
}

// madeInside reports whether param is a parameter that is never assigned, and the calls, which make
// tensors, are in its function. The tensor that was passed is then older than theirs.
func madeInside(pkg *blocking.Package, calls []*ast.CallExpr, param ast.Expr) bool {
	id, ok := ast.Unparen(param).(*ast.Ident)
	if !ok || len(calls) == 0 || len(pkg.Funcs) == 0 {
		return false
	}
	v, ok := pkg.Info.Uses[id].(*types.Var)
	if !ok || len(pkg.Defs[v]) > 0 {
		return false
	}
	p, ok := pkg.Params[v]
	return ok && !slices.ContainsFunc(calls, func(call *ast.CallExpr) bool {
		for f := range pkg.Calls[call].In.In() {
			if f == p.Of {
				return false
			}
		}
		return true
	})
}

// justMade reports whether the tensor in x is newer than that in y: statements before the comparison,
// in the same list, have made a tensor for x, and nothing has assigned the variable y since.
func justMade(pkg *blocking.Package, x, y ast.Expr) bool {
	v, w := pkg.Local(x), pkg.Local(y)
	if v == nil || w == nil || len(pkg.Defs[v]) != 1 || pkg.Defs[v][0].Kind != blocking.DefValue {
		return false
	}
	made := pkg.Defs[v][0]
	if pkg.MadeBy(made.Value) == nil || syntax.IsIdent(made.Value) || made.In == nil {
		return false
	}
	cur, ok := pkg.Cursor(x.Pos())
	if !ok || pkg.FuncAt(cur) != made.In {
		return false
	}
	fl := made.In.Flow()
	if !fl.Dominates(fl.BlockAt(made.Pos), fl.BlockAt(x.Pos())) {
		return false
	}
	return !slices.ContainsFunc(pkg.Defs[w], func(d blocking.Def) bool {
		return d.In != made.In || d.Kind != blocking.DefValue || made.Pos <= d.Pos && d.Pos < x.Pos() || !sameLoop(pkg, made.In, made.Pos, x.Pos())
	})
}

// sameLoop reports whether two places of f are in the same loops.
func sameLoop(pkg *blocking.Package, f *blocking.Func, x, y token.Pos) bool {
	fl := f.Flow()
	return !slices.ContainsFunc(fl.Loops, func(l *blocking.Loop) bool { return l.Blocks[fl.BlockAt(x)] != l.Blocks[fl.BlockAt(y)] })
}
