package earlyread

import (
	_ "embed"

	"github.com/asyncgen/asyncgen/analysis/blocking"
	"golang.org/x/tools/go/analysis"
)

//go:embed doc.go
var doc string

// Analyzer is rule AT024.
var Analyzer = rule.Analyzer()

var rule = &blocking.Rule{ID: "AT024", Package: "earlyread", Doc: doc, Severity: blocking.Info, Rewritten: true, Check: check}

func check(p *blocking.Pass) {
	for _, e := range p.Early() {
		related := append(e.Loop.Related(), analysis.RelatedInformation{Pos: e.Step.Pos(), End: e.Step.End(), Message: "the step"})
		p.Report(blocking.Info, analysis.Diagnostic{
			Pos:     e.Call.Pos(),
			End:     e.Call.End(),
			Message: "early read in loop: " + e.Name + " waits for the device before " + e.By + " gives it more to do; read after that",
			Related: related,
		})
	}
}
