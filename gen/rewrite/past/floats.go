package past

import (
	"go/ast"
	"go/constant"
	"go/types"

	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"github.com/asyncgen/asyncgen/gen/internal/plan"
)

// floats finds out which tensors have floating-point numbers. Operations with a number take any number then, and whole
// numbers alone if the elements are integers: `x.MulScalar(rate)` may be a mistake in one iteration and none in those
// before. What is not known is found out by Floats in front of the iteration.
type floats struct {
	*shapes
	asked []given // that must have them, which each iteration finds out
}

// keepsFloats are methods whose result has floating-point numbers if the receiver has.
var keepsFloats = set(`
	Abs Acos Acosh AdaptiveAvgPool2D Add AddMul AddScalar AddScaled Asin Asinh Atan Atan2 Atanh AvgPool1D AvgPool2D
	BroadcastTo Ceil Clamp Conv1D Conv2D ConvTranspose1D ConvTranspose2D Cos Cosh CumMax CumMin CumProd CumSum Detach
	Diag Diagonal Div DivScalar Dot Dropout Eager ELU Erf Exp Exp2 Expm1 Flatten Flip Floor FloorDiv Fmod Frac GELU
	HardSigmoid Hypot Index IndexAdd IndexCopy Interpolate LayerNorm Lazy LeakyReLU Lerp Linear LinearReLU Log Log10 Log1p
	Log2 LogAddExp LogSoftmax LogSumExp MaskedFill MatMul Max Maximum MaxKeep MaxPool1D MaxPool2D Mean MeanKeep Median
	Min Minimum MinKeep Mul MulScalar Neg Norm Outer Pad PadWith Pow Prod ProdKeep Quantile Reciprocal ReLU Remainder
	RepeatInterleave Reshape RMSNorm Roll Round Row Rsqrt Scatter ScatterAdd SetIndex Sigmoid Sign SiLU Sin Sinh Slice
	Softmax Softplus Sort Sqrt Square Squeeze Std StdKeep Sub SubScalar Sum SumKeep T Take TakeAlong Tan Tanh Tile To
	Trace Track Transpose Tril Triu Trunc Unfold Unsqueeze Var VarKeep VectorNorm VectorNormKeep`)

// makesFloats are functions whose result always has floating-point numbers.
var makesFloats = set("Arange CrossEntropy Eye Full MSELoss Linspace Ones Rand Randn Scalar Uniform Zeros")

// needsNumbers are functions of numbers that are a mistake or make another shape with other numbers: lengths,
// probabilities, the powers of norms, and constants of integers.
var needsNumbers = set("Arange Bernoulli Dropout FullLike Quantile VectorNorm VectorNormKeep")

// anyElements are methods that work on elements of all types.
var anyElements = set("DType Detach Eager Flatten Lazy Rank Shape Size Value")

// askFloats reports whether the elements of the tensor e, which stands in the
// statement in, are floating-point numbers. If only the iteration can tell, it notes that
// the iteration has to ask before it comes to e.
func (p *floats) askFloats(e ast.Expr, in *plan.Stmt, seen map[types.Object]bool) bool {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		v, ok := p.f.Info.ObjectOf(e).(*types.Var)
		switch {
		case !ok:
			return false
		case seen[v]: // in a circle
			return true
		case p.compareGiven(e, v, in):
			return p.ask(e, v, in)
		case p.carried(v) && !p.ask(e, v, in):
			return false
		}
		seen[v] = true
		return p.givenFloats(v, seen)
	case *ast.SelectorExpr, *ast.IndexExpr:
		root := rootOf(p.f, e)
		return root != nil && (p.fixed(e) && p.carried(root) || p.compareGiven(e, root, in)) && p.ask(e, root, in)
	case *ast.CallExpr:
		fn, _, kind := p.f.Callee(e)
		sel, isSel := ast.Unparen(e.Fun).(*ast.SelectorExpr)
		switch {
		case kind == plan.CallsFunction:
			return plainly(p.f, fn) && p.tensorsAreFloats(e, in, seen)
		case kind != plan.CallsLibrary:
			return false
		case fn.Signature().Recv() == nil:
			return makesFloats[fn.Name()]
		case !isSel:
			return false
		case p.isTensor(sel.X):
			return keepsFloats[fn.Name()] && p.askFloats(sel.X, in, seen)
		}
		return isParam(p.f, sel.X) && (fn.Name() == "Value" || fn.Name() == "Grad")
	}
	return false
}

// givenFloats reports whether all that the loop assigns to v has
// floating-point numbers.
func (p *floats) givenFloats(v *types.Var, seen map[types.Object]bool) bool {
	for _, u := range p.Units {
		if !u.All().Sets(v) {
			continue
		}
		e := assignedTo(p.f.Info, u.Stmt, v)
		if e == nil || !p.askFloats(e, u.Stmt, seen) {
			return false
		}
	}
	return true
}

