package rewrite

import (
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"slices"

	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"github.com/asyncgen/asyncgen/gen/internal/plan"
	"github.com/asyncgen/asyncgen/gen/internal/syntax"
)

// call checks a call.
func (p *past) call(call *ast.CallExpr, always bool, in *plan.Stmt, report func(ast.Node, string, ...any)) {
	f := p.a.f
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
		if kind == plan.CallsFunction && p.calm(fn, make(map[*types.Func]bool)) && p.operands(call, in) != changing &&
			(always && !p.varies(call) || p.tensorsAreFloats(call, in, make(map[types.Object]bool))) {
			break
		}
		e := f.Effects(call)
		switch {
		case !always:
			report(call, "calls %s in some iterations only, which may fail", name)
		case p.isOther(call) || p.capturesOther(call) || !args(kind == plan.CallsFunction && p.plainly(fn) && p.tensorsAreFloats(call, in, make(map[types.Object]bool))) || e.Needs(p.changed.WithoutVariables()):
			report(call, "calls %s, which may fail, with another argument each time", name)
		case p.comparedOperands(call, in) >= varying:
			report(call, "calls %s with a tensor whose shape may change", name)
		}
	}
}

// isOther reports whether a call of a method may be of another receiver each time: of none that the loop leaves alone,
// and of none that an inner loop gets out of a slice that it leaves alone.
func (p *past) isOther(call *ast.CallExpr) bool {
	f := p.a.f
	sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr)
	if !ok || f.Info.Selections[sel] == nil || p.fixed(sel.X) {
		return false
	}
	if t := f.Info.TypeOf(sel.X); f.Analysis.API.IsTensor(t) || tensorapi.IsNumber(t) {
		return false
	}
	id, ok := sel.X.(*ast.Ident)
	if !ok {
		return true
	}
	for s := range p.a.loop.All {
		n, ok := s.Inner().(*ast.RangeStmt)
		if ok && s != p.a.loop && n.Tok == token.DEFINE && n.Value != nil && f.Info.Defs[n.Value.(*ast.Ident)] == f.Info.ObjectOf(id) {
			return !p.fixed(n.X) || slices.ContainsFunc(slices.Collect(maps.Keys(p.changed.Writes)), func(l plan.Loc) bool { return l.Kind == plan.Elem })
		}
	}
	return true
}

// rowOf reports whether call, x.Row(i), asks a tensor that stays the same for a row in a loop that i numbers them in.
func (p *past) rowOf(call *ast.CallExpr) bool {
	sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr)
	if !ok || len(call.Args) != 1 || !p.fixed(sel.X) {
		return false
	}
	id, ok := ast.Unparen(call.Args[0]).(*ast.Ident)
	if !ok || !p.counts(p.a.f.Info.ObjectOf(id)) {
		return false
	}
	rows := types.ExprString(sel.X) + ".Dim(0)"
	for _, u := range p.a.units {
		if !call.Pos().IsValid() || call.Pos() < u.Stmt.Node.Pos() || u.Stmt.Node.End() <= call.Pos() {
			continue
		}
		switch n := u.Stmt.Inner().(type) {
		case *ast.RangeStmt:
			if key, ok := n.Key.(*ast.Ident); ok && p.a.f.Info.ObjectOf(key) == p.a.f.Info.ObjectOf(id) {
				return types.ExprString(n.X) == rows
			}
		case *ast.ForStmt:
			b, ok := ast.Unparen(n.Cond).(*ast.BinaryExpr)
			if !ok || b.Op != token.LSS || n.Body.Pos() > call.Pos() {
				continue
			}
			if x, ok := ast.Unparen(b.X).(*ast.Ident); ok && p.a.f.Info.ObjectOf(x) == p.a.f.Info.ObjectOf(id) {
				return types.ExprString(b.Y) == rows
			}
		}
	}
	return false
}

func isFloat(t types.Type) bool {
	b, ok := t.Underlying().(*types.Basic)
	return ok && b.Info()&types.IsFloat != 0
}

func allConstant(info *types.Info, list []ast.Expr) bool {
	return !slices.ContainsFunc(list, func(e ast.Expr) bool { return info.Types[e].Value == nil })
}

// calm reports whether fn computes on the host, or with tensors in ways that
// keep shapes, and contains nothing that could fail for some arguments.
func (p *past) calm(fn *types.Func, seen map[*types.Func]bool) bool {
	body, ok := p.a.f.Analysis.Program.Body(fn)
	if !ok || seen[fn] {
		return false
	}
	seen[fn] = true
	f := p.a.f.Analysis.Function(body.Pkg, body.Decl)
	calm := true
	ast.Inspect(body.Decl.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.IndexExpr, *ast.SliceExpr, *ast.StarExpr, *ast.TypeAssertExpr, *ast.FuncLit, *ast.ForStmt, *ast.GoStmt, *ast.DeferStmt:
			calm = false
		case *ast.SelectorExpr:
			if sel := f.Info.Selections[n]; sel != nil && sel.Kind() == types.FieldVal && sel.Indirect() {
				calm = false
			}
		case *ast.BinaryExpr:
			switch n.Op {
			case token.QUO, token.REM, token.SHL, token.SHR:
				calm = calm && !(syntax.IsInteger(f.Info.TypeOf(n)) && f.Info.Types[n].Value == nil)
			}
		case *ast.AssignStmt:
			switch n.Tok {
			case token.QUO_ASSIGN, token.REM_ASSIGN, token.SHL_ASSIGN, token.SHR_ASSIGN:
				calm = calm && !syntax.IsInteger(f.Info.TypeOf(n.Lhs[0]))
			}
		case *ast.CallExpr:
			if f.Info.Types[n.Fun].IsType() {
				break
			}
			callee, _, kind := f.Callee(n)
			switch kind {
			case plan.CallsBuiltin:
				name := types.ExprString(n.Fun)
				calm = calm && name != "make" && name != "panic"
			case plan.CallsTotal:
			case plan.CallsLibrary:
				calm = calm && isTotal(callee, n)
			case plan.CallsFunction:
				calm = calm && p.calm(callee, seen)
			default:
				calm = false
			}
		}
		return calm
	})
	return calm
}
