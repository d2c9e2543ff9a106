package rebuilt

import (
	_ "embed"
	"go/types"

	"github.com/asyncgen/asyncgen/analysis/lint"
	"golang.org/x/tools/go/analysis"
)

//go:embed doc.go
var doc string

// Analyzer is rule AT034.
var Analyzer = rule.Analyzer()

var rule = &lint.Rule{ID: "AT034", Package: "rebuilt", Doc: doc, Infos: true, Check: check}

func check(p *lint.Pass) {
	for _, f := range p.Funcs {
		for _, c := range f.Calls {
			if l, lost := anew(p.Package, c); l != nil {
				p.Report(lint.Warning, analysis.Diagnostic{
					Pos: c.Expr.Pos(), End: c.Expr.End(), Related: l.Related(),
					Message: types.ExprString(c.Expr.Fun) + " " + lost + "; make it once, before the loop",
				})
			}
		}
		for _, r := range rebuilds(f) {
			d := analysis.Diagnostic{Pos: r.Call.Expr.Pos(), End: r.Call.Expr.End(), Message: types.ExprString(r.Call.Expr.Fun)}
			if r.Loop != nil {
				d.Message += " builds the same in each iteration; build it once, before the loop"
				d.Related = r.Loop.Related()
			} else {
				d.Message += " defines the same in each call, and what it defines is kept for ever; define it once, in a variable of the package"
			}
			p.Report(lint.Warning, d)
		}
	}
}
