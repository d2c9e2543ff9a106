package blocking

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"github.com/asyncgen/asyncgen/analysis/internal/syntax"
	"github.com/asyncgen/asyncgen/analysis/tensorapi"
)

// Which tensors have a history. A tensor that is computed from parameters refers to the operations and
// operands it was computed from, for gradients to go back through. Whoever keeps the tensor keeps all
// of these:
//
//	loss := model(x)            // has a history
//	sum = sum.Add(loss)         // and so has this, a longer one in each iteration
//	n = n.Add(loss.Detach())    // has none
//
// A historian follows an expression backwards like a tracer, with two differences. The assignments that
// reach a place are found exactly, as sum = sum.Detach() must count. And a field has a history only if
// all that is assigned to it does: a rule tells a user that memory is lost, so it has to be sure.
//
// A layer may be frozen: it then computes without a history. The second half of the file finds out
// which layers are, from constructors, names, and what callers pass.

// A Lineage says whether a result has a history: certainly, or if one of the given operands has one. An
// operand may also be a layer, or a struct with layers; what that computes has a history unless it is
// frozen.
type Lineage struct {
	Yes  bool     // certainly, as far as layers have parameters of which nothing is known
	Sure bool     // certainly: the package makes or trains the layers
	From Operands // if one of these has
}

// union is the lineage of what is computed from both, or is one of both.
func (h Lineage) union(g Lineage) Lineage {
	return Lineage{h.Yes || g.Yes, h.Sure || g.Sure, h.From | g.From}
}

// HasHistory reports whether e, in f, has a history: whether it is computed from the value of a parameter by
// operations that gradients go through.
//
//	y := net.Forward(x)    // has one
//	z := y.Detach()        // has none
//	c := y.ArgMax(1)       // has none: gradients don't go through
func (pkg *Package) HasHistory(e ast.Expr, f *Func) bool { return pkg.HistoryOf(e, 0, f) }

// HistoryOf is HasHistory for result number i of e, if e is a call.
func (pkg *Package) HistoryOf(e ast.Expr, i int, f *Func) bool {
	h := newHistorian(pkg, f.Owner(), make(map[*types.Var]bool))
	return h.settle(h.expr(e, i, f))
}

// KnowsHistory reports whether e, in f, has a history even if those layers are frozen that others have made: it is
// computed with layers that the package makes or trains, or with its own tracked tensors.
func (pkg *Package) KnowsHistory(e ast.Expr, f *Func) bool {
	h := newHistorian(pkg, f.Owner(), make(map[*types.Var]bool))
	h.sure = true
	return h.settle(h.expr(e, 0, f))
}

// IsGivenHistory reports whether the history of e, in f, comes from elements of lists alone, and the caller of f passes
// these lists. The caller keeps them.
func (pkg *Package) IsGivenHistory(e ast.Expr, f *Func) bool {
	h := newHistorian(pkg, f.Owner(), make(map[*types.Var]bool))
	l := h.expr(e, 0, f)
	for op := tensorapi.Recv; op < 31; op++ {
		if v := h.fn.param(op); l.From.Has(op) && (v == nil || IsTensor(v.Type()) || !IsTensors(v.Type())) {
			return false
		}
	}
	return !l.Yes && l.From != 0
}

// Continues reports whether result number i of e, in f, is computed from what is in v, so that its
// history has the history of v as a part. No other tensor counts as having a history here: v is the
// seed.
//
//	sum = sum.Add(loss) // continues sum
func (pkg *Package) Continues(e ast.Expr, i int, f *Func, v *types.Var) bool {
	h := newHistorian(pkg, f.Owner(), make(map[*types.Var]bool))
	h.seed = v
	return h.expr(e, i, f).Yes
}

// histories says of each result of f whether it has a history; nil if none has. A return statement may
// list the results, name none, or have one call for all.
func histories(pkg *Package, f *Func) []Lineage {
	n := f.Sig.Results().Len()
	list := make([]Lineage, n)
	for i := range n {
		if !pkg.HoldsTensors(f.Sig.Results().At(i).Type()) {
			continue
		}
		for _, ret := range f.Returns {
			l := lineageBy(pkg, f, ret, i, false)
			if l.Yes {
				l.Sure = lineageBy(pkg, f, ret, i, true).Yes
			}
			list[i] = list[i].union(l)
		}
	}
	if !slices.ContainsFunc(list, func(l Lineage) bool { return l != Lineage{} }) {
		return nil
	}
	return list
}

