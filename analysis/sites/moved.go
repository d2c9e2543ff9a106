package sites

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"

	"github.com/asyncgen/asyncgen/analysis/blocking"
	"github.com/asyncgen/asyncgen/analysis/internal/syntax"
	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"golang.org/x/tools/go/ast/inspector"
)

// readsElements reports whether c reads all elements of a tensor that its function computes or is given.
func readsElements(pkg *blocking.Package, c *blocking.Call) bool {
	return readsList(pkg, c) && (pkg.Fresh(c.Operand(c.API.Arg)[0], c.In, c.In.WholeLoop()) || isOfParam(pkg, c.Operand(c.API.Arg)[0], c.In))
}

// readsList reports whether c reads all elements of a tensor.
func readsList(pkg *blocking.Package, c *blocking.Call) bool {
	return isPlainRead(c) && syntax.ElementType(typeOf(pkg, c.Expr)) != nil
}

// isPlainRead reports whether c is a read of ours that takes nothing but the tensor, as t.Float32s and
// tensor.SliceOf[int32](t) do.
func isPlainRead(c *blocking.Call) bool {
	if c.API.Kind != tensorapi.Read || c.Lib != tensorapi.Ours() || c.API.Arg != tensorapi.Recv && c.API.Arg != 0 {
		return false
	}
	return len(c.Operand(c.API.Arg)) == 1 && len(c.Expr.Args) == c.API.Arg-tensorapi.Recv
}

// elementsIn returns the local variable that the elements which c reads are assigned to, or nil.
func elementsIn(pkg *blocking.Package, c *blocking.Call) *types.Var {
	assign, ok := c.Value().Parent().Node().(*ast.AssignStmt)
	if !ok || len(assign.Lhs) != 1 {
		return nil
	}
	v := pkg.Variable(assign.Lhs[0])
	if v == nil || v.IsField() || syntax.ElementType(v.Type()) == nil {
		return nil
	}
	return v
}

// isMoved reports whether c reads all elements of a tensor, and its function only makes tensors of them, as they are.
//
//	return tensor.FromOn(dev, x.Float32s(), x.Shape()...)
func isMoved(pkg *blocking.Package, c *blocking.Call) bool {
	if !readsElements(pkg, c) && !(readsList(pkg, c) && isInReceiver(pkg, c.Operand(c.API.Arg)[0], c.In)) {
		return false
	}
	v := elementsIn(pkg, c)
	if v == nil {
		cur := c.Value().Parent()
		call, ok := cur.Node().(*ast.CallExpr)
		if d := pkg.Calls[call]; ok && d != nil && d.Callee != nil && d.Callee.FullName() == "slices.Clone" {
			call, ok = cur.Parent().Node().(*ast.CallExpr)
		}
		return ok && isHost(pkg, call)
	}
	made := false
	for use := range pkg.UsesOf(v, c.In) {
		call, ok := use.Parent().Node().(*ast.CallExpr)
		switch {
		case ok && syntax.IsBuiltin(pkg.Info, call, "len"):
		case ok && isHost(pkg, call):
			made = true
		default:
			return false
		}
	}
	return made
}

// isInReceiver reports whether e is a field of the receiver of f, or of a field of it.
func isInReceiver(pkg *blocking.Package, e ast.Expr, f *blocking.Func) bool {
	for {
		sel, ok := ast.Unparen(e).(*ast.SelectorExpr)
		if !ok {
			p, ok := pkg.Params[pkg.Local(e)]
			return ok && p.Of == f && p.Operand == tensorapi.Recv
		}
		e = sel.X
	}
}

