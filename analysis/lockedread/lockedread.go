package lockedread

import (
	_ "embed"
	"go/types"
	"strings"

	"github.com/asyncgen/asyncgen/analysis/blocking"
	"golang.org/x/tools/go/analysis"
)

//go:embed doc.go
var doc string

// Analyzer is rule AT011.
var Analyzer = rule.Analyzer()

var rule = &blocking.Rule{ID: "AT011", Package: "lockedread", Doc: doc, Check: check}

func check(p *blocking.Pass) {
	for _, f := range p.Funcs {
		for _, w := range f.LockedWaits() {
			p.Report(blocking.Warning, analysis.Diagnostic{
				Pos: w.Call.Expr.Pos(),
				End: w.Call.Expr.End(),
				Message: "wait under lock: " + w.Name + " waits for the device" + chain(w.Chain) + " while " + types.ExprString(w.Mutex) +
					" is locked; take the tensor and wait without the lock",
				Related: []analysis.RelatedInformation{{Pos: w.Lock.Pos(), End: w.Lock.End(), Message: "locked here"}},
			})
		}
	}
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
