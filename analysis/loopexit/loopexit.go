package loopexit

import (
	_ "embed"

	"github.com/asyncgen/asyncgen/analysis/blocking"
	"golang.org/x/tools/go/analysis"
)

//go:embed doc.go
var doc string

// Analyzer is rule AT005.
var Analyzer = rule.Analyzer()

var rule = &blocking.Rule{ID: "AT005", Package: "loopexit", Doc: doc, Check: check}

func check(p *blocking.Pass) {
	for _, s := range p.Sites {
		if s.Pattern() != blocking.Steering {
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
