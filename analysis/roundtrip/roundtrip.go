package roundtrip

import (
	_ "embed"
	"go/types"

	"github.com/asyncgen/asyncgen/analysis/lint"
	"github.com/asyncgen/asyncgen/analysis/sites"
	"golang.org/x/tools/go/analysis"
)

//go:embed doc.go
var doc string

// Analyzer is rule AT003.
var Analyzer = rule.Analyzer()

var rule = &lint.Rule{ID: "AT003", Package: "roundtrip", Doc: doc, Infos: true, Rewritten: true, Requires: []*analysis.Analyzer{sites.Analyzer}, Check: check}

func check(p *lint.Pass) {
	for _, r := range sites.Returned(p) {
		message := "round trip in loop: the value of " + r.Name + " goes back into a tensor operation; use the tensor itself"
		if r.Copied {
			message = "round trip in loop: the elements go through the host and come back unchanged; a tensor never changes, so use it itself, or Detach"
		}
		p.Report(lint.Warning, analysis.Diagnostic{Pos: r.Call.Expr.Pos(), End: r.Call.Expr.End(), Message: message, Related: r.Loop.Related()})
	}
	for _, r := range sites.Detours(p) {
		message := "round trip: " + r.Name + " waits for the device, and its value only goes back into tensor operations; use the tensor itself"
		if r.Copied {
			message = "round trip: the elements go through the host and come back unchanged; a tensor never changes, so use it itself, Detach, As or To"
		}
		if r.Drawn {
			message = "round trip: " + r.Name + " waits until the device has drawn a number; draw it on the host, or use the tensor itself"
		}
		p.Report(lint.Warning, analysis.Diagnostic{Pos: r.Call.Expr.Pos(), End: r.Call.Expr.End(), Message: message})
	}
	for _, d := range detours(p.Package) {
		message := "round trip: what is made of " + types.ExprString(d.of) + " on another device comes back; compute it where the tensor is"
		p.Report(lint.Warning, analysis.Diagnostic{Pos: d.call.Expr.Pos(), End: d.call.Expr.End(), Message: message})
	}
	for _, s := range sites.Of(p) {
		if s.Pattern() != sites.Returning {
			continue
		}
		remedy := "use the tensor itself"
		if s.Uses&^(sites.Printed|sites.Computes) != 0 {
			remedy += " there, and read what the host keeps after the loop"
		}
		p.Report(s.Severity(), analysis.Diagnostic{
			Pos:     s.Call.Pos(),
			End:     s.Call.End(),
			Message: "round trip in loop: " + s.Name + " waits for the device in each iteration, and its value goes back into a tensor operation; " + remedy,
			Related: s.Loop.Related(),
		})
	}
}
