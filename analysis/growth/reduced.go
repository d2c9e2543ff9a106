package growth

import (
	"cmp"
	"go/ast"
	"go/types"
	"slices"

	"github.com/asyncgen/asyncgen/analysis/blocking"
	"github.com/asyncgen/asyncgen/analysis/internal/syntax"
	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"golang.org/x/tools/go/ast/edge"
	"golang.org/x/tools/go/ast/inspector"
)

// A reduction is a place where a tensor goes into a list or map. All that is done with these tensors is to compute
// numbers.
type reduction struct {
	part ast.Expr // the tensor
	list ast.Expr
	// joined reports whether the number is one of all tensors together.
	joined bool
}

// reduced lists the tensors that loops keep in lists and maps to compute no more than a number of each of them, or of
// all of them, after the loop. The numbers alone would do, and take no memory. The lists are local ones, and unexported
// fields and variables of the package.
//
//	for range steps {
//		u = step(u)
//		trail = append(trail, u)
//	}
//	peak := tensor.Stack(0, trail...).Max()
func reduced(pkg *blocking.Package) (list []reduction) {
	for v, defs := range pkg.Defs {
		elem := syntax.ElementType(v.Type())
		if v.Exported() || elem == nil || !blocking.IsTensor(elem) || pkg.Params[v].Of != nil || isNamedResult(pkg, v, defs) {
			continue
		}
		kept, ok := additions(pkg, v, defs)
		if !ok || len(kept) == 0 {
			continue
		}
		each, joined := isOnlyReduced(pkg, v, defs)
		if pkg.FateOf(v, defs[0].In) != 0 {
			continue // a gradient needs them all the same
		}
		if !each && !(joined && slices.ContainsFunc(kept, func(r reduction) bool { return hasElements(pkg, r.part, 0) })) {
			continue
		}
		for _, r := range kept {
			r.joined = joined
			list = append(list, r)
		}
	}
	slices.SortFunc(list, func(x, y reduction) int { return cmp.Compare(x.part.Pos(), y.part.Pos()) })
	return list
}

// additions lists what is put into v again and again, by append or at an index. It returns false if v is ever set to
// something that may hold other tensors.
func additions(pkg *blocking.Package, v *types.Var, defs []blocking.Def) (list []reduction, ok bool) {
	for _, d := range defs {
		call := pkg.SelfAppend(v, d)
		switch {
		case d.Kind != blocking.DefValue:
			return nil, false
		case d.Value == nil || isEmptied(pkg, d.Value):
		case call != nil && len(call.Args) == 2 && !call.Ellipsis.IsValid():
			if isKept(pkg, v, d) && isComputed(pkg, v, call.Args[1], d) {
				list = append(list, reduction{part: call.Args[1], list: call.Args[0]})
			}
		case blocking.IsTensor(pkg.Info.TypeOf(d.Value)):
			if assign := assignmentOf(pkg, d); assign != nil && isKept(pkg, v, d) && isComputed(pkg, v, d.Value, d) {
				list = append(list, reduction{part: d.Value, list: assign.X})
			}
		default:
			return nil, false
		}
	}
	return list, true
}

// isEmptied reports whether e is a list or map without tensors: nil, an empty literal, or what make makes.
func isEmptied(pkg *blocking.Package, e ast.Expr) bool {
	if call := syntax.AsCall(e); call != nil {
		return syntax.IsBuiltin(pkg.Info, call, "make")
	}
	return isEmpty(pkg, e)
}

// assignmentOf returns the element that d sets, or nil.
func assignmentOf(pkg *blocking.Package, d blocking.Def) *ast.IndexExpr {
	cur, ok := pkg.Cursor(d.Value.Pos())
	if !ok {
		return nil
	}
	for c := range cur.Enclosing((*ast.AssignStmt)(nil)) {
		n := c.Node().(*ast.AssignStmt)
		if i := slices.Index(n.Rhs, d.Value); i >= 0 && len(n.Lhs) == len(n.Rhs) {
			x, _ := ast.Unparen(n.Lhs[i]).(*ast.IndexExpr)
			return x
		}
		return nil
	}
	return nil
}

// isComputed reports whether e, which d puts into v, is computed in each iteration of the loop around d, or in each
// call of d's function if v is a field.
func isComputed(pkg *blocking.Package, v *types.Var, e ast.Expr, d blocking.Def) bool {
	for l := range pkg.LoopsAround(d.In, d.Pos) {
		if l.Small || !isShared(pkg, v) && l.Declares(v) {
			continue
		}
		return !pkg.OverParts(l) && pkg.GuardOf(d.In, d.Pos, l) != blocking.Rarely && pkg.Fresh(e, d.In, l)
	}
	return isShared(pkg, v) && pkg.GuardOf(d.In, d.Pos, nil) != blocking.Rarely && pkg.Fresh(e, d.In, d.In.WholeLoop())
}

