package blocking

import "github.com/asyncgen/asyncgen/analysis/tensorapi"

// Functions that make one function of others, such as chains of hooks. Who calls the result calls these:
//
//	func Chain(hooks ...Hook) Hook {
//		return func(e Event) {
//			for _, h := range hooks {
//				h(e) // Chain wraps hooks
//			}
//		}
//	}

// wrapped returns the operands of f that are wrapped: functions, or lists of functions. f returns a function that calls
// them in each of its own calls, with an argument of that call. A function that is called now and then is not wrapped.
// Nor is one that gets the argument of an earlier call.
func wrapped(pkg *Package, f *Func) (all Operands) {
	for _, ret := range f.Returns {
		for _, e := range ret.Results {
			made := pkg.FuncValue(e, 0).Fn
			if made == nil || made.Lit == nil || made.Parent != f {
				continue
			}
			for _, g := range made.Parts() {
				for _, c := range g.Calls {
					if p, ok := calledParam(pkg, c); ok && p.Of == f && passesOn(pkg, c, made) && pkg.GuardOf(g, c.Expr.Pos(), nil) != Rarely {
						all |= operands(p.Operand)
					}
				}
			}
		}
	}
	return all
}

// calledParam returns the parameter that c calls, or calls an element of. It is false if c calls something else, or on
// another goroutine.
func calledParam(pkg *Package, c *Call) (Param, bool) {
	if !c.Dynamic || c.Callee != nil || c.Away || c.API.Kind != tensorapi.Unknown {
		return Param{}, false
	}
	fun := c.Expr.Fun
	if list := listOf(pkg, fun); list != nil {
		fun = list
	}
	p, ok := pkg.Params[pkg.Local(fun)]
	return p, ok
}

// passesOn reports whether c has an argument that is a parameter of f.
func passesOn(pkg *Package, c *Call, f *Func) bool {
	for _, e := range c.Expr.Args {
		if p, ok := pkg.Params[pkg.Local(e)]; ok && p.Of == f {
			return true
		}
	}
	return false
}
