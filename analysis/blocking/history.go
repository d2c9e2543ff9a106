package blocking

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"golang.org/x/tools/go/ast/edge"
	"golang.org/x/tools/go/ast/inspector"
)

// An Accumulation is a statement in a loop that adds a tensor with a history,
// which gradients would follow, to one that outlives the iteration.
type Accumulation struct {
	Assign *ast.AssignStmt
	Total  *types.Var
	Part   ast.Expr // what has the history
	Loop   *Loop
}

// Accumulations lists those of f, literals in it included, whose total is only
// ever read.
func (f *Func) Accumulations() []Accumulation {
	var list []Accumulation
	for _, c := range f.calls {
		assign, ok := c.Value().Parent().Node().(*ast.AssignStmt)
		if !ok || c.api.Kind != tensorapi.Op || len(assign.Lhs) != 1 || assign.Tok != token.ASSIGN {
			continue
		}
		total := f.a.localTensor(assign.Lhs[0])
		if total == nil || !f.a.onlyRead(total, f) {
			continue
		}
		for l := range f.a.loopsAround(f, c.Expr.Pos()) {
			if l.small || f.a.declaredInLoop(total, l) {
				continue
			}
			if f.a.overParts(l) {
				break // a model has so many
			}
			if part := f.a.partWithHistory(c, total, l); part != nil {
				list = append(list, Accumulation{assign, total, part, l})
			}
			break
		}
	}
	return list
}

// localTensor returns the local variable that e is, if it is a tensor and no
// parameter.
func (a *analyzer) localTensor(e ast.Expr) *types.Var {
	id, ok := ast.Unparen(e).(*ast.Ident)
	if !ok {
		return nil
	}
	v, ok := a.info.Uses[id].(*types.Var)
	if !ok || v.IsField() || v.Parent() == a.pass.Pkg.Scope() || !isTensor(v.Type()) {
		return nil
	}
	if _, isParam := a.params[v]; isParam {
		return nil
	}
	return v
}

func (a *analyzer) declaredInLoop(v *types.Var, l *Loop) bool {
	return l.Stmt != nil && l.Stmt.Pos() <= v.Pos() && v.Pos() < l.Stmt.End() || l.Stmt == nil
}

// partWithHistory returns an operand of the accumulating call c, not computed
// from total, that was computed in l and has a history. What is computed from
// total is a recurrence, whose history may be what it is about.
func (a *analyzer) partWithHistory(c *Call, total *types.Var, l *Loop) ast.Expr {
	operands := slices.Concat(c.operand(tensorapi.Recv), c.Expr.Args)
	at := slices.IndexFunc(operands, func(e ast.Expr) bool { return a.localTensor(a.unscaled(e)) == total })
	if at < 0 {
		return nil
	}
	for i, e := range operands {
		if i != at && isTensor(a.info.TypeOf(e)) && !a.dependsOn(e, total, make(map[*types.Var]bool)) && a.fresh(e, c.in, l) && a.history(e, c.in).yes {
			return e
		}
	}
	return nil
}

// unscaled returns what e is computed from with numbers alone: avg of
// avg.MulScalar(0.9).
func (a *analyzer) unscaled(e ast.Expr) ast.Expr {
	for {
		c := a.calls[asCall(e)]
		if c == nil || c.api.Kind != tensorapi.Op || len(c.Expr.Args) == 0 || slices.ContainsFunc(c.Expr.Args, func(e ast.Expr) bool { return a.holdsTensor(a.info.TypeOf(e)) }) {
			return e
		}
		operand := c.operand(tensorapi.Recv)
		if len(operand) != 1 {
			return e
		}
		e = operand[0]
	}
}

