package droppedresult

import (
	_ "embed"
	"go/ast"
	"go/types"

	"github.com/asyncgen/asyncgen/analysis/blocking"
	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"golang.org/x/tools/go/analysis"
)

//go:embed doc.go
var doc string

// Analyzer is rule AT032.
var Analyzer = rule.Analyzer()

var rule = &blocking.Rule{ID: "AT032", Package: "droppedresult", Doc: doc, Values: true, Check: check}

func check(p *blocking.Pass) {
	for _, f := range p.Funcs {
		for _, c := range f.Calls() {
			if !returnsOnly(c) || forItsOwnSake(f) {
				continue
			}
			if _, ok := c.Value().Parent().Node().(*ast.ExprStmt); !ok {
				continue
			}
			p.Report(blocking.Warning, analysis.Diagnostic{
				Pos:     c.Expr.Pos(),
				End:     c.Expr.End(),
				Message: "result of " + types.ExprString(c.Expr.Fun) + " is thrown away" + remedy(p, c),
			})
		}
	}
}

// returnsOnly reports whether all that c does is to return something new.
func returnsOnly(c *blocking.Call) bool {
	kind := c.API().Kind
	if kind != tensorapi.Op && kind != tensorapi.View && kind != tensorapi.Value {
		return false
	}
	recv := c.Callee.Signature().Recv()
	return recv == nil || !types.IsInterface(recv.Type())
}

func remedy(p *blocking.Pass, c *blocking.Call) string {
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
		return c.ReadsClock() || c.API().Kind == tensorapi.WaitAll
	})
}
