package blocking

import (
	"go/ast"
	"go/types"
	"slices"
	"strings"

	"github.com/asyncgen/asyncgen/analysis/internal/syntax"
	"github.com/asyncgen/asyncgen/analysis/tensorapi"
)

// Which functions keep what they are given. A caller that passes a loss with a history to such a
// function keeps the history, though its own code shows nothing of it:
//
//	m.add(loss) // add appends it to m.losses
//
// Three facts travel to callers. Keeps: the operand ends up in a container that outlives the call.
// Hoards and Sums: it ends up in a field, and only values are read from that field. A number or a
// detached tensor would do as well.

// addHoards notes in the summaries which operands a function appends to a list in a field (Hoards), or
// adds to a field (Sums), if only values are read from the field. Callers that pass a tensor with a
// history keep it as well.
//
//	func (m *meter) add(loss *tensor.Tensor) {
//		m.losses = append(m.losses, loss) // Hoards operand 0
//		m.sum = m.sum.Add(loss)           // Sums operand 0
//	}
//
// It runs after summarize, since FateOf asks what other functions do with the field. Nothing that
// summarize computes depends on it.
func addHoards(pkg *Package) {
	for v, defs := range pkg.Defs {
		if !v.IsField() || v.Exported() || !IsTensors(v.Type()) {
			continue
		}
		for _, d := range defs {
			if d.Kind != DefValue || d.In == nil || d.In.Lit != nil {
				continue
			}
			if call := pkg.SelfAppend(v, d); call != nil && !pkg.DropsFirst(v) {
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
			// m.sum is one of the operands, perhaps scaled: then d adds to it.
			at := slices.IndexFunc(c.AllOperands(), func(e ast.Expr) bool { return pkg.Variable(pkg.Unscaled(e)) == v })
			for i, e := range c.AllOperands() {
				if op, ok := asPassed(pkg, e, d.In); ok && at >= 0 && i != at && !pkg.IsLoss(e, d.In) && pkg.FateOf(v, d.In) == 0 {
					d.In.Summary.Sums |= op
				}
			}
		}
	}
}

// asPassed returns the operand of f that e is, if e still has the value which the caller has passed: no
// assignment to the parameter reaches e.
func asPassed(pkg *Package, e ast.Expr, f *Func) (Operands, bool) {
	v := pkg.Local(e)
	p, ok := pkg.Params[v]
	if v == nil || !ok || p.Of != f || !IsTensor(v.Type()) {
		return 0, false
	}
	assigned, _ := reaching(pkg, v, e.Pos(), f)
	return operands(p.Operand), len(assigned) == 0
}

// keepers says which operands a function puts into lists, maps and other containers that outlive the
// call: fields and variables of the package, and receivers that are lists or maps. An assignment of a
// whole field, m.last = loss, keeps only the last one and doesn't count.
//
//	func (l *losses) add(loss *tensor.Tensor) { *l = append(*l, loss) } // keeps operand 0
func keepers(pkg *Package) map[*Func]Operands {
	keep := make(map[*Func]Operands)
	for v, defs := range pkg.Defs {
		isReceiver := isCollected(v.Type()) && pkg.Params[v].Of != nil && pkg.Params[v].Operand == tensorapi.Recv
		if !v.IsField() && v.Parent() != pkg.Pass.Pkg.Scope() && !isReceiver {
			continue
		}
		for _, d := range defs {
			if d.Kind != DefValue || d.In == nil {
				continue
			}
			if types.Identical(pkg.Info.TypeOf(d.Value), v.Type()) && (isReceiver || pkg.SelfAppend(v, d) == nil) {
				continue // all of it is replaced
			}
			parts := []ast.Expr{d.Value}
			if call := syntax.AsCall(d.Value); call != nil && syntax.IsBuiltin(pkg.Info, call, "append") {
				parts = call.Args[1:]
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

// isCollected reports whether t is a list or map with a name, or a pointer to one: the receiver of a method that keeps
// things there.
func isCollected(t types.Type) bool {
	if p, ok := t.(*types.Pointer); ok {
		t = p.Elem()
	}
	_, isNamed := types.Unalias(t).(*types.Named)
	return isNamed && syntax.ElementType(t) != nil
}

// addKept notes in stores what methods of lists and maps keep there: l.add(loss) stores loss in l.
func addKept(pkg *Package) {
	for _, f := range pkg.Funcs {
		for _, c := range f.Calls {
			recv := c.Operand(tensorapi.Recv)
			if c.Callee == nil || c.Callee.Signature().Recv() == nil || len(recv) != 1 || !isCollected(c.Callee.Signature().Recv().Type()) {
				continue
			}
			keeps := pkg.keeps[c.Target]
			if c.summary != nil {
				keeps = c.summary.Keeps
			}
			for i, e := range c.Expr.Args {
				if v := pkg.Variable(recv[0]); v != nil && keeps.Has(i) {
					pkg.stores[v] = append(pkg.stores[v], Def{In: f, Value: e, Pos: e.Pos()})
				}
			}
		}
	}
}

// AllOperands lists the receiver, if there is one, and the arguments.
func (c *Call) AllOperands() []ast.Expr { return slices.Concat(c.Operand(tensorapi.Recv), c.Expr.Args) }

// IsLoss reports whether e is a parameter, named like loss or trainLoss, of an exported method that the
// package itself doesn't call. Others call it, presumably with a loss that they have differentiated.
func (pkg *Package) IsLoss(e ast.Expr, f *Func) bool {
	if _, ok := asPassed(pkg, e, f); !ok || f.Lit != nil || f.Sig.Recv() == nil || !ast.IsExported(f.Name) {
		return false
	}
	return len(pkg.callers()[f]) == 0 && strings.HasSuffix(strings.ToLower(pkg.Local(e).Name()), "loss")
}

// Unscaled returns what e is computed from with numbers alone: avg for avg.MulScalar(0.9).AddScalar(1).
// A moving average is then recognised as a sum like any other:
//
//	m.avg = m.avg.MulScalar(0.9).Add(loss) // adds loss to m.avg
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

// cutsHistories reports whether c calls a method of an interface, and no result of a method that it may lead to has a
// history, whatever it is given: a sampler that returns the places of the largest.
func (c *Call) cutsHistories() bool {
	return c.Callee != nil && len(c.Impls) > 0 && !slices.ContainsFunc(c.Impls, func(f *Func) bool { return f.Summary.Histories != nil })
}
