package valueshape

import (
	_ "embed"
	"go/types"

	"github.com/asyncgen/asyncgen/analysis/blocking"
	"golang.org/x/tools/go/analysis"
)

//go:embed doc.go
var doc string

// Analyzer is rule AT026.
var Analyzer = rule.Analyzer()

var rule = &blocking.Rule{ID: "AT026", Package: "valueshape", Doc: doc, Rewritten: true, Check: check}

func check(p *blocking.Pass) {
	for _, s := range p.Sites {
		severity := blocking.Info
		if s.Pattern() == blocking.Sizing {
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
