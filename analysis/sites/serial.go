package sites

import (
	"go/ast"
	"slices"

	"github.com/asyncgen/asyncgen/analysis/blocking"
	"github.com/asyncgen/asyncgen/analysis/internal/syntax"
	"github.com/asyncgen/asyncgen/analysis/tensorapi"
)

// Serialised returns the loop that c makes wait for its own work in each
// iteration, and how, if nothing tells that this is wanted: a clock, another goroutine
// that gets to see what is there, a question about how far the device has got; or,
// with a library that does not bound its queue, a training step.
func Serialised(pkg *blocking.Package, c *blocking.Call) (*blocking.Loop, blocking.CallWait) {
	if l := timedStep(pkg, c); l != nil {
		return l, blocking.CallWait{}
	}
	if c.In.Outermost().Contains(blocking.TellsTime) {
		return nil, blocking.CallWait{}
	}
	for _, w := range pkg.Barriers(c) {
		if IsOwnPace(c, w) {
			continue
		}
		if l := serialisedBy(pkg, c, w); l != nil {
			return l, w
		}
	}
	return nil, blocking.CallWait{}
}

func serialisedBy(pkg *blocking.Package, c *blocking.Call, w blocking.CallWait) *blocking.Loop {
	for l := range pkg.LoopsAround(c.In, c.Expr.Pos()) {
		if l.Small || !pkg.Any(l, (*blocking.Call).Enqueues) || pkg.AppliesList(c, l) {
			continue
		}
		if _, measured := pkg.IsMeasured(l); measured || pkg.IsOuter(l, c) {
			return nil
		}
		if w.Operand != nil && (!pkg.Fresh(w.Operand, c.In, l) || isDelayed(pkg, c, w.Operand, l)) {
			continue
		}
		if pkg.GuardOf(c.In, c.Expr.Pos(), l) != blocking.Always || !boundsQueue(pkg, c) && pkg.Any(l, (*blocking.Call).Mutates) || pkg.Any(l, IsStreamed) || handsOver(pkg, c, l) {
			return nil
		}
		return l
	}
	return nil
}

// timedStep returns the loop over data that c, which asks a Timer for how long the device took, makes
// wait for a step of training in each iteration; or nil. A Timer can be asked later for the same.
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

// IsTimerWait recognises the wait of a Timer.
func IsTimerWait(c *blocking.Call) bool {
	return c.API.Kind == tensorapi.WaitAll && c.IsFunc("Timer.Wait")
}

// boundsQueue reports whether c is about a library that bounds by itself how far a
// program runs ahead: ours.
func boundsQueue(pkg *blocking.Package, c *blocking.Call) bool {
	if c.Lib != nil {
		return c.Lib == tensorapi.Ours()
	}
	return len(pkg.LibraryNames) == 1 && pkg.LibraryNames[0] == tensorapi.Ours().Name
}

// handsOver reports whether something in l may want what c has waited for: it tells another
// goroutine, starts one, or asks how far the device has got. Who is sent tensors of ours on the
// channel that gets all of them can wait by itself.
func handsOver(pkg *blocking.Package, c *blocking.Call, l *blocking.Loop) bool {
	for cur := range l.Func.Cur.Preorder((*ast.SendStmt)(nil), (*ast.GoStmt)(nil)) {
		f := pkg.FuncAt(cur)
		if f == nil || !pkg.Contains(l, f, cur.Node().Pos()) {
			continue
		}
		if send, ok := cur.Node().(*ast.SendStmt); ok && boundsQueue(pkg, c) && pkg.HoldsTensors(pkg.Info.TypeOf(send.Value)) && !pkg.Varies(send.Chan, l) {
			continue
		}
		return true
	}
	return pkg.Any(l, func(c *blocking.Call) bool { return c.API.Kind == tensorapi.Poll || syntax.StartsGoroutine(c.Callee) })
}
