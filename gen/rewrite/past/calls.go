package past

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"

	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"github.com/asyncgen/asyncgen/gen/internal/plan"
	"github.com/asyncgen/asyncgen/gen/internal/syntax"
)

// call checks a call.
func (p *host) call(call *ast.CallExpr, always bool, in *plan.Stmt, report func(ast.Node, string, ...any)) {
	f := p.f
	if f.Info.Types[call.Fun].IsType() {
		if syntax.IsSliceToArray(f.Info, call) && (!always || !p.fixed(call.Args[0])) {
			report(call, "converts a slice that may be too short")
		}
		return
	}
	args := func(anyNumber bool) bool { // that are no tensors are the same every time
		for _, arg := range call.Args {
			if t := f.Info.TypeOf(arg); !f.Analysis.API.IsTensor(t) && !p.isTensors(arg) && !(anyNumber && isFloat(t)) && !tensorapi.IsNumber(t) && !p.fixed(arg) && !p.ofShape(arg, in) {
				return false
			}
		}
		return true
	}
	fn, api, kind := f.Callee(call)
	name := types.ExprString(call.Fun)
	switch kind {
	case plan.CallsBuiltin:
		if name == "delete" && hasOpenKeys(f.Info.TypeOf(call.Args[0])) && !p.fixed(call.Args[1]) {
			report(call, "may look for a key in %s that can't be compared", types.ExprString(call.Args[0]))
		}
		if name == "make" && (!args(false) || !always && !allConstant(f.Info, call.Args[1:])) {
			report(call, "makes something of a size that may be wrong")
		}
	case plan.CallsTotal:
	case plan.CallsLibrary:
		if api.Kind == tensorapi.Pure {
			if !args(false) {
				report(call, "calls %s with another argument each time", name)
			}
			break
		}
		if f.IsChoice(call) {
			report(call, "lets the device choose, and may do what it has not done before")
			break
		}
		shape := p.operands(call, in)
		if !isTotal(fn, call) {
			shape = p.comparedOperands(call, in)
		}
		switch {
		case shape > varying, shape == varying && !isTotal(fn, call):
			report(call, "calls %s with a tensor whose shape may change", name)
		case fn.Name() == "Row" && p.rowOf(call): // there is one
		case !args(!needsNumbers[fn.Name()]):
			report(call, "calls %s with another argument each time", name)
		case !always && !isTotal(fn, call):
			report(call, "calls %s in some iterations only, so that what is wrong with its operands may not have shown before", name)
		default:
			if of := p.number(call, fn, always, in); of != nil {
				report(call, "calls %s, and it is not known whether the elements of %s are integers", name, types.ExprString(of))
			}
		}
	default: // of the program, or of the standard library
		if kind == plan.CallsFunction && isCalm(p.f, fn, make(map[*types.Func]bool)) && p.operands(call, in) != changing &&
			(always && !p.varies(call) || takesTensors(p.f, fn) && p.tensorsAreFloats(call, in, make(map[types.Object]bool))) {
			break
		}
		e := f.Effects(call)
		switch {
		case !always:
			report(call, "calls %s in some iterations only, which may fail", name)
		case p.isOther(call) || p.capturesOther(call) || !args(kind == plan.CallsFunction && plainly(p.f, fn) && takesTensors(p.f, fn) && p.tensorsAreFloats(call, in, make(map[types.Object]bool))) || e.Needs(p.changed.WithoutVariables()):
			report(call, "calls %s, which may fail, with another argument each time", name)
		case p.comparedOperands(call, in) >= varying:
			report(call, "calls %s with a tensor whose shape may change", name)
		}
	}
}