// lineageBy returns the lineage of result number i of f by the statement ret. See KnowsHistory for sure.
func lineageBy(pkg *Package, f *Func, ret *ast.ReturnStmt, i int, sure bool) Lineage {
	h := newHistorian(pkg, f, make(map[*types.Var]bool))
	h.sure = sure
	switch {
	case len(ret.Results) == f.Sig.Results().Len():
		return h.expr(ret.Results[i], 0, f)
	case len(ret.Results) == 0:
		return h.variable(f.Sig.Results().At(i), ret.Pos(), f)
	}
	return h.expr(ret.Results[0], i, f)
}

// A historian finds the lineage of expressions in one function; lineages name operands of this
// function. To find out what callers pass, it makes another historian for each caller. All of them
// share one map of what is known.
type historian struct {
	*Package
	fn    *Func               // the function whose operands a Lineage names
	seen  map[Def]bool        // the assignments that were followed; a second time adds nothing
	known map[*types.Var]bool // answers about parameters and fields; no while the question is open
	seed  *types.Var          // if not nil, the only variable with a history, see Continues
	sure  bool                // layers of which nothing is known count as frozen, see KnowsHistory
}

// newHistorian returns a historian for operands of f. Historians that ask each other share what is known.
func newHistorian(pkg *Package, f *Func, known map[*types.Var]bool) *historian {
	return &historian{Package: pkg, fn: f, seen: make(map[Def]bool), known: known}
}

// in returns a historian for operands of f that goes on for h.
func (h *historian) in(f *Func) *historian {
	inner := newHistorian(h.Package, f, h.known)
	inner.sure = h.sure
	return inner
}

// asks returns what is known of v; if nothing is, it calls ask and keeps the answer. While ask runs, v
// counts as having no history: in a cycle of calls and fields, it is for something outside of the cycle
// to bring one in.
func (h *historian) asks(v *types.Var, ask func() bool) bool {
	known, ok := h.known[v]
	if !ok {
		h.known[v] = false
		known = ask()
		h.known[v] = known
	}
	return known
}

// settle turns a lineage into yes or no. If operands of fn decide, it asks the calls in the package
// what they pass for them: a tensor with a history, or a layer that isn't frozen.
func (h *historian) settle(l Lineage) bool {
	for op := tensorapi.Recv; op < 31 && !l.Yes; op++ {
		if v := h.fn.param(op); v != nil && l.From.Has(op) {
			if IsTensors(v.Type()) {
				l.Yes = h.passed(v)
			} else {
				l.Yes = h.learns(learnerIn(h.Package, v, make(map[any]bool)))
			}
		}
	}
	return l.Yes
}

// param returns the parameter or receiver of f that is operand i, or nil. It is the inverse of
// [Package.Params].
func (f *Func) param(i int) *types.Var {
	switch {
	case i == tensorapi.Recv:
		return f.Sig.Recv()
	case i < f.Sig.Params().Len():
		return f.Sig.Params().At(i)
	}
	return nil
}

// IsTensors reports whether t is the type of tensors, or of lists of tensors.
func IsTensors(t types.Type) bool {
	for {
		elem := syntax.ElementType(t)
		if elem == nil || IsTensor(t) {
			return IsTensor(t)
		}
		t = elem
	}
}

// passed reports whether some call in the package passes a tensor with a history for the parameter v.
func (h *historian) passed(v *types.Var) bool {
	return h.asks(v, func() bool {
		p := h.Params[v]
		return slices.ContainsFunc(h.callers()[p.Of], func(c *Call) bool {
			return slices.ContainsFunc(c.Operand(p.Operand), func(e ast.Expr) bool {
				inner := h.in(c.In.Owner())
				return inner.settle(inner.expr(e, 0, c.In))
			})
		})
	})
}

// callersOf lists, for each function of the package, the calls that may lead to it.
func callersOf(pkg *Package) map[*Func][]*Call {
	callers := make(map[*Func][]*Call)
	for _, f := range pkg.Funcs {
		for _, c := range f.Calls {
			if c.Target != nil {
				callers[c.Target] = append(callers[c.Target], c)
			}
			for _, g := range c.Impls {
				callers[g] = append(callers[g], c)
			}
		}
	}
	return callers
}