// isSummed reports whether c reads all elements of one tensor of several, its function adds them up element by element,
// and does nothing with the sums but to scale them and to make a tensor of them.
//
//	for _, t := range ts {
//		for i, v := range t.Float32s() {
//			sum[i] += v / float32(len(ts))
//		}
//	}
//	return tensor.From(sum)
func isSummed(pkg *blocking.Package, c *blocking.Call) bool {
	loop, ok := c.Value().Parent().Node().(*ast.RangeStmt)
	if !ok || loop.X != c.Value().Node() || !readsElements(pkg, c) || !isInLoop(c.Value().Parent()) {
		return false
	}
	sum := sumIn(pkg, loop)
	if sum == nil {
		return false
	}
	made := false
	for use := range pkg.UsesOf(sum, c.In) {
		switch n := use.Parent().Node().(type) {
		case *ast.IndexExpr:
			// The same loop, or one that scales.
			at, ok := use.Parent().Parent().Parent().Parent().Node().(*ast.RangeStmt)
			if !ok || n.X != use.Node() || sumIn(pkg, at) != sum {
				return false
			}
		case *ast.RangeStmt:
		case *ast.CallExpr:
			switch {
			case syntax.IsBuiltin(pkg.Info, n, "len"):
			case isHost(pkg, n):
				made = true
			default:
				return false
			}
		default:
			if !syntax.IsTarget(use) {
				return false
			}
		}
	}
	return made
}

// sumIn returns the local list to whose elements a loop adds, or which it scales, element by element; nil if the loop
// does anything else.
func sumIn(pkg *blocking.Package, loop *ast.RangeStmt) *types.Var {
	if loop.Key == nil || len(loop.Body.List) != 1 {
		return nil
	}
	assign, ok := loop.Body.List[0].(*ast.AssignStmt)
	if !ok || len(assign.Lhs) != 1 || assign.Tok == token.DEFINE || assign.Tok == token.ASSIGN {
		return nil
	}
	element, ok := ast.Unparen(assign.Lhs[0]).(*ast.IndexExpr)
	if !ok || pkg.Local(element.Index) == nil || pkg.Local(element.Index) != pkg.Variable(loop.Key) {
		return nil
	}
	sum := pkg.Local(element.X)
	if sum == nil || pkg.Mentions(assign.Rhs[0], sum) {
		return nil
	}
	for n := range ast.Preorder(assign.Rhs[0]) {
		switch n := n.(type) {
		case *ast.CallExpr:
			c := pkg.Calls[n]
			if tv := pkg.Info.Types[n.Fun]; !tv.IsType() && !tv.IsBuiltin() && (c == nil || c.API.Kind != tensorapi.Meta) {
				return nil
			}
		case *ast.IndexExpr, *ast.FuncLit:
			return nil
		}
	}
	return sum
}

// isMappedInto reports whether c reads all elements of a tensor, and its function computes the elements of another list
// from those at the same places, and returns a tensor of that list.
//
//	v, out := x.Float32s(), make([]float32, n)
//	for i := range out {
//		out[i] = v[i] * v[i]
//	}
//	return tensor.From(out)
func isMappedInto(pkg *blocking.Package, c *blocking.Call) bool {
	if !readsElements(pkg, c) {
		return false
	}
	var loops []ast.Stmt
	switch n := c.Value().Parent().Node().(type) {
	case *ast.RangeStmt:
		loops = append(loops, n)
	case *ast.AssignStmt:
		i := slices.Index(n.Rhs, nodeOf(c.Value()))
		if i < 0 || len(n.Lhs) != len(n.Rhs) {
			return false
		}
		v := pkg.Variable(n.Lhs[i])
		if v == nil || v.IsField() || len(pkg.Defs[v]) != 1 {
			return false
		}
		for use := range pkg.UsesOf(v, c.In) {
			if call, ok := use.Parent().Node().(*ast.CallExpr); ok && syntax.IsBuiltin(pkg.Info, call, "len") {
				continue
			}
			loop := loopAround(use)
			if loop == nil {
				return false
			}
			loops = append(loops, loop)
		}
	}
	var out *types.Var
	for _, loop := range loops {
		filled := filledBy(pkg, loop)
		if filled == nil || out != nil && filled != out {
			return false
		}
		out = filled
	}
	return out != nil && becomesResult(pkg, out, c.In)
}

// loopAround returns the innermost loop around cur in the same function, or nil.
func loopAround(cur inspector.Cursor) ast.Stmt {
	for c := range cur.Enclosing((*ast.ForStmt)(nil), (*ast.RangeStmt)(nil), (*ast.FuncLit)(nil)) {
		loop, _ := c.Node().(ast.Stmt)
		return loop
	}
	return nil
}

