package deferredread

import (
	_ "embed"
	"go/ast"
	"slices"

	"github.com/asyncgen/asyncgen/analysis/blocking"
	"github.com/asyncgen/asyncgen/analysis/lint"
	"github.com/asyncgen/asyncgen/analysis/sites"
	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"golang.org/x/tools/go/analysis"
)

//go:embed doc.go
var doc string

// Analyzer is rule AT014.
var Analyzer = rule.Analyzer()

var rule = &lint.Rule{ID: "AT014", Package: "deferredread", Doc: doc, Infos: true, Requires: []*analysis.Analyzer{sites.Analyzer}, Check: check}

func check(p *lint.Pass) {
	for _, s := range sites.Of(p) {
		if s.Pattern() != sites.Deferring {
			continue
		}
		p.Report(s.Severity(), analysis.Diagnostic{
			Pos:     s.Call.Pos(),
			End:     s.Call.End(),
			Message: "deferred call in loop: " + s.Name + " is an argument, so it waits for the device in each iteration; defer one function before the loop that reads",
			Related: s.Loop.Related(),
		})
	}
	for _, c := range early(p.Package) {
		name := p.CallName(c, blocking.CallWait{Kind: blocking.WaitRead})
		p.Report(lint.Warning, analysis.Diagnostic{
			Pos:     c.Expr.Pos(),
			End:     c.Expr.End(),
			Message: "deferred call: " + name + " is an argument, so it waits for the device here, before the work below is enqueued; defer a function that reads",
		})
	}
	for _, d := range deferred(p.Package) {
		p.Report(lint.Warning, analysis.Diagnostic{
			Pos:     d.Call.Expr.Pos(),
			End:     d.Call.Expr.End(),
			Message: "deferred call in loop: " + d.Name + " waits for the device when the function returns, once for each iteration, which keeps its tensors until then",
			Related: d.Loop.Related(),
		})
	}
}

// deferred lists the calls that loops defer, and that wait for work of the loop when the function
// returns. Until then they pile up, and the tensors with them.
func deferred(pkg *blocking.Package) []*sites.Spawn {
	return sites.Spawns(pkg, func(c *blocking.Call) []*blocking.Func {
		if _, ok := c.Cur.Parent().Node().(*ast.DeferStmt); !ok {
			return nil
		}
		return c.Lits
	}, func(c *blocking.Call) bool { _, ok := c.Cur.Parent().Node().(*ast.DeferStmt); return ok }, func(c *blocking.Call) []blocking.CallWait {
		return append(pkg.Waits(c), pkg.Barriers(c)...)
	})
}

// early lists the calls among the operands of deferred ones, outside of loops, that read what the function has
// enqueued. The function enqueues more after that, for which the device has to wait.
func early(pkg *blocking.Package) []*blocking.Call {
	var list []*blocking.Call
	for _, f := range pkg.Funcs {
		for _, c := range f.Calls {
			stmt := deferOf(c)
			if stmt == nil || stmt.Call == c.Expr || c.API.Kind != tensorapi.Read || pkg.RunsInLoop(f, c) {
				continue
			}
			fresh := slices.ContainsFunc(pkg.Waits(c), func(w blocking.CallWait) bool { return w.Operand != nil && pkg.Fresh(w.Operand, f, f.WholeLoop()) })
			if fresh && slices.ContainsFunc(f.Calls, func(d *blocking.Call) bool { return !d.Away && d.Expr.Pos() > stmt.End() && d.Enqueues() }) {
				list = append(list, c)
			}
		}
	}
	return list
}

// deferOf returns the statement that defers a call which has c as an operand, or c itself; or nil.
func deferOf(c *blocking.Call) *ast.DeferStmt {
	for cur := range c.Cur.Enclosing((*ast.DeferStmt)(nil), (*ast.FuncLit)(nil)) {
		stmt, _ := cur.Node().(*ast.DeferStmt)
		return stmt
	}
	return nil
}
