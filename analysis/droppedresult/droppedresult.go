package droppedresult

import (
	_ "embed"
	"go/ast"
	"go/types"

	"github.com/asyncgen/asyncgen/analysis/blocking"
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
			if !returnsOnly(c) || forItsOwnSake(f) {
				continue
			}
			if _, ok := c.Value().Parent().Node().(*ast.ExprStmt); !ok {
				continue
			}
			p.Report(lint.Warning, analysis.Diagnostic{
				Pos:     c.Expr.Pos(),
				End:     c.Expr.End(),
				Message: "result of " + types.ExprString(c.Expr.Fun) + " is thrown away" + remedy(p, c),
			})
		}
	}
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

func remedy(p *lint.Pass, c *blocking.Call) string {
	for _, e := range c.Operand(tensorapi.Recv) {
		if blocking.IsTensor(p.TypesInfo.TypeOf(e)) {
			return "; a tensor never changes, so assign what the method returns"
		}
	}
	return "; assign it"
}

// forItsOwnSake reports whether f, or a function that it is written in, may
// enqueue work that nobody looks at on purpose.
func forItsOwnSake(f *blocking.Func) bool {
	var outer *blocking.Func
	for g := range f.In() {
		if c := g.PassedTo(); c != nil && c.IsFunc("Try") || g.IsBenchmark() || g.IsTimed() {
			return true
		}
		outer = g
	}
	return outer.Contains(func(c *blocking.Call) bool {
		return readsClock(c) || c.API.Kind == tensorapi.WaitAll
	})
}

// readsClock reports whether the call reads a clock, starts or stops what does, or
// is of a function of the package that does: a stopwatch, a profiler, a timer of a
// benchmark. The types tell it of stopwatches in packages without tensors, of whose
// functions nothing is known.
func readsClock(c *blocking.Call) bool {
	if blocking.TellsTime(c) || c.Maker != nil && readsClock(c.Maker) || c.Summary().Clocks != 0 || c.Summary().Timer {
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
	switch c.Callee.Pkg().Path() {
	case "runtime/pprof", "runtime/trace", "testing":
		return true
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
		return true
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