// dependsOn reports whether v, or a local variable that is computed from it, is
// part of e.
func (a *analyzer) dependsOn(e ast.Expr, v *types.Var, seen map[*types.Var]bool) bool {
	found := false
	ast.Inspect(e, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		if !ok || found {
			return !found
		}
		u, ok := a.info.Uses[id].(*types.Var)
		if !ok || u.IsField() || seen[u] {
			return true
		}
		seen[u] = true
		found = u == v || slices.ContainsFunc(a.defs[u], func(d def) bool { return d.value != nil && a.dependsOn(d.value, v, seen) })
		return !found
	})
	return found
}

// onlyRead reports whether all that becomes of v is that it is added to and
// that values are read from it or from what is computed from it at once.
func (a *analyzer) onlyRead(v *types.Var, f *Func) bool {
	for use := range a.usesOf(v, f) {
		if isTarget(use) {
			continue
		}
		if !a.endsInRead(use, v) {
			return false
		}
	}
	return true
}

func (a *analyzer) endsInRead(cur inspector.Cursor, v *types.Var) bool {
	for {
		up := cur.Parent()
		switch n := up.Node().(type) {
		case *ast.ParenExpr, *ast.SelectorExpr:
		case *ast.BinaryExpr:
			return isNil(a.info, n.X) || isNil(a.info, n.Y)
		case *ast.CallExpr:
			c := a.calls[n]
			if c == nil || c.away {
				return false
			}
			switch c.api.Kind {
			case tensorapi.Op, tensorapi.View:
			case tensorapi.Read, tensorapi.Print, tensorapi.Wait, tensorapi.Meta, tensorapi.Poll:
				return true
			default:
				_, prints := c.printer()
				return prints
			}
		case *ast.AssignStmt:
			kind, i := cur.ParentEdge()
			return kind == edge.AssignStmt_Rhs && len(n.Lhs) == len(n.Rhs) && a.localTensor(n.Lhs[i]) == v
		default:
			return false
		}
		cur = up
	}
}

// A lineage says whether a tensor has a history: certainly, or if the given
// operands of the function have one.
type lineage struct {
	yes  bool
	from Operands
}

func (h lineage) union(g lineage) lineage { return lineage{h.yes || g.yes, h.from | g.from} }

// history says whether e, in f, has a history: whether it derives from the
// value of a parameter by operations that gradients pass.
func (a *analyzer) history(e ast.Expr, f *Func) lineage {
	h := historian{a, f.owner(), make(map[*types.Var]bool), make(map[*Func]bool)}
	return h.expr(e, 0)
}

type historian struct {
	*analyzer
	fn     *Func // whose operands are meant
	vars   map[*types.Var]bool
	inside map[*Func]bool // functions that are being looked at
}

func (h *historian) expr(e ast.Expr, i int) lineage {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		if v, ok := h.info.ObjectOf(e).(*types.Var); ok {
			return h.variable(v)
		}
	case *ast.CallExpr:
		if c := h.calls[e]; c != nil {
			return h.call(c, i)
		}
	}
	return lineage{}
}

// variable is the history of a local variable; what others may assign is not
// known.
func (h *historian) variable(v *types.Var) lineage {
	if h.vars[v] || v.IsField() || v.Parent() == h.pass.Pkg.Scope() || !isTensor(v.Type()) {
		return lineage{}
	}
	h.vars[v] = true
	var l lineage
	if p, ok := h.params[v]; ok && p.of == h.fn {
		l.from = operands(p.operand)
	}
	for _, d := range h.defs[v] {
		if d.kind == defValue {
			l = l.union(h.expr(d.value, d.index))
		}
	}
	return l
}

