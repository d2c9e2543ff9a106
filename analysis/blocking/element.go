package blocking

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"golang.org/x/tools/go/ast/inspector"
)

// An ElementRead is a read in a loop of a tensor, or of parts of a tensor,
// that the loop does not change: many reads of what one read gives.
type ElementRead struct {
	Call *ast.CallExpr
	Cur  inspector.Cursor // of Call
	Name string           // how messages call the call
	// Tensor is what the loop does not change.
	Tensor ast.Expr
	// Whole reports whether each iteration reads the same: there are no parts.
	Whole bool
	Loop  *Loop
	// Certain reports whether the loop runs at least once and always comes to
	// the read, so that reading before it waits for nothing else; and whether
	// no loop around it could be asked for the same.
	Certain bool
	Timed   bool
}

// ElementReads lists the reads of tensors, in the order of the source, that
// read in each iteration of a loop what one read before it would give.
func (r *Result) ElementReads() []*ElementRead {
	var list []*ElementRead
	for _, f := range r.Funcs {
		for _, c := range f.calls {
			l := f.a.innermost(c)
			e := f.a.elementOf(c, l)
			if e == nil || f.a.guardOf(f, c.Expr.Pos(), l) != always || f.a.any(l, isStreamed) {
				continue
			}
			list = append(list, e)
		}
	}
	slices.SortStableFunc(list, func(x, y *ElementRead) int { return int(x.Call.Pos() - y.Call.Pos()) })
	return list
}

// innermost returns the innermost loop around c that is no small one, or nil.
func (a *analyzer) innermost(c *Call) *Loop {
	if c.away {
		return nil
	}
	for l := range a.loopsAround(c.in, c.Expr.Pos()) {
		if l.small {
			continue
		}
		if l.blocks == nil && l.fn.how() != looping {
			return nil
		}
		return l
	}
	return nil
}

// elementOf recognises a read in l of a part of a tensor that is the same in
// all iterations, or of all of it. The part has to be one that the iterations
// count through, so that all of them together read a good part of the tensor.
func (a *analyzer) elementOf(c *Call, l *Loop) *ElementRead {
	e, counted := a.settledPart(c, l)
	if e == nil {
		return nil
	}
	return &ElementRead{
		Call: c.Expr, Cur: c.cur, Name: a.callName(c, wait{kind: ReadSite, operand: e}), Tensor: e, Whole: !counted, Loop: l,
		Certain: !counted && a.isCertain(c, l), Timed: c.in.outermost().contains(tellsTime),
	}
}

// settledPart is the tensor of which c reads a part in each iteration of l, or
// nil, and whether the iterations count the parts.
func (a *analyzer) settledPart(c *Call, l *Loop) (e ast.Expr, counted bool) {
	if l == nil {
		return nil, false
	}
	if c.api.Kind != tensorapi.Read || c.api.Arg != tensorapi.Recv && c.api.Arg != 0 {
		for _, e := range a.printed(c) {
			if e, counted := a.settledView(e, l); counted {
				return e, true
			}
		}
		return nil, false
	}
	operands := c.operand(c.api.Arg)
	if len(operands) != 1 || !isTensor(a.info.TypeOf(operands[0])) || tensorapi.IsNumber(a.info.TypeOf(operands[0])) {
		return nil, false
	}
	args := c.Expr.Args
	if c.api.Arg == 0 {
		args = args[1:]
	}
	counted, ok := a.counted(args, l)
	if !ok || !c.lib.Values && !a.copiesAll(c, l) {
		return nil, false
	}
	e, views := a.settledView(operands[0], l)
	return e, e != nil && (counted || views)
}

// copiesAll reports whether c, of a library whose tensors may change, copies all
// elements of a local tensor that l only ever reads.
func (a *analyzer) copiesAll(c *Call, l *Loop) bool {
	v := a.local(c.operand(c.api.Arg)[0])
	if v == nil || c.api.Calls != tensorapi.Never {
		return false
	}
	if _, basic := a.info.TypeOf(c.Expr).Underlying().(*types.Basic); basic {
		return false
	}
	for use := range a.usesOf(v, c.in) {
		f := a.funcAt(use)
		if !a.in(l, f, use.Node().Pos()) {
			continue
		}
		var around *Call
		for cur := range use.Enclosing((*ast.CallExpr)(nil)) {
			around = a.calls[cur.Node().(*ast.CallExpr)]
			break
		}
		if around == nil || around.api.Kind != tensorapi.Meta && (around.api.Kind != tensorapi.Read || strings.Contains(around.Callee.Name(), "Mutable")) {
			return false
		}
	}
	return true
}

// settledView is the tensor that e is, or is a view of a part of, if it is the
// same in all iterations of l, or nil, and whether the iterations count the
// parts.
func (a *analyzer) settledView(e ast.Expr, l *Loop) (tensor ast.Expr, counted bool) {
	for {
		view := a.calls[asCall(a.viewIn(e, l))]
		if view == nil {
			break
		}
		if view.api.Kind != tensorapi.View || view.api.Arg != tensorapi.Recv {
			return nil, false
		}
		more, ok := a.counted(view.Expr.Args, l)
		if !ok {
			return nil, false
		}
		counted = counted || more
		e = view.operand(tensorapi.Recv)[0]
	}
	if !a.isSettledTensor(e, l) || a.isHostMade(e) {
		return nil, false
	}
	return e, counted
}

