package blocking

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"

	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"golang.org/x/tools/go/ast/edge"
	"golang.org/x/tools/go/ast/inspector"
)

// A Barrier is a call that waits and gives the program nothing for it.
type Barrier struct {
	Call *ast.CallExpr
	Cur  inspector.Cursor // of Call
	Name string           // how messages call the call
	// Loop is the loop in each iteration of which the call waits for what the
	// iteration has enqueued.
	Loop *Loop
	// Read, if there is no Loop, is the call right after this one that waits
	// for the same.
	Read *ast.CallExpr
	// Chain leads from the function called to the wait, if it is in that.
	Chain []Link
	// Outside reports whether the loop also waits for the world outside.
	Outside bool
	// Trains reports whether the loop trains, and nothing else in it waits: such a wait bounds the queue, which the
	// library does by itself.
	Trains bool
	// Timer reports whether the call asks a Timer, which can be asked later.
	Timer bool
}

// Barriers lists the waits that serialise a loop, and those that a read
// follows, in the order of the source.
func (r *Result) Barriers() []*Barrier {
	var list []*Barrier
	for _, f := range r.Funcs {
		for _, c := range f.calls {
			if c.away {
				continue
			}
			if b := r.barrier(f.a, c); b != nil {
				list = append(list, b)
			}
		}
	}
	slices.SortStableFunc(list, func(x, y *Barrier) int { return int(x.Call.Pos() - y.Call.Pos()) })
	return list
}

// barrier returns the one that c is, or nil.
func (r *Result) barrier(a *analyzer, c *Call) *Barrier {
	if read := a.readAfter(c); read != nil {
		return &Barrier{Call: c.Expr, Cur: c.cur, Name: a.callName(c, wait{kind: ReadSite}), Read: read.Expr}
	}
	l, w := a.serialised(c)
	if l == nil {
		return nil
	}
	b := &Barrier{
		Call: c.Expr, Cur: c.cur, Loop: l, Name: a.callName(c, w),
		Outside: a.any(l, isOutside) || isAllowed(c),
		Trains:  a.any(l, (*Call).mutates),
		Timer:   isTimerWait(c),
	}
	if w.via != nil {
		b.Chain = w.via.Chain
	}
	if (b.Trains || w.via != nil) && r.waitsAfter(c, l) {
		return nil // that is the finding
	}
	return b
}

// waitsAfter reports whether l has a finding about a read after c, or in it.
func (r *Result) waitsAfter(c *Call, l *Loop) bool {
	return slices.ContainsFunc(r.Sites, func(s *Site) bool {
		return s.Loop == l && s.Call.Pos() > c.Expr.Pos() || s.Call == c.Expr
	})
}

// serialised returns the loop that c makes wait for its own work in each
// iteration, and how, if nothing tells that this is wanted: a clock, another goroutine
// that gets to see what is there, a question about how far the device has got; or,
// with a library that does not bound its queue, a training step.
func (a *analyzer) serialised(c *Call) (*Loop, wait) {
	if l := a.timedStep(c); l != nil {
		return l, wait{}
	}
	if c.in.outermost().contains(tellsTime) {
		return nil, wait{}
	}
	for _, w := range a.barriers(c) {
		if c.isOwnPace(w) {
			continue
		}
		if l := a.serialisedBy(c, w); l != nil {
			return l, w
		}
	}
	return nil, wait{}
}

func (a *analyzer) serialisedBy(c *Call, w wait) *Loop {
	for l := range a.loopsAround(c.in, c.Expr.Pos()) {
		if l.small || !a.any(l, (*Call).enqueues) || a.appliesList(c, l) {
			continue
		}
		if _, measured := a.isMeasured(l); measured || a.isOuter(l, c) {
			return nil
		}
		if w.operand != nil && (!a.fresh(w.operand, c.in, l) || a.isDelayed(c, w.operand, l)) {
			continue
		}
		if a.guardOf(c.in, c.Expr.Pos(), l) != always || !a.boundsQueue(c) && a.any(l, (*Call).mutates) || a.any(l, isStreamed) || a.handsOver(c, l) {
			return nil
		}
		return l
	}
	return nil
}

// timedStep returns the loop over data that c, which asks a Timer for how long the device took, makes
// wait for a step of training in each iteration; or nil. A Timer can be asked later for the same.
func (a *analyzer) timedStep(c *Call) *Loop {
	if !isTimerWait(c) {
		return nil
	}
	for l := range a.loopsAround(c.in, c.Expr.Pos()) {
		if l.small {
			continue
		}
		if a.isOuter(l, c) || !a.stepsItself(l) || !a.overData(l, l.fn.wholeLoop()) || a.guardOf(c.in, c.Expr.Pos(), l) != always || a.any(l, isStreamed) || a.any(l, isClock) {
			return nil
		}
		v := a.local(c.operand(tensorapi.Recv)[0])
		if v == nil || !slices.ContainsFunc(a.defs[v], func(d def) bool { return a.in(l, d.in, d.pos) && a.calls[asCall(orNil(d.value))] != nil }) {
			return nil
		}
		return l
	}
	return nil
}

