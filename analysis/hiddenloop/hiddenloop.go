package hiddenloop

import (
	_ "embed"

	"github.com/asyncgen/asyncgen/analysis/blocking"
	"golang.org/x/tools/go/analysis"
)

//go:embed doc.go
var doc string

// Analyzer is rule AT012.
var Analyzer = rule.Analyzer()

var rule = &blocking.Rule{ID: "AT012", Package: "hiddenloop", Doc: doc, Rewritten: true, Check: check}

func check(p *blocking.Pass) {
	for _, s := range p.Sites {
		if s.Pattern() != blocking.Hidden {
			continue
		}
		remedy := "each time; keep or yield the tensor and read it later"
		if s.Compares() {
			remedy = "in each comparison; read what is compared before, and sort by that"
		}
		p.Report(s.Severity(), analysis.Diagnostic{
			Pos:     s.Call.Pos(),
			End:     s.Call.End(),
			Message: "blocking read in hidden loop: " + s.Name + " waits for the device " + remedy,
			Related: s.Loop.Related(),
		})
	}
}