// isOnlyReduced says whether all that the program does with the tensors in v is to compute a number of each, or one of
// all that it stacks. At most one of the results is true.
func isOnlyReduced(pkg *blocking.Package, v *types.Var, defs []blocking.Def) (each, joined bool) {
	for use := range usesOf(pkg, v, defs) {
		if use.ParentEdgeKind() == edge.SelectorExpr_Sel {
			use = use.Parent()
		}
		if syntax.IsTarget(use) || isAppended(pkg, use, v) || isCounted(pkg, use) {
			continue
		}
		switch n := use.Parent().Node().(type) {
		case *ast.IndexExpr:
			switch at := use.Parent(); {
			case use.ParentEdgeKind() != edge.IndexExpr_X:
				return false, false
			case syntax.IsTarget(at):
			case isNumber(pkg, at, true):
				each = true
			default:
				return false, false
			}
		case *ast.RangeStmt:
			if n.Value == nil {
				continue
			}
			element := pkg.Variable(n.Value)
			if element == nil {
				return false, false
			}
			for e := range pkg.UsesOf(element, pkg.FuncAt(use)) {
				if !isNumber(pkg, e, true) {
					return false, false
				}
				each = true
			}
		case *ast.CallExpr:
			c := pkg.Calls[n]
			if c == nil || !n.Ellipsis.IsValid() || !c.IsFunc("Stack") && !c.IsFunc("Concat") || !isNumber(pkg, use.Parent(), false) {
				return false, false
			}
			joined = true
		default:
			return false, false
		}
	}
	return each && !joined, joined && !each
}

// isNumber reports whether all that becomes of the tensor at cur is a number: an operation that takes the sum or the
// greatest element of all, say, perhaps after some that go element by element. Without each, the number has to be one
// that can be computed of parts, which a median can't.
func isNumber(pkg *blocking.Package, cur inspector.Cursor, each bool) bool {
	for syntax.IsParen(cur.Parent().Node()) {
		cur = cur.Parent()
	}
	if cur.ParentEdgeKind() != edge.SelectorExpr_X || cur.Parent().ParentEdgeKind() != edge.CallExpr_Fun {
		return false
	}
	at := cur.Parent().Parent()
	call := at.Node().(*ast.CallExpr)
	c := pkg.Calls[call]
	switch {
	case c == nil || c.Lib != tensorapi.Ours() || slices.ContainsFunc(call.Args, func(e ast.Expr) bool { return blocking.IsTensor(pkg.Info.TypeOf(e)) }):
		return false
	case isReduction(c, each):
		return true
	}
	return (c.API.IsElementwise() || c.API.Kind == tensorapi.View) && isNumber(pkg, at, each)
}

// isReduction recognises operations that make one number of all elements.
func isReduction(c *blocking.Call, each bool) bool {
	if c.API.Kind != tensorapi.Op || len(c.Expr.Args) > 0 {
		return false
	}
	switch c.Callee.Name() {
	case "Max", "Min", "Sum", "Mean", "Prod", "All", "Any":
		return true
	case "Norm", "ArgMax", "ArgMin", "LogSumExp":
		return each
	}
	return false
}

// hasElements reports whether the tensor e has axes, as an operation on it or on what it is computed of tells. A list
// of numbers is small, and to stack it is how they are read.
func hasElements(pkg *blocking.Package, e ast.Expr, depth int) bool {
	if depth > 6 {
		return false
	}
	if c := pkg.Calls[syntax.AsCall(e)]; c != nil {
		if c.API.Kind != tensorapi.Op && c.API.Kind != tensorapi.Draw && c.API.Kind != tensorapi.View {
			return false
		}
		if c.IsFunc("Module.Forward") || isAxial(c) {
			return !isReduction(c, true)
		}
		return c.API.IsElementwise() && slices.ContainsFunc(append(c.Operand(tensorapi.Recv), c.Expr.Args...), func(e ast.Expr) bool { return hasElements(pkg, e, depth+1) })
	}
	v := pkg.Variable(e)
	if v == nil {
		return false
	}
	uses := pkg.UsesInPackage(v)
	for use := range uses {
		if use.ParentEdgeKind() == edge.SelectorExpr_Sel {
			use = use.Parent()
		}
		for use.ParentEdgeKind() == edge.SelectorExpr_X && use.Parent().ParentEdgeKind() == edge.CallExpr_Fun {
			use = use.Parent().Parent()
			c := pkg.Calls[use.Node().(*ast.CallExpr)]
			if c == nil {
				break
			}
			if isReduction(c, true) || isAxial(c) {
				return true
			}
			if !c.API.IsElementwise() {
				break
			}
		}
	}
	return slices.ContainsFunc(pkg.Defs[v], func(d blocking.Def) bool {
		return d.Kind == blocking.DefValue && d.Value != nil && hasElements(pkg, d.Value, depth+1)
	})
}

// isAxial recognises operations and views that make sense only for tensors with axes.
func isAxial(c *blocking.Call) bool {
	if c.Lib != tensorapi.Ours() || syntax.RecvName(c.Callee) != "Tensor" {
		return false
	}
	switch c.Callee.Name() {
	case "MatMul", "Linear", "Conv1D", "Conv2D", "Roll", "Softmax", "LogSoftmax", "LayerNorm", "Slice", "Row", "Transpose", "T", "Dim", "CumSum", "FFT":
		return true
	}
	return false
}
