package sites

import (
	"go/ast"
	"go/token"
	"go/types"
	"regexp"
	"slices"
	"strings"

	"github.com/asyncgen/asyncgen/analysis/blocking"
	"github.com/asyncgen/asyncgen/analysis/internal/syntax"
	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"golang.org/x/tools/go/analysis"
)

// Functions that run many times although no loop calls them by name:
//
//   - one of several implementations of a method, or one of several hooks, that a loop calls. The loop
//     is right for those that don't wait, so the read in the others has to change;
//   - a function that another package calls so (inloop.go);
//   - a method that adds what it reads to a field, like a meter;
//   - the Forward of a module;
//   - a function that takes a step of training and leaves the loop to its callers;
//   - a function with a comment that says that it is called in each step;
//   - a function that sets the rate of an optimiser by what it reads;
//   - a method whose name says that it is called after each step, like OnStep;
//   - a function that is registered by such a name (hooks.go).

// rareName matches the names of methods that are called now and then.
var rareName = regexp.MustCompile(`(?i)epoch|valid|eval|final|summar|end|finish|flush|report|close|check|episode|round|done|stop|reset`)

// stepName matches the names of methods that are called after each step of training.
var stepName = regexp.MustCompile(`(?i)^(on|after|post|end)_?(train)?_?(step|batch|iter)|^(train)?(step|batch|iteration)_?(end|done|finished)$`)

// repeatedFuncs returns the functions that are called again and again, each with its body as a loop. It
// exports facts about the interface methods of this package, and uses those about the interface methods
// of other packages.
func repeatedFuncs(pass *analysis.Pass, pkg *blocking.Package) map[*blocking.Func]*blocking.Loop {
	loops := make(map[*blocking.Func]*blocking.Loop)
	for _, f := range pkg.Funcs {
		for _, d := range f.Calls {
			for _, g := range divided(pkg, d) {
				if loops[g] == nil && len(g.Summary.Waits) > 0 {
					loops[g] = &blocking.Loop{Pos: d.Expr.Pos(), Func: g, Why: blocking.Chosen}
				}
			}
		}
	}
	for g, why := range loopedElsewhere(pass, pkg) {
		if loops[g] == nil {
			loops[g] = &blocking.Loop{Pos: g.Body.Pos(), Func: g, Why: why}
		}
	}
	for _, g := range namedHooks(pkg) {
		if loops[g] == nil && !isTest(pkg, g) {
			loops[g] = &blocking.Loop{Pos: g.Body.Pos(), Func: g, Why: blocking.Chosen}
		}
	}
	called := make(map[*blocking.Func]bool)
	for _, f := range pkg.Funcs {
		for _, c := range f.Calls {
			called[c.Target] = called[c.Target] || !isTest(pkg, f)
		}
	}
	for _, g := range pkg.Funcs {
		switch {
		case loops[g] == nil && (isConvertedHook(pkg, g) || setsRate(pkg, g) && (g.Lit != nil && g.Runs() == blocking.Detached || g.Lit == nil && !called[g])) && !isTest(pkg, g):
			loops[g] = &blocking.Loop{Pos: g.Body.Pos(), Func: g, Why: blocking.Chosen}
		case loops[g] != nil || called[g] || g.Lit != nil || g.Cyclic || !isOpen(g) || isTest(pkg, g):
		case g.Sig.Recv() != nil && stepName.MatchString(g.Name), saysOften(g):
			loops[g] = &blocking.Loop{Pos: g.Body.Pos(), Func: g, Why: blocking.Chosen}
		case isLayer(g):
			loops[g] = &blocking.Loop{Pos: g.Body.Pos(), Func: g, Why: blocking.Layered}
		case takesStep(pkg, g):
			loops[g] = &blocking.Loop{Pos: g.Body.Pos(), Func: g, Why: blocking.Stepping}
		case g.Sig.Recv() != nil && !rareName.MatchString(g.Name) && !saysWaits(g):
			loops[g] = &blocking.Loop{Pos: g.Body.Pos(), Func: g, Why: blocking.Accumulating}
		}
	}
	return loops
}

