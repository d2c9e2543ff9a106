package growth

import (
	_ "embed"
	"go/types"

	"github.com/asyncgen/asyncgen/analysis/blocking"
	"golang.org/x/tools/go/analysis"
)

//go:embed doc.go
var doc string

// Analyzer is rule AT022.
var Analyzer = rule.Analyzer()

var rule = &blocking.Rule{ID: "AT022", Package: "growth", Doc: doc, Check: check}

func check(p *blocking.Pass) {
	for _, g := range p.Growing() {
		severity := blocking.Warning
		if g.Collected {
			severity = blocking.Info
		}
		p.Report(severity, analysis.Diagnostic{
			Pos:     g.Call.Pos(),
			End:     g.Call.End(),
			Message: types.ExprString(g.List) + " keeps a tensor of every iteration of a loop without an end; cut it from time to time",
			Related: g.Loop.Related(),
		})
	}
}
