package sites

import (
	"go/ast"
	"go/types"
	"slices"
	"strings"

	"github.com/asyncgen/asyncgen/analysis/blocking"
	"github.com/asyncgen/asyncgen/analysis/internal/syntax"
	"github.com/asyncgen/asyncgen/analysis/tensorapi"
)

// Operations that take a number from the device wait for it in two cases: an index of a tracked tensor, and any number
// that is combined with integers. The rate of an optimiser is such a number, too, if the device computes it.

// waitedNumber returns the number that c, such an operation, waits for, and why; or nil.
func waitedNumber(pkg *blocking.Package, c *blocking.Call) (list []blocking.CallWait, why string) {
	if c.IsFunc("Optimizer.Rate") {
		return ratesOf(pkg, c), "the device computes the rate; RateF64 doesn't wait"
	}
	if c.API.Kind != tensorapi.Op || c.Lib != tensorapi.Ours() || len(c.Operand(tensorapi.Recv)) != 1 {
		return nil, ""
	}
	recv := c.Operand(tensorapi.Recv)[0]
	switch name := c.Callee.Name(); {
	case name == "RowI64" && pkg.HasHistory(recv, c.In):
		why = "of a tracked tensor it does; RowAt takes the index as a tensor and doesn't"
	case name == "SliceI64" && pkg.HasHistory(recv, c.In):
		why = "of a tracked tensor it does; Detach it, or take the elements by Take"
	case strings.HasSuffix(name, "F64") && name != "F64" && isIntegers(pkg, recv, make(map[*types.Var]bool)):
		why = "with integers it does; compute with floats, or with the number as a tensor"
	default:
		return nil, ""
	}
	for _, e := range c.Expr.Args {
		if tensorapi.IsNumber(pkg.Info.TypeOf(e)) {
			list = append(list, blocking.CallWait{Operand: e})
		}
	}
	return list, why
}

// ratesOf lists the rates that the function around c, which asks an optimiser for its rate, has the device compute for
// the same optimiser.
func ratesOf(pkg *blocking.Package, c *blocking.Call) (list []blocking.CallWait) {
	recv := c.Operand(tensorapi.Recv)
	if len(recv) != 1 {
		return nil
	}
	opt := pkg.Variable(recv[0])
	for _, d := range c.In.Calls {
		if opt != nil && d.IsFunc("Optimizer.SetRateF64") && pkg.Variable(d.Operand(tensorapi.Recv)[0]) == opt {
			list = append(list, blocking.CallWait{Operand: d.Expr.Args[0]})
		}
	}
	return list
}

// isIntegers reports whether e certainly is a tensor of integers. The variables in seen are being asked about.
func isIntegers(pkg *blocking.Package, e ast.Expr, seen map[*types.Var]bool) bool {
	if v := pkg.Local(e); v != nil {
		if seen[v] {
			return true
		}
		seen[v] = true
		d := pkg.Defs[v]
		return pkg.Params[v].Of == nil && len(d) > 0 && !slices.ContainsFunc(d, func(d blocking.Def) bool {
			return d.Kind != blocking.DefValue || !isIntegers(pkg, d.Value, seen)
		})
	}
	c := pkg.Calls[syntax.AsCall(e)]
	if c == nil || c.Lib != tensorapi.Ours() {
		return false
	}
	switch name := c.Callee.Name(); name {
	case "As":
		dtype, ok := ast.Unparen(c.Expr.Args[0]).(*ast.SelectorExpr)
		return ok && (strings.HasPrefix(dtype.Sel.Name, "Int") || strings.HasPrefix(dtype.Sel.Name, "Uint"))
	case "FullInt", "RandInt", "ArgMax", "ArgMin", "ArgSort":
		return true
	case "From":
		elem := syntax.ElementType(pkg.Info.TypeOf(c.Expr.Args[0]))
		basic, ok := types.Unalias(elem).(*types.Basic)
		return elem != nil && ok && basic.Info()&types.IsInteger != 0
	default:
		same := c.API.Kind == tensorapi.View || slices.Contains([]string{"Add", "Sub", "Mul", "AddScalar", "SubScalar", "MulScalar", "AddF64", "SubF64", "MulF64", "AddScaledF64", "Neg", "Abs"}, name)
		recv := c.Operand(tensorapi.Recv)
		return same && len(recv) == 1 && isIntegers(pkg, recv[0], seen)
	}
}

// laterSite returns c as a site, if it is in a function that each iteration of a loop gives to a backlog, and waits for
// what that function itself, or the iteration, has enqueued; or nil. The backlog knows nothing of it, so the function
// waits.
//
//	later.Do(func() { log.Print(x.Norm().Item()) })
func laterSite(pkg *blocking.Package, c *blocking.Call) *Site {
	do := c.In.PassedTo()
	if do == nil || do.API.Calls != tensorapi.Later || !do.IsFunc("Do") || IsAllowed(c) ||
		pkg.GuardOf(c.In, c.Expr.Pos(), nil) != blocking.Always {
		return nil
	}
	l := hotNatural(pkg, do)
	if l == nil || pkg.GuardOf(do.In, do.Expr.Pos(), l) != blocking.Always || pkg.IsOuter(l, do) {
		return nil
	}
	for _, w := range pkg.Waits(c) {
		if w.Via != nil && w.Via.Guarded || w.Operand != nil && isReadAhead(pkg, w.Operand, l) {
			continue
		}
		if w.Operand == nil && (c.Enqueues() || takesFresh(pkg, c, l)) || w.Operand != nil && (madeIn(pkg, w.Operand, c.In, c.In) || pkg.Fresh(w.Operand, c.In, l)) {
			return &Site{
				Call: c.Expr, Cur: c.Cur, Kind: w.Kind, Operand: w.Operand, Loop: l, In: c.In, At: c, Name: pkg.CallName(c, w), Uses: Passed,
				Why: "the backlog doesn't know of it, so compute it before, and give it to Read",
				pat: func() Pattern { return Reading },
			}
		}
	}
	return nil
}

// takesFresh reports whether an operand of c holds tensors that l has enqueued the work for.
func takesFresh(pkg *blocking.Package, c *blocking.Call, l *blocking.Loop) bool {
	return slices.ContainsFunc(slices.Concat(c.Operand(tensorapi.Recv), c.Expr.Args), func(e ast.Expr) bool {
		t := pkg.Info.TypeOf(e)
		return t != nil && pkg.HoldsTensors(t) && pkg.Fresh(e, c.In, l)
	})
}

// isReadAhead reports whether e is a value that a backlog has taken, or l gives the tensor in the variable e to one.
func isReadAhead(pkg *blocking.Package, e ast.Expr, l *blocking.Loop) bool {
	if named, ok := types.Unalias(pkg.Info.TypeOf(e)).(*types.Named); ok && (named.Obj().Name() == "Read" || named.Obj().Name() == "Rows") {
		return true
	}
	v := pkg.Local(e)
	return v != nil && pkg.Any(l, func(d *blocking.Call) bool {
		return d.IsFunc("Read") && d.Lib == tensorapi.Ours() && slices.ContainsFunc(d.Expr.Args, func(e ast.Expr) bool { return pkg.Local(e) == v })
	})
}
