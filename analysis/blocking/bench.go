package blocking

import (
	"go/ast"
	"go/types"
	"slices"

	"github.com/asyncgen/asyncgen/analysis/internal/syntax"
)

// The loops of benchmarks. The number of their iterations is the benchmark's choice, and what happens
// in them is measured: a wait in each iteration may be on purpose, and one that is missing falsifies
// the result. Rules therefore have to know these loops, and where the clock stops.

// IsMeasured reports whether l is the loop of a benchmark (ok), and whether the clock of the benchmark
// stops at the end of the loop (stops), as that of b.Loop does. The *testing.B may be a parameter of
// any function around l, since loops in literals for b.Run or b.RunParallel count as well.
func (pkg *Package) IsMeasured(l *Loop) (stops, ok bool) {
	for f := range l.Func.In() {
		if b := f.Benchmark(); b != nil {
			return l.Func.IsBenchLoop(l, b)
		}
	}
	return false, false
}

// IsBenchLoop recognises the loops of benchmarks (ok) and says whether their end stops the clock (stops). A variable
// may stand for b.N. The loops are
//
//	for range b.N {}
//	for i := 0; i < b.N; i++ {}
//	for n := b.N; n > 0; n-- {}
//	for b.Loop() {} // stops
//	for pb.Next() {}
func (f *Func) IsBenchLoop(l *Loop, b *types.Var) (stops, ok bool) {
	var over ast.Expr
	switch s := l.Stmt.(type) {
	case *ast.RangeStmt:
		over = s.X
	case *ast.ForStmt:
		over = s.Cond
	}
	if over == nil {
		return false, false
	}
	ast.Inspect(over, func(n ast.Node) bool {
		if id, isID := n.(*ast.Ident); isID {
			v := f.Package.Local(id)
			ok = ok || v != nil && slices.ContainsFunc(f.Package.Defs[v], func(d Def) bool { return d.Kind == DefValue && isRounds(f.Package, d.Value, b) })
			return !ok
		}
		sel, isSel := n.(*ast.SelectorExpr)
		if !isSel {
			return true
		}
		if id, isID := sel.X.(*ast.Ident); isID && f.Package.Info.Uses[id] == b {
			stops = sel.Sel.Name == "Loop"
			ok = stops || sel.Sel.Name == "N"
		}
		ok = ok || sel.Sel.Name == "Next" && syntax.IsTesting(f.Package.Info.TypeOf(sel.X), "PB")
		return !ok
	})
	return stops, ok
}

// isRounds recognises b.N, and (b.N), of the given b.
func isRounds(pkg *Package, e ast.Expr, b *types.Var) bool {
	sel, ok := ast.Unparen(e).(*ast.SelectorExpr)
	return ok && sel.Sel.Name == "N" && b != nil && pkg.Local(sel.X) == b
}
