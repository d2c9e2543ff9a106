package blocking

import (
	"go/ast"
	"go/types"
	"slices"

	"github.com/asyncgen/asyncgen/analysis/tensorapi"
)

// Which calls build something that one could keep: an operation that is fused, a graph that is
// compiled. To build it anew in each iteration costs far more than to use it. A rule may say so only if
// the result is the same each time, so the questions here are what it is built of, and whether that can
// change.
//
//	for _, x := range xs {
//		square := tensor.Fuse("square", 1, body) // built of a constant and body: settled
//		y = square(x)
//	}

// Plans lists the operands of c that say what it builds. For a library's function these are the
// receiver and the fixed parameters; the variadic ones are what the result is used on. For a user's
// function they are what it passes on to such a function, as its summary says.
//
//	square := tensor.Fuse("square", 1, func(x ...*kernel.Expr) *kernel.Expr { return x[0].Mul(x[0]) })
func (c *Call) Plans() []ast.Expr {
	var list []ast.Expr
	if c.Summary().Builds {
		for op := tensorapi.Recv; op < 31; op++ {
			if c.Summary().BuiltOf.Has(op) {
				list = append(list, c.Operand(op)...)
			}
		}
		return list
	}
	if !Libraries().Rebuilds(c.Callee) {
		return nil
	}
	sig := c.Callee.Signature()
	n := sig.Params().Len()
	if sig.Variadic() {
		n--
	}
	if sig.Recv() != nil {
		list = append(list, c.Operand(tensorapi.Recv)...)
	}
	return append(list, c.Expr.Args[:min(n, len(c.Expr.Args))]...)
}

// builtOf says from which operands of f the call c builds something. The call is in g, a part of f. ok
// is false if a call of f may build nothing, as when it fills a cache, or may build something else each
// time.
func builtOf(pkg *Package, f, g *Func, c *Call) (of Operands, ok bool) {
	if c.Away || !Libraries().Rebuilds(c.Callee) && !c.Summary().Builds {
		return 0, false
	}
	pos := c.Expr.Pos()
	fl := g.Flow()
	if fl.BlockAt(pos) < 0 || g != f && g.Runs() != Once {
		return 0, false
	}
	for _, cond := range append(pkg.ShortCircuits(pos), fl.Conditions(fl.BlockAt(pos))...) {
		if cond.Expr == nil || !pkg.IsFailure(cond.Expr, !cond.Holds) {
			return 0, false // it may fill a cache
		}
	}
	// made reports whether e depends on nothing but operands of f and settled variables. It notes the
	// operands in of.
	seen := make(map[*types.Var]bool)
	var made func(e ast.Expr) bool
	made = func(e ast.Expr) bool {
		settled := IsSettledExpr(e)
		ast.Inspect(e, func(n ast.Node) bool {
			id, ok := n.(*ast.Ident)
			if !ok || !settled {
				return settled
			}
			v, ok := pkg.Info.Uses[id].(*types.Var)
			if !ok || v.IsField() || seen[v] || e.Pos() <= v.Pos() && v.Pos() < e.End() {
				return true
			}
			seen[v] = true
			p, isParam := pkg.Params[v]
			switch {
			// An operand of f: for the callers to say.
			case isParam && p.Of == f && len(pkg.Defs[v]) == 0:
				of |= operands(p.Operand)
			// A parameter of a literal, or one that f assigns.
			case isParam:
				settled = false
			// A variable of the package, set once if at all.
			case v.Parent() == pkg.Pass.Pkg.Scope() || v.Pkg() != pkg.Pass.Pkg:
				settled = len(pkg.Defs[v]) <= 1
			default:
				for _, d := range pkg.Defs[v] {
					settled = settled && d.Kind == DefValue && made(d.Value)
				}
			}
			return settled
		})
		return settled
	}
	return of, !slices.ContainsFunc(c.Plans(), func(e ast.Expr) bool { return !made(e) })
}

// IsSettledExpr reports whether e calls nothing and receives nothing, outside the literals in it: it has the same
// value as long as its variables do.
func IsSettledExpr(e ast.Expr) bool {
	settled := true
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.CallExpr:
			settled = false
		case *ast.UnaryExpr:
			settled = settled && n.Op.String() != "<-"
		}
		return settled
	})
	return settled
}
