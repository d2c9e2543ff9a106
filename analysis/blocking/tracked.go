package blocking

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"github.com/asyncgen/asyncgen/analysis/tensorapi"
)

// A Lineage says whether a tensor has a history: certainly, or if the given operands of the
// function have one or, of layers, are not frozen.
type Lineage struct {
	Yes  bool
	From Operands
}

func (h Lineage) union(g Lineage) Lineage { return Lineage{h.Yes || g.Yes, h.From | g.From} }

// history reports whether e, in f, has a history: whether it derives from the value of a
// parameter by operations that gradients pass.
func (a *analyzer) history(e ast.Expr, f *Func) bool { return a.historyOf(e, 0, f) }

// historyOf is history of result number i, if e is a call.
func (a *analyzer) historyOf(e ast.Expr, i int, f *Func) bool {
	h := a.historian(f.owner(), make(map[*types.Var]bool))
	return h.settle(h.expr(e, i, f))
}

// continues reports whether the history of e, in f, goes on from that of v.
func (a *analyzer) continues(e ast.Expr, i int, f *Func, v *types.Var) bool {
	h := a.historian(f.owner(), make(map[*types.Var]bool))
	h.seed = v
	return h.expr(e, i, f).Yes
}

// histories says which results of f have a history.
func (a *analyzer) histories(f *Func) []Lineage {
	n := f.sig.Results().Len()
	list := make([]Lineage, n)
	for i := range n {
		if !a.holdsTensor(f.sig.Results().At(i).Type()) {
			continue
		}
		for _, ret := range f.rets {
			h := a.historian(f, make(map[*types.Var]bool))
			switch {
			case len(ret.Results) == n:
				list[i] = list[i].union(h.expr(ret.Results[i], 0, f))
			case len(ret.Results) == 0:
				list[i] = list[i].union(h.variable(f.sig.Results().At(i), ret.Pos(), f))
			default:
				list[i] = list[i].union(h.expr(ret.Results[0], i, f))
			}
		}
	}
	if !slices.ContainsFunc(list, func(l Lineage) bool { return l != Lineage{} }) {
		return nil
	}
	return list
}

// A historian finds the history of tensors.
type historian struct {
	*analyzer
	fn    *Func               // whose operands are meant
	seen  map[def]bool        // the assignments that count already
	known map[*types.Var]bool // what is known of parameters and fields, no while it is asked
	seed  *types.Var          // if not nil, all that has a history
}

func (a *analyzer) historian(f *Func, known map[*types.Var]bool) *historian {
	return &historian{analyzer: a, fn: f, seen: make(map[def]bool), known: known}
}

// asks reports what is known of v, after it has asked if nothing is.
func (h *historian) asks(v *types.Var, ask func() bool) bool {
	known, ok := h.known[v]
	if !ok {
		h.known[v] = false
		known = ask()
		h.known[v] = known
	}
	return known
}

// settle says what a lineage means in fn, of which the package may know callers.
func (h *historian) settle(l Lineage) bool {
	for op := tensorapi.Recv; op < 31 && !l.Yes; op++ {
		if v := h.fn.param(op); v != nil && l.From.Has(op) {
			if isTensors(v.Type()) {
				l.Yes = h.passed(v)
			} else {
				l.Yes = h.learnerIn(v, make(map[any]bool)) != frozen
			}
		}
	}
	return l.Yes
}

// param is the parameter that the operand i of f is, or nil.
func (f *Func) param(i int) *types.Var {
	switch {
	case i == tensorapi.Recv:
		return f.sig.Recv()
	case i < f.sig.Params().Len():
		return f.sig.Params().At(i)
	}
	return nil
}

// isTensors reports whether t is that of tensors, or of lists of some.
func isTensors(t types.Type) bool {
	for {
		elem := elementType(t)
		if elem == nil || isTensor(t) {
			return isTensor(t)
		}
		t = elem
	}
}

// passed reports whether a call in the package passes a tensor with a history for the
// parameter v.
func (h *historian) passed(v *types.Var) bool {
	return h.asks(v, func() bool {
		p := h.params[v]
		return slices.ContainsFunc(h.callers()[p.of], func(c *Call) bool {
			return slices.ContainsFunc(c.operand(p.operand), func(e ast.Expr) bool {
				inner := h.historian(c.in.owner(), h.known)
				return inner.settle(inner.expr(e, 0, c.in))
			})
		})
	})
}

// callersOf lists the calls in the package that may lead to each function.
func (a *analyzer) callersOf() map[*Func][]*Call {
	callers := make(map[*Func][]*Call)
	for _, f := range a.funcs {
		for _, c := range f.calls {
			if c.target != nil {
				callers[c.target] = append(callers[c.target], c)
			}
			for _, g := range c.impls {
				callers[g] = append(callers[g], c)
			}
		}
	}
	return callers
}