// CallersOf lists the calls in the package that may lead to f.
func (pkg *Package) CallersOf(f *Func) []*Call { return pkg.callers()[f] }

// expr returns the lineage of e, in f. If e is a call with several results, it is that of result number
// i. Types that hold tensors in fields have none: fields are looked at where they are read.
func (h *historian) expr(e ast.Expr, i int, f *Func) Lineage {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		if v, ok := h.Info.ObjectOf(e).(*types.Var); ok {
			return h.variable(v, e.Pos(), f)
		}
	case *ast.SelectorExpr:
		if v := h.Package.Variable(e); v != nil {
			return h.shared(v)
		}
	case *ast.IndexExpr:
		return h.expr(e.X, 0, f)
	case *ast.SliceExpr:
		return h.expr(e.X, 0, f)
	case *ast.StarExpr:
		return h.expr(e.X, 0, f)
	case *ast.CompositeLit:
		var l Lineage
		if !IsTensors(h.Info.TypeOf(e)) {
			break
		}
		for _, elt := range e.Elts {
			if kv, ok := elt.(*ast.KeyValueExpr); ok {
				elt = kv.Value
			}
			l = l.union(h.expr(elt, 0, f))
		}
		return l
	case *ast.CallExpr:
		switch tv := h.Info.Types[e.Fun]; {
		case tv.IsType():
			return h.expr(e.Args[0], 0, f)
		case tv.IsBuiltin():
			if syntax.IsBuiltin(h.Info, e, "append") {
				return h.union(e.Args, f)
			}
		case h.Calls[e] != nil:
			return h.call(h.Calls[e], i)
		}
	}
	return Lineage{}
}

// union returns the lineage of a list: that of any of its expressions that hold tensors.
func (h *historian) union(list []ast.Expr, f *Func) Lineage {
	var l Lineage
	for _, e := range list {
		if h.HoldsTensors(h.Info.TypeOf(e)) {
			l = l.union(h.expr(e, 0, f))
		}
	}
	return l
}

// variable returns the lineage of what is in v where f uses it at pos. If v is a tensor, only the
// assignments count that reach this place; if it is a list, all of them, as each may have set an
// element.
func (h *historian) variable(v *types.Var, pos token.Pos, f *Func) Lineage {
	switch {
	case v == h.seed:
		return Lineage{Yes: true}
	case v.IsField() || v.Parent() == h.Pass.Pkg.Scope():
		return h.shared(v)
	case !IsTensors(v.Type()):
		return Lineage{}
	}
	defs, passed := h.Defs[v], true
	if IsTensor(v.Type()) {
		defs, passed = reaching(h.Package, v, pos, f)
	}
	var l Lineage
	// What the caller has passed, if nothing hides it.
	if p, ok := h.Params[v]; ok && passed && h.seed == nil {
		if p.Of == h.fn {
			l.From = operands(p.Operand)
		} else {
			l.Yes = h.passed(v)
		}
	}
	for _, d := range defs {
		if h.seen[d] || d.Kind != DefValue && d.Kind != DefElem {
			continue
		}
		h.seen[d] = true
		l = l.union(h.expr(d.Value, d.Index, d.In))
	}
	return l
}

// shared returns the lineage of a field or a package variable. It has a history if everything has one
// that is assigned to it, apart from nil and empty lists: a place that also holds detached tensors is
// no sure find.
func (h *historian) shared(v *types.Var) Lineage {
	if h.seed != nil || !IsTensors(v.Type()) {
		return Lineage{Yes: v == h.seed}
	}
	return Lineage{Yes: h.asks(v, func() bool {
		some := false
		for _, d := range h.Defs[v] {
			if d.In == nil || d.Kind != DefValue {
				return false
			}
			if call := syntax.AsCall(d.Value); syntax.IsNil(h.Info, d.Value) || call != nil && syntax.IsBuiltin(h.Info, call, "make") {
				continue
			}
			inner := h.in(d.In.Owner())
			if !inner.settle(inner.expr(d.Value, d.Index, d.In)) {
				return false
			}
			some = true
		}
		return some
	})}
}

