package blocking

import (
	"go/ast"
	"go/token"
	"go/types"
	"regexp"
	"slices"
	"strings"

	"github.com/asyncgen/asyncgen/analysis/tensorapi"
)

// Functions that are called again and again although no loop calls them by their name:
//
//   - one of several implementations of a method, or hooks, that a loop calls, where others don't wait: the loop is
//     right for these, so the read is what to mend;
//   - a method that adds what it reads to a field, like a meter;
//   - a function that takes a step of training and leaves the loop to its callers.

// A repeated is why a function counts as the body of a loop.
type repeated uint8

const (
	chosen       repeated = iota + 1 // a loop calls it through a variable or an interface
	accumulating                     // it adds to a field
	stepping                         // it takes a step of training
)

// repeatedFuncs lists the functions that are repeated, each as a loop.
func (a *analyzer) repeatedFuncs() map[*Func]*Loop {
	loops := make(map[*Func]*Loop)
	for _, f := range a.funcs {
		for _, d := range f.calls {
			for _, g := range a.divided(d) {
				if loops[g] == nil && len(g.sum.Waits) > 0 {
					loops[g] = &Loop{Pos: d.Expr.Pos(), fn: g, why: chosen}
				}
			}
			if d.dynamic && d.Callee != nil && d.Callee.Pkg() == a.pass.Pkg && a.isCalledAgain(d) {
				a.pass.ExportObjectFact(d.Callee.Origin(), new(InLoop))
			}
		}
	}
	for _, of := range a.pass.AllObjectFacts() {
		method, ok := of.Object.(*types.Func)
		if _, isLooped := of.Fact.(*InLoop); !ok || !isLooped || method.Pkg() == a.pass.Pkg {
			continue
		}
		if it, ok := recvType(method).Underlying().(*types.Interface); ok {
			for _, g := range a.implementing(it, method.Name()) {
				if loops[g] == nil && len(g.sum.Waits) > 0 {
					loops[g] = &Loop{Pos: g.block.Pos(), fn: g, why: chosen}
				}
			}
		}
	}
	called := make(map[*Func]bool)
	for _, f := range a.funcs {
		for _, c := range f.calls {
			called[c.target] = called[c.target] || !a.isTest(f)
		}
	}
	for _, g := range a.funcs {
		switch {
		case loops[g] != nil || called[g] || g.lit != nil || g.cyclic || !g.isOpen() || a.isTest(g):
		case a.takesStep(g):
			loops[g] = &Loop{Pos: g.block.Pos(), fn: g, why: stepping}
		case g.sig.Recv() != nil && !rareName.MatchString(g.name):
			loops[g] = &Loop{Pos: g.block.Pos(), fn: g, why: accumulating}
		}
	}
	return loops
}

// rareName matches the names of methods that are called now and then.
var rareName = regexp.MustCompile(`(?i)epoch|valid|eval|final|summar|end|finish|flush|report|close|check|episode|round|done|stop|reset`)

// isOpen reports whether others may call f, a declared function: no handler of requests and no function that the
// language calls.
func (f *Func) isOpen() bool {
	if f.sig.Recv() == nil && (f.name == "main" || f.name == "init") {
		return false
	}
	for v := range f.sig.Params().Variables() {
		if isHTTP(v.Type()) {
			return false
		}
	}
	return true
}

func isHTTP(t types.Type) bool {
	if p, ok := types.Unalias(t).(*types.Pointer); ok {
		t = p.Elem()
	}
	named, ok := types.Unalias(t).(*types.Named)
	return ok && named.Obj().Pkg() != nil && named.Obj().Pkg().Path() == "net/http"
}

// takesStep reports whether each call of f takes a step of training, not in a loop of f's own.
func (a *analyzer) takesStep(f *Func) bool {
	steps := false
	for _, d := range f.calls {
		if !d.steps() || d.away {
			continue
		}
		if d.sum().Trains {
			return false
		}
		for range a.loopsAround(f, d.Expr.Pos()) {
			return false
		}
		steps = steps || a.guardOf(f, d.Expr.Pos(), nil) != rarely
	}
	return steps
}

