package rowwise

import (
	_ "embed"
	"go/ast"
	"go/types"
	"slices"
	"strings"

	"github.com/asyncgen/asyncgen/analysis/blocking"
	"github.com/asyncgen/asyncgen/analysis/internal/syntax"
	"github.com/asyncgen/asyncgen/analysis/lint"
	"github.com/asyncgen/asyncgen/analysis/sites"
	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"golang.org/x/tools/go/analysis"
)

//go:embed doc.go
var doc string

// Analyzer is rule AT037.
var Analyzer = rule.Analyzer()

var rule = &lint.Rule{ID: "AT037", Package: "rowwise", Doc: doc, Values: true, Check: check}

func check(p *lint.Pass) {
	reported := make(map[*blocking.Loop]bool)
	for _, f := range p.Funcs {
		for _, c := range f.Calls {
			if !takesBatch(c) {
				continue
			}
			l := sites.Innermost(p.Package, c)
			if l == nil || l.Stmt == nil || reported[l] {
				continue
			}
			row := rowIn(p.Package, c, l)
			if row == nil || !isIndependent(p.Package, c, l) {
				continue
			}
			reported[l] = true
			p.Report(lint.Warning, analysis.Diagnostic{
				Pos:     c.Expr.Pos(),
				End:     c.Expr.End(),
				Message: blocking.CalleeName(c) + " takes one row of " + types.ExprString(row) + " in each iteration; give it all rows in one call",
				Related: l.Related(),
			})
		}
	}
}

// takesBatch reports whether c does for a batch, in one call, what it does for one sample.
func takesBatch(c *blocking.Call) bool {
	if c.Away || c.Lib != tensorapi.Ours() {
		return false
	}
	if blocking.IsForward(c) || strings.HasSuffix(c.API.Name, "/tensor.Grad") {
		return true
	}
	return slices.ContainsFunc([]string{"Solve", "SolveTriangular", "SolveCholesky", "Inverse", "Cholesky", "Det", "LogDet", "QR", "SVD", "Eigh"}, func(name string) bool {
		return c.IsFunc("Tensor." + name)
	})
}

// rowIn returns the tensor whose rows c computes with, one in each iteration of l, or nil. The row may be in a variable
// of the iteration.
func rowIn(pkg *blocking.Package, c *blocking.Call, l *blocking.Loop) (of ast.Expr) {
	seen := make(map[*types.Var]bool)
	var visit func(e ast.Expr)
	visit = func(e ast.Expr) {
		ast.Inspect(e, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				switch d := pkg.Calls[n]; {
				case d == nil:
				case isRow(pkg, d, l):
					of = d.Operand(tensorapi.Recv)[0]
				case putsInto(d):
					return false
				}
			case *ast.Ident:
				if whole := sites.PartedBy(pkg, n, l, "Unbind"); whole != nil {
					of = whole
				} else if v := pkg.Local(n); v != nil && !seen[v] && l.Declares(v) {
					seen[v] = true
					for _, d := range pkg.Defs[v] {
						if d.Kind == blocking.DefValue {
							visit(d.Value)
						}
					}
				}
			}
			return of == nil
		})
	}
	for _, e := range c.AllOperands() {
		visit(e)
	}
	return of
}

// isRow reports whether c is a view of one row, another one in each iteration of l, of a tensor that l doesn't change:
// x.Row(i), x.Slice(0, i, i+1).
func isRow(pkg *blocking.Package, c *blocking.Call, l *blocking.Loop) bool {
	if pkg.Varies(operand(c), l) {
		return false
	}
	switch args := c.Expr.Args; {
	case c.IsFunc("Tensor.Row"):
		return counts(pkg, args[0], l)
	case c.IsFunc("Tensor.Index"):
		at := pkg.Calls[syntax.AsCall(args[0])]
		return len(args) == 1 && at != nil && strings.HasSuffix(at.API.Name, "/tensor.At") && counts(pkg, at.Expr.Args[0], l)
	case c.IsFunc("Tensor.Slice"):
		return len(args) == 3 && counts(pkg, args[1], l) && strings.ReplaceAll(types.ExprString(args[2]), " ", "") == types.ExprString(args[1])+"+1"
	}
	return false
}

// putsInto reports whether c puts something into a copy of its receiver, as x.SetIndex(row, at) and x.ScatterAdd do:
// the result is more than a row then.
func putsInto(c *blocking.Call) bool {
	return c.Callee != nil && c.API.Kind == tensorapi.Op && (strings.HasPrefix(c.Callee.Name(), "Set") || strings.HasPrefix(c.Callee.Name(), "Scatter"))
}

// operand returns the receiver of c, or something that is no expression of any kind.
func operand(c *blocking.Call) ast.Expr {
	if recv := c.Operand(tensorapi.Recv); len(recv) == 1 {
		return recv[0]
	}
	return syntax.OrNil(nil)
}

// counts reports whether e counts the iterations of l.
func counts(pkg *blocking.Package, e ast.Expr, l *blocking.Loop) bool {
	counted, ok := sites.CountsIn(pkg, e, l, 0)
	return ok && counted
}

// isIndependent reports whether all iterations of l could run at once: none needs what another one has computed, none
// trains, and none waits.
func isIndependent(pkg *blocking.Package, c *blocking.Call, l *blocking.Loop) bool {
	if pkg.GuardOf(c.In, c.Expr.Pos(), l) != blocking.Always || pkg.IsOuter(l, c) || pkg.Any(l, func(d *blocking.Call) bool { return d.Mutates() || d.Waits() || sites.IsOutside(d) }) {
		return false
	}
	carried := false
	for v, defs := range pkg.Defs {
		if !blocking.IsTensor(v.Type()) || l.Declares(v) || !slices.ContainsFunc(defs, func(d blocking.Def) bool { return pkg.Contains(l, d.In, d.Pos) }) {
			continue
		}
		carried = carried || dependsOn(pkg, c.Expr, v, l, make(map[*types.Var]bool))
	}
	return !carried
}

// dependsOn reports whether e mentions v, itself or by way of variables of the iteration.
func dependsOn(pkg *blocking.Package, e ast.Expr, v *types.Var, l *blocking.Loop, seen map[*types.Var]bool) bool {
	found := false
	ast.Inspect(e, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		if !ok || found {
			return !found
		}
		u, _ := pkg.Info.Uses[id].(*types.Var)
		if u == nil || seen[u] {
			return true
		}
		seen[u] = true
		found = u == v || l.Declares(u) && slices.ContainsFunc(pkg.Defs[u], func(d blocking.Def) bool { return d.Value != nil && dependsOn(pkg, d.Value, v, l, seen) })
		return !found
	})
	return found
}
