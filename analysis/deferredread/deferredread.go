package deferredread

import (
	_ "embed"

	"github.com/asyncgen/asyncgen/analysis/blocking"
	"golang.org/x/tools/go/analysis"
)

//go:embed doc.go
var doc string

// Analyzer is rule AT014.
var Analyzer = rule.Analyzer()

var rule = &blocking.Rule{ID: "AT014", Package: "deferredread", Doc: doc, Check: check}

func check(p *blocking.Pass) {
	for _, s := range p.Sites {
		if s.Pattern() != blocking.Deferring {
			continue
		}
		p.Report(s.Severity(), analysis.Diagnostic{
			Pos:     s.Call.Pos(),
			End:     s.Call.End(),
			Message: "deferred call in loop: " + s.Name + " is an argument, so it waits for the device in each iteration; defer one function before the loop that reads",
			Related: s.Loop.Related(),
		})
	}
	for _, d := range p.Deferred() {
		p.Report(blocking.Warning, analysis.Diagnostic{
			Pos:     d.Call.Pos(),
			End:     d.Call.End(),
			Message: "deferred call in loop: " + d.Name + " waits for the device when the function returns, once for each iteration, which keeps its tensors until then",
			Related: d.Loop.Related(),
		})
	}
}
