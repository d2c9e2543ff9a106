package analysis_test

import (
	"go/types"
	"strings"
	"testing"

	"github.com/asyncgen/asyncgen/analysis"
	"github.com/asyncgen/asyncgen/analysis/lint"
	xanalysis "golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/analysistest"
)

// TestRules holds what each rule finds, infos included, in the folder of testdata/src that is named
// like its package against the // want comments there, and what its fixes make of the files against
// those called .golden. All folders are loaded at once: most of what they are checked with, down to
// the standard library, is the same.
func TestRules(t *testing.T) {
	var folders []string
	for _, rule := range analysis.Suite {
		folder := lint.RuleOf(rule.Name).Package
		if folder == "directives" {
			// It needs what the others ignore, not what they find; and a directive is no less of use if
			// it ignores what nobody asked for.
			analysistest.Run(t, analysistest.TestData(), rule, folder)
			continue
		}
		folders = append(folders, folder)
	}
	setSeverity(t, lint.Info)
	gravest := map[string]lint.Severity{"AT031": lint.Warning}
	infos, fixes := make(map[string]bool), make(map[string]bool)
	for _, res := range analysistest.RunWithSuggestedFixes(t, analysistest.TestData(), named, folders...) {
		for _, d := range res.Diagnostics {
			id, _, _ := strings.Cut(d.Category, "-")
			if s := lint.SeverityOf(d.Category); s.Reaches(gravest[id]) {
				gravest[id] = s
			}
			infos[id] = infos[id] || lint.SeverityOf(d.Category) == lint.Info
			fixes[id] = fixes[id] || len(d.SuggestedFixes) > 0
		}
	}
	for _, a := range analysis.Suite {
		r := lint.RuleOf(a.Name)
		if r.Severity != gravest[r.ID] {
			t.Errorf("%s: the gravest finding is of severity %s, the rule says %s", r.ID, gravest[r.ID], r.Severity)
		}
		if has := infos[r.ID] && gravest[r.ID] != lint.Info; has != r.Infos {
			t.Errorf("%s: some findings are only infos: %t, the rule says %t", r.ID, has, r.Infos)
		}
		if fixes[r.ID] && !r.Fixes {
			t.Errorf("%s: a finding has a fix, the rule says that there is none", r.ID)
		}
	}
}

// named is, in each package, the rule that is named like it.
var named = oneOf(func(p *types.Package) []*xanalysis.Analyzer {
	for _, rule := range analysis.Suite {
		if lint.RuleOf(rule.Name).Package == strings.TrimSuffix(p.Path(), "_test") {
			return []*xanalysis.Analyzer{rule}
		}
	}
	return nil
})