// reaching lists the assignments to v, a local variable, that may have set the value which v has where
// f uses it at pos. It also reports whether v may still have the value that was passed in (passed).
//
//	loss := step()        // doesn't reach the use: hidden by the next one
//	loss = loss.Detach()  // reaches it
//	use(loss)
//
// If another function assigns v as well, there is no order, and all assignments count.
func reaching(pkg *Package, v *types.Var, pos token.Pos, f *Func) (list []Def, passed bool) {
	// A problem of reaching definitions, solved for one variable and one place.
	fl := f.Flow()
	here := fl.BlockAt(pos)
	all := pkg.Defs[v]
	if here < 0 || slices.ContainsFunc(all, func(d Def) bool { return d.In != f || fl.BlockAt(d.Pos) < 0 }) {
		return all, true
	}
	last := make(map[int32]Def) // the last one of each block
	var before *Def             // the last one before pos in its block
	for i, d := range all {
		at, end := fl.BlockAt(d.Pos), d.Pos
		if d.Kind == DefValue {
			end = d.Value.End()
		}
		if old, ok := last[at]; !ok || old.Pos < d.Pos {
			last[at] = d
		}
		if at == here && end <= pos && (before == nil || before.Pos < d.Pos) {
			before = &all[i]
		}
	}
	if before != nil {
		return []Def{*before}, false // it hides all others
	}
	// The last assignment of each block counts, if there is a way from there to here without another one.
	assigned := func(b int32) bool { _, ok := last[b]; return ok }
	for at, d := range last {
		if fl.Reaches(at, here, assigned) {
			list = append(list, d)
		}
	}
	slices.SortFunc(list, func(d, e Def) int { return int(d.Pos - e.Pos) })
	return list, here == 0 || !assigned(0) && fl.Reaches(0, here, assigned)
}

// call returns the lineage of result number i of c. Operations pass on the histories of their operands,
// unless no gradient goes through them; Forward of a layer adds that of the layer's parameters; Detach
// removes it.
func (h *historian) call(c *Call, i int) Lineage {
	switch c.API.Kind {
	case tensorapi.Value:
		if IsParamValue(c) {
			return h.holder(c.Operand(tensorapi.Recv)[0], c.In)
		}
	case tensorapi.View:
		switch c.Callee.Name() {
		case "Detach":
			return Lineage{}
		case "Track":
			return Lineage{Yes: h.seed == nil}
		}
		return h.union(c.Operand(c.API.Arg), c.In)
	case tensorapi.Op:
		l := h.union(c.Expr.Args, c.In)
		switch {
		case IsForward(c) || isLayer(h.Package, c):
			l = l.union(h.holder(c.Operand(tensorapi.Recv)[0], c.In))
		case isGrad(c):
			l.Yes = l.Yes || h.seed == nil
		case i == 1 && c.Callee.Name() == "TopK": // indices
			return Lineage{}
		case passesGradients(c.Callee.Name()):
			l = l.union(h.union(c.Operand(tensorapi.Recv), c.In))
		default:
			return Lineage{}
		}
		return l
	case tensorapi.Unknown:
		return h.result(c, i)
	}
	return Lineage{}
}

// result returns the lineage of result number i of a user's function, from its summary. Of an unknown
// callee the results have the histories of the arguments: it can hardly know others.
func (h *historian) result(c *Call, i int) Lineage {
	switch {
	case isCollection(c.Callee), c.Dynamic && !c.cutsHistories():
		return h.union(c.Expr.Args, c.In) // of a callee that is not known, what it is given
	}
	of := c.Summary().Histories
	if i >= len(of) {
		return Lineage{}
	}
	// A frozen model has frozen parts, so its methods bring in no history of their own.
	isFrozen := slices.ContainsFunc(c.Operand(tensorapi.Recv), func(e ast.Expr) bool { return isFrozenCopy(h.Package, e) })
	l := Lineage{Yes: (of[i].Sure || of[i].Yes && !h.sure) && h.seed == nil && !isFrozen}
	for op := tensorapi.Recv; op < 31; op++ {
		if !of[i].From.Has(op) {
			continue
		}
		for _, e := range c.Operand(op) {
			if t := h.Info.TypeOf(e); t != nil && IsTensors(t) {
				l = l.union(h.expr(e, 0, c.In))
			} else {
				l = l.union(h.holder(e, c.In))
			}
		}
	}
	return l
}