// filledBy returns the local list that loop fills: it sets or appends one element in each iteration. It computes the
// element from elements of lists at the same place. If the loop does anything else, filledBy returns nil.
func filledBy(pkg *blocking.Package, loop ast.Stmt) (out *types.Var) {
	var counter *types.Var
	var body *ast.BlockStmt
	switch s := loop.(type) {
	case *ast.RangeStmt:
		body = s.Body
		if s.Key != nil {
			counter = pkg.Variable(s.Key)
		}
	case *ast.ForStmt:
		body = s.Body
		if init, ok := s.Init.(*ast.AssignStmt); ok && len(init.Lhs) == 1 {
			counter = pkg.Variable(init.Lhs[0])
		}
	}
	for _, stmt := range body.List {
		assign, ok := stmt.(*ast.AssignStmt)
		if !ok || len(assign.Lhs) != 1 || len(assign.Rhs) != 1 || out != nil || !isElementwise(pkg, assign.Rhs[0], counter) {
			return nil
		}
		switch lhs := ast.Unparen(assign.Lhs[0]).(type) {
		case *ast.IndexExpr:
			if assign.Tok != token.ASSIGN || counter == nil || pkg.Local(lhs.Index) != counter {
				return nil
			}
			out = pkg.Local(lhs.X)
		case *ast.Ident:
			v := pkg.Variable(lhs)
			if call := syntax.AsCall(assign.Rhs[0]); call != nil && syntax.IsBuiltin(pkg.Info, call, "append") && pkg.Variable(call.Args[0]) == v {
				out = v
			} else if assign.Tok != token.DEFINE {
				return nil // it carries a number from one place to the next
			}
		default:
			return nil
		}
		if out == nil && assign.Tok != token.DEFINE {
			return nil
		}
	}
	return out
}

// isElementwise reports whether e computes with numbers, and elements of lists at the place of the counter.
func isElementwise(pkg *blocking.Package, e ast.Expr, counter *types.Var) bool {
	ok := true
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case nil, *ast.Ident, *ast.BasicLit, *ast.BinaryExpr, *ast.UnaryExpr, *ast.ParenExpr:
		case *ast.SelectorExpr:
			return false
		case *ast.IndexExpr:
			ok = ok && counter != nil && pkg.Local(n.X) != nil && pkg.Local(n.Index) == counter
		case *ast.CallExpr:
			tv, c := pkg.Info.Types[n.Fun], pkg.Calls[n]
			ok = ok && (tv.IsType() || tv.IsBuiltin() || c != nil && c.Callee != nil && c.Callee.Pkg() != nil && c.Callee.Pkg().Path() == "math")
		default:
			ok = false
		}
		return ok
	})
	return ok
}

// becomesResult reports whether a function of tensors returns what it makes of the list out, and does no more with it
// than to fill it.
func becomesResult(pkg *blocking.Package, out *types.Var, f *blocking.Func) bool {
	made := false
	for use := range pkg.UsesOf(out, f) {
		switch n := use.Parent().Node().(type) {
		case *ast.CallExpr:
			_, returned := use.Parent().Parent().Node().(*ast.ReturnStmt)
			switch {
			case syntax.IsBuiltin(pkg.Info, n, "len"), syntax.IsBuiltin(pkg.Info, n, "append"):
			case isHost(pkg, n) && returned:
				made = true
			default:
				return false
			}
		case *ast.IndexExpr:
			if loop := loopAround(use); n.X != use.Node() || loop == nil || filledBy(pkg, loop) != out {
				return false
			}
		case *ast.RangeStmt:
		default:
			if !syntax.IsTarget(use) {
				return false
			}
		}
	}
	return made
}

// isSort recognises functions of the standard library that sort or reverse the list that they are given.
func isSort(pkg *blocking.Package, n *ast.CallExpr) bool {
	c := pkg.Calls[n]
	if c == nil || c.Callee == nil || len(n.Args) != 1 {
		return false
	}
	switch c.Callee.FullName() {
	case "slices.Sort", "slices.Reverse", "sort.Float64s", "sort.Ints":
		return true
	}
	return false
}
