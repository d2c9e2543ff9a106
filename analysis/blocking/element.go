package blocking

import (
	"go/ast"
	"go/types"
	"slices"

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
		if l.small || l.blocks == nil && l.fn.how() != looping {
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
	if !ok {
		return nil, false
	}
	e, views := a.settledView(operands[0], l)
	return e, e != nil && (counted || views)
}

// settledView is the tensor that e is, or is a view of a part of, if it is the
// same in all iterations of l, or nil, and whether the iterations count the
// parts.
func (a *analyzer) settledView(e ast.Expr, l *Loop) (tensor ast.Expr, counted bool) {
	for {
		view := a.calls[asCall(e)]
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
	if v := a.local(e); v == nil || !a.isSettled(v, l) || a.isHostMade(e) {
		return nil, false
	}
	return e, counted
}

// counted reports whether one of the arguments counts iterations of l; ok is
// false if one of them neither does nor stays the same.
func (a *analyzer) counted(args []ast.Expr, l *Loop) (counted, ok bool) {
	for _, arg := range args {
		if t := a.info.TypeOf(arg); isTensor(t) {
			return false, false
		}
		switch {
		case a.counts(arg, l):
			counted = true
		case a.varies(arg, l) || !isPlain(arg):
			return false, false
		}
	}
	return counted, true
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
		n = rangeTrips(info, s)
	}
	return 0 < n && n < manyTrips
}
