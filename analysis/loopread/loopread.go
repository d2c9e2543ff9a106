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
		if s.Pattern() != blocking.Reading {
			continue
		}
		p.Report(s.Severity(), analysis.Diagnostic{
			Pos:     s.Call.Pos(),
			End:     s.Call.End(),
			Message: "blocking read in loop: " + s.Name + " waits for the device in each iteration" + remedy(s.Uses),
			Related: s.Loop.Related(),
		})
	}
}

func remedy(u blocking.Use) string {
	if u&^blocking.Printed == blocking.Kept {
		return " (its value is only kept); keep the tensors and read them after the loop"
	}
	return "; read after the loop, or only every so many iterations"
}
