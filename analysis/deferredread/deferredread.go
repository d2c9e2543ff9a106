package deferredread

import (
	_ "embed"
	"go/ast"

	"github.com/asyncgen/asyncgen/analysis/blocking"
	"github.com/asyncgen/asyncgen/analysis/lint"
	"github.com/asyncgen/asyncgen/analysis/sites"
	"golang.org/x/tools/go/analysis"
)

//go:embed doc.go
var doc string

// Analyzer is rule AT014.
var Analyzer = rule.Analyzer()

var rule = &lint.Rule{ID: "AT014", Package: "deferredread", Doc: doc, Requires: []*analysis.Analyzer{sites.Analyzer}, Check: check}

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
	}, func(c *blocking.Call) bool { _, ok := c.Cur.Parent().Node().(*ast.DeferStmt); return ok })
}