// isOpen reports whether others may call f, a declared function, many times. Nobody calls main and
// init, and a handler of requests runs once for each request.
func isOpen(f *blocking.Func) bool {
	if f.Sig.Recv() == nil && (f.Name == "main" || f.Name == "init") {
		return false
	}
	for v := range f.Sig.Params().Variables() {
		if isHTTP(v.Type()) {
			return false
		}
	}
	return true
}

// isHTTP reports whether t is a type of package net/http, or a pointer to one.
func isHTTP(t types.Type) bool {
	if p, ok := types.Unalias(t).(*types.Pointer); ok {
		t = p.Elem()
	}
	named, ok := types.Unalias(t).(*types.Named)
	return ok && named.Obj().Pkg() != nil && named.Obj().Pkg().Path() == "net/http"
}

// isLayer reports whether f is the method Forward of a module of our library: it has parameters, and maps tensors to
// one. A model calls it in each step.
func isLayer(f *blocking.Func) bool {
	recv, sig := f.Sig.Recv(), f.Sig
	return recv != nil && f.Name == "Forward" && sig.Results().Len() == 1 && blocking.IsTensor(sig.Results().At(0).Type()) &&
		sig.Params().Len() > 0 && blocking.IsTensor(sig.Params().At(0).Type()) && syntax.HasMethod(f.Package.Pass.Pkg, recv.Type(), []string{"Params"})
}

// takesStep reports whether each call of f takes a step of training that is in no loop of f.
func takesStep(pkg *blocking.Package, f *blocking.Func) bool {
	steps := false
	for _, d := range f.Calls {
		if !d.Steps() || d.Away {
			continue
		}
		if d.Summary().Trains {
			return false
		}
		for range pkg.LoopsAround(f, d.Expr.Pos()) {
			return false
		}
		steps = steps || pkg.GuardOf(f, d.Expr.Pos(), nil) != blocking.Rarely
	}
	return steps
}

// divided lists functions of the package that d may lead to, where d is a call through a variable or an
// interface in each iteration of a loop. If some of these functions wait and others don't, the call is
// right for the others, and those that wait are listed. So are they if all wait, but d's function is given one by its
// callers, who may give it others. It returns nil if a waiting one is in another package, where it can't be reported.
func divided(pkg *blocking.Package, d *blocking.Call) []*blocking.Func {
	if !d.Dynamic || d.API.Kind != tensorapi.Unknown || d.Away {
		return nil
	}
	var funcs []*blocking.Func
	waits, quiet, enqueues := false, false, false
	for _, v := range candidates(pkg, d) {
		enqueues = enqueues || v.Summary().Enqueues
		switch {
		case !slices.ContainsFunc(v.Summary().Waits, func(w blocking.Wait) bool { return !w.Guarded }):
			quiet = true // or it waits now and then
		case v.Fn == nil:
			return nil
		default:
			waits = true
		}
		if v.Fn != nil {
			funcs = append(funcs, v.Fn)
		}
	}
	isGiven := d.Callee == nil && d.Each == nil && pkg.Params[pkg.Local(d.Expr.Fun)].Of != nil
	isUnsaid := d.Callee == nil && len(d.Summary().Waits) == 0 // by an option, say: nothing tells at the call
	if !waits || !quiet && !isGiven && !isUnsaid || !isCalledAgain(pkg, d, enqueues) {
		return nil
	}
	return funcs
}

// isCalledAgain reports whether d, the call of an unknown function, runs in each iteration of a loop,
// or in a function that takes a step of training. A loop over nothing but the list of functions doesn't
// count, and neither does one that enqueues nothing, unless one of the functions does (enqueues).
func isCalledAgain(pkg *blocking.Package, d *blocking.Call, enqueues bool) bool {
	for l := range pkg.LoopsAround(d.In, d.Expr.Pos()) {
		if pace := paceOf(pkg, d, l, enqueues); pace != idle {
			return pace == busy && pkg.GuardOf(d.In, d.Expr.Pos(), l) != blocking.Rarely && pkg.GuardOfLoop(l) != blocking.Rarely
		}
	}
	return pkg.GuardOf(d.In, d.Expr.Pos(), nil) != blocking.Rarely && takesStep(pkg, d.In.Owner())
}