func (h *historian) expr(e ast.Expr, i int, f *Func) Lineage {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		if v, ok := h.info.ObjectOf(e).(*types.Var); ok {
			return h.variable(v, e.Pos(), f)
		}
	case *ast.SelectorExpr:
		if v := h.analyzer.variable(e); v != nil {
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
		if !isTensors(h.info.TypeOf(e)) {
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
		switch tv := h.info.Types[e.Fun]; {
		case tv.IsType():
			return h.expr(e.Args[0], 0, f)
		case tv.IsBuiltin():
			if isBuiltin(h.info, e, "append") {
				return h.union(e.Args, f)
			}
		case h.calls[e] != nil:
			return h.call(h.calls[e], i)
		}
	}
	return Lineage{}
}

func isBuiltin(info *types.Info, call *ast.CallExpr, name string) bool {
	id, ok := ast.Unparen(call.Fun).(*ast.Ident)
	return ok && info.Uses[id] == types.Universe.Lookup(name)
}

func (h *historian) union(list []ast.Expr, f *Func) Lineage {
	var l Lineage
	for _, e := range list {
		if h.holdsTensor(h.info.TypeOf(e)) {
			l = l.union(h.expr(e, 0, f))
		}
	}
	return l
}

// variable is the history of a variable that f uses at pos.
func (h *historian) variable(v *types.Var, pos token.Pos, f *Func) Lineage {
	switch {
	case v == h.seed:
		return Lineage{Yes: true}
	case v.IsField() || v.Parent() == h.pass.Pkg.Scope():
		return h.shared(v)
	case !isTensors(v.Type()):
		return Lineage{}
	}
	defs, passed := h.defs[v], true
	if isTensor(v.Type()) {
		defs, passed = h.reaching(v, pos, f)
	}
	var l Lineage
	if p, ok := h.params[v]; ok && passed && h.seed == nil {
		if p.of == h.fn {
			l.From = operands(p.operand)
		} else {
			l.Yes = h.passed(v)
		}
	}
	for _, d := range defs {
		if h.seen[d] || d.kind != defValue && d.kind != defElem {
			continue
		}
		h.seen[d] = true
		l = l.union(h.expr(d.value, d.index, d.in))
	}
	return l
}

// shared is the history of a field or a variable of the package: one that all
// that is assigned to it has.
func (h *historian) shared(v *types.Var) Lineage {
	if h.seed != nil || !isTensors(v.Type()) {
		return Lineage{}
	}
	return Lineage{Yes: h.asks(v, func() bool {
		some := false
		for _, d := range h.defs[v] {
			if d.in == nil || d.kind != defValue {
				return false
			}
			if call := asCall(d.value); isNil(h.info, d.value) || call != nil && isBuiltin(h.info, call, "make") {
				continue
			}
			inner := h.historian(d.in.owner(), h.known)
			if !inner.settle(inner.expr(d.value, d.index, d.in)) {
				return false
			}
			some = true
		}
		return some
	})}
}

// reaching lists the assignments to v, a local variable, whose value it may have where f
// uses it at pos, and reports whether it may have the one that f was given.
func (a *analyzer) reaching(v *types.Var, pos token.Pos, f *Func) (list []def, passed bool) {
	fl := f.flow()
	here := fl.blockAt(pos)
	all := a.defs[v]
	if here < 0 || slices.ContainsFunc(all, func(d def) bool { return d.in != f || fl.blockAt(d.pos) < 0 }) {
		return all, true
	}
	last := make(map[int32]def) // the last one of each block
	var before *def             // the last one before pos in its block
	for i, d := range all {
		at, end := fl.blockAt(d.pos), d.pos
		if d.kind == defValue {
			end = d.value.End()
		}
		if old, ok := last[at]; !ok || old.pos < d.pos {
			last[at] = d
		}
		if at == here && end <= pos && (before == nil || before.pos < d.pos) {
			before = &all[i]
		}
	}
	if before != nil {
		return []def{*before}, false
	}
	assigned := func(b int32) bool { _, ok := last[b]; return ok }
	for at, d := range last {
		if fl.reaches(at, here, assigned) {
			list = append(list, d)
		}
	}
	slices.SortFunc(list, func(d, e def) int { return int(d.pos - e.pos) })
	return list, here == 0 || !assigned(0) && fl.reaches(0, here, assigned)
}

func (h *historian) call(c *Call, i int) Lineage {
	switch c.api.Kind {
	case tensorapi.Value:
		if isParamValue(c) {
			return h.holder(c.operand(tensorapi.Recv)[0], c.in)
		}
	case tensorapi.View:
		switch c.Callee.Name() {
		case "Detach":
			return Lineage{}
		case "Track":
			return Lineage{Yes: h.seed == nil}
		}
		return h.union(c.operand(c.api.Arg), c.in)
	case tensorapi.Op:
		l := h.union(c.Expr.Args, c.in)
		switch {
		case isForward(c):
			l = l.union(h.holder(c.operand(tensorapi.Recv)[0], c.in))
		case isGrad(c):
			l.Yes = l.Yes || h.seed == nil
		case passesGradients(c.Callee.Name()):
			l = l.union(h.union(c.operand(tensorapi.Recv), c.in))
		default:
			return Lineage{}
		}
		return l
	case tensorapi.Unknown:
		return h.result(c, i)
	}
	return Lineage{}
}

// result is the history of what a user's function returns.
func (h *historian) result(c *Call, i int) Lineage {
	switch {
	case c.impls != nil || c.each != nil:
		return Lineage{} // it may be any
	case isCollection(c.Callee):
		return h.union(c.Expr.Args, c.in)
	case c.dynamic && h.seed != nil:
		return h.union(c.Expr.Args, c.in)
	}
	of := c.sum().Histories
	if i >= len(of) {
		return Lineage{}
	}
	l := Lineage{Yes: of[i].Yes && h.seed == nil}
	for op := tensorapi.Recv; op < 31; op++ {
		if !of[i].From.Has(op) {
			continue
		}
		for _, e := range c.operand(op) {
			if t := h.info.TypeOf(e); t != nil && isTensors(t) {
				l = l.union(h.expr(e, 0, c.in))
			} else {
				l = l.union(h.holder(e, c.in))
			}
		}
	}
	return l
}

// holder is the history of what e, a layer or what holds parameters, computes.
func (h *historian) holder(e ast.Expr, f *Func) Lineage {
	if h.seed != nil {
		return Lineage{}
	}
	v, whole := h.rootOf(e, 0)
	p, ok := h.params[v]
	ours := ok && p.of == h.fn
	switch {
	case ours && whole:
		return Lineage{From: operands(p.operand)}
	case h.learner(e, make(map[any]bool)) == frozen:
		if ours && (h.isExportedPart(e) || !h.alwaysFrozen(h.analyzer.variable(e))) {
			return Lineage{From: operands(p.operand)} // others hold what is not
		}
		return Lineage{}
	case ours && h.isExportedPart(e):
		return Lineage{From: operands(p.operand)}
	}
	return Lineage{Yes: true}
}

// alwaysFrozen reports whether all layers that the package assigns to v are frozen.
func (a *analyzer) alwaysFrozen(v *types.Var) bool {
	return !slices.ContainsFunc(a.defs[v], func(d def) bool {
		return d.kind != defValue || !isNil(a.info, d.value) && a.learner(d.value, make(map[any]bool)) != frozen
	})
}

// isExportedPart reports whether e is a field that other packages may assign.
func (a *analyzer) isExportedPart(e ast.Expr) bool {
	v := a.variable(e)
	return v == nil || !v.IsField() || v.Exported()
}

// rootOf returns the variable that e is part of, or nil, and whether it is the variable
// itself, which nothing else is assigned to.
func (a *analyzer) rootOf(e ast.Expr, depth int) (v *types.Var, whole bool) {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		v, _ := a.info.ObjectOf(e).(*types.Var)
		if d := a.defs[v]; v != nil && len(d) == 1 && (d[0].kind == defValue || d[0].kind == defElem) && a.params[v].of == nil && depth < 4 {
			if w, _ := a.rootOf(d[0].value, depth+1); w != nil {
				return w, false
			}
		}
		return v, v != nil && len(a.defs[v]) == 0
	case *ast.SelectorExpr:
		v, _ = a.rootOf(e.X, depth)
	case *ast.IndexExpr:
		v, _ = a.rootOf(e.X, depth)
	case *ast.StarExpr:
		return a.rootOf(e.X, depth)
	case *ast.UnaryExpr:
		if e.Op == token.AND {
			return a.rootOf(e.X, depth)
		}
	}
	return v, false
}