// holder returns the lineage of what e computes, a layer or a struct with layers. It has a history
// unless e is frozen. If e is an operand of fn, or a part of one that others can set, it is for callers
// to say.
func (h *historian) holder(e ast.Expr, f *Func) Lineage {
	if h.seed != nil {
		return Lineage{}
	}
	v, whole := h.RootOf(e, 0)
	p, ok := h.Params[v]
	// Whether e is an operand of fn, or a part of one.
	ours := ok && p.Of == h.fn
	switch {
	case ours && whole:
		return Lineage{From: operands(p.Operand)}
	case isFrozenCopy(h.Package, e):
		return Lineage{}
	case h.IsFrozen(e):
		if ours && (isExportedPart(h.Package, e) || !alwaysFrozen(h.Package, h.Package.Variable(e))) {
			return Lineage{From: operands(p.Operand)} // others hold what is not
		}
		return Lineage{}
	case ours && isExportedPart(h.Package, e):
		return Lineage{From: operands(p.Operand)}
	case isPartOfFrozen(h.Package, e):
		return Lineage{}
	}
	return Lineage{Yes: h.learns(learnerOf(h.Package, e, make(map[any]bool)))}
}

// learns reports whether what a layer computes is taken to have a history.
func (h *historian) learns(l learner) bool { return l == learning || l == unknown && !h.sure }

// isPartOfFrozen reports whether e is a field of what nn.Frozen has returned, or of what others have published.
func isPartOfFrozen(pkg *Package, e ast.Expr) bool {
	sel, ok := ast.Unparen(e).(*ast.SelectorExpr)
	if !ok {
		return false
	}
	of := pkg.OnlyValue(sel.X)
	c := pkg.Calls[syntax.AsCall(of)]
	return c != nil && isPublished(c) || isFrozenCopy(pkg, of) || isPartOfFrozen(pkg, of)
}

// alwaysFrozen reports whether all layers that the package assigns to v are frozen.
func alwaysFrozen(pkg *Package, v *types.Var) bool {
	return !slices.ContainsFunc(pkg.Defs[v], func(d Def) bool {
		return d.Kind != DefValue || !syntax.IsNil(pkg.Info, d.Value) && !pkg.IsFrozen(d.Value)
	})
}

// isExportedPart reports whether others may have set e: it is anything but a field that only this
// package can name.
func isExportedPart(pkg *Package, e ast.Expr) bool {
	v := pkg.Variable(e)
	return v == nil || !v.IsField() || v.Exported()
}

// RootOf returns the variable that e is a part of, or nil: s for s.layers[0], also if that was put into
// another variable before. It reports whether e is the whole variable, and this is never assigned
// (whole). The depth bounds how many variables it looks through; callers pass 0.
func (pkg *Package) RootOf(e ast.Expr, depth int) (v *types.Var, whole bool) {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		v, _ := pkg.Info.ObjectOf(e).(*types.Var)
		if d := pkg.Defs[v]; v != nil && len(d) == 1 && (d[0].Kind == DefValue || d[0].Kind == DefElem) && pkg.Params[v].Of == nil && depth < 4 {
			if w, _ := pkg.RootOf(d[0].Value, depth+1); w != nil {
				return w, false
			}
		}
		return v, v != nil && len(pkg.Defs[v]) == 0
	case *ast.SelectorExpr:
		v, _ = pkg.RootOf(e.X, depth)
	case *ast.IndexExpr:
		v, _ = pkg.RootOf(e.X, depth)
	case *ast.StarExpr:
		return pkg.RootOf(e.X, depth)
	case *ast.UnaryExpr:
		if e.Op == token.AND {
			return pkg.RootOf(e.X, depth)
		}
	}
	return v, false
}

// IsForward recognises the call of a layer's Forward method through the interface nn.Module.
func IsForward(c *Call) bool { return strings.HasSuffix(c.API.Name, "/nn.Module).Forward") }

// isLayer recognises methods of a layer of the library, by its own type, that compute with its parameters: Run of a
// recurrent network.
func isLayer(pkg *Package, c *Call) bool {
	recv := c.Callee.Signature().Recv()
	return recv != nil && len(c.Operand(tensorapi.Recv)) == 1 && !types.IsInterface(recv.Type()) && strings.HasSuffix(c.Callee.Pkg().Path(), "/nn") && syntax.HasMethod(pkg.Pass.Pkg, recv.Type(), []string{"Params"})
}

