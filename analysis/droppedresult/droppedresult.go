package droppedresult

import (
	_ "embed"
	"go/ast"
	"go/token"
	"go/types"

	"github.com/asyncgen/asyncgen/analysis/blocking"
	"github.com/asyncgen/asyncgen/analysis/internal/syntax"
	"github.com/asyncgen/asyncgen/analysis/lint"
	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"golang.org/x/tools/go/analysis"
)

//go:embed doc.go
var doc string

// Analyzer is rule AT032.
var Analyzer = rule.Analyzer()

var rule = &lint.Rule{ID: "AT032", Package: "droppedresult", Doc: doc, Values: true, Check: check}

func check(p *lint.Pass) {
	for _, f := range p.Funcs {
		for _, c := range f.Calls {
			if message := dropped(p, f, c); message != "" {
				p.Report(lint.Warning, analysis.Diagnostic{Pos: c.Expr.Pos(), End: c.Expr.End(), Message: message})
			}
		}
	}
}

// dropped says what is wrong with the call c in f, if it drops what it should not; else it returns "".
func dropped(p *lint.Pass, f *blocking.Func, c *blocking.Call) string {
	name := types.ExprString(c.Expr.Fun)
	switch use := c.Value().Parent().Node().(type) {
	case *ast.ExprStmt:
		switch {
		case isState(c) || c.IsFunc("StartTimer"):
			return "result of " + name + " is thrown away; assign it"
		case (returnsOnly(c) || onlyComputes(c.Target, 0)) && (!forItsOwnSake(f) || isBesideStep(f.Package, c)):
			return "result of " + name + " is thrown away" + remedy(p, c)
		case loses(c, isForClock):
			return "error of " + name + gone
		}
	case *ast.DeferStmt, *ast.GoStmt:
		if returnsOnly(c) && !forItsOwnSake(f) {
			return "result of " + name + " is thrown away" + remedy(p, c)
		}
		if loses(c, isMeasuredCall) {
			return "error of " + name + " is thrown away, with which the failures are gone; call it in a function that handles it"
		}
	case *ast.AssignStmt:
		if v := overwritten(f.Package, c, use); v != nil && (!forItsOwnSake(f) || isBesideStep(f.Package, c)) {
			return "result of " + name + " is thrown away, as nobody uses " + v.Name() + " any more; a tensor never changes, so return the result, or store it"
		}
		if loses(c, isForClock) && (ignores(use) && returnsError(f.Outermost().Sig) || isOverwritten(f, use)) {
			return "error of " + name + gone
		}
		if !dropsLast(use) {
			return ""
		}
		if c.IsFunc("Timer.Elapsed") {
			return name + " says whether the devices have finished, which is thrown away; ask it, or Wait"
		}
		if c.API.Kind != tensorapi.Unknown && hasError(c) {
			return "error of " + name + " is thrown away: what has failed looks like a result; handle it"
		}
	}
	return ""
}

// dropsLast reports whether n assigns several results of a call, and only the last one goes to the
// blank identifier:
//
//	v, _ := loss.ItemContext(ctx)
func dropsLast(n *ast.AssignStmt) bool {
	if len(n.Lhs) < 2 || len(n.Rhs) != 1 {
		return false
	}
	for i, lhs := range n.Lhs {
		id, ok := lhs.(*ast.Ident)
		if isBlank := ok && id.Name == "_"; isBlank != (i == len(n.Lhs)-1) {
			return false
		}
	}
	return true
}

// overwritten returns the parameter or the variable of a range clause that n sets to the result of c, if nothing uses
// it after that; else nil. Who writes that expects the operand to change.
//
//	for _, x := range xs {
//		x = x.MulScalar(2)
//	}
func overwritten(pkg *blocking.Package, c *blocking.Call, n *ast.AssignStmt) *types.Var {
	if n.Tok != token.ASSIGN || len(n.Lhs) != 1 || !returnsOnly(c) {
		return nil
	}
	v := pkg.Local(n.Lhs[0])
	if v == nil || !blocking.IsTensor(v.Type()) || !pkg.Mentions(c.Expr, v) || pkg.IsResult(v, c.In) {
		return nil
	}
	var body ast.Node // in which v lives
	if pkg.Params[v].Of == c.In {
		body = c.In.Body
	}
	for l := range pkg.LoopsAround(c.In, c.Expr.Pos()) {
		if s, ok := l.Stmt.(*ast.RangeStmt); ok && body == nil && s.Value != nil && pkg.Info.Defs[asIdent(s.Value)] == v {
			body = s.Body
			break
		}
		if l.Blocks != nil {
			return nil // the next iteration may use it
		}
	}
	if body == nil {
		return nil
	}
	for use := range pkg.UsesOf(v, c.In) {
		if use.Node().Pos() > n.End() || pkg.FuncAt(use) != c.In {
			return nil
		}
	}
	return v
}

// asIdent returns e if it is an identifier, or nil.
func asIdent(e ast.Expr) *ast.Ident {
	id, _ := e.(*ast.Ident)
	return id
}

// isState recognises functions that return the state of a model, or a frozen one.
func isState(c *blocking.Call) bool {
	return c.API.Kind == tensorapi.Value && c.Callee.Signature().Recv() == nil
}

// returnsOnly reports whether all that c does is to return something new.
func returnsOnly(c *blocking.Call) bool {
	kind := c.API.Kind
	if kind != tensorapi.Op && kind != tensorapi.View && kind != tensorapi.Value {
		return false
	}
	recv := c.Callee.Signature().Recv()
	return recv == nil || !types.IsInterface(recv.Type())
}

