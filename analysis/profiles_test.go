package analysis_test

import (
	"maps"
	"testing"

	"github.com/asyncgen/asyncgen/analysis"
	"github.com/asyncgen/asyncgen/analysis/blocking"
	xanalysis "golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/analysistest"
)

// Programs that use other libraries, by the profiles of these. The packages of
// the libraries are stubs.
func TestProfiles(t *testing.T) {
	setSeverity(t, blocking.Warning)
	analysistest.Run(t, analysistest.TestData(), whole,
		"profiles/gomlx", "profiles/gomlxnext", "profiles/gotch", "profiles/born", "profiles/gotorch", "profiles/mixed")
	for _, res := range analysistest.Run(silent{}, analysistest.TestData(), whole, "profiles/synchronous") {
		for _, d := range res.Diagnostics {
			t.Errorf("nobody asked for infos: %v: %s", res.Pass.Fset.Position(d.Pos), d.Message)
		}
	}
	setSeverity(t, blocking.Info)
	analysistest.Run(t, analysistest.TestData(), whole, "profiles/synchronous")
}

// silent drops what is wrong in a test.
type silent struct{}

func (silent) Errorf(string, ...any) {}

func setSeverity(t *testing.T, s blocking.Severity) {
	f := blocking.Analyzer.Flags.Lookup("severity").Value
	if err := f.Set(string(s)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Set(string(blocking.Warning)) })
}

// whole is all rules of the suite in one, so that a test sees what each finds.
var whole = &xanalysis.Analyzer{
	Name:     "asyncgen",
	Doc:      "all rules",
	Requires: []*xanalysis.Analyzer{blocking.Analyzer},
	Run: func(pass *xanalysis.Pass) (any, error) {
		results := maps.Clone(pass.ResultOf)
		var run func(a *xanalysis.Analyzer) error
		run = func(a *xanalysis.Analyzer) error {
			if _, done := results[a]; done {
				return nil
			}
			for _, b := range a.Requires {
				if err := run(b); err != nil {
					return err
				}
			}
			p := *pass
			p.Analyzer, p.ResultOf = a, results
			res, err := a.Run(&p)
			results[a] = res
			return err
		}
		for _, a := range analysis.Suite {
			if err := run(a); err != nil {
				return nil, err
			}
		}
		return nil, nil
	},
}
