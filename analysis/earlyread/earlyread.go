package earlyread

import (
	_ "embed"
	"go/ast"

	"github.com/asyncgen/asyncgen/analysis/blocking"
	"github.com/asyncgen/asyncgen/analysis/lint"
	"github.com/asyncgen/asyncgen/analysis/sites"
	"golang.org/x/tools/go/analysis"
)

//go:embed doc.go
var doc string

// Analyzer is rule AT024.
var Analyzer = rule.Analyzer()

var rule = &lint.Rule{ID: "AT024", Package: "earlyread", Doc: doc, Infos: true, Rewritten: true, Requires: []*analysis.Analyzer{sites.Analyzer}, Check: check}

func check(p *lint.Pass) {
	for _, e := range earlySites(p) {
		related := append(e.Loop.Related(), analysis.RelatedInformation{Pos: e.Step.Pos(), End: e.Step.End(), Message: "the step"})
		p.Report(lint.Info, analysis.Diagnostic{
			Pos:     e.Call.Pos(),
			End:     e.Call.End(),
			Message: "early read in loop: " + e.Name + " waits for the device before " + e.By + " gives it more to do; read after that",
			Related: related,
		})
	}
	for _, f := range p.Funcs {
		for _, s := range straightReads(f) {
			p.Report(s.severity(p), analysis.Diagnostic{
				Pos:     s.Call.Expr.Pos(),
				End:     s.Call.Expr.End(),
				Message: "early read: " + s.Name + " waits for the device before " + blocking.CalleeName(s.Work) + " gives it more to do, which needs no value; enqueue both, then read",
				Related: []analysis.RelatedInformation{{Pos: s.Work.Expr.Pos(), End: s.Work.Expr.End(), Message: "the work"}},
			})
		}
	}
}

// An earlySite is a site that holds up a training step of the same iteration, because the step comes
// after it.
type earlySite struct {
	*sites.Site
	Step *ast.CallExpr
	By   string // how messages call the step
}

// earlySites lists the sites that come before a training step in the same iteration, if the step does
// not need the value.
func earlySites(p *lint.Pass) []earlySite {
	var list []earlySite
	for _, s := range sites.Of(p) {
		switch s.Pattern() {
		case sites.Reading, sites.Printing, sites.Calling, sites.LastWins, sites.Hidden:
		default:
			continue
		}
		if s.Uses&(sites.Decides|sites.Computes) != 0 {
			continue // the step may need the value
		}
		if d := stepAfter(p.Package, s); d != nil {
			list = append(list, earlySite{s, d.Expr, blocking.CalleeName(d)})
		}
	}
	return list
}

// stepAfter returns a call after s, in the same iteration, that assigns cells;
// or nil.
func stepAfter(pkg *blocking.Package, s *sites.Site) *blocking.Call {
	l := s.Loop
	if l.Handed || s.At.Mutates() {
		return nil
	}
	fl := s.In.Flow()
	here := fl.BlockAt(s.Call.Pos())
	for _, d := range s.In.Calls {
		if d.Away || !d.Mutates() || d.Target != nil && d.Target.SCC == s.In.Owner().SCC || d.Expr.Pos() < s.Call.End() || !pkg.Contains(l, s.In, d.Expr.Pos()) {
			continue
		}
		there := fl.BlockAt(d.Expr.Pos())
		nextIteration := func(b int32) bool { return l.Blocks != nil && l.Func == s.In && b == l.Head }
		if (there == here || fl.Reaches(here, there, nextIteration)) && pkg.GuardOf(s.In, d.Expr.Pos(), l) != blocking.Rarely {
			return d
		}
	}
	return nil
}
