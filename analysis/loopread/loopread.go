package loopread

import (
	_ "embed"

	"github.com/asyncgen/asyncgen/analysis/lint"
	"github.com/asyncgen/asyncgen/analysis/sites"
	"golang.org/x/tools/go/analysis"
)

//go:embed doc.go
var doc string

// Analyzer is rule AT001.
var Analyzer = rule.Analyzer()

var rule = &lint.Rule{ID: "AT001", Package: "loopread", Doc: doc, Infos: true, Rewritten: true, Requires: []*analysis.Analyzer{sites.Analyzer}, Check: check}

func check(p *lint.Pass) {
	for _, s := range sites.Of(p) {
		if s.Pattern() != sites.Reading {
			continue
		}
		p.Report(s.Severity(), analysis.Diagnostic{
			Pos:     s.Call.Pos(),
			End:     s.Call.End(),
			Message: "blocking read in loop: " + s.Name + " waits for the device in each iteration" + remedy(s),
			Related: s.Loop.Related(),
		})
	}
}

func remedy(s *sites.Site) string {
	if s.Why != "" {
		return "; " + s.Why
	}
	if s.Uses == sites.Recorded {
		return "; give the tensor itself to what records it, which waits for nothing"
	}
	if s.Feeds {
		return ", and the next tensor is made of its value; make it of the tensor, and read after the loop"
	}
	if s.Uses&^sites.Printed == sites.Kept {
		return " (its value is only kept); keep the tensors and read them after the loop"
	}
	return "; read after the loop, or only every so many iterations"
}