// isParam reports whether e is a nn.Param, which holds floating-point numbers only.
func isParam(f *plan.Function, e ast.Expr) bool {
	t := f.Info.TypeOf(e)
	if ptr, ok := t.Underlying().(*types.Pointer); ok {
		t = ptr.Elem()
	}
	n, ok := types.Unalias(t).(*types.Named)
	return ok && n.Obj().Name() == "Param" && n.Obj().Pkg() != nil && f.Analysis.API.Owns(n.Obj().Pkg().Path())
}

// ask makes iterations find out whether e, which begins with root and is used
// in the statement in, has floating-point numbers. It reports whether they can.
func (p *floats) ask(e ast.Expr, root *types.Var, in *plan.Stmt) bool {
	if in == p.Stmt || !in.Within(p.Stmt) {
		return false
	}
	p.asked = addGiven(p.asked, e, root, p.top(in))
	return true
}

// number returns the tensor of which a call with numbers would be a mistake if it had integers, where that is not
// known; or nil.
func (p *floats) number(call *ast.CallExpr, fn *types.Func, always bool, in *plan.Stmt) (of ast.Expr) {
	sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr)
	if !ok || !p.isTensor(sel.X) || anyElements[fn.Name()] {
		return nil
	}
	if always && !p.varies(call) || p.askFloats(sel.X, in, make(map[types.Object]bool)) {
		return nil
	}
	return sel.X
}

// varies reports whether a call has a number that is another one each time.
func (p *floats) varies(call *ast.CallExpr) bool {
	for _, arg := range call.Args {
		if isFloat(p.f.Info.TypeOf(arg)) && !p.fixed(arg) && !isWhole(p.f.Info.Types[arg].Value) {
			return true
		}
	}
	return false
}

func isWhole(v constant.Value) bool { return v != nil && constant.ToInt(v).Kind() == constant.Int }

// plainly reports whether fn, of the program, does the same with tensors
// whatever the numbers are that it is given, if the tensors have floating-point
// numbers, and returns such: it consists of operations, one after the other.
func plainly(from *plan.Function, fn *types.Func) bool {
	body, ok := from.Analysis.Program.Body(fn)
	if !ok {
		return false
	}
	f, plain := from.Analysis.Function(body.Pkg, body.Decl), true
	ast.Inspect(body.Decl.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case nil, *ast.BlockStmt, *ast.ReturnStmt, *ast.ExprStmt, *ast.AssignStmt, *ast.Ident, *ast.ParenExpr, *ast.BasicLit, *ast.UnaryExpr:
		case *ast.SelectorExpr:
			sel := f.Info.Selections[n]
			plain = plain && (sel == nil || sel.Kind() != types.FieldVal)
		case *ast.BinaryExpr:
			plain = plain && isFloat(f.Info.TypeOf(n))
		case *ast.CallExpr:
			if f.Info.Types[n.Fun].IsType() {
				break
			}
			callee, _, kind := f.Callee(n)
			sel, isMethod := ast.Unparen(n.Fun).(*ast.SelectorExpr)
			isMethod = isMethod && f.Info.Selections[sel] != nil
			switch {
			case kind != plan.CallsLibrary:
				plain = false
			case !isMethod:
				plain = plain && makesFloats[callee.Name()] && !needsNumbers[callee.Name()]
			default:
				plain = plain && !needsNumbers[callee.Name()] && (keepsFloats[callee.Name()] && f.Analysis.API.IsTensor(f.Info.TypeOf(sel.X)) || isParam(f, sel.X) && callee.Name() == "Value")
			}
		default:
			plain = false
		}
		return plain
	})
	return plain
}

// takesTensors reports whether fn computes with no tensors but those that it is given and what it makes of them.
func takesTensors(from *plan.Function, fn *types.Func) bool {
	body, ok := from.Analysis.Program.Body(fn)
	if !ok {
		return false
	}
	f, takes := from.Analysis.Function(body.Pkg, body.Decl), true
	ast.Inspect(body.Decl.Body, func(n ast.Node) bool {
		e, ok := n.(ast.Expr)
		if !ok || !f.Info.Types[e].IsValue() || !f.Analysis.API.IsTensor(f.Info.TypeOf(e)) {
			return takes
		}
		switch e := ast.Unparen(e).(type) {
		case *ast.Ident:
			v, ok := f.Info.Uses[e].(*types.Var)
			takes = takes && ok && body.Decl.Pos() <= v.Pos() && v.Pos() < body.Decl.End()
		case *ast.CallExpr:
			_, api, kind := f.Callee(e)
			takes = takes && !(kind == plan.CallsLibrary && api.Kind == tensorapi.Value) && kind != plan.CallsFunction
		default:
			takes = false
		}
		return takes
	})
	return takes
}

// tensorsAreFloats reports whether all tensors that a call is given have
// floating-point numbers.
func (p *floats) tensorsAreFloats(call *ast.CallExpr, in *plan.Stmt, seen map[types.Object]bool) bool {
	list := call.Args
	if sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr); ok {
		list = append([]ast.Expr{sel.X}, list...)
	}
	for _, e := range list {
		if p.isTensor(e) && !p.askFloats(e, in, seen) {
			return false
		}
	}
	return true
}