// isForward recognises the call of a layer that is known as no more than that.
func isForward(c *Call) bool { return strings.HasSuffix(c.api.Name, "/nn.Module).Forward") }

// isGrad recognises the function whose results can be differentiated again.
func isGrad(c *Call) bool { return strings.HasSuffix(c.api.Name, "/tensor.Grad") }

// A learner says whether the results of a layer have a history.
type learner uint8

const (
	unknown  learner = iota // it may have some
	learning                // it has parameters, or somebody asks it for them
	frozen                  // in some place at least it holds today's weights only
)

// learner says what e, a layer or what holds some, is: what constructors and types tell that
// are its value in some place, also those that callers in this package pass.
func (a *analyzer) learner(e ast.Expr, seen map[any]bool) learner {
	t := a.info.TypeOf(e)
	if t == nil || isNil(a.info, e) || isTensors(t) {
		return unknown
	}
	l := a.learnerValue(e, seen)
	if !types.IsInterface(t) {
		l = max(l, learning) // a type of the user, with its parameters
	}
	return l
}

func (a *analyzer) learnerValue(e ast.Expr, seen map[any]bool) learner {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident, *ast.SelectorExpr:
		if v := a.variable(e); v != nil && !seen[v] {
			seen[v] = true
			return a.learnerIn(v, seen)
		}
	case *ast.IndexExpr:
		return a.learnerValue(e.X, seen)
	case *ast.StarExpr:
		return a.learnerValue(e.X, seen)
	case *ast.UnaryExpr:
		return a.learnerValue(e.X, seen)
	case *ast.CompositeLit:
		return a.frozenAmong(e.Elts, seen)
	case *ast.CallExpr:
		c := a.calls[e]
		switch {
		case a.info.Types[e.Fun].IsType():
			return a.learner(e.Args[0], seen)
		case c == nil:
			return a.frozenAmong(e.Args, seen) // append
		case c.api.Kind == tensorapi.Pure:
			return max(learning, a.frozenAmong(e.Args, seen))
		case c.api.Kind == tensorapi.Value || isPublished(c):
			return frozen
		}
		l := a.frozenAmong(e.Args, seen)
		if f := c.target; f != nil && !seen[f] && f.sig.Results().Len() == 1 {
			seen[f] = true
			for _, ret := range f.rets {
				if len(ret.Results) == 1 {
					l = max(l, a.learner(ret.Results[0], seen))
				}
			}
		}
		return l
	}
	return unknown
}

