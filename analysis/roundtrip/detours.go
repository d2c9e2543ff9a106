package roundtrip

import (
	"go/ast"
	"go/types"
	"slices"

	"github.com/asyncgen/asyncgen/analysis/blocking"
	"github.com/asyncgen/asyncgen/analysis/internal/syntax"
	"github.com/asyncgen/asyncgen/analysis/sites"
	"github.com/asyncgen/asyncgen/analysis/tensorapi"
)

// A detour brings back what has been computed elsewhere of a tensor that was there before.
type detour struct {
	call *blocking.Call
	of   ast.Expr // the tensor
}

// detours lists the detours in loops, and in functions that are given tensors, which callers take to be fast. The
// copies are enqueued, and no host waits for them, but each device waits for the other.
//
//	return x.To(device.CPU()).MulScalar(255).Round().To(x.Device())
func detours(pkg *blocking.Package) (list []detour) {
	for _, f := range pkg.Funcs {
		for _, c := range f.Calls {
			if c.Away || !isMove(c) || pkg.GuardOf(f, c.Expr.Pos(), nil) == blocking.Rarely || sites.Innermost(pkg, c) == nil && !isGivenTensors(pkg, f) {
				continue
			}
			if of := origin(pkg, c); of != nil {
				list = append(list, detour{c, of})
			}
		}
	}
	return list
}

// isMove recognises calls of Tensor.To.
func isMove(c *blocking.Call) bool { return c.Lib == tensorapi.Ours() && c.IsFunc("Tensor.To") }

// isGivenTensors reports whether a parameter or the receiver of f holds tensors.
func isGivenTensors(pkg *blocking.Package, f *blocking.Func) bool {
	if r := f.Sig.Recv(); r != nil && pkg.HoldsTensors(r.Type()) {
		return true
	}
	return slices.ContainsFunc(slices.Collect(f.Sig.Params().Variables()), func(v *types.Var) bool { return pkg.HoldsTensors(v.Type()) })
}

// origin returns the tensor x of a detour such as x.To(cpu).Abs().To(x.Device()), where c is the last move. It returns
// nil if c ends no detour. The steps in between may be in variables.
func origin(pkg *blocking.Package, c *blocking.Call) ast.Expr {
	home := pkg.Calls[syntax.AsCall(pkg.OnlyValue(c.Expr.Args[0]))]
	if home == nil || !home.IsFunc("Tensor.Device") {
		return nil
	}
	e := c.Operand(tensorapi.Recv)[0]
	for range 20 {
		d := pkg.Calls[syntax.AsCall(firstValue(pkg, e))]
		if d == nil || d.Lib != tensorapi.Ours() || d.API.Kind != tensorapi.Op && d.API.Kind != tensorapi.View || len(d.Operand(tensorapi.Recv)) != 1 {
			return nil
		}
		e = d.Operand(tensorapi.Recv)[0]
		if isMove(d) {
			if types.ExprString(home.Operand(tensorapi.Recv)[0]) != types.ExprString(e) {
				return nil
			}
			return e
		}
	}
	return nil
}

// firstValue returns the value of a local variable that is assigned once, or otherwise only what is computed from it;
// and e itself if it is something else.
//
//	h := x.To(device.CPU()) // the first value of h
//	h = h.Round()
func firstValue(pkg *blocking.Package, e ast.Expr) ast.Expr {
	v := pkg.Local(e)
	if v == nil || pkg.Params[v].Of != nil {
		return e
	}
	var first ast.Expr
	for _, d := range pkg.Defs[v] {
		switch {
		case d.Kind != blocking.DefValue || d.Index != 0:
			return e
		case d.Value != nil && pkg.Mentions(d.Value, v):
		case first != nil || d.Value == nil:
			return e
		default:
			first = d.Value
		}
	}
	if first == nil {
		return e
	}
	return first
}
