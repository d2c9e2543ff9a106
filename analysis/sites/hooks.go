package sites

import (
	"go/ast"
	"go/constant"
	"go/types"
	"regexp"
	"slices"

	"github.com/asyncgen/asyncgen/analysis/blocking"
	"github.com/asyncgen/asyncgen/analysis/internal/syntax"
	"github.com/asyncgen/asyncgen/analysis/tensorapi"
)

// Functions that are called in each step by the name under which they are registered, wherever the loop is.

// hookName matches the names of methods that are called in each step, and the names of such events. A function that is
// registered by such a name is a hook.
var hookName = regexp.MustCompile(`(?i)^(on|after|post|end)?_?(train)?_?(step|batch|iteration)_?(end|done|finished)?$`)

// isConvertedHook reports whether f is a literal that becomes a hook by a conversion: the type has a method with the
// parameters of f, whose name says that it is called in each step.
//
//	hooks.Func(func(e hooks.Event) { lowest = min(lowest, e.Loss.Item()) })
func isConvertedHook(pkg *blocking.Package, f *blocking.Func) bool {
	call, ok := f.Cur.Parent().Node().(*ast.CallExpr)
	if f.Lit == nil || !ok || !pkg.Info.Types[call.Fun].IsType() {
		return false
	}
	named, ok := types.Unalias(pkg.Info.TypeOf(call.Fun)).(*types.Named)
	if !ok || f.Sig.Results().Len() > 0 {
		return false
	}
	for m := range named.Methods() {
		if hookName.MatchString(m.Name()) && types.Identical(m.Signature().Params(), f.Sig.Params()) {
			return true
		}
	}
	return false
}

// namedHooks lists the functions of the package that are registered to be called in each step: given to a function with
// such a name, or under the name of such an event.
//
//	fit.OnStep(func(step int, loss *tensor.Tensor) { lowest = min(lowest, loss.Item()) })
//	bus.On("step", m.observe)
//	handlers["batch_end"] = printLoss
func namedHooks(pkg *blocking.Package) (list []*blocking.Func) {
	add := func(e ast.Expr) {
		if isListener(pkg, e) {
			funcs, _ := pkg.FuncsIn(e)
			list = append(list, funcs...)
		}
	}
	for _, f := range pkg.Funcs {
		for _, c := range f.Calls {
			if registersSteps(pkg, c) {
				for _, e := range c.Expr.Args {
					add(e)
				}
			}
		}
	}
	for cur := range pkg.Preorder((*ast.AssignStmt)(nil)) {
		s := cur.Node().(*ast.AssignStmt)
		for i, lhs := range s.Lhs {
			x, ok := ast.Unparen(lhs).(*ast.IndexExpr)
			if !ok || len(s.Rhs) != len(s.Lhs) || !isStepEvent(pkg, x.Index) {
				continue
			}
			// It is the function, or one more in the list of the event.
			if call := syntax.AsCall(s.Rhs[i]); call != nil && syntax.IsBuiltin(pkg.Info, call, "append") {
				for _, e := range call.Args[1:] {
					add(e)
				}
			} else {
				add(s.Rhs[i])
			}
		}
	}
	return list
}

// registersSteps reports whether c registers functions to be called in each step, by its name or that of an event.
func registersSteps(pkg *blocking.Package, c *blocking.Call) bool {
	return c.API.Kind == tensorapi.Unknown && c.Callee != nil &&
		(stepName.MatchString(c.Callee.Name()) || slices.ContainsFunc(c.Expr.Args, func(e ast.Expr) bool { return isStepEvent(pkg, e) }))
}

// isStepEvent reports whether e is a constant string that names what happens in each step: "step", "on_batch_end".
func isStepEvent(pkg *blocking.Package, e ast.Expr) bool {
	v := pkg.Info.Types[e].Value
	return v != nil && v.Kind() == constant.String && hookName.MatchString(constant.StringVal(v))
}

// isListener reports whether e is a function that is told of tensors and returns no more than whether to go on.
func isListener(pkg *blocking.Package, e ast.Expr) bool {
	sig, ok := typeOf(pkg, e).Underlying().(*types.Signature)
	return ok && onlyGoesOn(sig.Results()) &&
		slices.ContainsFunc(slices.Collect(sig.Params().Variables()), func(v *types.Var) bool { return pkg.HoldsTensors(v.Type()) })
}

// onlyGoesOn reports whether results say no more than whether to go on.
func onlyGoesOn(results *types.Tuple) bool {
	for v := range results.Variables() {
		if !saysGoOn(v.Type()) {
			return false
		}
	}
	return true
}

// saysGoOn reports whether a result of type t says whether to go on.
func saysGoOn(t types.Type) bool {
	return syntax.IsError(t) || types.Identical(t, types.Typ[types.Bool])
}

// announcesStep reports whether c is in an exported function whose name says that it is called in each step, to tell
// hooks of it. The package leaves that to others.
//
//	func Step(e Event) {
//		for _, f := range onStep {
//			f(e)
//		}
//	}
func announcesStep(pkg *blocking.Package, c *blocking.Call) bool {
	f := c.In.Owner()
	return f.Lit == nil && ast.IsExported(f.Name) && hookName.MatchString(f.Name) && c.TakesTensor() && !c.Away &&
		busyLoop(pkg, c) == nil && pkg.GuardOf(c.In, c.Expr.Pos(), nil) != blocking.Rarely &&
		!slices.ContainsFunc(pkg.CallersOf(f), func(d *blocking.Call) bool { return !isTest(pkg, d.In) })
}

// typesInLoops returns the types of functions of the package whose values loops call, all of them in each iteration,
// with the arguments of these calls that may be unfinished. Other packages have functions that return such values.
//
//	type Hook func(step int, loss *tensor.Tensor)
//
//	for _, h := range t.hooks {
//		h(step, loss)
//	}
func typesInLoops(pkg *blocking.Package) map[types.Object]InLoop {
	found := make(map[types.Object]InLoop)
	seldom := make(map[types.Object]bool)
	for _, f := range pkg.Funcs {
		for _, d := range f.Calls {
			named, ok := types.Unalias(typeOf(pkg, d.Expr.Fun)).(*types.Named)
			if !ok || !d.Dynamic || d.Callee != nil || d.API.Kind != tensorapi.Unknown || named.Obj().Pkg() != pkg.Pass.Pkg || !ast.IsExported(named.Obj().Name()) {
				continue
			}
			gathers := onlyGathers(pkg, d)
			switch p := pkg.Params[pkg.Local(d.Expr.Fun)]; {
			case f.Lit != nil && p.Of != nil && p.Of != f: // a function that is made of others
			case !d.Away && (gathers || onlyListens(pkg, d)) && isBusy(pkg, d) && !isRare(pkg, named.Obj()):
				found[named.Obj()] = found[named.Obj()].with(InLoop{Args: unfinished(pkg, d), Gathers: gathers})
			default:
				seldom[named.Obj()] = true
			}
		}
	}
	for t := range seldom {
		delete(found, t)
	}
	return found
}
