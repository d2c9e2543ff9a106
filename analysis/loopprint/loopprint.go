package loopprint

import (
	_ "embed"
	"go/types"

	"github.com/asyncgen/asyncgen/analysis/blocking"
	"golang.org/x/tools/go/analysis"
)

//go:embed doc.go
var doc string

// Analyzer is rule AT004.
var Analyzer = rule.Analyzer()

var rule = &blocking.Rule{ID: "AT004", Package: "loopprint", Doc: doc, Rewritten: true, Check: check}

func check(p *blocking.Pass) {
	for _, s := range p.Sites {
		if s.Pattern() != blocking.Printing {
			continue
		}
		waits := s.Name + " waits for the device"
		if s.Kind == blocking.PrintSite {
			waits = s.Name + " waits for " + types.ExprString(s.Operand)
		}
		p.Report(s.Severity(), analysis.Diagnostic{
			Pos:     s.Call.Pos(),
			End:     s.Call.End(),
			Message: "blocking print in loop: " + waits + " in each iteration; print after the loop, or only every so many iterations",
			Related: s.Loop.Related(),
		})
	}
}