// viewIn is the view that e, a variable of an iteration of l, is set to, or e.
func (a *analyzer) viewIn(e ast.Expr, l *Loop) ast.Expr {
	if d := a.defs[a.local(e)]; len(d) == 1 && d[0].kind == defValue && a.in(l, d[0].in, d[0].pos) {
		if c := a.calls[asCall(d[0].value)]; c != nil && c.api.Kind == tensorapi.View {
			return d[0].value
		}
	}
	return e
}

// isSettledTensor reports whether e is a variable, a field of one or a package
// variable that is the same in all iterations of l.
func (a *analyzer) isSettledTensor(e ast.Expr, l *Loop) bool {
	if v := a.local(e); v != nil {
		return a.isSettled(v, l)
	}
	v := a.variable(e)
	if v == nil || !isNamed(e) || a.mayAssign(l, v) {
		return false
	}
	sel, ok := ast.Unparen(e).(*ast.SelectorExpr)
	if !ok || !v.IsField() {
		return true // of a package
	}
	base, ok := ast.Unparen(sel.X).(*ast.Ident)
	return a.isSettledTensor(sel.X, l) || ok && a.local(base) != nil && a.isSettledBase(a.local(base), l)
}

// isNamed reports whether e is a name, of a package or a field of such.
func isNamed(e ast.Expr) bool {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		return true
	case *ast.SelectorExpr:
		return isNamed(e.X)
	}
	return false
}

// mayAssign reports whether l, or what it calls, may assign a field or package
// variable: as far as this package shows, if it is one of its own, or else if the
// package that has it is called at all.
func (a *analyzer) mayAssign(l *Loop, v *types.Var) bool {
	if slices.ContainsFunc(a.defs[v], func(d def) bool { return d.kind == defOther || a.in(l, d.in, d.pos) || a.calledFrom(l, d.in) }) {
		return true
	}
	return a.any(l, func(c *Call) bool {
		return c.dynamic || v.Pkg() != a.pass.Pkg && c.lib == nil && c.Callee != nil && c.Callee.Pkg() == v.Pkg()
	})
}

// counted reports whether one of the arguments counts iterations of l; ok is
// false if one of them neither does nor stays the same.
func (a *analyzer) counted(args []ast.Expr, l *Loop) (counted, ok bool) {
	for _, arg := range args {
		if t := a.info.TypeOf(arg); isTensor(t) {
			return false, false
		}
		more, ok := a.countsIn(arg, l, 0)
		if !ok {
			return false, false
		}
		counted = counted || more
	}
	return counted, counted || !slices.ContainsFunc(args, func(e ast.Expr) bool { return a.varies(e, l) })
}

// countsIn reports whether e is computed from what counts iterations of l; ok is
// false if e depends on something else that varies, or is looked up.
func (a *analyzer) countsIn(e ast.Expr, l *Loop, depth int) (counted, ok bool) {
	if depth > 8 {
		return false, false
	}
	all := func(list ...ast.Expr) (counted, ok bool) {
		for _, e := range list {
			more, ok := a.countsIn(e, l, depth+1)
			if !ok {
				return false, false
			}
			counted = counted || more
		}
		return counted, true
	}
	switch {
	case a.counts(e, l) || a.adds(e, l) || a.isListed(e, l):
		return true, true
	case !a.varies(e, l) && isPlain(e):
		return false, true
	}
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		d := a.defs[a.local(e)]
		if len(d) != 1 {
			return false, false
		}
		if d[0].kind == defValue && d[0].index == 0 {
			return all(d[0].value)
		}
	case *ast.BinaryExpr:
		return all(e.X, e.Y)
	case *ast.UnaryExpr:
		if e.Op == token.SUB {
			return all(e.X)
		}
	case *ast.CallExpr:
		tv := a.info.Types[e.Fun]
		c := a.calls[e]
		switch {
		case isSize(e) && tv.IsBuiltin(), c != nil && c.api.Kind == tensorapi.Meta:
			return false, true // of a part
		case tv.IsType(), tv.IsBuiltin():
			return all(e.Args...)
		}
	}
	return false, false
}

// isSize recognises len(x) and cap(x).
func isSize(call *ast.CallExpr) bool {
	id, ok := ast.Unparen(call.Fun).(*ast.Ident)
	return ok && (id.Name == "len" || id.Name == "cap")
}

// adds reports whether e is a whole number to which iterations of l add something, and do nothing
// else with it: where the next part begins.
func (a *analyzer) adds(e ast.Expr, l *Loop) bool {
	v := a.local(e)
	if v == nil || !isInteger(v.Type()) {
		return false
	}
	found := false
	for _, d := range a.defs[v] {
		if !a.in(l, d.in, d.pos) {
			continue
		}
		if d.kind != defOther || !a.isAdded(d.pos) {
			return false
		}
		found = true
	}
	return found
}

