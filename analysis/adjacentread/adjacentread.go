package adjacentread

import (
	_ "embed"
	"go/types"
	"strconv"

	"github.com/asyncgen/asyncgen/analysis/lint"
	"github.com/asyncgen/asyncgen/analysis/sites"
	"golang.org/x/tools/go/analysis"
)

//go:embed doc.go
var doc string

// Analyzer is rule AT007.
var Analyzer = rule.Analyzer()

var rule = &lint.Rule{ID: "AT007", Package: "adjacentread", Doc: doc, Infos: true, Values: true, Rewritten: true, Requires: []*analysis.Analyzer{sites.Analyzer}, Check: check}

func check(p *lint.Pass) {
	for _, r := range repeats(p) {
		message := "second read in loop: " + r.Name + " could come with the read before it; stack the tensors and read once"
		if r.Same {
			message = "second read in loop: " + r.Name + " has been read in this iteration; keep the value"
		}
		p.Report(lint.Info, analysis.Diagnostic{
			Pos:     r.Call.Pos(),
			End:     r.Call.End(),
			Message: message,
			Related: []analysis.RelatedInformation{{Pos: r.First.Pos(), End: r.First.End(), Message: "the first read"}},
		})
	}
	for _, t := range together(p) {
		p.Report(severity(sites.RunsOften(p, t[0])), analysis.Diagnostic{
			Pos:     t[0].Expr.Pos(),
			End:     t[0].Expr.End(),
			Message: "read after read: the statement reads " + strconv.Itoa(len(t)) + " numbers one by one; stack the tensors and read once",
		})
	}
	for _, r := range listReads(p) {
		what, remedy := "tensor", "stack them and read once"
		switch {
		case r.Joined:
			remedy = "concatenate them and read once"
		case r.Numbers:
			what, remedy = "number", "stack what As makes of them, and read once"
		}
		d := analysis.Diagnostic{
			Pos:     r.Call.Pos(),
			End:     r.Call.End(),
			Message: "read after read: " + r.Name + " reads one " + what + " of " + types.ExprString(r.List) + " at a time; " + remedy,
		}
		if r.Loop != nil {
			d.Related = r.Loop.Related()
		}
		p.Report(severity(sites.RunsOften(p, p.Calls[r.Call]) || r.Loop != nil && sites.GoesBack(p.Package, p.Calls[r.Call], r.Loop)), d)
	}
}

// severity returns how grave it is to read one by one. Reads that hold up later work are warnings. After all work,
// only the first read waits long, so it is an info.
func severity(holdsUp bool) lint.Severity {
	if holdsUp {
		return lint.Warning
	}
	return lint.Info
}
