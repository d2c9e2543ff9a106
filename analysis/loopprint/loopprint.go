package loopprint

import (
	_ "embed"
	"go/types"

	"github.com/asyncgen/asyncgen/analysis/blocking"
	"github.com/asyncgen/asyncgen/analysis/lint"
	"github.com/asyncgen/asyncgen/analysis/sites"
	"golang.org/x/tools/go/analysis"
)

//go:embed doc.go
var doc string

// Analyzer is rule AT004.
var Analyzer = rule.Analyzer()

var rule = &lint.Rule{ID: "AT004", Package: "loopprint", Doc: doc, Infos: true, Rewritten: true, Requires: []*analysis.Analyzer{sites.Analyzer}, Check: check}

func check(p *lint.Pass) {
	for _, s := range sites.Of(p) {
		if s.Pattern() != sites.Printing {
			continue
		}
		waits := s.Name + " waits for the device"
		if s.Kind == blocking.WaitPrint {
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
