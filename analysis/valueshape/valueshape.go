package valueshape

import (
	_ "embed"
	"go/types"

	"github.com/asyncgen/asyncgen/analysis/lint"
	"github.com/asyncgen/asyncgen/analysis/sites"
	"golang.org/x/tools/go/analysis"
)

//go:embed doc.go
var doc string

// Analyzer is rule AT026.
var Analyzer = rule.Analyzer()

var rule = &lint.Rule{ID: "AT026", Package: "valueshape", Doc: doc, Rewritten: true, Requires: []*analysis.Analyzer{sites.Analyzer}, Check: check}

func check(p *lint.Pass) {
	for _, s := range sites.Of(p) {
		severity := lint.Info
		if s.Pattern() == sites.Sizing {
			severity = s.Severity() // no other rule speaks of the wait
		}
		for _, size := range s.Sizes() {
			p.Report(severity, analysis.Diagnostic{
				Pos:     size.Pos(),
				End:     size.End(),
				Message: "size depends on a value: " + types.ExprString(size) + " is known only when " + s.Name + " has waited; use a size that is large enough and a mask",
				Related: []analysis.RelatedInformation{{Pos: s.Call.Pos(), End: s.Call.End(), Message: "the value is read here"}},
			})
		}
	}
}
