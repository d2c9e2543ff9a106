package loopcall

import (
	_ "embed"
	"strings"

	"github.com/asyncgen/asyncgen/analysis/lint"
	"github.com/asyncgen/asyncgen/analysis/sites"
	"golang.org/x/tools/go/analysis"
)

//go:embed doc.go
var doc string

// Analyzer is rule AT010.
var Analyzer = rule.Analyzer()

var rule = &lint.Rule{ID: "AT010", Package: "loopcall", Doc: doc, Infos: true, Rewritten: true, Requires: []*analysis.Analyzer{sites.Analyzer}, Check: check}

func check(p *lint.Pass) {
	for _, s := range sites.Of(p) {
		if s.Pattern() != sites.Calling {
			continue
		}
		var chain []string
		for _, l := range s.Chain {
			chain = append(chain, l.Call+" at "+l.Pos)
		}
		each, remedy := "iteration", "return the tensor and read it after the loop"
		if s.Compares() {
			each, remedy = "comparison", "read what is compared before, and sort by that"
		}
		p.Report(s.Severity(), analysis.Diagnostic{
			Pos:     s.Call.Pos(),
			End:     s.Call.End(),
			Message: "blocking call in loop: " + s.Name + " waits for the device in each " + each + " (" + strings.Join(chain, ", then ") + "); " + remedy,
			Related: s.Loop.Related(),
		})
	}
}