// frozenAmong is frozen if one of the expressions is.
func (a *analyzer) frozenAmong(list []ast.Expr, seen map[any]bool) learner {
	for _, e := range list {
		if kv, ok := e.(*ast.KeyValueExpr); ok {
			e = kv.Value
		}
		if a.learner(e, seen) == frozen {
			return frozen
		}
	}
	return unknown
}

// isPublished recognises what others have stored for everybody to use, which is hardly
// what somebody trains.
func isPublished(c *Call) bool {
	return c.Callee != nil && c.Callee.Pkg() != nil && c.Callee.Pkg().Path() == "sync/atomic"
}

// learnerIn says what layers a variable or field holds.
func (a *analyzer) learnerIn(v *types.Var, seen map[any]bool) learner {
	l := unknown
	switch {
	case strings.Contains(strings.ToLower(v.Name()), "frozen"):
		return frozen
	case a.asked()[v]:
		l = learning
	}
	for _, d := range a.defs[v] {
		if (d.kind == defValue || d.kind == defElem) && d.value != nil {
			l = max(l, a.learner(d.value, seen))
		}
	}
	p, ok := a.params[v]
	if !ok {
		return l
	}
	for _, c := range a.callers()[p.of] {
		for _, e := range c.operand(p.operand) {
			l = max(l, a.learner(e, seen))
		}
	}
	return l
}

// parametersAsked is the set of the variables and fields whose layers somebody in
// the package asks for their parameters, as to train them.
func (a *analyzer) parametersAsked() map[*types.Var]bool {
	asked := make(map[*types.Var]bool)
	for _, f := range a.funcs {
		for _, c := range f.calls {
			if strings.HasSuffix(c.api.Name, "/nn.Module).Params") {
				if v := a.variable(c.operand(tensorapi.Recv)[0]); v != nil {
					asked[v] = true
				}
			}
		}
	}
	return asked
}

// isParamValue recognises the value of a parameter, which is tracked; that of
// other cells is not.
func isParamValue(c *Call) bool {
	return c.Callee != nil && c.Callee.Name() == "Value" && strings.HasSuffix(c.api.Name, ".Param).Value")
}

// passesGradients reports whether the result of the operation with the given
// name may be tracked: those that compare, choose an index or convert are not,
// or may not be.
func passesGradients(name string) bool {
	switch name {
	case "Eq", "Ne", "Lt", "Le", "Gt", "Ge", "And", "Or", "Not", "All", "AllKeep", "Any", "AnyKeep",
		"ArgMax", "ArgMaxKeep", "ArgMin", "ArgMinKeep", "OneHot", "As", "F64", "ItemF64", "I64", "Sign", "Floor", "Ceil", "Round", "Trunc", "Grad", "Forward":
		return false
	}
	return true
}
