package blocking

import (
	"go/ast"
	"go/types"
	"slices"
	"strings"

	"github.com/asyncgen/asyncgen/analysis/tensorapi"
)

// differentiatedCopies lists the calls of layers, in what is differentiated, whose parameters
// the package sets to those of others and gives to no optimiser: a network that follows
// another one, as that of the targets of a policy does, and that nothing trains.
func (a *analyzer) differentiatedCopies() (list []Keeping) {
	copies := a.copies()
	if len(copies) == 0 {
		return nil
	}
	for _, f := range a.funcs {
		for _, c := range f.calls {
			if !isForward(c) || c.away {
				continue
			}
			net := c.operand(tensorapi.Recv)[0]
			if v := a.variable(net); v == nil || !copies[v] || a.learner(net, make(map[any]bool)) == frozen {
				continue
			}
			t := &fortune{a, nil, make(map[*types.Var]bool), make(map[*Func]bool)}
			if t.value(c.Value())&differentiated != 0 {
				list = append(list, Keeping{Kind: Copied, Pos: c.Expr.Pos(), End: c.Expr.End(), Kept: types.ExprString(net), Part: c.Expr})
			}
		}
	}
	return list
}

// copies is the set of the variables and fields that hold such networks.
func (a *analyzer) copies() map[*types.Var]bool {
	copies := make(map[*types.Var]bool)
	for _, f := range a.funcs {
		for _, c := range f.calls {
			if !strings.HasSuffix(c.api.Name, ".Param).Set") || len(c.Expr.Args) != 1 {
				continue
			}
			if v := a.networkOf(c.operand(tensorapi.Recv)[0], 0); v != nil && a.isCopyOf(c.Expr.Args[0], v) {
				copies[v] = true
			}
		}
	}
	for v := range copies {
		if a.isOptimised(v) {
			delete(copies, v)
		}
	}
	return copies
}

// networkOf returns the variable or field of the network that e, a parameter or a list of
// them, is of: net of net.Params()[i].
func (a *analyzer) networkOf(e ast.Expr, depth int) *types.Var {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		if v := a.local(e); v != nil && len(a.defs[v]) == 1 && a.defs[v][0].value != nil && depth < 4 {
			return a.networkOf(a.defs[v][0].value, depth+1)
		}
	case *ast.IndexExpr:
		return a.networkOf(e.X, depth)
	case *ast.CallExpr:
		if c := a.calls[e]; c != nil && strings.HasSuffix(c.api.Name, "/nn.Module).Params") {
			return a.variable(c.operand(tensorapi.Recv)[0])
		}
	}
	return nil
}

// isCopyOf reports whether e is computed from the values of parameters of another network
// than v, and not from gradients. If it is a mere copy, v may be what is trained from there
// on, unless it has the name of what follows.
func (a *analyzer) isCopyOf(e ast.Expr, v *types.Var) bool {
	other, own, gradient := false, false, false
	ast.Inspect(e, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if c := a.calls[call]; ok && c != nil {
			gradient = gradient || c.Callee != nil && c.Callee.Name() == "Grad"
			if isParamValue(c) {
				of := a.networkOf(c.operand(tensorapi.Recv)[0], 0)
				other = other || of != nil && of != v
				own = own || of == v
			}
		}
		return true
	})
	name := strings.ToLower(v.Name())
	follows := slices.ContainsFunc([]string{"target", "teacher", "ema", "average", "slow"}, func(word string) bool {
		return strings.Contains(name, word)
	})
	return other && !gradient && (own || follows)
}

// isOptimised reports whether the parameters of the network in v are used in another way
// than one by one: given to an optimiser, or to who knows what.
func (a *analyzer) isOptimised(v *types.Var) bool {
	for _, f := range a.funcs {
		for _, c := range f.calls {
			if !strings.HasSuffix(c.api.Name, "/nn.Module).Params") || a.variable(c.operand(tensorapi.Recv)[0]) != v {
				continue
			}
			switch c.Value().Parent().Node().(type) {
			case *ast.RangeStmt, *ast.IndexExpr, *ast.AssignStmt:
			default:
				return true
			}
		}
	}
	return false
}
