package blocking

import (
	"go/ast"
	"go/types"
	"slices"

	"github.com/asyncgen/asyncgen/analysis/tensorapi"
)

// Lists of tensors whose numbers are read one by one, where all has been enqueued before. The
// first read waits for most of the work, so the loop holds up nothing; but each is a call into
// the runtime and, on a GPU, a copy of a few bytes, where one would do for all.

// A ListRead is a read of a number of one element of a list of tensors in each iteration of a loop.
type ListRead struct {
	Call *ast.CallExpr
	Name string // how messages call the call
	// List is what holds the tensors.
	List ast.Expr
	Loop *Loop // nil: the loop is in the function called
	// Joined reports whether all elements are read, and appended to those of the others.
	Joined bool
}

// ListReads lists those in loops that enqueue nothing, in the order of the source.
func (r *Result) ListReads() []*ListRead {
	sites := make(map[*ast.CallExpr]bool)
	for _, s := range r.Sites {
		sites[s.Call] = true
	}
	var list []*ListRead
	for _, f := range r.Funcs {
		for _, c := range f.calls {
			if c.away || sites[c.Expr] || f.IsBenchmark() {
				continue
			}
			if e := f.a.listRead(c); e != nil {
				list = append(list, e)
			}
		}
	}
	slices.SortStableFunc(list, func(x, y *ListRead) int { return int(x.Call.Pos() - y.Call.Pos()) })
	return list
}

// listRead returns what c is if it reads a number of an element of a list, or nil.
func (a *analyzer) listRead(c *Call) *ListRead {
	if e := a.listReadInCallee(c); e != nil {
		return e
	}
	l := a.innermost(c)
	joined := a.isJoined(c)
	if l == nil || !joined && !isNumber(a.resultsOf(c)) {
		return nil
	}
	for _, w := range a.waits(c) {
		if w.kind == PrintSite || w.operand == nil || w.via != nil && (w.via.InLoop || w.via.Guarded) {
			continue
		}
		list := a.listAround(w.operand, l, 0)
		if list == nil || a.isHostList(list) || a.isWaitedFor(list, c, l) || !a.readsAll(c, l) {
			continue
		}
		return &ListRead{Call: c.Expr, Name: a.callName(c, w), List: list, Loop: l, Joined: joined}
	}
	return nil
}

// listReadInCallee returns what c is if the function that it calls reads the elements of a list in a loop,
// by a function that it is given too, or by a method of which only c's operands tell what it
// does; or nil.
func (a *analyzer) listReadInCallee(c *Call) *ListRead {
	for _, w := range a.waits(c) {
		if w.operand == nil || w.via == nil || !w.via.InLoop || w.via.Guarded || !w.open && w.arg == nil || c.sum().Enqueues {
			continue
		}
		if w.arg != nil && (!isNumber(a.info.TypeOf(w.arg.expr).Underlying().(*types.Signature).Results()) || isSorter(c.Callee)) {
			continue
		}
		if elementType(a.info.TypeOf(w.operand)) == nil || a.isHostList(w.operand) || a.isWaitedFor(w.operand, c, nil) ||
			isAllowed(c) || a.guardOf(c.in, c.Expr.Pos(), nil) == rarely || a.isFew(w.operand) {
			continue
		}
		return &ListRead{Call: c.Expr, Name: a.callName(c, w), List: w.operand}
	}
	return nil
}

// isFew reports whether a list has at most as many elements as a loop that is small.
func (a *analyzer) isFew(list ast.Expr) bool {
	return min(rangeTrips(a.info, list), rangeTrips(a.info, a.onlyValue(list))) <= maxTrips
}

// isNumber reports whether results are one number, perhaps with an error: other tensors may
// differ in size.
func isNumber(results *types.Tuple) bool {
	if results.Len() == 0 || results.Len() == 2 && !isError(results.At(1).Type()) || results.Len() > 2 {
		return false
	}
	return isNumeric(results.At(0).Type())
}

// readsAll reports whether most iterations of l come to c, none of them enqueues anything, waits
// for anything else or leaves the loop because of the value, and something becomes of it.
func (a *analyzer) readsAll(c *Call, l *Loop) bool {
	if a.guardOf(c.in, c.Expr.Pos(), l) != always || isAllowed(c) || a.receives(l) || a.isPaced(l) ||
		a.isSpawned(c.in.owner(), 0) ||
		a.any(l, func(d *Call) bool {
			return d.enqueues() || d.mutates() || isOutside(d) || isStreamed(d) || d.api.Kind == tensorapi.Wait
		}) {
		return false
	}
	places := a.uses(c, l)
	return len(places) > 0 && !slices.ContainsFunc(places, func(p place) bool { return p.use == Decides && !p.alarm })
}

