package blocking

import (
	"go/ast"
	"go/types"
	"slices"
	"strings"

	"github.com/asyncgen/asyncgen/analysis/internal/syntax"
	"github.com/asyncgen/asyncgen/analysis/tensorapi"
)

// addHoards notes in the summaries of functions which operands they keep in fields of which only values are read:
// appended to a list (Hoards), or added up (Sums). Callers that pass a tensor with a history keep that as well.
//
//	func (m *meter) add(loss *tensor.Tensor) {
//		m.losses = append(m.losses, loss) // Hoards operand 0
//		m.sum = m.sum.Add(loss)           // Sums operand 0
//	}
func addHoards(pkg *Package) {
	for v, defs := range pkg.Defs {
		if !v.IsField() || v.Exported() || !IsTensors(v.Type()) {
			continue
		}
		for _, d := range defs {
			if d.Kind != DefValue || d.In == nil || d.In.Lit != nil {
				continue
			}
			if call := pkg.SelfAppend(v, d); call != nil {
				for _, e := range call.Args[1:] {
					if op, ok := asPassed(pkg, e, d.In); ok && pkg.FateOf(v, d.In) == 0 {
						d.In.Summary.Hoards |= op
					}
				}
			}
			c := pkg.Calls[syntax.AsCall(d.Value)]
			if c == nil || c.API.Kind != tensorapi.Op {
				continue
			}
			at := slices.IndexFunc(c.AllOperands(), func(e ast.Expr) bool { return pkg.Variable(pkg.Unscaled(e)) == v })
			for i, e := range c.AllOperands() {
				if op, ok := asPassed(pkg, e, d.In); ok && at >= 0 && i != at && !pkg.IsLoss(e, d.In) && pkg.FateOf(v, d.In) == 0 {
					d.In.Summary.Sums |= op
				}
			}
		}
	}
}

// asPassed returns the operand of f that e is, if e is still what the caller has passed: a parameter that is not
// assigned before e.
func asPassed(pkg *Package, e ast.Expr, f *Func) (Operands, bool) {
	v := pkg.Local(e)
	p, ok := pkg.Params[v]
	if v == nil || !ok || p.Of != f || !IsTensor(v.Type()) {
		return 0, false
	}
	assigned, _ := reaching(pkg, v, e.Pos(), f)
	return operands(p.Operand), len(assigned) == 0
}

// keepers says which of their operands functions put into lists, maps and other containers that outlive the call:
// fields and variables of the package.
func keepers(pkg *Package) map[*Func]Operands {
	keep := make(map[*Func]Operands)
	for v, defs := range pkg.Defs {
		if !v.IsField() && v.Parent() != pkg.Pass.Pkg.Scope() {
			continue
		}
		for _, d := range defs {
			if d.Kind != DefValue || d.In == nil {
				continue
			}
			parts := []ast.Expr{d.Value}
			if call := pkg.SelfAppend(v, d); call != nil {
				parts = call.Args[1:]
			} else if types.Identical(pkg.Info.TypeOf(d.Value), v.Type()) {
				continue
			}
			for _, e := range parts {
				if u := pkg.Local(e); u != nil && pkg.Params[u].Of == d.In {
					keep[d.In] |= operands(pkg.Params[u].Operand)
				}
			}
		}
	}
	return keep
}

// AllOperands lists the receiver, if there is one, and the arguments.
func (c *Call) AllOperands() []ast.Expr { return slices.Concat(c.Operand(tensorapi.Recv), c.Expr.Args) }

// IsLoss reports whether e is a parameter with a name such as loss or trainLoss, of an exported method that the
// package itself doesn't call. Others call it, with what they have differentiated.
func (pkg *Package) IsLoss(e ast.Expr, f *Func) bool {
	if _, ok := asPassed(pkg, e, f); !ok || f.Lit != nil || f.Sig.Recv() == nil || !ast.IsExported(f.Name) {
		return false
	}
	return len(pkg.callers()[f]) == 0 && strings.HasSuffix(strings.ToLower(pkg.Local(e).Name()), "loss")
}

// Unscaled returns what e is computed from with numbers alone: avg of avg.MulScalar(0.9).AddScalar(1).
func (pkg *Package) Unscaled(e ast.Expr) ast.Expr {
	for {
		c := pkg.Calls[syntax.AsCall(e)]
		if c == nil || c.API.Kind != tensorapi.Op || len(c.Expr.Args) == 0 || slices.ContainsFunc(c.Expr.Args, func(e ast.Expr) bool { return pkg.HoldsTensors(pkg.Info.TypeOf(e)) }) {
			return e
		}
		operand := c.Operand(tensorapi.Recv)
		if len(operand) != 1 {
			return e
		}
		e = operand[0]
	}
}
