package sites

import (
	"go/ast"
	"go/types"
	"regexp"
	"slices"

	"github.com/asyncgen/asyncgen/analysis/blocking"
	"github.com/asyncgen/asyncgen/analysis/tensorapi"
)

// What a function itself says of how often it is called, when its callers are elsewhere: by its comment, or by what it
// does with a value.

// oftenSaid matches comments that say that a function is called in each step.
var oftenSaid = regexp.MustCompile(`(?i)\b(called|asked|runs?|invoked|used)\s[^.;]{0,40}?\b(each|every|per)\s+(training\s+|mini-?)?(step|batch|iteration|token)\b`)

// saysOften reports whether the comment of f, a declared function, says that it is called in each step.
//
//	// Apply implements Transform; it is called for each batch.
func saysOften(f *blocking.Func) bool {
	decl, ok := f.Cur.Node().(*ast.FuncDecl)
	return ok && decl.Doc != nil && oftenSaid.MatchString(decl.Doc.Text())
}

// waitSaid matches comments that say that a function waits.
var waitSaid = regexp.MustCompile(`(?i)\b(it|which|and|that) (waits|blocks)\b`)

// saysWaits reports whether the comment of f, a declared function, says that it waits. Who calls it in a loop knows, or
// is told by the rule about such calls.
func saysWaits(f *blocking.Func) bool {
	decl, ok := f.Cur.Node().(*ast.FuncDecl)
	return ok && decl.Doc != nil && waitSaid.MatchString(decl.Doc.Text())
}

// setsRate reports whether f is given a tensor and sets the rate of an optimiser to a number that it reads from one. A
// rate that depends on a single loss or norm is one for a step, whoever calls f.
//
//	func(norm *tensor.Tensor) { opt.SetRate(base / (1 + norm.Item())) }
func setsRate(pkg *blocking.Package, f *blocking.Func) bool {
	takes := slices.ContainsFunc(slices.Collect(f.Sig.Params().Variables()), func(v *types.Var) bool { return blocking.IsTensor(v.Type()) })
	return takes && slices.ContainsFunc(f.Calls, func(c *blocking.Call) bool {
		return c.IsFunc("Optimizer.SetRate") && len(c.Expr.Args) == 1 && mentionsRead(pkg, c.Expr.Args[0])
	})
}

// mentionsRead reports whether e has a call that reads a tensor.
func mentionsRead(pkg *blocking.Package, e ast.Expr) bool {
	found := false
	ast.Inspect(e, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		c := pkg.Calls[call]
		found = found || ok && c != nil && c.API.Kind == tensorapi.Read
		return !found
	})
	return found
}

// computesWith reports whether the loop that calls f through an interface or a variable, at the place of l, makes
// tensors of what f returns. Then it is f that should have returned a tensor.
//
//	total = total.Add(loss.MulScalar(w.Weight(loss)))
func computesWith(pkg *blocking.Package, l *blocking.Loop) bool {
	for _, f := range pkg.Funcs {
		for _, d := range f.Calls {
			if around := Innermost(pkg, d); d.Dynamic && d.Expr.Pos() == l.Pos && around != nil {
				return slices.ContainsFunc(Uses(pkg, d, around), func(p Place) bool { return p.Use == Computes })
			}
		}
	}
	return false
}
