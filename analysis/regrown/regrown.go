package regrown

import (
	_ "embed"

	"github.com/asyncgen/asyncgen/analysis/blocking"
	"golang.org/x/tools/go/analysis"
)

//go:embed doc.go
var doc string

// Analyzer is rule AT035.
var Analyzer = rule.Analyzer()

var rule = &blocking.Rule{ID: "AT035", Package: "regrown", Doc: doc, Values: true, Check: check}

func check(p *blocking.Pass) {
	for _, f := range p.Funcs {
		for _, r := range f.Regrown() {
			p.Report(blocking.Warning, analysis.Diagnostic{
				Pos:     r.Call.Expr.Pos(),
				End:     r.Call.Expr.End(),
				Message: r.Var.Name() + " is copied in each iteration to grow by a piece; collect the pieces in a list and concatenate once after the loop",
				Related: r.Loop.Related(),
			})
		}
	}
}