// isTimerWait recognises the wait of a Timer.
func isTimerWait(c *Call) bool {
	return c.api.Kind == tensorapi.WaitAll && c.IsFunc("Timer.Wait")
}

// boundsQueue reports whether c is about a library that bounds by itself how far a
// program runs ahead: ours.
func (a *analyzer) boundsQueue(c *Call) bool {
	if c.lib != nil {
		return c.lib == tensorapi.Ours()
	}
	return len(a.res.libraries) == 1 && a.res.libraries[0] == tensorapi.Ours().Name
}

// handsOver reports whether something in l may want what c has waited for: it tells another
// goroutine, starts one, or asks how far the device has got. Who is sent tensors of ours on the
// channel that gets all of them can wait by itself.
func (a *analyzer) handsOver(c *Call, l *Loop) bool {
	for cur := range l.fn.cur.Preorder((*ast.SendStmt)(nil), (*ast.GoStmt)(nil)) {
		f := a.funcAt(cur)
		if f == nil || !a.in(l, f, cur.Node().Pos()) {
			continue
		}
		if send, ok := cur.Node().(*ast.SendStmt); ok && a.boundsQueue(c) && a.holdsTensor(a.info.TypeOf(send.Value)) && !a.varies(send.Chan, l) {
			continue
		}
		return true
	}
	return a.any(l, func(c *Call) bool { return c.api.Kind == tensorapi.Poll || startsGoroutine(c.Callee) })
}

// readAfter returns the call in the statement after c's that waits for the same
// tensor, if c's statement does nothing but wait, and drops the error.
func (a *analyzer) readAfter(c *Call) *Call {
	if c.api.Kind != tensorapi.Wait || c.api.Arg != tensorapi.Recv || len(c.Expr.Args) > 0 {
		return nil
	}
	stmt, ok := a.dropped(c)
	if !ok {
		return nil
	}
	v := a.local(c.operand(tensorapi.Recv)[0])
	next, ok := stmt.NextSibling()
	if v == nil || !ok {
		return nil
	}
	switch next.Node().(type) {
	case *ast.ExprStmt, *ast.AssignStmt, *ast.ReturnStmt, *ast.DeclStmt:
	default:
		return nil
	}
	// The first call of the statement, in the order in which they run, has to
	// be the read: nothing may happen before it.
	var first *Call
	for cur := range next.Preorder((*ast.CallExpr)(nil), (*ast.FuncLit)(nil), (*ast.UnaryExpr)(nil), (*ast.BinaryExpr)(nil), (*ast.IndexExpr)(nil)) {
		switch n := cur.Node().(type) {
		case *ast.CallExpr:
			d := a.calls[n]
			if d == nil {
				continue // a conversion or built-in
			}
			if first == nil || d.Expr.End() <= first.Expr.End() && d.Expr.Pos() >= first.Expr.Pos() {
				first = d // an operand of the one before, so it runs earlier
			}
		case *ast.UnaryExpr:
			if n.Op == token.ARROW {
				return nil
			}
		case *ast.BinaryExpr:
			if n.Op == token.LAND || n.Op == token.LOR {
				return nil
			}
		default:
			return nil
		}
	}
	if first == nil || first.api.Kind != tensorapi.Read || first.api.Arg != tensorapi.Recv || a.local(first.operand(tensorapi.Recv)[0]) != v {
		return nil
	}
	if strings.HasSuffix(first.Callee.Name(), "Context") {
		return nil // it may give up waiting
	}
	return first
}

// dropped returns the statement that c is, if it is one, or one that assigns
// its result to the blank identifier.
func (a *analyzer) dropped(c *Call) (inspector.Cursor, bool) {
	stmt := c.cur.Parent()
	switch n := stmt.Node().(type) {
	case *ast.ExprStmt:
	case *ast.AssignStmt:
		id, ok := n.Lhs[0].(*ast.Ident)
		if len(n.Lhs) != 1 || !ok || id.Name != "_" {
			return stmt, false
		}
	default:
		return stmt, false
	}
	switch stmt.ParentEdgeKind() {
	case edge.BlockStmt_List, edge.CaseClause_Body, edge.CommClause_Body:
		return stmt, true
	}
	return stmt, false
}