// onlyComputes reports whether f returns tensors and does nothing else: it calls only operations, constructors and
// functions that do nothing else either, and assigns only its own variables. Depth bounds the calls that it follows.
func onlyComputes(f *blocking.Func, depth int) bool {
	if f == nil || depth > 3 || f.Cyclic || len(f.Nested) > 0 || f.Sig.Results().Len() == 0 || !returnsTensors(f) {
		return false
	}
	computes := false
	for _, c := range f.Calls {
		switch c.API.Kind {
		case tensorapi.Op, tensorapi.View:
			computes = true
			if recv := c.Callee.Signature().Recv(); recv != nil && types.IsInterface(recv.Type()) {
				return false
			}
		case tensorapi.Value, tensorapi.Host, tensorapi.Meta, tensorapi.Pure:
		default:
			math := c.Callee != nil && c.Callee.Pkg() != nil && c.Callee.Pkg().Path() == "math"
			if c.Away || !math && !onlyComputes(c.Target, depth+1) {
				return false
			}
			computes = true
		}
	}
	for cur := range f.Cur.Preorder((*ast.AssignStmt)(nil), (*ast.IncDecStmt)(nil), (*ast.SendStmt)(nil), (*ast.UnaryExpr)(nil)) {
		var targets []ast.Expr
		switch n := cur.Node().(type) {
		case *ast.AssignStmt:
			targets = n.Lhs
		case *ast.IncDecStmt:
			targets = []ast.Expr{n.X}
		case *ast.SendStmt:
			return false
		case *ast.UnaryExpr:
			if n.Op == token.ARROW {
				return false
			}
		}
		for _, e := range targets {
			if id, ok := ast.Unparen(e).(*ast.Ident); !ok || id.Name != "_" && !isOwn(f, id) {
				return false
			}
		}
	}
	return computes
}

// isOwn reports whether id is a variable of f.
func isOwn(f *blocking.Func, id *ast.Ident) bool {
	v, ok := f.Package.Info.ObjectOf(id).(*types.Var)
	n := f.Cur.Node()
	return ok && n.Pos() <= v.Pos() && v.Pos() < n.End()
}

func remedy(p *lint.Pass, c *blocking.Call) string {
	for _, e := range c.Operand(tensorapi.Recv) {
		if blocking.IsTensor(p.TypesInfo.TypeOf(e)) {
			return "; a tensor never changes, so assign what the method returns"
		}
	}
	return "; assign it"
}

// forItsOwnSake reports whether f, or a function around it, may enqueue work whose result nobody is
// meant to see: its time is taken, it waits for all work, or it sees how a call panics.
func forItsOwnSake(f *blocking.Func) bool {
	return f.IsTried() || isTimed(f) || f.Outermost().Contains(func(c *blocking.Call) bool { return c.API.Kind == tensorapi.WaitAll })
}

// isBesideStep reports whether a loop around c takes a step of training in each iteration. What c computes is none of
// the work whose time is taken.
func isBesideStep(pkg *blocking.Package, c *blocking.Call) bool {
	for l := range pkg.LoopsAround(c.In, c.Expr.Pos()) {
		if !l.Small {
			return pkg.StepsItself(l)
		}
	}
	return false
}

// isTimed reports whether f, or a function around it, reads a clock or is a benchmark, or is passed to
// a function that takes its time.
func isTimed(f *blocking.Func) bool { return isMeasured(f) || f.Outermost().Contains(readsClock) }

// isMeasured reports whether f, or a function around it, is a benchmark, or is passed to a function
// that takes its time.
func isMeasured(f *blocking.Func) bool {
	for g := range f.In() {
		if g.IsBenchmark() || g.IsTimed() {
			return true
		}
	}
	return false
}

// readsClock reports whether the call reads a clock, or starts or stops one: by itself, or in a
// function of this package. That includes stopwatches, profilers and the timers of benchmarks. A
// stopwatch in a package without tensors has no facts, so its types have to tell. The types of libraries don't: many
// of them have a timeout.
func readsClock(c *blocking.Call) bool {
	if c.API.Kind != tensorapi.Poll && blocking.TellsTime(c) || c.Maker != nil && readsClock(c.Maker) || c.Summary().Clocks != 0 || c.Summary().Timer {
		return true
	}
	for v := range c.In.Package.ResultsOf(c).Variables() {
		if isTimeLike(v.Type(), 0) {
			return true
		}
	}
	if c.Callee == nil || c.Callee.Pkg() == nil {
		return false
	}
	switch path := c.Callee.Pkg().Path(); {
	case path == "runtime/pprof" || path == "runtime/trace" || path == "testing":
		return true
	case path == "net/http" || path == "database/sql":
		return false
	case blocking.IsLibrary(path):
		return syntax.RecvName(c.Callee) == "Timer"
	}
	recv := c.Callee.Signature().Recv()
	return recv != nil && !c.In.Package.HoldsTensors(recv.Type()) && isTimeLike(recv.Type(), 0)
}

// isTimeLike reports whether t is a time or a duration, or has a field that is one.
func isTimeLike(t types.Type, depth int) bool {
	if p, ok := types.Unalias(t).(*types.Pointer); ok {
		t = p.Elem()
	}
	if n, ok := types.Unalias(t).(*types.Named); ok && n.Obj().Pkg() != nil && n.Obj().Pkg().Path() == "time" {
		return n.Obj().Name() == "Time" || n.Obj().Name() == "Duration"
	}
	s, ok := t.Underlying().(*types.Struct)
	if !ok || depth > 1 {
		return false
	}
	for f := range s.Fields() {
		ft := f.Type()
		switch u := types.Unalias(ft).Underlying().(type) {
		case *types.Slice:
			ft = u.Elem()
		case *types.Map:
			ft = u.Elem()
		}
		if isTimeLike(ft, depth+1) {
			return true
		}
	}
	return false
}