// candidates lists the functions that d, the call of an unknown function, may lead to, as far as this package shows.
func candidates(pkg *blocking.Package, d *blocking.Call) []blocking.FuncValue {
	if d.Each != nil {
		return append(slices.Clip(d.Each), handedOut(pkg, d)...)
	}
	var list []blocking.FuncValue
	if d.Callee != nil {
		if it, ok := syntax.RecvType(d.Callee).Underlying().(*types.Interface); ok {
			for _, f := range pkg.Implementing(it, d.Callee.Name()) {
				list = append(list, blocking.FuncValue{Fn: f})
			}
		}
		return list
	}
	t := pkg.Info.TypeOf(d.Expr.Fun)
	v := pkg.Variable(d.Expr.Fun)
	for _, f := range pkg.Funcs {
		if f.Lit == nil {
			continue
		}
		if isNamedType(t) && isMadeAs(pkg, f, t) || v != nil && v.IsField() && isSetTo(pkg, v, f.Lit) {
			list = append(list, blocking.FuncValue{Fn: f})
		}
	}
	return list
}

// isSetTo reports whether the field v is set to lit, directly or by a function that is given lit, as options are:
//
//	func OnStep(f func(loss *tensor.Tensor)) Option { return func(c *config) { c.onStep = f } }
func isSetTo(pkg *blocking.Package, v *types.Var, lit *ast.FuncLit) bool {
	return slices.ContainsFunc(pkg.Defs[v], func(x blocking.Def) bool {
		if x.Value == nil || x.Value == ast.Expr(lit) {
			return x.Value != nil
		}
		p := pkg.Params[pkg.Local(x.Value)]
		return p.Of != nil && slices.ContainsFunc(pkg.CallersOf(p.Of), func(d *blocking.Call) bool {
			return slices.Contains(d.Operand(p.Operand), ast.Expr(lit))
		})
	})
}

// handedOut lists the literals that exported functions return as values of the type of what d calls, an element of a
// list. Others may put them into the list.
//
//	func Bar(w io.Writer) Hook { return func(s *State) error { … } }
func handedOut(pkg *blocking.Package, d *blocking.Call) (list []blocking.FuncValue) {
	t := pkg.Info.TypeOf(d.Expr.Fun)
	if d.Callee != nil || !isNamedType(t) {
		return nil
	}
	for _, f := range pkg.Funcs {
		if f.Lit != nil && f.Parent != nil && ast.IsExported(f.Parent.Name) && isMadeAs(pkg, f, t) && !slices.ContainsFunc(d.Each, func(v blocking.FuncValue) bool { return v.Fn == f }) {
			list = append(list, blocking.FuncValue{Fn: f})
		}
	}
	return list
}

// isNamedType reports whether t has a name.
func isNamedType(t types.Type) bool {
	_, ok := types.Unalias(t).(*types.Named)
	return ok
}

// isMadeAs reports whether the literal f becomes a value of the named type t where it is written, by a
// return or by a conversion.
func isMadeAs(pkg *blocking.Package, f *blocking.Func, t types.Type) bool {
	switch n := f.Cur.Parent().Node().(type) {
	case *ast.ReturnStmt:
		i := slices.Index(n.Results, ast.Expr(f.Lit))
		return f.Parent != nil && i >= 0 && i < f.Parent.Sig.Results().Len() && types.Identical(f.Parent.Sig.Results().At(i).Type(), t)
	case *ast.CallExpr:
		return pkg.Info.Types[n.Fun].IsType() && types.Identical(pkg.Info.TypeOf(n.Fun), t)
	}
	return false
}

// isTest reports whether f is in a test file.
func isTest(pkg *blocking.Package, f *blocking.Func) bool {
	return strings.HasSuffix(pkg.Pass.Fset.File(f.Body.Pos()).Name(), "_test.go")
}

