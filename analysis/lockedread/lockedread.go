package lockedread

import (
	_ "embed"
	"go/types"
	"strings"

	"github.com/asyncgen/asyncgen/analysis/blocking"
	"github.com/asyncgen/asyncgen/analysis/lint"
	"golang.org/x/tools/go/analysis"
)

//go:embed doc.go
var doc string

// Analyzer is rule AT011.
var Analyzer = rule.Analyzer()

var rule = &lint.Rule{ID: "AT011", Package: "lockedread", Doc: doc, Infos: true, Check: check}

func check(p *lint.Pass) {
	for _, f := range p.Funcs {
		for _, w := range lockedWaits(f) {
			p.Report(w.severity(), analysis.Diagnostic{
				Pos: w.Call.Expr.Pos(),
				End: w.Call.Expr.End(),
				Message: "wait under lock: " + w.Name + " waits for the device" + chain(w.Chain) + " while " + types.ExprString(w.Mutex) +
					" is locked; take the tensor and wait without the lock",
				Related: []analysis.RelatedInformation{{Pos: w.Lock.Pos(), End: w.Lock.End(), Message: "locked here"}},
			})
		}
	}
}

// severity is Info if nobody who wants the lock has to wait, or if the wait is for nothing but the device.
func (w lockedWait) severity() lint.Severity {
	if w.Shared || w.Probe {
		return lint.Info
	}
	return lint.Warning
}

func chain(links []blocking.Link) string {
	if len(links) == 0 {
		return ""
	}
	var calls []string
	for _, l := range links {
		calls = append(calls, l.Call+" at "+l.Pos)
	}
	return " (" + strings.Join(calls, ", then ") + ")"
}
