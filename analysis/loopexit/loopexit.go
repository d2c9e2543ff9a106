package loopexit

import (
	_ "embed"

	"github.com/asyncgen/asyncgen/analysis/lint"
	"github.com/asyncgen/asyncgen/analysis/sites"
	"golang.org/x/tools/go/analysis"
)

//go:embed doc.go
var doc string

// Analyzer is rule AT005.
var Analyzer = rule.Analyzer()

var rule = &lint.Rule{ID: "AT005", Package: "loopexit", Doc: doc, Infos: true, Rewritten: true, Requires: []*analysis.Analyzer{sites.Analyzer}, Check: check}

func check(p *lint.Pass) {
	for _, s := range sites.Of(p) {
		if s.Pattern() != sites.Steering {
			continue
		}
		advice := "decide every so many iterations, or one iteration late"
		if s.Alarms {
			advice = "look every so many iterations, or after the loop"
		}
		p.Report(s.Severity(), analysis.Diagnostic{
			Pos:     s.Call.Pos(),
			End:     s.Call.End(),
			Message: "value decides in loop: " + s.Name + " is waited for in each iteration before more can be enqueued; " + advice,
			Related: s.Loop.Related(),
		})
	}
}
