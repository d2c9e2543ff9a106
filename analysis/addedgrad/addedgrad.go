package addedgrad

import (
	_ "embed"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"github.com/asyncgen/asyncgen/analysis/blocking"
	"github.com/asyncgen/asyncgen/analysis/lint"
	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"golang.org/x/tools/go/analysis"
)

//go:embed doc.go
var doc string

// Analyzer is rule AT036.
var Analyzer = rule.Analyzer()

var rule = &lint.Rule{ID: "AT036", Package: "addedgrad", Doc: doc, Check: check}

func check(p *lint.Pass) {
	var r *gradients
	for _, f := range p.Funcs {
		for _, c := range f.Calls {
			if c.Away || !c.IsFunc("Tensor.Backward") {
				continue
			}
			if r == nil {
				r = newGradients(p.Package)
			}
			remedy, ok := r.addUp(c)
			if !ok {
				continue
			}
			p.Report(lint.Warning, analysis.Diagnostic{
				Pos:     c.Expr.Pos(),
				End:     c.Expr.End(),
				Message: types.ExprString(c.Expr) + " adds to the gradients of all steps before, and nothing drops them; " + remedy,
			})
		}
	}
}

// gradients says which gradients of a package are dropped.
type gradients struct {
	*blocking.Trainings
	drops []drop
}

// A drop is a call that drops gradients: ZeroGrad or Minimize of the optimiser in a variable or field, or, if that is
// nil, of a parameter or of an optimiser that a function is given.
type drop struct {
	by *blocking.Call
	of *types.Var
}

func newGradients(pkg *blocking.Package) *gradients {
	r := &gradients{Trainings: pkg.Trainings()}
	for _, f := range pkg.Funcs {
		for _, c := range f.Calls {
			if !c.IsFunc("Optimizer.Minimize") && (c.Callee == nil || c.Callee.Name() != "ZeroGrad") {
				continue
			}
			r.addDrops(c, receiver(pkg, c), 0)
		}
	}
	return r
}

// addDrops adds the call c. It drops the gradients of the optimiser in v. If v is a parameter, and only this package
// calls the function, c drops those of the arguments. Depth bounds how far up addDrops looks.
func (r *gradients) addDrops(c *blocking.Call, v *types.Var, depth int) {
	if v != nil && !blocking.IsOptimiser(v.Type()) {
		v = nil
	}
	p := r.Params[v]
	if v == nil || p.Of == nil {
		r.drops = append(r.drops, drop{c, v})
		return
	}
	callers := r.CallersOf(p.Of)
	if len(callers) == 0 || depth > 2 || p.Of.Lit != nil || ast.IsExported(p.Of.Name) && r.Pass.Pkg.Name() != "main" {
		r.drops = append(r.drops, drop{c, nil})
		return
	}
	for _, d := range callers {
		var w *types.Var
		if given := d.Operand(p.Operand); len(given) == 1 {
			w = r.Variable(given[0])
		}
		r.addDrops(c, w, depth+1)
	}
}

// receiver returns the variable or field that c is a method of, or nil.
func receiver(pkg *blocking.Package, c *blocking.Call) *types.Var {
	recv := c.Operand(tensorapi.Recv)
	if len(recv) != 1 {
		return nil
	}
	return pkg.Variable(recv[0])
}

// addUp reports whether gradients are added to by c, a call of Backward, that nobody drops, and what to do about it.
func (r *gradients) addUp(c *blocking.Call) (remedy string, ok bool) {
	owner := c.In.Owner()
	if !r.isRepeated(c, 0) {
		return "", false
	}
	from, to := c.Expr.End(), nextBackward(owner, c)
	follows := func(d *blocking.Call) bool { return d.In == c.In && from <= d.Expr.Pos() && d.Expr.Pos() < to }
	apart := owner.Contains(func(d *blocking.Call) bool { return d.IsFunc("Optimizer.Step") && follows(d) })
	for f := range owner.Tree() {
		for _, d := range f.Calls {
			switch v := receiver(r.Package, d); {
			case d.Away || v == nil || apart && !follows(d): // of another Backward
			case d.IsFunc("Optimizer.Step"):
				if !r.isDropped(v, r.dropsBeside(c, d)) && !r.isOthers(v) && !r.isNew(v, c) {
					name := types.ExprString(d.Operand(tensorapi.Recv)[0])
					return "call " + name + ".ZeroGrad() before, or " + name + ".Minimize", true
				}
			case strings.HasSuffix(d.API.Name, ".Param).Set") && len(r.dropsBeside(c, d)) == 0 && takesGradient(r.Package, d):
				return "call ZeroGrad of each parameter after the step", true
			}
		}
	}
	return r.stepsBeside(c)
}

// nextBackward returns the place of the first call of Backward behind c in the same function.
func nextBackward(owner *blocking.Func, c *blocking.Call) token.Pos {
	next := owner.Body.End()
	for _, d := range c.In.Calls {
		if d.IsFunc("Tensor.Backward") && d.Expr.Pos() > c.Expr.End() && d.Expr.Pos() < next {
			next = d.Expr.Pos()
		}
	}
	return next
}

