package goroutineread

import (
	_ "embed"

	"github.com/asyncgen/asyncgen/analysis/blocking"
	"golang.org/x/tools/go/analysis"
)

//go:embed doc.go
var doc string

// Analyzer is rule AT013.
var Analyzer = rule.Analyzer()

var rule = &blocking.Rule{ID: "AT013", Package: "goroutineread", Doc: doc, Check: check}

func check(p *blocking.Pass) {
	for _, g := range p.Goroutines() {
		if g.Ack != nil {
			p.Report(blocking.Warning, analysis.Diagnostic{
				Pos:     g.Ack.Pos(),
				End:     g.Ack.End(),
				Message: "goroutine for each iteration: the loop waits here for one that waits in " + g.Name + ", as if it read itself; keep the tensors and read them after the loop",
				Related: g.Loop.Related(),
			})
			continue
		}
		p.Report(blocking.Info, analysis.Diagnostic{
			Pos:     g.Call.Pos(),
			End:     g.Call.End(),
			Message: "goroutine for each iteration: it waits in " + g.Name + ", and nothing bounds how many do; keep the tensors and read them after the loop",
			Related: g.Loop.Related(),
		})
	}
}
