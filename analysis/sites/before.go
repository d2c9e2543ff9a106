package sites

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"

	"github.com/asyncgen/asyncgen/analysis/blocking"
	"github.com/asyncgen/asyncgen/analysis/internal/syntax"
	"github.com/asyncgen/asyncgen/analysis/tensorapi"
)

// What the host has waited for already.

// WaitedBefore reports whether the iteration of l has waited for the same tensor before c, or for one that is computed
// from it. Then c doesn't wait any more.
//
//	action := scores.ArgMax().ItemInt()
//	fmt.Println(scores) // WaitedBefore
func WaitedBefore(pkg *blocking.Package, c *blocking.Call, operand ast.Expr, l *blocking.Loop) bool {
	id, ok := ast.Unparen(syntax.OrNil(operand)).(*ast.Ident)
	if !ok {
		return false
	}
	v, ok := pkg.Info.Uses[id].(*types.Var)
	if !ok {
		return false
	}
	fl := c.In.Flow()
	here := fl.BlockAt(c.Expr.Pos())
	for _, d := range c.In.Calls {
		if d == c || d.Expr.Pos() >= c.Expr.Pos() || !pkg.Contains(l, d.In, d.Expr.Pos()) {
			continue
		}
		since := waitsFor(pkg, d, v, l)
		if !since.IsValid() || isSilentWait(pkg, d) {
			continue
		}
		if there := fl.BlockAt(d.Expr.Pos()); !fl.Dominates(there, here) || len(pkg.ShortCircuits(d.Expr.Pos())) > 0 {
			continue
		}
		assigned := slices.ContainsFunc(pkg.Defs[v], func(x blocking.Def) bool { return x.Pos > since && x.Pos < c.Expr.Pos() })
		if !assigned {
			return true
		}
	}
	return false
}

// isSilentWait reports whether d only waits and is no finding, like a wait in a loop that trains, which
// may be there to bound the queue. A read after it is the finding then.
func isSilentWait(pkg *blocking.Package, d *blocking.Call) bool {
	if d.API.Kind != tensorapi.Wait && d.API.Kind != tensorapi.WaitAll {
		return false
	}
	l, _ := Serialised(pkg, d)
	return l == nil || pkg.Any(l, (*blocking.Call).Mutates)
}

// waitsFor returns the place from which on the tensor in v is the one that d waits for, in whatever way, in an
// iteration of l: the end of d, or of what it waits for. If d doesn't wait for it, there is none.
func waitsFor(pkg *blocking.Package, d *blocking.Call, v *types.Var, l *blocking.Loop) token.Pos {
	var list []ast.Expr
	if d.API.Kind == tensorapi.Wait {
		list = d.Operand(d.API.Arg)
	}
	for _, w := range pkg.Waits(d) {
		if w.Operand != nil && (w.Via == nil || !w.Via.Guarded) {
			list = append(list, w.Operand)
		}
	}
	if d.API.Kind == tensorapi.WaitAll {
		return d.Expr.End()
	}
	for _, e := range list {
		if since := needs(pkg, e, v, l, 0); since.IsValid() {
			return since
		}
	}
	return token.NoPos
}

// needs returns the end of an expression that mentions v, if e is v or is computed from it by operations, in this
// iteration of l. Else it returns no place. Depth bounds the variables between.
func needs(pkg *blocking.Package, e ast.Expr, v *types.Var, l *blocking.Loop, depth int) token.Pos {
	if u := pkg.Local(e); u != nil {
		d := pkg.Defs[u]
		switch {
		case u == v:
			return e.End()
		case depth < 4 && len(d) == 1 && d[0].Kind == blocking.DefValue && l.Declares(u):
			return needs(pkg, d[0].Value, v, l, depth+1)
		}
		return token.NoPos
	}
	if c := pkg.Calls[syntax.AsCall(e)]; c != nil && c.Lib == tensorapi.Ours() && (c.API.Kind == tensorapi.Op || c.API.Kind == tensorapi.View) {
		for _, e := range c.AllOperands() {
			if since := needs(pkg, e, v, l, depth); since.IsValid() {
				return since
			}
		}
	}
	return token.NoPos
}
