package loopread

import (
	_ "embed"

	"github.com/asyncgen/asyncgen/analysis/blocking"
	"golang.org/x/tools/go/analysis"
)

//go:embed doc.go
var doc string

// Analyzer is rule AT001.
var Analyzer = rule.Analyzer()

var rule = &blocking.Rule{ID: "AT001", Package: "loopread", Doc: doc, Rewritten: true, Check: check}

func check(p *blocking.Pass) {
	for _, s := range p.Sites {
		if s.Kind != blocking.ReadSite || s.Uses == 0 || s.Uses == blocking.Printed || s.Uses&blocking.Decides != 0 {
			continue
		}
		severity := blocking.Warning
		if s.Outside {
			severity = blocking.Info
		}
		p.Report(severity, analysis.Diagnostic{
			Pos:     s.Call.Pos(),
			End:     s.Call.End(),
			Message: "blocking read in loop: " + s.Name + " waits for the device in each iteration" + remedy(s.Uses),
			Related: s.Loop.Related(),
		})
	}
}

func remedy(u blocking.Use) string {
	switch u &^ blocking.Printed {
	case blocking.Kept:
		return " (its value is only kept); keep the tensors and read them after the loop"
	case blocking.Computes:
		return " (its value goes back into a tensor operation); use the tensor itself"
	}
	return "; read after the loop, or only every so many iterations"
}