// repeatedSite returns the site that c is, in a function that is called again and again, whose body is l; or nil.
func repeatedSite(pkg *blocking.Package, c *blocking.Call, l *blocking.Loop) *Site {
	for around := range pkg.LoopsAround(c.In, c.Expr.Pos()) {
		if l.Why != blocking.Layered || !around.Small {
			return nil
		}
	}
	for _, w := range pkg.Waits(c) {
		if w.Via != nil && (w.Via.InLoop || w.Via.Guarded) || pkg.GuardOf(c.In, c.Expr.Pos(), nil) != blocking.Always || WaitedBefore(pkg, c, w.Operand, l) {
			continue
		}
		if !isOfCall(pkg, c, w, l) || w.Operand != nil && pkg.OfLastCall(w.Operand, c.In, c.Expr.Pos()) || pkg.Any(l, IsOutside) || IsAllowed(c) {
			continue
		}
		s := &Site{Call: c.Expr, Cur: c.Cur, Kind: w.Kind, Operand: w.Operand, Loop: l, In: c.In, At: c, Name: pkg.CallName(c, w), Timed: c.In.Outermost().Contains(blocking.TellsTime)}
		if w.Via != nil {
			s.Chain, s.Callee = w.Via.Chain, pkg.CallName(c, w)
		}
		if w.Kind == blocking.WaitPrint {
			s.Uses = Printed
		}
		gathered, compared, returned := false, false, false
		for _, p := range Uses(pkg, c, l) {
			s.Uses |= p.Use
			_, isReturn := p.Cur.Parent().Node().(*ast.ReturnStmt)
			returned = returned || isReturn && p.in == l.Func
			tallied := isTallied(pkg, p)
			gathered = gathered || tallied || isGathered(pkg, p)
			compared = compared || !tallied && isCondition(p)
		}
		switch {
		case l.Why == blocking.Layered && s.Uses != 0, l.Why == blocking.Measuring,
			l.Why == blocking.Chosen && (!returned || saysOften(l.Func) || computesWith(pkg, l)),
			l.Why == blocking.Accumulating && gathered && !compared && isOfParam(pkg, w.Operand, l.Func) && !l.Func.Contains(locksMutex),
			l.Why == blocking.Stepping && !returned && (gathered && !compared || w.Kind == blocking.WaitPrint && isLog(pkg, c)),
			l.Why == blocking.Stepping && s.Uses == Computes:
			return s
		}
	}
	return nil
}

// isOfCall reports whether w, a wait of c, is for something that each call of l's function computes or is given. What c
// computes and reads by itself counts for a hook, and so does a model that it saves.
//
//	func (c *collapse) watch(r train.Report) { c.gaps = append(c.gaps, r.Gap()) } // Gap subtracts two losses
func isOfCall(pkg *blocking.Package, c *blocking.Call, w blocking.CallWait, l *blocking.Loop) bool {
	if w.Operand == nil {
		return (l.Why == blocking.Chosen || l.Why == blocking.Measuring) && (c.API.Kind == tensorapi.Save || c.API.Kind == tensorapi.Unknown && c.Summary().Enqueues)
	}
	return pkg.Fresh(w.Operand, c.In, l) || isOfParam(pkg, w.Operand, l.Func)
}

// locksMutex recognises calls that lock a mutex. Who reads before has seen to it that nobody waits for the lock; what
// is read under it is a finding of its own.
func locksMutex(c *blocking.Call) bool {
	fn := c.Callee
	return fn != nil && fn.Pkg() != nil && fn.Pkg().Path() == "sync" && (fn.Name() == "Lock" || fn.Name() == "RLock")
}

// isOfParam reports whether e is computed from a parameter of f, and not from its receiver alone.
func isOfParam(pkg *blocking.Package, e ast.Expr, f *blocking.Func) bool {
	found := false
	seen := make(map[*types.Var]bool)
	var visit func(e ast.Node)
	visit = func(e ast.Node) {
		ast.Inspect(e, func(n ast.Node) bool {
			id, ok := n.(*ast.Ident)
			if !ok || found {
				return !found
			}
			v, ok := pkg.Info.Uses[id].(*types.Var)
			if !ok || v.IsField() || seen[v] {
				return true
			}
			seen[v] = true
			if p, ok := pkg.Params[v]; ok {
				found = found || p.Of == f && p.Operand != tensorapi.Recv
				return true
			}
			for _, d := range pkg.Defs[v] {
				if d.Value != nil {
					visit(d.Value)
				}
			}
			return true
		})
	}
	visit(e)
	return found
}

