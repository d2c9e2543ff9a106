package extrawait

import (
	_ "embed"
	"strings"

	"github.com/asyncgen/asyncgen/analysis/blocking"
	"golang.org/x/tools/go/analysis"
)

//go:embed doc.go
var doc string

// Analyzer is rule AT009.
var Analyzer = rule.Analyzer()

var rule = &blocking.Rule{ID: "AT009", Package: "extrawait", Doc: doc, Fixes: true, Check: check}

func check(p *blocking.Pass) {
	for _, b := range p.Barriers() {
		if b.Read != nil {
			p.Report(blocking.Warning, analysis.Diagnostic{
				Pos:            b.Call.Pos(),
				End:            b.Call.End(),
				Message:        b.Name + " is not needed: what follows waits for the same",
				Related:        []analysis.RelatedInformation{{Pos: b.Read.Pos(), End: b.Read.End(), Message: "this waits"}},
				SuggestedFixes: remove(p, b),
			})
			continue
		}
		severity := blocking.Warning
		if b.Outside {
			severity = blocking.Info
		}
		p.Report(severity, analysis.Diagnostic{
			Pos:     b.Call.Pos(),
			End:     b.Call.End(),
			Message: "wait in loop: " + b.Name + " waits for the device in each iteration" + way(b.Chain) + remedy(b),
			Related: b.Loop.Related(),
		})
	}
}

// remove deletes the line of a wait, if there is nothing else on it.
func remove(p *blocking.Pass, b *blocking.Barrier) []analysis.SuggestedFix {
	stmt := b.Cur.Parent().Node()
	start, end, ok := p.Line(stmt)
	if !ok {
		return nil
	}
	return []analysis.SuggestedFix{{
		Message:   "Remove the wait",
		TextEdits: []analysis.TextEdit{{Pos: start, End: end}},
	}}
}

// way says how a function comes to wait.
func way(chain []blocking.Link) string {
	if len(chain) == 0 {
		return ""
	}
	var links []string
	for _, l := range chain {
		links = append(links, l.Call+" at "+l.Pos)
	}
	return " (" + strings.Join(links, ", then ") + ")"
}

// remedy says what to do instead, and what makes a wait for each step superfluous.
func remedy(b *blocking.Barrier) string {
	switch {
	case b.Timer:
		return "; keep the timers, and ask them after the loop"
	case b.Trains:
		return "; wait once after the loop, as the runtime bounds how far it runs ahead"
	}
	return "; wait once after the loop"
}
