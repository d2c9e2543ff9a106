package benchmark

import (
	_ "embed"
	"go/ast"
	"go/types"
	"slices"
	"strings"

	"github.com/asyncgen/asyncgen/analysis/blocking"
	"github.com/asyncgen/asyncgen/analysis/internal/syntax"
	"github.com/asyncgen/asyncgen/analysis/lint"
	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"golang.org/x/tools/go/analysis"
)

//go:embed doc.go
var doc string

// Analyzer is rule AT021.
var Analyzer = rule.Analyzer()

var rule = &lint.Rule{ID: "AT021", Package: "benchmark", Doc: doc, Fixes: true, InTests: true, Clocks: true, Check: check}

func check(p *lint.Pass) {
	for _, f := range p.Funcs {
		for _, l := range benchLoops(f) {
			if onPurpose(f) {
				continue
			}
			message := "the benchmark's clock stops before this work is finished; wait for it after the loop"
			if l.Stops {
				message = "b.Loop stops the clock before this work is finished; wait in each iteration, or loop over b.N and wait after the loop"
			}
			// The finding is where the clock stops, or at the work if that is out of sight.
			at, related := analysis.Range(l.Op), analysis.RelatedInformation{Pos: l.Stmt.Pos(), End: body(l.Stmt).Pos(), Message: "the loop"}
			if l.Stop != nil {
				at = l.Stop
			} else if s, ok := l.Stmt.(*ast.ForStmt); ok && l.Stops {
				at, related = s.Cond, analysis.RelatedInformation{Pos: l.Op.Pos(), End: l.Op.End(), Message: "this may be unfinished"}
			}
			p.Report(lint.Warning, analysis.Diagnostic{
				Pos:            at.Pos(),
				End:            at.End(),
				Message:        message,
				Related:        []analysis.RelatedInformation{related},
				SuggestedFixes: wait(p, l),
			})
		}
		for _, h := range handedLoops(f) {
			if onPurpose(f) || onPurpose(h.body) {
				continue
			}
			p.Report(lint.Warning, analysis.Diagnostic{
				Pos:     h.op.Expr.Pos(),
				End:     h.op.Expr.End(),
				Message: "the benchmark's clock stops before this work is finished; wait for it, here or after the loop",
				Related: []analysis.RelatedInformation{{Pos: h.stmt.Pos(), End: body(h.stmt).Pos(), Message: "the loop"}},
			})
		}
	}
}

// onPurpose reports whether the name of the benchmark, or a text beside it, says that it is about enqueueing.
func onPurpose(f *blocking.Func) bool {
	words := strings.Join(about(f), " ")
	return blocking.SpeaksOfEnqueueing(words) || strings.Contains(strings.ToLower(words), "async")
}

// body returns the body of a for or range statement.
func body(loop ast.Stmt) *ast.BlockStmt {
	if s, ok := loop.(*ast.ForStmt); ok {
		return s.Body
	}
	return loop.(*ast.RangeStmt).Body
}

// wait inserts a wait for all work where the clock still runs.
func wait(p *lint.Pass, l benchLoop) []analysis.SuggestedFix {
	stmt := l.Stmt
	if l.Stop != nil && stmt.Pos() <= l.Stop.Pos() && l.Stop.Pos() < stmt.End() {
		return nil // each iteration starts and stops the clock
	}
	if l.Stops {
		list := body(stmt).List
		if len(list) == 0 {
			return nil // the work is in the condition
		}
		stmt = list[len(list)-1]
		switch stmt.(type) {
		case *ast.ReturnStmt, *ast.BranchStmt:
			return nil
		}
	}
	edits, ok := p.WaitAfter(stmt)
	if !ok {
		return nil
	}
	return []analysis.SuggestedFix{{Message: "Wait while the clock runs", TextEdits: edits}}
}

// A benchLoop is the loop of a benchmark whose work may be unfinished when the
// benchmark's clock stops.
type benchLoop struct {
	Stmt ast.Stmt
	B    *types.Var // the *testing.B
	// Stops reports whether the end of the loop stops the clock, as with
	// b.Loop(), so that a wait after the loop comes too late.
	Stops bool
	Op    *ast.CallExpr // enqueues work that may be unfinished then
	Stop  *ast.CallExpr // stops the clock, or nil
	Fn    *blocking.Func
}

// benchLoops lists the loops of the benchmark f that may end before their work does. A loop that waits
// in each iteration is left out.
func benchLoops(f *blocking.Func) []benchLoop {
	b, run := f.Benchmark(), parallel(f)
	if run != nil {
		b = f.Package.Variable(run.Operand(tensorapi.Recv)[0])
	}
	if b == nil {
		return nil
	}
	var list []benchLoop
	for _, l := range f.Flow().Loops {
		stops, ok := f.IsBenchLoop(l, b)
		if !ok {
			continue
		}
		if op, stop := leftUnfinished(f, l, b, stops); op != nil && !(run != nil && isFollowedByWait(run)) {
			list = append(list, benchLoop{l.Stmt, b, stops, op.Expr, stop, f})
		} else if op, stop := stoppedEarly(f, l, b); op != nil {
			list = append(list, benchLoop{l.Stmt, b, stops, op.Expr, stop, f})
		}
	}
	return list
}