// isAdded reports whether the statement at pos is v += something.
func (a *analyzer) isAdded(pos token.Pos) bool {
	cur, ok := a.res.Cursor(pos)
	if !ok {
		return false
	}
	for c := range cur.Enclosing((*ast.AssignStmt)(nil)) {
		return c.Node().(*ast.AssignStmt).Tok == token.ADD_ASSIGN
	}
	return false
}

// isListed reports whether e is a number that l takes from a list, another one in each iteration: an
// index, or what one is computed from.
func (a *analyzer) isListed(e ast.Expr, l *Loop) bool {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		v := a.local(e)
		s, ok := l.Stmt.(*ast.RangeStmt)
		if v == nil || !ok || !isNumeric(v.Type()) || isFunc(a.info.TypeOf(s.X)) || isChan(a.info.TypeOf(s.X)) {
			return false
		}
		d := a.defs[v]
		return len(d) == 1 && d[0].kind == defElem && d[0].value == s.X
	case *ast.IndexExpr:
		return isNumeric(a.info.TypeOf(e)) && !a.varies(e.X, l) && a.counts(e.Index, l)
	}
	return false
}

// isPlain reports whether e is made of names and constants alone.
func isPlain(e ast.Expr) bool {
	plain := true
	ast.Inspect(e, func(n ast.Node) bool {
		switch n.(type) {
		case *ast.CallExpr, *ast.FuncLit, *ast.UnaryExpr, *ast.IndexExpr:
			plain = false
		}
		return plain
	})
	return plain
}

// isSettledBase is isSettled for a variable whose fields are meant: that its address
// is taken changes nothing.
func (a *analyzer) isSettledBase(v *types.Var, l *Loop) bool {
	return !a.declaredIn(v, l) && !slices.ContainsFunc(a.defs[v], func(d def) bool { return d.kind != defOther && a.in(l, d.in, d.pos) })
}

// declaredIn reports whether each iteration of l has a v of its own.
func (a *analyzer) declaredIn(v *types.Var, l *Loop) bool {
	if l.Stmt != nil {
		return l.Stmt.Pos() <= v.Pos() && v.Pos() < l.Stmt.End()
	}
	return l.fn.lit == nil || l.fn.lit.Pos() <= v.Pos() && v.Pos() < l.fn.lit.End()
}

// isSettled reports whether v holds the same tensor in all iterations of l.
func (a *analyzer) isSettled(v *types.Var, l *Loop) bool {
	if l.Stmt != nil && l.Stmt.Pos() <= v.Pos() && v.Pos() < l.Stmt.End() {
		return false
	}
	f := l.fn
	if l.blocks == nil && (v.Pos() < f.lit.Pos() || f.lit.End() <= v.Pos()) {
		f = f.parent // it is captured
	} else if l.blocks == nil {
		return false // the literal's own
	}
	for _, d := range a.defs[v] {
		if d.kind == defOther || d.in != f && d.in != f.outermost() || a.in(l, d.in, d.pos) {
			return false
		}
	}
	return true
}

// isHostMade reports whether e is made of host data alone: reading it back is
// a copy.
func (a *analyzer) isHostMade(e ast.Expr) bool {
	if v := a.variable(e); v != nil && a.local(e) == nil {
		return len(a.defs[v]) > 0 && !slices.ContainsFunc(a.defs[v], func(d def) bool { return d.kind != defValue || !a.isHostMade(d.value) })
	}
	calls, ok := a.madeBy(e, make(map[*types.Var]bool))
	return ok && !slices.ContainsFunc(calls, func(call *ast.CallExpr) bool { return a.calls[call].api.Kind != tensorapi.Host })
}

// isCertain reports whether l runs at least once, and its first iteration
// comes to c before it can leave.
func (a *analyzer) isCertain(c *Call, l *Loop) bool {
	fl := c.in.flow()
	if l.fn != c.in || l.blocks == nil || !l.runs(a.info) || len(a.shortCircuits(c.Expr.Pos())) > 0 {
		return false
	}
	for outer := range a.loopsAround(c.in, c.Expr.Pos()) {
		if e, _ := a.settledPart(c, outer); outer != l && !outer.small && e != nil {
			return false
		}
	}
	here := fl.blockAt(c.Expr.Pos())
	for b := range l.blocks {
		if b == l.head {
			continue // runs tells that it does not leave the first time
		}
		for _, s := range fl.blocks[b].Succs {
			if !l.blocks[s.Index] && !fl.dominates(here, b) || s.Index == l.head && !fl.dominates(here, b) {
				return false
			}
		}
	}
	return true
}

// runs reports whether the statement of l shows that it runs at least once.
func (l *Loop) runs(info *types.Info) bool {
	var n int64 = manyTrips
	switch s := l.Stmt.(type) {
	case *ast.ForStmt:
		n = forTrips(info, s)
	case *ast.RangeStmt:
		n = rangeTrips(info, s.X)
	}
	return 0 < n && n < manyTrips
}
