package loopdata

import (
	_ "embed"
	"go/types"

	"github.com/asyncgen/asyncgen/analysis/blocking"
	"golang.org/x/tools/go/analysis"
)

//go:embed doc.go
var doc string

// Analyzer is rule AT025.
var Analyzer = rule.Analyzer()

var rule = &blocking.Rule{ID: "AT025", Package: "loopdata", Doc: doc, Values: true, Check: check}

func check(p *blocking.Pass) {
	for _, f := range p.Funcs {
		for _, r := range f.Remakes() {
			severity := blocking.Warning
			if r.Small {
				severity = blocking.Info
			}
			p.Report(severity, analysis.Diagnostic{
				Pos:     r.Call.Expr.Pos(),
				End:     r.Call.Expr.End(),
				Message: types.ExprString(r.Call.Expr) + " makes the same tensor in each iteration; make it before the loop",
				Related: r.Loop.Related(),
			})
		}
	}
}
