package loopcall

import (
	_ "embed"
	"strings"

	"github.com/asyncgen/asyncgen/analysis/blocking"
	"golang.org/x/tools/go/analysis"
)

//go:embed doc.go
var doc string

// Analyzer is rule AT010.
var Analyzer = rule.Analyzer()

var rule = &blocking.Rule{ID: "AT010", Package: "loopcall", Doc: doc, Check: check}

func check(p *blocking.Pass) {
	for _, s := range p.Sites {
		if s.Pattern() != blocking.Calling {
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