// isGathered reports whether the value at p is added to what a field holds: s.sum += v, s.list = append(s.list, v),
// s.mean = 0.9*s.mean + 0.1*v, s.counts[v]++.
func isGathered(pkg *blocking.Package, p Place) bool {
	for cur := range p.Cur.Enclosing((*ast.AssignStmt)(nil), (*ast.IncDecStmt)(nil), (*ast.FuncLit)(nil)) {
		switch n := cur.Node().(type) {
		case *ast.IncDecStmt:
			return fieldOf(pkg, n.X) != nil
		case *ast.AssignStmt:
			if len(n.Lhs) != 1 || len(n.Rhs) != 1 {
				return false
			}
			field := fieldOf(pkg, n.Lhs[0])
			return field != nil && (n.Tok != token.ASSIGN && n.Tok != token.DEFINE || pkg.MentionsAny(n.Rhs[0], map[types.Object]bool{field: true}))
		}
		return false
	}
	return false
}

// fieldOf returns the field that e is, or is an element of; or nil.
func fieldOf(pkg *blocking.Package, e ast.Expr) *types.Var {
	for {
		x, ok := ast.Unparen(e).(*ast.IndexExpr)
		if !ok {
			break
		}
		e = x.X
	}
	if v := pkg.Variable(e); v != nil && v.IsField() {
		return v
	}
	return nil
}

// isCondition reports whether an if statement asks for the value at p, as one that keeps the best does.
func isCondition(p Place) bool {
	for cur := range p.Cur.Enclosing((*ast.IfStmt)(nil)) {
		n := cur.Node().(*ast.IfStmt)
		return n.Cond.Pos() <= p.Pos && p.Pos < n.Cond.End()
	}
	return false
}

// isTallied reports whether an if statement asks for the value at p only to keep the largest or the smallest one in a
// field, as max and min do, or to count it there. A count that the function itself asks for is another matter.
//
//	if v := t.Item(); v > p.max {
//		p.max = v
//	}
func isTallied(pkg *blocking.Package, p Place) bool {
	for cur := range p.Cur.Enclosing((*ast.IfStmt)(nil)) {
		n := cur.Node().(*ast.IfStmt)
		if p.Pos < n.Cond.Pos() || n.Cond.End() <= p.Pos || n.Else != nil || len(n.Body.List) != 1 || p.Use != Kept {
			return false
		}
		var field *types.Var
		switch s := n.Body.List[0].(type) {
		case *ast.IncDecStmt:
			field = pkg.Variable(s.X)
			if field == nil || isAskedFor(pkg, field, p.in.Owner()) {
				return false
			}
		case *ast.AssignStmt:
			field = pkg.Variable(s.Lhs[0])
			if len(s.Lhs) != 1 || s.Tok != token.ASSIGN || field == nil || !pkg.Mentions(n.Cond, field) {
				return false
			}
		}
		return field != nil && field.IsField() && syntax.IsNumeric(field.Type())
	}
	return false
}

// isAskedFor reports whether a condition of f mentions v.
func isAskedFor(pkg *blocking.Package, v *types.Var, f *blocking.Func) bool {
	for cur := range f.Cur.Preorder((*ast.IfStmt)(nil)) {
		if pkg.Mentions(cur.Node().(*ast.IfStmt).Cond, v) {
			return true
		}
	}
	return false
}

// isLog reports whether c prints for those who watch the program, and not to a writer that the function is given.
func isLog(pkg *blocking.Package, c *blocking.Call) bool {
	if len(c.Expr.Args) == 0 {
		return true
	}
	_, isParam := pkg.Params[pkg.Local(c.Expr.Args[0])]
	return !isParam || blocking.IsTensor(pkg.Info.TypeOf(c.Expr.Args[0]))
}
