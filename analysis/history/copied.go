package history

import (
	"go/ast"
	"go/types"
	"slices"
	"strings"

	"github.com/asyncgen/asyncgen/analysis/blocking"
	"github.com/asyncgen/asyncgen/analysis/internal/syntax"
	"github.com/asyncgen/asyncgen/analysis/tensorapi"
)

// differentiatedCopies lists the calls of networks that only follow another network, if the results are
// differentiated. The package sets the parameters of such a network to those of the other one and gives
// them to no optimiser, as for the target network of a policy.
//
//	target.Params()[i].Set(net.Params()[i].Value())
//	loss := nn.MSELoss(net.Forward(x), target.Forward(y)) // gradients go through target
func differentiatedCopies(pkg *blocking.Package) (list []keeping) {
	copies := copies(pkg)
	if len(copies) == 0 {
		return nil
	}
	for _, f := range pkg.Funcs {
		for _, c := range f.Calls {
			if !blocking.IsForward(c) || c.Away {
				continue
			}
			net := c.Operand(tensorapi.Recv)[0]
			if v := pkg.Variable(net); v == nil || !copies[v] || pkg.IsFrozen(net) {
				continue
			}
			if pkg.FateAt(c.Value(), nil)&blocking.Differentiated != 0 {
				list = append(list, keeping{Kind: copying, Pos: c.Expr.Pos(), End: c.Expr.End(), Kept: types.ExprString(net), Part: c.Expr})
			}
		}
	}
	return list
}

// copies returns the variables and fields that hold such networks.
func copies(pkg *blocking.Package) map[*types.Var]bool {
	copies := make(map[*types.Var]bool)
	for _, f := range pkg.Funcs {
		for _, c := range f.Calls {
			if !strings.HasSuffix(c.API.Name, ".Param).Set") || len(c.Expr.Args) != 1 {
				continue
			}
			if v := networkOf(pkg, c.Operand(tensorapi.Recv)[0], 0); v != nil && isCopyOf(pkg, pkg.OnlyValue(c.Expr.Args[0]), v) {
				copies[v] = true
				p := pkg.Params[v]
				for _, e := range passedFor(pkg, p) {
					if v := networkOf(pkg, e, 0); v != nil {
						copies[v] = true
					} else if v := pkg.Variable(e); v != nil {
						copies[v] = true
					}
				}
			}
		}
	}
	for v := range copies {
		if isOptimised(pkg, v) {
			delete(copies, v)
		}
	}
	return copies
}

// passedFor lists what the calls in the package pass for a parameter.
func passedFor(pkg *blocking.Package, p blocking.Param) (list []ast.Expr) {
	if p.Of == nil {
		return nil
	}
	for _, c := range pkg.CallersOf(p.Of) {
		list = append(list, c.Operand(p.Operand)...)
	}
	return list
}

// networkOf returns the variable or field of the network that e, a parameter or a list of them, belongs to: net of
// net.Params()[i]. A list that a function is given stands for a network.
func networkOf(pkg *blocking.Package, e ast.Expr, depth int) *types.Var {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		if v := pkg.Local(e); v != nil && pkg.Params[v].Of != nil && len(pkg.Defs[v]) == 0 && pkg.IsCell(syntax.ElementType(v.Type())) {
			return v
		} else if v != nil && len(pkg.Defs[v]) == 1 && pkg.Defs[v][0].Value != nil && depth < 4 {
			return networkOf(pkg, pkg.Defs[v][0].Value, depth+1)
		}
	case *ast.IndexExpr:
		return networkOf(pkg, e.X, depth)
	case *ast.CallExpr:
		if c := pkg.Calls[e]; c != nil {
			return pkg.ParamsOf(c)
		}
	}
	return nil
}

// isCopyOf reports whether e is computed from the parameters of another network than v, and not from
// gradients. After a plain copy, v may also be the one that is trained; then only its name tells that
// it follows.
func isCopyOf(pkg *blocking.Package, e ast.Expr, v *types.Var) bool {
	other, own, gradient := false, false, false
	ast.Inspect(e, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if c := pkg.Calls[call]; ok && c != nil {
			gradient = gradient || c.Callee != nil && c.Callee.Name() == "Grad"
			if blocking.IsParamValue(c) {
				of := networkOf(pkg, c.Operand(tensorapi.Recv)[0], 0)
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

// isOptimised reports whether the parameters of the network in v are used other than one by one: given to an
// optimiser, or to an unknown function.
func isOptimised(pkg *blocking.Package, v *types.Var) bool {
	for _, f := range pkg.Funcs {
		for _, c := range f.Calls {
			if pkg.ParamsOf(c) != v {
				continue
			}
			switch n := c.Value().Parent().Node().(type) {
			case *ast.RangeStmt, *ast.IndexExpr, *ast.AssignStmt:
			case *ast.CallExpr:
				// A function that only sets the one by the other may have both.
				sets := func(e *blocking.Call) bool { return strings.HasSuffix(e.API.Name, ".Param).Set") }
				if d := pkg.Calls[n]; d == nil || d.Target == nil || !d.Target.Contains(sets) || d.Target.Contains(func(e *blocking.Call) bool { return e.Mutates() && !sets(e) }) {
					return true
				}
			default:
				return true
			}
		}
	}
	return false
}