// divided lists the functions of the package that d, called in each iteration of a loop through a variable or an
// interface, may lead to, if some wait, others don't, and none of those that wait is of another package.
func (a *analyzer) divided(d *Call) []*Func {
	if !d.dynamic || d.api.Kind != tensorapi.Unknown || d.away {
		return nil
	}
	var funcs []*Func
	waits, quiet := false, false
	for _, v := range a.candidates(d) {
		switch {
		case len(v.summary().Waits) == 0:
			quiet = true
		case v.fn == nil:
			return nil
		default:
			waits = true
		}
		if v.fn != nil {
			funcs = append(funcs, v.fn)
		}
	}
	if !waits || !quiet || !a.isCalledAgain(d) {
		return nil
	}
	return funcs
}

// isCalledAgain reports whether d, a call of a function that is not known, is in each iteration of a loop, but not one
// that does no more than to call the elements of a list, or in a function that takes a step of training.
func (a *analyzer) isCalledAgain(d *Call) bool {
	if a.guardOf(d.in, d.Expr.Pos(), nil) == rarely {
		return false
	}
	for l := range a.loopsAround(d.in, d.Expr.Pos()) {
		if !l.small && !a.appliesList(d, l) && a.any(l, (*Call).enqueues) {
			return !a.isOuter(l, d) && a.guardOf(d.in, d.Expr.Pos(), l) != rarely
		}
	}
	return a.takesStep(d.in.owner())
}

// candidates lists the functions that d, a call of a function that is not known, may lead to, as far as the package
// shows them.
func (a *analyzer) candidates(d *Call) []funcValue {
	if d.each != nil {
		return d.each
	}
	var list []funcValue
	if d.Callee != nil {
		if it, ok := recvType(d.Callee).Underlying().(*types.Interface); ok {
			for _, f := range a.implementing(it, d.Callee.Name()) {
				list = append(list, funcValue{fn: f})
			}
		}
		return list
	}
	t := a.info.TypeOf(d.Expr.Fun)
	v := a.variable(d.Expr.Fun)
	for _, f := range a.funcs {
		if f.lit == nil {
			continue
		}
		if isNamedType(t) && a.isMadeAs(f, t) || v != nil && v.IsField() && slices.ContainsFunc(a.defs[v], func(x def) bool { return orNil(x.value) == ast.Expr(f.lit) }) {
			list = append(list, funcValue{fn: f})
		}
	}
	return list
}

func isNamedType(t types.Type) bool {
	_, ok := types.Unalias(t).(*types.Named)
	return ok
}

// isMadeAs reports whether the literal f becomes a value of the named type t where it is written: it is returned as
// one, or converted to one.
func (a *analyzer) isMadeAs(f *Func, t types.Type) bool {
	switch n := f.cur.Parent().Node().(type) {
	case *ast.ReturnStmt:
		i := slices.Index(n.Results, ast.Expr(f.lit))
		return f.parent != nil && i >= 0 && i < f.parent.sig.Results().Len() && types.Identical(f.parent.sig.Results().At(i).Type(), t)
	case *ast.CallExpr:
		return a.info.Types[n.Fun].IsType() && types.Identical(a.info.TypeOf(n.Fun), t)
	}
	return false
}

// isTest reports whether f is in a file of tests.
func (a *analyzer) isTest(f *Func) bool {
	return strings.HasSuffix(a.pass.Fset.File(f.block.Pos()).Name(), "_test.go")
}