// isJoined reports whether c reads a list that is appended to another: append(all, c...).
func (a *analyzer) isJoined(c *Call) bool {
	call, ok := c.Value().Parent().Node().(*ast.CallExpr)
	if !ok || !call.Ellipsis.IsValid() || len(call.Args) != 2 || !a.info.Types[call.Fun].IsBuiltin() {
		return false
	}
	return c.api.Kind == tensorapi.Read && ast.Unparen(call.Args[1]) == c.Expr
}

// listAround returns the list that e is an element of, another one in each iteration of l, or a
// part of an element; or nil.
func (a *analyzer) listAround(e ast.Expr, l *Loop, depth int) ast.Expr {
	if depth > 6 {
		return nil
	}
	switch e := ast.Unparen(e).(type) {
	case *ast.SelectorExpr:
		if sel := a.info.Selections[e]; sel != nil && sel.Kind() == types.FieldVal {
			return a.listAround(e.X, l, depth+1)
		}
	case *ast.StarExpr:
		return a.listAround(e.X, l, depth+1)
	case *ast.CallExpr:
		if c := a.calls[e]; c != nil && c.api.Kind == tensorapi.View && c.api.Arg == tensorapi.Recv {
			return a.listAround(c.operand(tensorapi.Recv)[0], l, depth+1)
		}
	case *ast.IndexExpr:
		if elementType(a.info.TypeOf(e.X)) == nil || a.varies(e.X, l) {
			return nil
		}
		if counted, ok := a.countsIn(e.Index, l, 0); ok && counted || a.isOperand(a.local(e.Index), l) || a.isKeyOf(e, l) {
			return e.X
		}
	case *ast.Ident:
		return a.listOfVariable(e, l, depth)
	}
	return nil
}

// isKeyOf reports whether e is an element of a map, with a key that l ranges over.
func (a *analyzer) isKeyOf(e *ast.IndexExpr, l *Loop) bool {
	s, ok := l.Stmt.(*ast.RangeStmt)
	if !ok || !isMap(a.info.TypeOf(e.X)) {
		return false
	}
	d := a.defs[a.local(e.Index)]
	return len(d) == 1 && (d[0].kind == defElem || d[0].kind == defKey) && d[0].value == s.X
}

func (a *analyzer) listOfVariable(e *ast.Ident, l *Loop, depth int) ast.Expr {
	v := a.local(e)
	if v == nil {
		return nil
	}
	if a.isOperand(v, l) {
		return a.iteratedBy(l, v)
	}
	d := a.defs[v]
	if len(d) != 1 || !a.in(l, d[0].in, d[0].pos) {
		return nil
	}
	s, _ := l.Stmt.(*ast.RangeStmt)
	switch {
	case d[0].kind == defValue && d[0].index == 0:
		return a.listAround(d[0].value, l, depth+1)
	case s == nil || s.X != d[0].value:
		return nil
	case d[0].kind == defElem, d[0].kind == defKey && isFunc(a.info.TypeOf(s.X)):
		return s.X
	}
	return nil
}

// iteratedBy is the list, among the operands of the call that calls the literal which is the body of l,
// whose elements the literal is given as v; or nil.
func (a *analyzer) iteratedBy(l *Loop, v *types.Var) ast.Expr {
	c := a.calls[l.fn.arg]
	if c == nil {
		return nil
	}
	for _, e := range c.Expr.Args {
		if types.Identical(iterated(a.info.TypeOf(e)), v.Type()) {
			return e
		}
	}
	return nil
}

// isHostList reports whether all that a list holds is made of host data.
func (a *analyzer) isHostList(list ast.Expr) bool {
	found := false
	known := a.flow(list, func(e ast.Expr) bool {
		c := a.calls[asCall(e)]
		made := c != nil && c.api.Kind == tensorapi.Host
		found = found || made
		return made
	})
	return known && found
}

// isWaitedFor reports whether c's function has waited for all of the list before l, or c if that is nil.
func (a *analyzer) isWaitedFor(list ast.Expr, c *Call, l *Loop) bool {
	text := types.ExprString(list)
	return slices.ContainsFunc(c.in.calls, func(d *Call) bool {
		if d.Expr.End() > c.Expr.Pos() || l != nil && a.in(l, d.in, d.Expr.Pos()) {
			return false
		}
		return d.api.Kind == tensorapi.WaitAll || d.api.Kind == tensorapi.Wait && slices.ContainsFunc(d.operand(d.api.Arg), func(e ast.Expr) bool {
			return types.ExprString(e) == text
		})
	})
}
