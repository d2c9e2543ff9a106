package rebuilt

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"github.com/asyncgen/asyncgen/analysis/blocking"
	"github.com/asyncgen/asyncgen/analysis/internal/syntax"
	"github.com/asyncgen/asyncgen/analysis/sites"
	"github.com/asyncgen/asyncgen/analysis/tensorapi"
)

// anew returns a loop that calls c in each iteration, and what gets lost by that; or nil. The call c makes a loader or
// an optimiser of our library, and one is meant to last for the whole loop.
func anew(pkg *blocking.Package, c *blocking.Call) (l *blocking.Loop, lost string) {
	if c.Away || c.Lib != tensorapi.Ours() || c.API.Kind != tensorapi.Pure && c.API.Kind != tensorapi.Control {
		return nil, ""
	}
	switch {
	case c.Callee.Name() == "NewLoader" && shuffles(pkg, c):
		return lasts(pkg, c, goesOver), "gives the same order in each epoch, as the order depends on the seed and on how many epochs the loader has had"
	case blocking.IsOptimiser(pkg.Info.TypeOf(c.Expr)) && hasState(pkg, c):
		return lasts(pkg, c, steps), "begins anew in each step, without the moments of the steps before"
	}
	return nil, ""
}

// shuffles reports whether the options in c ask to shuffle.
func shuffles(pkg *blocking.Package, c *blocking.Call) bool {
	return len(c.Expr.Args) > 0 && slices.ContainsFunc(c.Expr.Args[1:], func(e ast.Expr) bool {
		lit, ok := ast.Unparen(pkg.OnlyValue(e)).(*ast.CompositeLit)
		return ok && slices.ContainsFunc(lit.Elts, func(e ast.Expr) bool {
			kv, ok := e.(*ast.KeyValueExpr)
			return ok && types.ExprString(kv.Key) == "Shuffle" && types.ExprString(kv.Value) == "true"
		})
	})
}

// hasState reports whether the optimiser that c makes remembers something of the steps before, as all do but plain
// gradient descent.
func hasState(pkg *blocking.Package, c *blocking.Call) bool {
	list := syntax.ElementType(pkg.Info.TypeOf(c.Expr.Args[0]))
	return list != nil && pkg.IsCell(list) && (c.Callee.Name() != "SGD" || len(c.Expr.Args) > 2)
}

// lasts returns the loop in which c makes the same in each iteration, and each iteration uses it once, for a model that
// outlives the iteration. The loop may call the function around c.
func lasts(pkg *blocking.Package, c *blocking.Call, uses func(pkg *blocking.Package, v *types.Var, f *blocking.Func, l *blocking.Loop) bool) *blocking.Loop {
	assign, ok := c.Value().Parent().Node().(*ast.AssignStmt)
	if !ok || len(assign.Lhs) != 1 || assign.Tok != token.DEFINE {
		return nil
	}
	v := pkg.Variable(assign.Lhs[0])
	if v == nil || len(pkg.Defs[v]) != 1 {
		return nil
	}
	if l := sites.Innermost(pkg, c); l != nil {
		if l.Stmt == nil || pkg.GuardOf(c.In, c.Expr.Pos(), l) != blocking.Always || varies(pkg, c.Expr, l) || !uses(pkg, v, c.In, l) || !trainsBeyond(pkg, c.In, l.Declares, l) {
			return nil
		}
		return l
	}
	f := c.In
	isOwn := func(v *types.Var) bool {
		return f.Body.Pos() <= v.Pos() && v.Pos() < f.Body.End()
	}
	if f.Lit != nil || pkg.GuardOf(f, c.Expr.Pos(), nil) != blocking.Always || mentionsAny(pkg, c.Expr, isOwn) || !uses(pkg, v, f, nil) || !trainsBeyond(pkg, f, isOwn, nil) {
		return nil
	}
	for _, d := range pkg.CallersOf(f) {
		l := sites.Innermost(pkg, d)
		if l == nil || l.Stmt == nil || d.Away || pkg.GuardOf(d.In, d.Expr.Pos(), l) != blocking.Always {
			continue
		}
		same := true
		for op := tensorapi.Recv; op < len(d.Expr.Args); op++ {
			p := f.Sig.Recv()
			if op >= 0 && op < f.Sig.Params().Len() {
				p = f.Sig.Params().At(op)
			}
			// A network or an optimiser of its own in each iteration, or an operand on which it depends.
			same = same && !slices.ContainsFunc(d.Operand(op), func(e ast.Expr) bool {
				basic, _ := pkg.Info.TypeOf(e).Underlying().(*types.Basic)
				return (pkg.Varies(e, l) || pkg.Calls[syntax.AsCall(e)] != nil) && (basic == nil && !blocking.IsTensor(pkg.Info.TypeOf(e)) || pkg.Mentions(c.Expr, p))
			})
		}
		if same {
			return l
		}
	}
	return nil
}

