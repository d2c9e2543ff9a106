package valueshape

import (
	_ "embed"
	"go/types"

	"github.com/asyncgen/asyncgen/analysis/lint"
	"github.com/asyncgen/asyncgen/analysis/sites"
	"golang.org/x/tools/go/analysis"
)

//go:embed doc.go
var doc string

// Analyzer is rule AT026.
var Analyzer = rule.Analyzer()

var rule = &lint.Rule{ID: "AT026", Package: "valueshape", Doc: doc, Infos: true, Rewritten: true, Requires: []*analysis.Analyzer{sites.Analyzer}, Check: check}

func check(p *lint.Pass) {
	for _, s := range sites.Of(p) {
		sizes := s.Sizes()
		if s.Pattern() == sites.Sizing && len(sizes) > 0 { // no other rule speaks of the wait
			var related []analysis.RelatedInformation
			for _, size := range sizes {
				related = append(related, analysis.RelatedInformation{Pos: size.Pos(), End: size.End(), Message: "the size"})
			}
			p.Report(s.Severity(), analysis.Diagnostic{
				Pos:     s.Call.Pos(),
				End:     s.Call.End(),
				Message: "size depends on a value: " + s.Name + " waits in each iteration, so that " + types.ExprString(sizes[0]) + " is known" + remedy,
				Related: append(related, s.Loop.Related()...),
			})
			continue
		}
		for _, size := range sizes {
			p.Report(lint.Info, analysis.Diagnostic{
				Pos:     size.Pos(),
				End:     size.End(),
				Message: "size depends on a value: " + types.ExprString(size) + " is known only when " + s.Name + " has waited" + remedy,
				Related: []analysis.RelatedInformation{{Pos: s.Call.Pos(), End: s.Call.End(), Message: "the value is read here"}},
			})
		}
	}
}

const remedy = "; use a size that is large enough and a mask"
