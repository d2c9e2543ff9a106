package sites

import (
	"go/ast"
	"go/token"
	"slices"

	"github.com/asyncgen/asyncgen/analysis/blocking"
	"github.com/asyncgen/asyncgen/analysis/internal/syntax"
	"github.com/asyncgen/asyncgen/analysis/tensorapi"
)

// Serialised returns the loop whose iterations each wait for their own work by c, and the wait; or nil.
// It is nil if something shows that the wait is wanted: the function reads a clock after it, hands the tensor to
// another goroutine, asks how far the device has got, or goes on from what it reads. In loops that train
// it is also nil for libraries that don't bound their queues.
//
//	for _, x := range xs {
//		y := f(x)
//		y.Wait()
//	}
func Serialised(pkg *blocking.Package, c *blocking.Call) (*blocking.Loop, blocking.CallWait) {
	if l := timedStep(pkg, c); l != nil {
		return l, blocking.CallWait{}
	}
	timed := c.In.Outermost().Contains(blocking.TellsTime)
	for _, w := range pkg.Barriers(c) {
		if IsOwnPace(c, w) {
			continue
		}
		if l := serialisedBy(pkg, c, w); l != nil && (!timed || waitsForClock(pkg, l)) {
			return l, w
		}
	}
	return nil, blocking.CallWait{}
}

// waitsForClock reports whether the function around l reads no clock in l, and waits after l before it reads one again.
// Then the waits in l aren't there for the clock. In a loop that trains they may bound the queue while time is taken.
func waitsForClock(pkg *blocking.Package, l *blocking.Loop) bool {
	if l.Stmt == nil || l.Func.Lit != nil || pkg.Any(l, func(d *blocking.Call) bool { return blocking.TellsTime(d) || d.Mutates() }) {
		return false
	}
	for _, d := range l.Func.Calls { // in the order of the source
		if d.Expr.Pos() < l.Stmt.End() {
			continue
		}
		if blocking.TellsTime(d) {
			return false
		}
		if d.Waits() && !d.Away {
			return true
		}
	}
	return false
}

// serialisedBy is Serialised for one wait of c.
func serialisedBy(pkg *blocking.Package, c *blocking.Call, w blocking.CallWait) *blocking.Loop {
	for l := range pkg.LoopsAround(c.In, c.Expr.Pos()) {
		if l.Small || !pkg.Any(l, (*blocking.Call).Enqueues) || pkg.AppliesList(c, l) {
			continue
		}
		if _, measured := pkg.IsMeasured(l); measured || pkg.IsOuter(l, c) {
			return nil
		}
		if pkg.IsRetry(c, l) || multiplies(l) {
			return nil
		}
		if w.Operand != nil && !pkg.Fresh(w.Operand, c.In, l) || pkg.IsDelayed(c, w, l) {
			continue
		}
		if pkg.GuardOf(c.In, c.Expr.Pos(), l) != blocking.Always || !boundsQueue(pkg, c) && pkg.Any(l, (*blocking.Call).Mutates) || pkg.Any(l, IsStreamed) || handsOver(pkg, c, l) || isForReader(pkg, c, l) {
			return nil
		}
		return l
	}
	return nil
}

// isForReader reports whether l reads each tensor that c waits for after c, and must have the values at once: it hands
// them to somebody who waits for them, as a text that grows word by word, or the host goes on from them.
//
//	if err := token.WaitContext(ctx); err != nil {
//		return
//	}
//	yield(token.ItemInt())
func isForReader(pkg *blocking.Package, c *blocking.Call, l *blocking.Loop) bool {
	if c.API.Kind != tensorapi.Wait {
		return false
	}
	list := c.Operand(c.API.Arg)
	return len(list) > 0 && !slices.ContainsFunc(list, func(e ast.Expr) bool {
		v := pkg.Local(e)
		return v == nil || !pkg.Any(l, func(d *blocking.Call) bool {
			return d.API.Kind == tensorapi.Read && d.Expr.Pos() > c.Expr.End() && waitsFor(pkg, d, v, l).IsValid() &&
				slices.ContainsFunc(Uses(pkg, d, l), func(p Place) bool { return isAwaited(pkg, p, e, l) })
		})
	})
}

// multiplies reports whether l multiplies its counter, or divides it, in each iteration: it tries sizes, and there are
// few.
func multiplies(l *blocking.Loop) bool {
	s, ok := l.Stmt.(*ast.ForStmt)
	if !ok {
		return false
	}
	assign, ok := s.Post.(*ast.AssignStmt)
	return ok && slices.Contains([]token.Token{token.MUL_ASSIGN, token.QUO_ASSIGN, token.SHL_ASSIGN, token.SHR_ASSIGN}, assign.Tok)
}

// timedStep returns the loop over data in each iteration of which c asks a Timer how long the device
// took for a step of training; or nil. A Timer can be asked later.
func timedStep(pkg *blocking.Package, c *blocking.Call) *blocking.Loop {
	if !IsTimerWait(c) {
		return nil
	}
	for l := range pkg.LoopsAround(c.In, c.Expr.Pos()) {
		if l.Small {
			continue
		}
		if pkg.IsOuter(l, c) || !pkg.StepsItself(l) || !pkg.OverData(l, l.Func.WholeLoop()) || pkg.GuardOf(c.In, c.Expr.Pos(), l) != blocking.Always || pkg.Any(l, IsStreamed) || pkg.Any(l, blocking.IsClock) {
			return nil
		}
		v := pkg.Local(c.Operand(tensorapi.Recv)[0])
		if v == nil || !slices.ContainsFunc(pkg.Defs[v], func(d blocking.Def) bool {
			return pkg.Contains(l, d.In, d.Pos) && pkg.Calls[syntax.AsCall(syntax.OrNil(d.Value))] != nil
		}) {
			return nil
		}
		return l
	}
	return nil
}

// IsTimerWait recognises Timer.Wait.
func IsTimerWait(c *blocking.Call) bool {
	return c.API.Kind == tensorapi.WaitAll && c.IsFunc("Timer.Wait")
}

// boundsQueue reports whether c's library bounds how far a program runs ahead, as ours does.
func boundsQueue(pkg *blocking.Package, c *blocking.Call) bool {
	if c.Lib != nil {
		return c.Lib == tensorapi.Ours()
	}
	return len(pkg.LibraryNames) == 1 && pkg.LibraryNames[0] == tensorapi.Ours().Name
}

// handsOver reports whether somebody else may want what c has waited for: l sends something on a
// channel, starts a goroutine, or asks how far the device has got. To send tensors of ours on one
// channel doesn't count, nor a tensor alone on any, as the receiver can wait for it.
func handsOver(pkg *blocking.Package, c *blocking.Call, l *blocking.Loop) bool {
	for cur := range l.Func.Cur.Preorder((*ast.SendStmt)(nil), (*ast.GoStmt)(nil)) {
		f := pkg.FuncAt(cur)
		if f == nil || !pkg.Contains(l, f, cur.Node().Pos()) {
			continue
		}
		if send, ok := cur.Node().(*ast.SendStmt); ok && boundsQueue(pkg, c) && pkg.HoldsTensors(pkg.Info.TypeOf(send.Value)) && (!pkg.Varies(send.Chan, l) || blocking.IsTensor(pkg.Info.TypeOf(send.Value))) {
			continue
		}
		return true
	}
	return pkg.Any(l, func(c *blocking.Call) bool { return c.API.Kind == tensorapi.Poll || syntax.StartsGoroutine(c.Callee) })
}
