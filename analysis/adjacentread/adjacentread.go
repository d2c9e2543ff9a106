package adjacentread

import (
	_ "embed"
	"go/types"

	"github.com/asyncgen/asyncgen/analysis/blocking"
	"golang.org/x/tools/go/analysis"
)

//go:embed doc.go
var doc string

// Analyzer is rule AT007.
var Analyzer = rule.Analyzer()

var rule = &blocking.Rule{ID: "AT007", Package: "adjacentread", Doc: doc, Values: true, Rewritten: true, Check: check}

func check(p *blocking.Pass) {
	for _, r := range p.Repeats() {
		message := "second read in loop: " + r.Name + " could come with the read before it; stack the tensors and read once"
		if r.Same {
			message = "second read in loop: " + r.Name + " has been read in this iteration; keep the value"
		}
		p.Report(blocking.Info, analysis.Diagnostic{
			Pos:     r.Call.Pos(),
			End:     r.Call.End(),
			Message: message,
			Related: []analysis.RelatedInformation{{Pos: r.First.Pos(), End: r.First.End(), Message: "the first read"}},
		})
	}
	for _, r := range p.ListReads() {
		remedy := "stack them and read once"
		if r.Joined {
			remedy = "concatenate them and read once"
		}
		d := analysis.Diagnostic{
			Pos:     r.Call.Pos(),
			End:     r.Call.End(),
			Message: "read after read: " + r.Name + " reads one tensor of " + types.ExprString(r.List) + " at a time; " + remedy,
		}
		if r.Loop != nil {
			d.Related = r.Loop.Related()
		}
		p.Report(blocking.Warning, d)
	}
}
