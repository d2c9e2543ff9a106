package numbers

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"github.com/asyncgen/asyncgen/gen/internal/plan"
	"golang.org/x/tools/go/types/typeutil"
)

// rounding is that x, which is added to something, may be a product. The hint names all such operands of its
// expression.
func (r *locals) rounding(x ast.Expr) *misfit {
	var whole ast.Node = x
	for e, ok := r.f.Parent(whole).(ast.Expr); ok; e, ok = r.f.Parent(whole).(ast.Expr) {
		whole = e
	}
	round := []string{"float64(" + types.ExprString(x) + ")"}
	ast.Inspect(whole, func(n ast.Node) bool {
		b, ok := n.(*ast.BinaryExpr)
		if !ok || b.Op != token.ADD && b.Op != token.SUB {
			return true
		}
		for _, y := range []ast.Expr{b.X, b.Y} {
			if text := "float64(" + types.ExprString(y) + ")"; r.isProduct(y, make(map[*types.Var]bool)) && !slices.Contains(round, text) {
				round = append(round, text)
			}
		}
		return true
	})
	text := "adds the product " + types.ExprString(x)
	if b, ok := ast.Unparen(x).(*ast.BinaryExpr); !ok || b.Op != token.MUL {
		text = "adds " + types.ExprString(x) + ", which may be a product"
	}
	return &misfit{plan.OneRounding, x.Pos(), text + ", and Go rounds the product on some platforms and not on others",
		"round it everywhere: " + strings.Join(round, ", ")}
}

// isProduct reports whether e may be a product that has not been rounded when it is added to
// something: the language allows x*y+z to be rounded once, across statements, too, and
// compilers do so on arm64, and on amd64 with GOAMD64=v3. A conversion rounds.
// What is generated is for all platforms.
func (r *locals) isProduct(e ast.Expr, seen map[*types.Var]bool) bool {
	if tv := r.f.Info.Types[e]; tv.Value != nil || isIndex(tv.Type) {
		return false
	}
	switch e := ast.Unparen(e).(type) {
	case *ast.BinaryExpr:
		return e.Op == token.MUL
	case *ast.UnaryExpr:
		return r.isProduct(e.X, seen)
	case *ast.Ident:
		v, ok := r.f.Info.Uses[e].(*types.Var)
		if !ok || seen[v] {
			return false
		}
		seen[v] = true
		for _, d := range r.defs[v] {
			if d.op == token.MUL || d.op == token.ILLEGAL && d.value != nil && r.isProduct(d.value, seen) {
				return true
			}
		}
		return r.inner[v] || v.Parent() == r.f.Pkg.Types.Scope()
	case *ast.IndexExpr:
		if v, _ := element(r.f, e); v != nil && r.keepsElements(v) == nil {
			return r.holdsProduct(e, v, seen)
		}
		return storesFloats(r.f)
	case *ast.SelectorExpr, *ast.StarExpr:
		return storesFloats(r.f)
	case *ast.CallExpr:
		if r.f.Info.Types[e.Fun].IsType() {
			return false
		}
		if _, _, ok := function(r.f, e); ok {
			return false
		}
		if fn, ok := typeutil.Callee(r.f.Info, e).(*types.Func); ok && (fn.FullName() == "math.Inf" || fn.FullName() == "math.NaN") {
			return false
		}
		_, _, library := r.f.Library(e)
		return !library // a function of the program may be expanded in its place
	}
	return false
}

// holdsProduct is isProduct for e, an element of v. keepsElements knows all that is stored in v.
func (r *locals) holdsProduct(e ast.Expr, v *types.Var, seen map[*types.Var]bool) bool {
	if seen[v] {
		return true // as far as is known at another place
	}
	seen[v] = true
	defer delete(seen, v)
	for _, d := range r.stores[v] {
		if (d.value == nil || d.op == token.MUL || d.op == token.ILLEGAL && r.isProduct(d.value, seen)) && !r.isBehind(e, v, d) {
			return true
		}
	}
	return slices.ContainsFunc(r.defs[v], func(d definition) bool {
		return slices.ContainsFunc(appended(r.f, d.value), func(x ast.Expr) bool { return r.isProduct(x, seen) && !r.isBehind(e, v, d) })
	})
}

func (r *locals) isProductVariable(v *types.Var) bool {
	return slices.ContainsFunc(r.defs[v], func(d definition) bool {
		return isFloat64(v.Type()) && (d.op == token.MUL || d.op == token.ILLEGAL && d.value != nil && r.isProduct(d.value, make(map[*types.Var]bool)))
	})
}

// isMerged reports whether the use id of v, which is a product, is behind loops in which v has
// become one, if they had an iteration, and else is what it was before: no compiler has a product
// there to round together with a sum.
func (r *locals) isMerged(id *ast.Ident, v *types.Var) bool {
	for _, d := range r.defs[v] {
		if d.op != token.MUL && (d.op != token.ILLEGAL || d.value == nil || !r.isProduct(d.value, make(map[*types.Var]bool))) {
			continue
		}
		if !r.isBehind(id, v, d) {
			return false
		}
	}
	return true
}

// isBehind reports whether d sets e in a loop, and e, which is v or an element of it, is asked for behind that loop.
// The loop may have had no iteration, or others since.
func (r *locals) isBehind(e ast.Expr, v *types.Var, d definition) bool {
	return slices.ContainsFunc(r.f.LoopsAround(d.stmt), func(loop ast.Node) bool {
		n, isFor := loop.(*ast.ForStmt)
		return v.Pos() < loop.Pos() && loop.End() <= e.Pos() && (!isFor || n.Cond != nil)
	})
}

// storesFloats reports whether the function stores a float64 in memory, from where it may be
// taken again before it is rounded.
func storesFloats(f *plan.Function) (found bool) {
	ast.Inspect(f.Decl.Body, func(n ast.Node) bool {
		if a, ok := n.(*ast.AssignStmt); ok {
			for _, lhs := range a.Lhs {
				_, isName := ast.Unparen(lhs).(*ast.Ident)
				found = found || !isName && isFloat64(f.Info.TypeOf(lhs))
			}
		}
		return !found
	})
	return found
}

// keepsRounding reports whether the use id of a product can't end up in a sum, as an operand
// that is not rounded.
func keepsRounding(f *plan.Function, id *ast.Ident) bool {
	var n ast.Node = id
	for {
		switch p := f.Parent(n).(type) {
		case *ast.ParenExpr:
			n = p
		case *ast.UnaryExpr:
			n = p
		case *ast.BinaryExpr:
			return p.Op != token.ADD && p.Op != token.SUB
		case *ast.CallExpr:
			if f.Info.Types[p.Fun].IsType() {
				return true
			}
			_, _, library := f.Library(p)
			_, _, number := function(f, p)
			return library || number || f.IsStandard(p)
		default:
			return false
		}
	}
}
