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
		severity := s.Severity()
		if s.Uses&blocking.Decides != 0 {
			severity = blocking.Info
		}
		var chain []string
		for _, l := range s.Chain {
			chain = append(chain, l.Call+" at "+l.Pos)
		}
		p.Report(severity, analysis.Diagnostic{
			Pos:     s.Call.Pos(),
			End:     s.Call.End(),
			Message: "blocking call in loop: " + s.Name + " waits for the device in each iteration (" + strings.Join(chain, ", then ") + "); return the tensor and read it after the loop",
			Related: s.Loop.Related(),
		})
	}
}
