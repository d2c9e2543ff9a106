package hiddenloop

import (
	_ "embed"

	"github.com/asyncgen/asyncgen/analysis/lint"
	"github.com/asyncgen/asyncgen/analysis/sites"
	"golang.org/x/tools/go/analysis"
)

//go:embed doc.go
var doc string

// Analyzer is rule AT012.
var Analyzer = rule.Analyzer()

var rule = &lint.Rule{ID: "AT012", Package: "hiddenloop", Doc: doc, Infos: true, Rewritten: true, Requires: []*analysis.Analyzer{sites.Analyzer}, Check: check}

func check(p *lint.Pass) {
	for _, s := range sites.Of(p) {
		if s.Pattern() != sites.Hidden {
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