func (h *historian) call(c *Call, i int) lineage {
	switch c.api.Kind {
	case tensorapi.Value:
		return lineage{yes: isParamValue(c)}
	case tensorapi.View:
		if name := c.Callee.Name(); name == "Detach" || name == "Track" {
			return lineage{yes: name == "Track"}
		}
		return h.operand(c, c.api.Arg)
	case tensorapi.Op:
		forward := isForward(c)
		if !forward && !passesGradients(c.Callee.Name()) {
			return lineage{}
		}
		var l lineage
		if forward {
			l.yes = h.learner(c.operand(tensorapi.Recv)[0], make(map[*types.Var]bool)) != frozen
		} else {
			l = h.operand(c, tensorapi.Recv)
		}
		for arg := range c.Expr.Args {
			l = l.union(h.expr(c.Expr.Args[arg], 0))
		}
		return l
	case tensorapi.Unknown:
		return h.result(c, i)
	}
	return lineage{}
}

func (h *historian) operand(c *Call, op int) lineage {
	var l lineage
	for _, e := range c.operand(op) {
		l = l.union(h.expr(e, 0))
	}
	return l
}

// result is the history of what a function of this package returns.
func (h *historian) result(c *Call, i int) lineage {
	f := c.target
	if f == nil || h.inside[f] {
		return lineage{}
	}
	h.inside[f] = true
	defer delete(h.inside, f)
	inner := historian{h.analyzer, f, make(map[*types.Var]bool), h.inside}
	var l, r lineage
	for _, ret := range f.rets {
		switch {
		case len(ret.Results) == f.sig.Results().Len():
			r = r.union(inner.expr(ret.Results[i], 0))
		case len(ret.Results) == 0:
			r = r.union(inner.variable(f.sig.Results().At(i)))
		default:
			r = r.union(inner.expr(ret.Results[0], i))
		}
	}
	l.yes = r.yes
	for op := tensorapi.Recv; op < 31; op++ {
		if r.from.Has(op) {
			l = l.union(h.operand(c, op))
		}
	}
	return l
}

// isForward recognises the call of a layer that is known as no more than that.
func isForward(c *Call) bool { return strings.HasSuffix(c.api.Name, "/nn.Module).Forward") }

// A learner says whether the results of a layer have a history.
type learner uint8

const (
	unknown  learner = iota // it may have some
	learning                // it has parameters, or somebody asks it for them
	frozen                  // in some place at least it holds today's weights only
)

// learner says what e, a layer, is: what constructors and types tell that are its
// value in some place, also those that callers in this package pass.
func (a *analyzer) learner(e ast.Expr, seen map[*types.Var]bool) learner {
	if t := a.info.TypeOf(e); t != nil && !types.IsInterface(t) && !isNil(a.info, e) {
		return learning // a type of the user, with its parameters
	}
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident, *ast.SelectorExpr:
		if v := a.variable(e); v != nil && !seen[v] {
			seen[v] = true
			return a.learnerIn(v, seen)
		}
	case *ast.CallExpr:
		c := a.calls[e]
		switch {
		case a.info.Types[e.Fun].IsType():
			return a.learner(e.Args[0], seen)
		case c == nil:
		case c.api.Kind == tensorapi.Pure:
			return learning
		case c.api.Kind == tensorapi.Value:
			return frozen
		case c.target != nil && c.target.sig.Results().Len() == 1:
			l := unknown
			for _, ret := range c.target.rets {
				if len(ret.Results) == 1 {
					l = max(l, a.learner(ret.Results[0], seen))
				}
			}
			return l
		}
	}
	return unknown
}

// learnerIn says what layers a variable or field holds.
func (a *analyzer) learnerIn(v *types.Var, seen map[*types.Var]bool) learner {
	l := unknown
	if a.asked()[v] {
		l = learning
	}
	for _, d := range a.defs[v] {
		if d.kind == defValue && d.value != nil {
			l = max(l, a.learner(d.value, seen))
		}
	}
	p, ok := a.params[v]
	if !ok {
		return l
	}
	for _, f := range a.funcs {
		for _, c := range f.calls {
			if c.target != p.of {
				continue
			}
			for _, e := range c.operand(p.operand) {
				l = max(l, a.learner(e, seen))
			}
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
	return c.Callee.Name() == "Value" && strings.HasSuffix(c.api.Name, ".Param).Value")
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