// stoppedEarly returns a call in l that enqueues work, and the call of b.StopTimer that stops the clock
// before the work is done. It returns nil if there are none, or if l does not start the clock again.
func stoppedEarly(f *blocking.Func, l *blocking.Loop, b *types.Var) (op *blocking.Call, stop *ast.CallExpr) {
	for _, c := range f.Calls {
		if !isTimer(f, c, b, "StopTimer") || !f.InLoop(l, c.Expr.Pos()) {
			continue
		}
		for _, d := range f.Calls {
			if isTimer(f, d, b, "StartTimer") && f.InLoop(l, d.Expr.Pos()) && d.Expr.Pos() < c.Expr.Pos() {
				if op := f.Unfinished(d.Expr.Pos(), c.Expr.Pos(), nil); op != nil {
					return op, c.Expr
				}
			}
		}
	}
	return nil, nil
}

// parallel returns the call of b.RunParallel that f is passed to, or nil.
func parallel(f *blocking.Func) *blocking.Call {
	if c := f.PassedTo(); c != nil && syntax.IsFullName(c.Callee, "(*testing.B).RunParallel") {
		return c
	}
	return nil
}

// isFollowedByWait reports whether c's function waits after c, or when it returns.
func isFollowedByWait(c *blocking.Call) bool {
	return slices.ContainsFunc(c.In.Calls, func(d *blocking.Call) bool {
		if _, isDefer := d.Cur.Parent().Node().(*ast.DeferStmt); isDefer {
			syncs := func(d *blocking.Call) bool { return d.Syncs(c.Expr.Pos()) }
			return syncs(d) || anyDeferred(d, syncs)
		}
		return d.Expr.Pos() > c.Expr.End() && d.Syncs(c.Expr.Pos()) && c.In.Leads(c.Expr.End()-1, d.Expr.Pos(), nil)
	})
}

// leftUnfinished returns a call in l whose work is not waited for before the clock stops, or nil. It
// also returns the call that stops the clock, if there is one.
func leftUnfinished(f *blocking.Func, l *blocking.Loop, b *types.Var, stops bool) (*blocking.Call, *ast.CallExpr) {
	var op *blocking.Call
	for g := range f.Tree() {
		for _, c := range g.Calls {
			if !f.Package.Contains(l, g, c.Expr.Pos()) {
				continue
			}
			if c.Syncs(l.Pos) && f.Package.GuardOf(g, c.Expr.Pos(), l) != blocking.Rarely {
				return nil, nil
			}
			if c.Enqueues() {
				op = c
			}
		}
	}
	if op == nil || stops {
		return op, nil
	}
	waits, stop := waitsAtEnd(f, l, b)
	if waits {
		return nil, nil
	}
	return op, stop
}

// waitsAtEnd reports whether something waits on all ways from l to where the clock stops: at b.StopTimer, or when f
// and what it defers has returned. If nothing does, it returns the call of b.StopTimer, or nil.
func waitsAtEnd(f *blocking.Func, l *blocking.Loop, b *types.Var) (waits bool, stop *ast.CallExpr) {
	syncs := func(c *blocking.Call) bool { return c.Syncs(l.Pos) }
	fl := f.Flow()
	byBlock := make(map[int32][]*blocking.Call)
	for _, c := range f.Calls {
		if c.Away {
			if _, isDefer := c.Cur.Parent().Node().(*ast.DeferStmt); isDefer && (syncs(c) || anyDeferred(c, syncs)) {
				return true, nil
			}
			continue
		}
		at := fl.BlockAt(c.Expr.Pos())
		byBlock[at] = append(byBlock[at], c)
	}
	var loops []*blocking.Loop // that wait
	for _, m := range fl.Loops {
		for at := range m.Blocks {
			if slices.ContainsFunc(byBlock[at], syncs) {
				loops = append(loops, m)
				break
			}
		}
	}
	seen := make(map[int32]bool)
	var ends func(at int32) bool // without a wait
	ends = func(at int32) bool {
		if seen[at] || slices.ContainsFunc(loops, func(m *blocking.Loop) bool { return m.Head == at }) {
			return false
		}
		seen[at] = true
		for _, c := range byBlock[at] {
			switch {
			case isTimer(f, c, b, "StopTimer"):
				stop = c.Expr
				return true
			case syncs(c), syntax.NeverReturns(f.Package.Info, c.Expr):
				return false
			}
		}
		succs := fl.Blocks[at].Succs
		for _, s := range succs {
			if ends(s.Index) {
				return true
			}
		}
		return len(succs) == 0
	}
	for at := range l.Blocks {
		for _, s := range fl.Blocks[at].Succs {
			if !l.Blocks[s.Index] && ends(s.Index) {
				return false, stop
			}
		}
	}
	return true, nil
}

// anyDeferred reports whether a literal that c defers has a call with the given property.
func anyDeferred(c *blocking.Call, has func(*blocking.Call) bool) bool {
	return slices.ContainsFunc(c.Lits, func(lit *blocking.Func) bool { return slices.ContainsFunc(lit.Calls, has) })
}

// isTimer reports whether c is the method of b, a *testing.B, with the given name: b.StopTimer().
func isTimer(f *blocking.Func, c *blocking.Call, b *types.Var, name string) bool {
	sel, ok := ast.Unparen(c.Expr.Fun).(*ast.SelectorExpr)
	if !ok || sel.Sel.Name != name {
		return false
	}
	id, ok := sel.X.(*ast.Ident)
	return ok && f.Package.Info.Uses[id] == b
}

// about returns the words that say what f is about: the names of f and the functions around it, and texts among the
// arguments beside it, as in b.Run("enqueue", f).
func about(f *blocking.Func) []string {
	var words []string
	for g := range f.In() {
		words = append(words, g.Name)
		if g.ArgOf == nil {
			continue
		}
		for _, arg := range g.ArgOf.Args {
			if v := f.Package.Info.Types[arg].Value; v != nil {
				words = append(words, v.ExactString())
			}
		}
	}
	return words
}
