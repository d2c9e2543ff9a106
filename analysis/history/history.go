package history

import (
	_ "embed"
	"go/types"

	"github.com/asyncgen/asyncgen/analysis/blocking"
	"golang.org/x/tools/go/analysis"
)

//go:embed doc.go
var doc string

// Analyzer is rule AT023.
var Analyzer = rule.Analyzer()

var rule = &blocking.Rule{ID: "AT023", Package: "history", Doc: doc, Values: true, Check: check}

func check(p *blocking.Pass) {
	for _, f := range p.Funcs {
		for _, s := range f.Accumulations() {
			part := types.ExprString(s.Part)
			p.Report(blocking.Warning, analysis.Diagnostic{
				Pos:     s.Assign.Pos(),
				End:     s.Assign.End(),
				Message: s.Total.Name() + " keeps the history of " + part + " of every iteration, and is only read; add " + part + ".Detach()",
				Related: s.Loop.Related(),
			})
		}
	}
}