// stepsBeside is addUp for c in a function that takes no step, if a loop calls this function and one that steps:
//
//	for _, b := range batches {
//		t.backward(b)
//		t.update()
//	}
func (r *gradients) stepsBeside(c *blocking.Call) (remedy string, ok bool) {
	owner := c.In.Owner()
	if r.RunsInLoop(c.In, c) || owner.Contains((*blocking.Call).Steps) {
		return "", false
	}
	for _, f := range r.Funcs {
		for _, call := range f.Calls {
			if call.Target != owner || call.Away {
				continue
			}
			for l := range r.LoopsAround(f, call.Expr.Pos()) {
				if l.Stmt == nil || l.Small {
					continue
				}
				if remedy, ok := r.stepIn(l, c); ok {
					return remedy, true
				}
			}
		}
	}
	return "", false
}

// stepIn reports whether l takes a step by an optimiser, also in functions that it calls, and drops no gradients.
func (r *gradients) stepIn(l *blocking.Loop, c *blocking.Call) (remedy string, ok bool) {
	runs := func(d *blocking.Call) bool { return r.Contains(l, d.In, d.Expr.Pos()) || r.CalledFrom(l, d.In) }
	if slices.ContainsFunc(r.drops, func(x drop) bool { return runs(x.by) }) {
		return "", false
	}
	for _, f := range r.Funcs {
		for _, d := range f.Calls {
			if v := receiver(r.Package, d); d.IsFunc("Optimizer.Step") && v != nil && !d.Away && runs(d) && !r.isOthers(v) && !l.Declares(v) {
				name := types.ExprString(d.Operand(tensorapi.Recv)[0])
				return "call " + name + ".ZeroGrad() after the step", true
			}
		}
	}
	return "", false
}

// dropsBeside lists the calls that drop gradients and may run between one of the steps d, which follow the calls of
// Backward c, and the next. If both are in a loop, these are calls in that loop, or in functions that it calls; else it
// is for callers to loop, and any call counts.
func (r *gradients) dropsBeside(c, d *blocking.Call) []drop {
	var around *blocking.Loop
	for l := range r.LoopsAround(c.In, c.Expr.Pos()) {
		if l.Stmt != nil && r.Contains(l, d.In, d.Expr.Pos()) {
			around = l
		}
	}
	if around == nil {
		return r.drops
	}
	return slices.DeleteFunc(slices.Clone(r.drops), func(x drop) bool {
		return !r.Contains(around, x.by.In, x.by.Expr.Pos()) && !r.CalledFrom(around, x.by.In)
	})
}

// takesGradient reports whether c sets a parameter to what is computed from its gradient.
func takesGradient(pkg *blocking.Package, c *blocking.Call) bool {
	found := false
	for _, e := range c.Expr.Args {
		ast.Inspect(e, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			d := pkg.Calls[call]
			found = found || ok && d != nil && strings.HasSuffix(d.API.Name, ".Param).Grad")
			return !found
		})
	}
	return found
}

// isDropped reports whether one of the drops is of the gradients of the parameters that the optimiser in v has.
func (r *gradients) isDropped(v *types.Var, drops []drop) bool {
	nets := r.NetworksOf(v)
	return slices.ContainsFunc(drops, func(x drop) bool {
		w := x.of
		if w == nil {
			return true
		}
		others := r.NetworksOf(w)
		return r.Root(w) == r.Root(v) || len(nets) == 0 || len(others) == 0 || slices.ContainsFunc(nets, func(n *types.Var) bool {
			return slices.ContainsFunc(others, func(m *types.Var) bool { return r.Overlap(n, m) })
		})
	})
}

// isOthers reports whether others may drop the gradients: they can name the optimiser, or are given it.
func (r *gradients) isOthers(v *types.Var) bool {
	isMain := r.Pass.Pkg.Name() == "main"
	if p := r.Params[v]; p.Of != nil && (p.Of.Lit != nil || !isMain && ast.IsExported(p.Of.Name)) || !isMain && v.Exported() {
		return true
	}
	for _, f := range r.Funcs {
		for _, c := range f.Calls {
			if c.Target == nil && c.Lib == nil && slices.ContainsFunc(c.Expr.Args, func(e ast.Expr) bool {
				w := r.Variable(e)
				return w != nil && (w == v || r.Root(w) == r.Root(v))
			}) {
				return true
			}
		}
	}
	return false
}

// isNew reports whether a loop around c makes the optimiser in v anew.
func (r *gradients) isNew(v *types.Var, c *blocking.Call) bool {
	for l := range r.LoopsAround(c.In, c.Expr.Pos()) {
		if l.Declares(v) {
			return true
		}
	}
	return false
}

// isRepeated reports whether c runs again and again: in a loop, in a function that something calls so, or in one that
// others may call.
func (r *gradients) isRepeated(c *blocking.Call, depth int) bool {
	if r.RunsInLoop(c.In, c) {
		return true
	}
	owner := c.In.Owner()
	if depth > 3 || owner.IsTest() {
		return false
	}
	called := false
	for _, f := range r.Funcs {
		for _, d := range f.Calls {
			if d.Target == owner {
				called = true
				if r.isRepeated(d, depth+1) {
					return true
				}
			}
		}
	}
	return !called && owner.Sig.Recv() != nil
}
