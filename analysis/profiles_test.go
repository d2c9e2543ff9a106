package analysis_test

import (
	"go/types"
	"maps"
	"testing"

	"github.com/asyncgen/asyncgen/analysis"
	"github.com/asyncgen/asyncgen/analysis/blocking"
	"github.com/asyncgen/asyncgen/analysis/lint"
	"github.com/asyncgen/asyncgen/analysis/sites"
	"github.com/asyncgen/asyncgen/internal/turns"
	xanalysis "golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/analysistest"
)

// Programs that use other libraries, by the profiles of these. The packages of
// the libraries are stubs.
func TestProfiles(t *testing.T) {
	turns.Take(t)
	setSeverity(t, lint.Warning)
	analysistest.Run(t, analysistest.TestData(), whole,
		"profiles/gomlx", "profiles/gomlxnext", "profiles/gotch", "profiles/born", "profiles/gotorch", "profiles/mixed", "profiles/ours")
	for _, res := range analysistest.Run(silent{}, analysistest.TestData(), whole, "profiles/synchronous") {
		for _, d := range res.Diagnostics {
			t.Errorf("nobody asked for infos: %v: %s", res.Pass.Fset.Position(d.Pos), d.Message)
		}
	}
	setSeverity(t, lint.Info)
	analysistest.Run(t, analysistest.TestData(), whole, "profiles/synchronous")
}

// silent drops what is wrong in a test.
type silent struct{}

func (silent) Errorf(string, ...any) {}

func setSeverity(t *testing.T, s lint.Severity) {
	f := blocking.Analyzer.Flags.Lookup("severity").Value
	if err := f.Set(string(s)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Set(string(lint.Warning)) })
}

// whole is all rules of the suite in one, so that a test sees what each finds.
var whole = oneOf(func(*types.Package) []*xanalysis.Analyzer { return analysis.Suite })

// oneOf makes one analyzer of the rules that rulesFor names for a package, so that a test sees what
// these find, and nothing else.
func oneOf(rulesFor func(*types.Package) []*xanalysis.Analyzer) *xanalysis.Analyzer {
	return &xanalysis.Analyzer{
		Name:     "asyncgen",
		Doc:      "some rules",
		Requires: []*xanalysis.Analyzer{blocking.Analyzer, sites.Analyzer},
		Run: func(pass *xanalysis.Pass) (any, error) {
			results := maps.Clone(pass.ResultOf)
			for _, rule := range rulesFor(pass.Pkg) {
				if err := apply(rule, pass, results); err != nil {
					return nil, err
				}
			}
			return nil, nil
		},
	}
}

// apply adds the result of a, after those that it requires, unless results has it.
func apply(a *xanalysis.Analyzer, pass *xanalysis.Pass, results map[*xanalysis.Analyzer]any) error {
	if _, done := results[a]; done {
		return nil
	}
	for _, b := range a.Requires {
		if err := apply(b, pass, results); err != nil {
			return err
		}
	}
	p := *pass
	p.Analyzer, p.ResultOf = a, results
	res, err := a.Run(&p)
	results[a] = res
	return err
}

// What is worth a warning of what may as well be meant.
func TestSeverities(t *testing.T) {
	setSeverity(t, lint.Warning)
	analysistest.Run(t, analysistest.TestData(), whole, "severity")
}
