package history

import (
	"go/ast"
	"go/types"
	"slices"

	"github.com/asyncgen/asyncgen/analysis/blocking"
	"github.com/asyncgen/asyncgen/analysis/internal/syntax"
	"github.com/asyncgen/asyncgen/analysis/tensorapi"
)

// rewound lists the assignments that hand a state, with its history, from one step of training to the next. Each step
// differentiates what it computes from the state. So it goes back through all steps before, and these have released
// their histories.
//
//	scores, next := net.run(x, state)
//	opt.Minimize(loss(scores, y))
//	state = next
//
// The state is a tensor or a struct of tensors, in a variable or a field. What found has is left out.
func rewound(pkg *blocking.Package, found []keeping) (list []keeping) {
	for _, v := range variables(pkg) {
		defs := pkg.Defs[v]
		if !blocking.IsState(v.Type()) || pkg.Params[v].Of != nil && len(defs) == 0 {
			continue
		}
		for _, d := range defs {
			if d.Kind != blocking.DefValue || d.In == nil || slices.ContainsFunc(found, func(k keeping) bool { return k.Pos <= d.Pos && d.Pos < k.End }) {
				continue
			}
			if !dependsOn(pkg, d.Value, v, make(map[*types.Var]bool)) {
				continue
			}
			if l := stepsOver(pkg, v, d); l != nil && computesHistory(pkg, v, d) && !pkg.IsGivenHistory(d.Value, d.In) && !detaches(pkg, v) {
				list = append(list, keeping{rewinding, d.Pos, d.Value.End(), v.Name(), d.Value, l, false})
			}
		}
	}
	return list
}

// detaches reports whether the package detaches what is in v, or what it assigns to v, somewhere.
func detaches(pkg *blocking.Package, v *types.Var) bool {
	of := map[types.Object]bool{v: true}
	for _, d := range pkg.Defs[v] {
		if u := pkg.Local(syntax.OrNil(d.Value)); u != nil && pkg.Params[u].Of == nil {
			of[u] = true
		}
	}
	isOf := func(e ast.Expr) bool {
		u, _ := pkg.RootOf(e, 0)
		return u != nil && of[u] || pkg.Variable(e) == v
	}
	for _, f := range pkg.Funcs {
		for _, c := range f.Calls {
			if !isCut(c) && (c.Target == nil || !c.Target.Contains(isCut)) {
				continue
			}
			switch n := c.Value().Parent().Node().(type) {
			case *ast.AssignStmt:
				if slices.ContainsFunc(n.Lhs, isOf) {
					return true
				}
			case *ast.ExprStmt:
				if slices.ContainsFunc(c.AllOperands(), isOf) {
					return true
				}
			}
		}
	}
	return false
}

// isCut recognises the calls after which a tensor has no history of before.
func isCut(c *blocking.Call) bool { return c.IsFunc("Tensor.Detach") || c.IsFunc("Tensor.Track") }

// stepsOver returns the loop around d in which each iteration differentiates what it has computed from v, or the body
// of a method if v is a field; else nil. That loop assigns nothing else to v.
func stepsOver(pkg *blocking.Package, v *types.Var, d blocking.Def) *blocking.Loop {
	var l *blocking.Loop
	for m := range pkg.LoopsAround(d.In, d.Pos) {
		if !m.Small && (v.IsField() || !m.Declares(v)) {
			l = m
			break
		}
	}
	if l == nil && v.IsField() && d.In.Lit == nil && rootParam(pkg, fieldAt(pkg, v, d)) != nil {
		l = d.In.WholeLoop()
	}
	if l == nil || pkg.OverParts(l) || ofParts(pkg, d, l) || pkg.GuardOf(d.In, d.Pos, l) == blocking.Rarely || slices.ContainsFunc(pkg.Defs[v], func(e blocking.Def) bool {
		return e != d && pkg.Contains(l, e.In, e.Pos)
	}) {
		return nil
	}
	if c := pkg.Calls[syntax.AsCall(d.Value)]; c != nil && c.Target != nil && c.Target.Contains(isDifferentiation) && !c.Target.Contains(isCut) {
		return l // a function that takes the step and returns the state after it
	}
	if pkg.Any(l, func(c *blocking.Call) bool {
		if c.Away || c.In != d.In || pkg.GuardOf(c.In, c.Expr.Pos(), l) != blocking.Always {
			return false
		}
		for m := range pkg.LoopsAround(c.In, c.Expr.Pos()) {
			if m != l && !m.Small {
				return false
			}
			break
		}
		operands := c.Expr.Args
		switch {
		case isDifferentiation(c):
			operands = c.AllOperands()
		case c.Target == nil || !c.Target.Contains(isDifferentiation):
			return false
		}
		return slices.ContainsFunc(operands, func(e ast.Expr) bool {
			return blocking.IsTensor(pkg.Info.TypeOf(e)) && dependsOn(pkg, e, v, make(map[*types.Var]bool))
		})
	}) {
		return l
	}
	return nil
}

// isDifferentiation recognises Backward of a tensor and Minimize of an optimiser, after which nothing can be
// differentiated through the same history.
func isDifferentiation(c *blocking.Call) bool {
	return c.API.Kind == tensorapi.Mutate && c.Callee != nil && (c.Callee.Name() == "Backward" || c.Callee.Name() == "Minimize")
}

// computesHistory reports whether what d assigns has a history. A struct of tensors has one if it comes from a call
// that returns a tensor with a history, too.
func computesHistory(pkg *blocking.Package, v *types.Var, d blocking.Def) bool {
	if blocking.IsTensor(v.Type()) {
		return pkg.HistoryOf(d.Value, d.Index, d.In)
	}
	e := d.Value
	if u := pkg.Local(e); u != nil && len(pkg.Defs[u]) == 1 && pkg.Defs[u][0].Value != nil {
		e = pkg.Defs[u][0].Value
	}
	tuple, ok := pkg.Info.TypeOf(e).(*types.Tuple)
	if !ok {
		return false
	}
	for i := range tuple.Len() {
		if blocking.IsTensor(tuple.At(i).Type()) && pkg.HistoryOf(e, i, d.In) {
			return true
		}
	}
	return false
}