// followsPointer reports whether sel reads a field behind a pointer, or calls a method of a copy of what is behind one.
func followsPointer(sel *types.Selection) bool {
	switch {
	case sel == nil:
		return false
	case sel.Kind() == types.FieldVal:
		return sel.Indirect()
	case sel.Kind() == types.MethodVal:
		recv := sel.Obj().(*types.Func).Signature().Recv().Type()
		_, wantsPointer := recv.Underlying().(*types.Pointer)
		_, isPointer := sel.Recv().Underlying().(*types.Pointer)
		return len(sel.Index()) > 1 && sel.Indirect() || isPointer && !wantsPointer && !types.IsInterface(recv)
	}
	return false
}

// isMethodValue reports whether e takes a method of an interface without calling it.
func isMethodValue(f *plan.Function, e *ast.SelectorExpr) bool {
	sel := f.Info.Selections[e]
	if sel == nil || sel.Kind() != types.MethodVal || !types.IsInterface(sel.Recv()) {
		return false
	}
	call, ok := f.Parent(e).(*ast.CallExpr)
	return !ok || call.Fun != e
}

// hasOpenKeys reports whether t is a map with keys that may not be compared.
func hasOpenKeys(t types.Type) bool {
	m, ok := t.Underlying().(*types.Map)
	return ok && syntax.MayNotCompare(m.Key())
}

func allConstant(info *types.Info, list []ast.Expr) bool {
	return !slices.ContainsFunc(list, func(e ast.Expr) bool { return info.Types[e].Value == nil })
}

// isCalm reports whether fn computes on the host, or with tensors in ways that
// keep shapes, and contains nothing that could fail for some arguments.
func isCalm(from *plan.Function, fn *types.Func, seen map[*types.Func]bool) bool {
	body, ok := from.Analysis.Program.Body(fn)
	if !ok || seen[fn] {
		return false
	}
	seen[fn] = true
	f := from.Analysis.Function(body.Pkg, body.Decl)
	calm := true
	ast.Inspect(body.Decl.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.IndexExpr, *ast.SliceExpr, *ast.StarExpr, *ast.TypeAssertExpr, *ast.FuncLit, *ast.ForStmt, *ast.RangeStmt, *ast.GoStmt, *ast.DeferStmt:
			calm = false
		case *ast.SelectorExpr:
			sel := f.Info.Selections[n]
			calm = calm && !followsPointer(sel) && !isMethodValue(f, n)
		case *ast.SwitchStmt:
			calm = calm && (n.Tag == nil || !syntax.MayNotCompare(f.Info.TypeOf(n.Tag)))
		case *ast.CompositeLit:
			calm = calm && !hasOpenKeys(f.Info.TypeOf(n))
		case *ast.BinaryExpr:
			switch n.Op {
			case token.QUO, token.REM, token.SHL, token.SHR:
				calm = calm && !(syntax.IsInteger(f.Info.TypeOf(n)) && f.Info.Types[n].Value == nil)
			case token.EQL, token.NEQ:
				calm = calm && !(syntax.MayNotCompare(f.Info.TypeOf(n.X)) && syntax.MayNotCompare(f.Info.TypeOf(n.Y)))
			}
		case *ast.AssignStmt:
			switch n.Tok {
			case token.QUO_ASSIGN, token.REM_ASSIGN, token.SHL_ASSIGN, token.SHR_ASSIGN:
				calm = calm && !syntax.IsInteger(f.Info.TypeOf(n.Lhs[0]))
			}
		case *ast.CallExpr:
			if f.Info.Types[n.Fun].IsType() {
				calm = calm && !syntax.IsSliceToArray(f.Info, n)
				break
			}
			callee, _, kind := f.Callee(n)
			switch kind {
			case plan.CallsBuiltin:
				name := types.ExprString(n.Fun)
				calm = calm && name != "make" && name != "panic" && !(name == "delete" && hasOpenKeys(f.Info.TypeOf(n.Args[0])))
			case plan.CallsTotal:
			case plan.CallsLibrary:
				calm = calm && isTotal(callee, n)
			case plan.CallsFunction:
				calm = calm && isCalm(f, callee, seen)
			default:
				calm = false
			}
		}
		return calm
	})
	return calm
}
