package loopdata

import (
	"go/ast"
	"go/types"
	"slices"

	"github.com/asyncgen/asyncgen/analysis/blocking"
	"github.com/asyncgen/asyncgen/analysis/internal/syntax"
	"github.com/asyncgen/asyncgen/analysis/sites"
	"github.com/asyncgen/asyncgen/analysis/tensorapi"
)

// stepped returns the loop in whose iterations c's function is called, and c makes a tensor of the same list each time;
// or nil. The list is a field of the receiver or a variable of the package that is set once.
//
//	func (m *model) Forward(x *tensor.Tensor) *tensor.Tensor {
//		return m.net.Forward(x.Sub(tensor.From(m.mean)))
//	}
func stepped(pkg *blocking.Package, c *blocking.Call) *blocking.Loop {
	if c.Away || c.API.Kind != tensorapi.Host || c.Lib != tensorapi.Ours() || c.In.Lit != nil || sites.Innermost(pkg, c) != nil ||
		pkg.GuardOf(c.In, c.Expr.Pos(), nil) != blocking.Always || c.In.Outermost().Contains(blocking.TellsTime) {
		return nil
	}
	lists := false
	for _, e := range c.Expr.Args {
		if !isFixed(pkg, c.In, e) {
			return nil
		}
		lists = lists || syntax.ElementType(pkg.Info.TypeOf(e)) != nil && pkg.Variable(e) != nil
	}
	if !lists {
		return nil
	}
	return callingLoop(pkg, c.In, 0)
}

// solved returns the loop in whose iterations c's function is called, and c inverts, decomposes or sorts the same each
// time; or nil.
//
//	func (f *filter) gain(x *tensor.Tensor) *tensor.Tensor { return f.cov.Inverse().MatMul(x) }
func solved(pkg *blocking.Package, c *blocking.Call) *blocking.Loop {
	if c.Away || c.API.Kind != tensorapi.Op || c.Lib != tensorapi.Ours() || !isCostly(c) || c.IsFunc("Tensor.MatMul") || c.In.Lit != nil || sites.Innermost(pkg, c) != nil ||
		pkg.GuardOf(c.In, c.Expr.Pos(), nil) != blocking.Always || c.In.Outermost().Contains(blocking.TellsTime) {
		return nil
	}
	if l := callingLoop(pkg, c.In, 0); l != nil && sites.IsSteady(pkg, c.Expr, l) {
		return l
	}
	return nil
}

// isFixed reports whether e, in f, is the same in all calls of f: it consists of constants, and of fields of the
// receiver and variables of the package that are set once.
func isFixed(pkg *blocking.Package, f *blocking.Func, e ast.Expr) bool {
	fixed := true
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Ident:
			v, ok := pkg.Info.Uses[n].(*types.Var)
			fixed = fixed && (!ok || v == f.Sig.Recv() || (v.IsField() || v.Parent() == pkg.Pass.Pkg.Scope()) && sites.IsSetOnce(pkg, v.Origin()))
		case *ast.CallExpr:
			fixed = fixed && syntax.IsBuiltin(pkg.Info, n, "len")
		case *ast.IndexExpr, *ast.FuncLit:
			fixed = false
		}
		return fixed
	})
	return fixed
}

// callingLoop returns a loop that calls f in each iteration, always with the same receiver, by itself or by way of
// functions that do nothing but call f always. It returns nil if there is none. Depth bounds these functions.
func callingLoop(pkg *blocking.Package, f *blocking.Func, depth int) *blocking.Loop {
	for _, g := range pkg.Funcs {
		for _, d := range g.Calls {
			if d.Away || d.Target != f && !slices.Contains(d.Impls, f) {
				continue
			}
			recv := d.Operand(tensorapi.Recv)
			l := sites.Innermost(pkg, d)
			switch {
			case l == nil:
				if depth < 2 && g.Lit == nil && g != f && pkg.GuardOf(g, d.Expr.Pos(), nil) == blocking.Always {
					if l := callingLoop(pkg, g, depth+1); l != nil {
						return l
					}
				}
			case l.Stmt == nil || pkg.IsOuter(l, d) || pkg.GuardOf(g, d.Expr.Pos(), l) != blocking.Always || f.Sig.Recv() != nil && (len(recv) != 1 || !sites.IsSameHeader(pkg, recv[0], l)):
			default:
				return l
			}
		}
	}
	return nil
}