// isGrad recognises tensor.Grad, whose results can be differentiated again.
func isGrad(c *Call) bool { return strings.HasSuffix(c.API.Name, "/tensor.Grad") }

// A learner says whether what a layer computes has a history. Its values are ordered: of several layers
// that a variable may hold, the greatest counts, so one frozen layer makes all of them frozen.
type learner uint8

const (
	unknown  learner = iota // it may have some
	learning                // it has parameters, or somebody asks it for them
	frozen                  // in some place at least it holds today's weights only
)

// IsFrozen reports whether e, a layer or something with layers, is frozen in at least one place: made
// by nn.Frozen, named so, or loaded from where others published it. Rules that blame a kept history
// stay silent then.
func (pkg *Package) IsFrozen(e ast.Expr) bool { return learnerOf(pkg, e, make(map[any]bool)) == frozen }

// learnerOf says what e is, a layer or something that holds layers. It follows constructors, variables,
// fields and what callers in this package pass. What is in seen was asked about before, and is left
// out.
func learnerOf(pkg *Package, e ast.Expr, seen map[any]bool) learner {
	t := pkg.Info.TypeOf(e)
	if t == nil || syntax.IsNil(pkg.Info, e) || IsTensors(t) {
		return unknown
	}
	l := learnerValue(pkg, e, seen)
	if !types.IsInterface(t) && !isFrozenCopy(pkg, e) {
		l = max(l, learning) // a type of the user, with its parameters
	}
	return l
}

// isFrozenCopy reports whether e is what nn.Frozen has returned, a model of the user's type with frozen
// cells, or a variable that holds nothing else, such as a parameter that was set to it before.
func isFrozenCopy(pkg *Package, e ast.Expr) bool {
	if v := pkg.Local(e); v != nil && len(pkg.Defs[v]) == 1 && pkg.Defs[v][0].Kind == DefValue {
		d := pkg.Defs[v][0]
		if pkg.Params[v].Of != nil && !isSetBefore(pkg, d, e) {
			return false
		}
		e = d.Value
	}
	c := pkg.Calls[syntax.AsCall(e)]
	return c != nil && c.API.Kind == tensorapi.Value && c.Callee.Name() == "Frozen"
}

// isSetBefore reports whether every way to e, in the function of d, leads through the assignment d.
func isSetBefore(pkg *Package, d Def, e ast.Expr) bool {
	cur, ok := pkg.Cursor(e.Pos())
	if !ok || d.In == nil || pkg.FuncAt(cur) != d.In || e.Pos() < d.Value.End() {
		return false
	}
	fl := d.In.Flow()
	return fl.Dominates(fl.BlockAt(d.Pos), fl.BlockAt(e.Pos()))
}

// learnerValue is learnerOf by what is assigned, without regard to the type of e.
func learnerValue(pkg *Package, e ast.Expr, seen map[any]bool) learner {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident, *ast.SelectorExpr:
		if v := pkg.Variable(e); v != nil && !seen[v] {
			seen[v] = true
			return learnerIn(pkg, v, seen)
		}
	case *ast.IndexExpr:
		return learnerValue(pkg, e.X, seen)
	case *ast.StarExpr:
		return learnerValue(pkg, e.X, seen)
	case *ast.UnaryExpr:
		return learnerValue(pkg, e.X, seen)
	case *ast.CompositeLit:
		return frozenAmong(pkg, e.Elts, seen)
	case *ast.CallExpr:
		c := pkg.Calls[e]
		switch {
		case pkg.Info.Types[e.Fun].IsType():
			return learnerOf(pkg, e.Args[0], seen)
		case c == nil:
			return frozenAmong(pkg, e.Args, seen) // append
		// A constructor of the library: what it makes has parameters, unless it is given something
		// frozen.
		case c.API.Kind == tensorapi.Pure:
			return max(learning, frozenAmong(pkg, e.Args, seen))
		case c.Callee != nil && c.Callee.Name() == "Clone" && c.API.Kind == tensorapi.Value && len(e.Args) == 1:
			return max(learning, learnerValue(pkg, e.Args[0], seen))
		case c.API.Kind == tensorapi.Value || isPublished(c):
			return frozen
		}
		l := frozenAmong(pkg, e.Args, seen)
		if f := c.Target; f != nil && !seen[f] && f.Sig.Results().Len() == 1 {
			seen[f] = true
			for _, ret := range f.Returns {
				if len(ret.Results) == 1 {
					l = max(l, learnerOf(pkg, ret.Results[0], seen))
				}
			}
		}
		return l
	}
	return unknown
}