// repeatedSite returns the site that c, in a repeated function, is; or nil.
func (a *analyzer) repeatedSite(c *Call, l *Loop) *Site {
	for range a.loopsAround(c.in, c.Expr.Pos()) {
		return nil
	}
	for _, w := range a.waits(c) {
		if w.operand == nil || w.via != nil && (w.via.InLoop || w.via.Guarded) || a.guardOf(c.in, c.Expr.Pos(), nil) != always || a.waitedBefore(c, w.operand, l) {
			continue
		}
		if !a.fresh(w.operand, c.in, l) && !a.isOfParam(w.operand, l.fn) || a.any(l, isOutside) || isAllowed(c) {
			continue
		}
		s := &Site{Call: c.Expr, Cur: c.cur, Kind: w.kind, Operand: w.operand, Loop: l, in: c.in, at: c, Name: a.callName(c, w), Timed: c.in.outermost().contains(tellsTime)}
		if w.via != nil {
			s.Chain, s.Callee = w.via.Chain, a.callName(c, w)
		}
		if w.kind == PrintSite {
			s.Uses = Printed
		}
		gathered, compared, returned := false, false, false
		for _, p := range a.uses(c, l) {
			s.Uses |= p.use
			_, isReturn := p.cur.Parent().Node().(*ast.ReturnStmt)
			returned = returned || isReturn
			gathered = gathered || a.isGathered(p)
			compared = compared || isCondition(p)
		}
		switch {
		case l.why == chosen && !returned,
			l.why == accumulating && gathered && !compared && a.isOfParam(w.operand, l.fn),
			l.why == stepping && !returned && (gathered && !compared || w.kind == PrintSite && a.isLog(c)):
			return s
		}
	}
	return nil
}

// isOfParam reports whether e is computed from a parameter of f, not from its receiver alone.
func (a *analyzer) isOfParam(e ast.Expr, f *Func) bool {
	found := false
	seen := make(map[*types.Var]bool)
	var visit func(e ast.Node)
	visit = func(e ast.Node) {
		ast.Inspect(e, func(n ast.Node) bool {
			id, ok := n.(*ast.Ident)
			if !ok || found {
				return !found
			}
			v, ok := a.info.Uses[id].(*types.Var)
			if !ok || v.IsField() || seen[v] {
				return true
			}
			seen[v] = true
			if p, ok := a.params[v]; ok {
				found = found || p.of == f && p.operand != tensorapi.Recv
				return true
			}
			for _, d := range a.defs[v] {
				if d.value != nil {
					visit(d.value)
				}
			}
			return true
		})
	}
	visit(e)
	return found
}

// isGathered reports whether the value at p is added to what a field holds: s.sum += v, s.list = append(s.list, v),
// s.mean = 0.9*s.mean + 0.1*v.
func (a *analyzer) isGathered(p place) bool {
	for cur := range p.cur.Enclosing((*ast.AssignStmt)(nil), (*ast.FuncLit)(nil)) {
		n, ok := cur.Node().(*ast.AssignStmt)
		if !ok || len(n.Lhs) != 1 || len(n.Rhs) != 1 {
			return false
		}
		sel, ok := ast.Unparen(n.Lhs[0]).(*ast.SelectorExpr)
		if !ok || a.variable(sel) == nil || !a.variable(sel).IsField() {
			return false
		}
		return n.Tok != token.ASSIGN && n.Tok != token.DEFINE || a.mentionsAny(n.Rhs[0], map[types.Object]bool{a.variable(sel): true})
	}
	return false
}

// isCondition reports whether the value at p is what an if statement asks for: the best so far is kept, not each.
func isCondition(p place) bool {
	for cur := range p.cur.Enclosing((*ast.IfStmt)(nil)) {
		n := cur.Node().(*ast.IfStmt)
		return n.Cond.Pos() <= p.pos && p.pos < n.Cond.End()
	}
	return false
}

// isLog reports whether c prints for whoever watches the program: not to a writer that the function is given.
func (a *analyzer) isLog(c *Call) bool {
	if len(c.Expr.Args) == 0 {
		return true
	}
	_, isParam := a.params[a.local(c.Expr.Args[0])]
	return !isParam || isTensor(a.info.TypeOf(c.Expr.Args[0]))
}