// goesOver reports whether l, or f outside of its loops, goes over the loader in v.
func goesOver(pkg *blocking.Package, v *types.Var, f *blocking.Func, l *blocking.Loop) bool {
	return slices.ContainsFunc(f.Calls, func(d *blocking.Call) bool {
		return d.Lib == tensorapi.Ours() && d.Callee != nil && strings.HasPrefix(d.Callee.Name(), "All") && isOf(pkg, d, v) && sites.Innermost(pkg, d) == l && (l == nil || pkg.Contains(l, f, d.Expr.Pos()))
	})
}

// steps reports whether l, or f outside of its loops, takes a step with the optimiser in v, and nobody else has it.
func steps(pkg *blocking.Package, v *types.Var, f *blocking.Func, l *blocking.Loop) bool {
	for use := range pkg.UsesOf(v, f) {
		if _, ok := use.Parent().Node().(*ast.SelectorExpr); !ok {
			return false
		}
	}
	return slices.ContainsFunc(f.Calls, func(d *blocking.Call) bool {
		return (d.IsFunc("Optimizer.Step") || d.IsFunc("Optimizer.Minimize")) && isOf(pkg, d, v) && sites.Innermost(pkg, d) == l
	})
}

// isOf reports whether the receiver of d is what v holds.
func isOf(pkg *blocking.Package, d *blocking.Call, v *types.Var) bool {
	recv := d.Operand(tensorapi.Recv)
	return len(recv) == 1 && pkg.Local(recv[0]) == v
}

// trainsBeyond reports whether l, or f if l is nil, takes a step of training for a network or with an optimiser that is
// no variable of its own.
func trainsBeyond(pkg *blocking.Package, f *blocking.Func, isOwn func(*types.Var) bool, l *blocking.Loop) bool {
	return slices.ContainsFunc(f.Calls, func(d *blocking.Call) bool {
		if l != nil && !pkg.Contains(l, f, d.Expr.Pos()) || !d.IsFunc("Optimizer.Step") && !d.IsFunc("Optimizer.Minimize") {
			return false
		}
		root, _ := pkg.RootOf(d.Operand(tensorapi.Recv)[0], 0)
		if root == nil {
			return false
		}
		if !isOwn(root) {
			return true
		}
		made := pkg.Calls[syntax.AsCall(pkg.OnlyValue(d.Operand(tensorapi.Recv)[0]))]
		return made != nil && len(made.Expr.Args) > 0 && !mentionsAny(pkg, made.Expr.Args[0], isOwn)
	})
}

// varies reports whether l assigns a variable or field that e mentions, other than as the key of a literal.
func varies(pkg *blocking.Package, e ast.Expr, l *blocking.Loop) bool {
	if lit, ok := ast.Unparen(e).(*ast.CompositeLit); ok {
		return slices.ContainsFunc(lit.Elts, func(elt ast.Expr) bool {
			if kv, ok := elt.(*ast.KeyValueExpr); ok {
				elt = kv.Value
			}
			return varies(pkg, elt, l)
		})
	}
	if call := syntax.AsCall(e); call != nil {
		return pkg.Varies(call.Fun, l) || slices.ContainsFunc(call.Args, func(e ast.Expr) bool { return varies(pkg, e, l) })
	}
	return pkg.Varies(e, l)
}

// mentionsAny reports whether e mentions a local variable with a property.
func mentionsAny(pkg *blocking.Package, e ast.Expr, has func(*types.Var) bool) bool {
	found := false
	ast.Inspect(e, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		if v, isVar := pkg.Info.Uses[id].(*types.Var); ok && isVar && !v.IsField() {
			found = found || has(v)
		}
		return !found
	})
	return found
}