// frozenAmong is frozen if one of the expressions is, else unknown.
func frozenAmong(pkg *Package, list []ast.Expr, seen map[any]bool) learner {
	for _, e := range list {
		if kv, ok := e.(*ast.KeyValueExpr); ok {
			e = kv.Value
		}
		if learnerOf(pkg, e, seen) == frozen {
			return frozen
		}
	}
	return unknown
}

// isPublished recognises methods of sync/atomic. A layer that one goroutine stores there for others is
// a copy to compute with: it is hardly trained.
func isPublished(c *Call) bool {
	return c.Callee != nil && c.Callee.Pkg() != nil && c.Callee.Pkg().Path() == "sync/atomic"
}

// learnerIn says what layers the variable or field v holds: by its name, by what the package assigns to
// it, and for a parameter by what the package passes. If the package asks v for its parameters, v is
// being trained.
func learnerIn(pkg *Package, v *types.Var, seen map[any]bool) learner {
	l := unknown
	switch {
	case strings.Contains(strings.ToLower(v.Name()), "frozen"):
		return frozen
	case pkg.asked()[v]:
		l = learning
	}
	for _, d := range slices.Concat(pkg.Defs[v], pkg.stores[v]) {
		if (d.Kind == DefValue || d.Kind == DefElem) && d.Value != nil {
			l = max(l, learnerOf(pkg, d.Value, seen))
		}
	}
	p, ok := pkg.Params[v]
	if !ok {
		return l
	}
	for _, c := range pkg.callers()[p.Of] {
		for _, e := range c.Operand(p.Operand) {
			l = max(l, learnerOf(pkg, e, seen))
		}
	}
	return l
}

// parametersAsked returns the variables and fields whose layers the package asks for their parameters, as training
// does: net.Params(), nn.Params(net).
func parametersAsked(pkg *Package) map[*types.Var]bool {
	asked := make(map[*types.Var]bool)
	for _, f := range pkg.Funcs {
		for _, c := range f.Calls {
			if v := pkg.ParamsOf(c); v != nil {
				asked[v] = true
			}
		}
	}
	return asked
}

// ParamsOf returns the variable or field of the network whose parameters c lists, net of net.Params() and of
// nn.Params(net). It is nil if c does something else, or lists those of something else.
func (pkg *Package) ParamsOf(c *Call) *types.Var {
	switch {
	case strings.HasSuffix(c.API.Name, "/nn.Module).Params"):
		return pkg.Variable(c.Operand(tensorapi.Recv)[0])
	case strings.HasSuffix(c.API.Name, "/nn.Params"):
		return pkg.Variable(c.Operand(0)[0])
	}
	return nil
}

// IsParamValue recognises p.Value() of a parameter, which has a history of its own. The values of other
// cells, such as running means, have none.
func IsParamValue(c *Call) bool {
	return c.Callee != nil && c.Callee.Name() == "Value" && strings.HasSuffix(c.API.Name, ".Param).Value")
}

// passesGradients reports whether gradients go through the operation with the given name. They don't go
// through comparisons, choices of an index, roundings and conversions, whose results change in steps if
// at all. Operations that aren't listed count as differentiable, also those of later versions.
func passesGradients(name string) bool {
	if scalar, ok := strings.CutSuffix(name, "Scalar"); ok {
		name = scalar
	} else if scalar, ok := strings.CutSuffix(name, "F64"); ok && scalar != "" && scalar != "Item" {
		name = scalar
	}
	switch name {
	case "Eq", "Ne", "Lt", "Le", "Gt", "Ge", "And", "Or", "Not", "All", "AllKeep", "Any", "AnyKeep",
		"ArgMax", "ArgMaxKeep", "ArgMin", "ArgMinKeep", "ArgSort", "SearchSorted", "BinCount", "OneHot",
		"IsNaN", "IsInf", "IsFinite", "IsClose", "AllClose", "FloorDiv",
		"As", "F64", "ItemF64", "I64", "Sign", "Floor", "Ceil", "Round", "Trunc", "Grad", "Forward":
		return false
	}
	return true
}
