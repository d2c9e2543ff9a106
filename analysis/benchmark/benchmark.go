package benchmark

import (
	_ "embed"
	"go/ast"
	"strings"

	"github.com/asyncgen/asyncgen/analysis/blocking"
	"golang.org/x/tools/go/analysis"
)

//go:embed doc.go
var doc string

// Analyzer is rule AT021.
var Analyzer = rule.Analyzer()

var rule = &blocking.Rule{ID: "AT021", Package: "benchmark", Doc: doc, Fixes: true, InTests: true, Clocks: true, Check: check}

func check(p *blocking.Pass) {
	for _, f := range p.Funcs {
		for _, l := range f.BenchLoops() {
			if onPurpose(f) {
				continue
			}
			message := "the benchmark's clock stops before the work is finished; wait for it after the loop"
			if l.Stops {
				message = "b.Loop stops the clock before the work is finished; wait in each iteration, or loop over b.N and wait after the loop"
			}
			p.Report(blocking.Warning, analysis.Diagnostic{
				Pos:            l.Stmt.Pos(),
				End:            body(l.Stmt).Pos(),
				Message:        message,
				Related:        []analysis.RelatedInformation{{Pos: l.Op.Pos(), End: l.Op.End(), Message: "this may be unfinished"}},
				SuggestedFixes: wait(p, l),
			})
		}
	}
}

func onPurpose(f *blocking.Func) bool {
	about := strings.Join(f.About(), " ")
	return blocking.SpeaksOfEnqueueing(about) || strings.Contains(strings.ToLower(about), "async")
}

func body(loop ast.Stmt) *ast.BlockStmt {
	if s, ok := loop.(*ast.ForStmt); ok {
		return s.Body
	}
	return loop.(*ast.RangeStmt).Body
}

// wait inserts a wait for all work where the clock still runs.
func wait(p *blocking.Pass, l blocking.BenchLoop) []analysis.SuggestedFix {
	stmt := l.Stmt
	if l.Stops {
		list := body(stmt).List
		if len(list) == 0 {
			return nil // the work is in the condition
		}
		stmt = list[len(list)-1]
		switch stmt.(type) {
		case *ast.ReturnStmt, *ast.BranchStmt:
			return nil
		}
	}
	edits, ok := p.WaitAfter(stmt)
	if !ok {
		return nil
	}
	return []analysis.SuggestedFix{{Message: "Wait while the clock runs", TextEdits: edits}}
}
