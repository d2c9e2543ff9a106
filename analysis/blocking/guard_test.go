package blocking_test

import (
	"testing"

	"github.com/asyncgen/asyncgen/analysis/blocking"
	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/analysistest"
)

// TestGuards compares what GuardOf says with the comments beside calls of mark.
func TestGuards(t *testing.T) {
	analysistest.Run(t, testdata, &analysis.Analyzer{
		Name:     "guards",
		Doc:      "report the guards of calls of mark",
		Requires: []*analysis.Analyzer{blocking.Analyzer},
		Run: func(pass *analysis.Pass) (any, error) {
			pkg := pass.ResultOf[blocking.Analyzer].(*blocking.Package)
			for _, f := range pkg.Funcs {
				for _, c := range f.Calls {
					if c.Callee == nil || c.Callee.Name() != "mark" {
						continue
					}
					var loop *blocking.Loop
					for l := range pkg.LoopsAround(f, c.Expr.Pos()) {
						loop = l
						break
					}
					pass.Reportf(c.Expr.Pos(), "%v", pkg.GuardOf(f, c.Expr.Pos(), loop))
				}
			}
			return nil, nil
		},
	}, "guards")
}
