package analysis_test

import (
	"go/types"
	"path"
	"strings"
	"testing"

	"github.com/asyncgen/asyncgen/analysis"
	"github.com/asyncgen/asyncgen/analysis/blocking"
	xanalysis "golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/analysistest"
)

// TestRules holds what each rule finds, infos included, in the folder of testdata/src that is named like its package against the
// // want comments there, and what its fixes make of the files against those called .golden. All folders are loaded at once: most of what
// they are checked with, down to the standard library, is the same.
func TestRules(t *testing.T) {
	var folders []string
	for _, rule := range analysis.Suite {
		folder := path.Base(rule.URL)
		if folder == "directives" {
			// It needs what the others ignore, not what they find; and a directive is no less of use if it ignores what nobody asked for.
			analysistest.Run(t, analysistest.TestData(), rule, folder)
			continue
		}
		folders = append(folders, folder)
	}
	setSeverity(t, blocking.Info)
	analysistest.RunWithSuggestedFixes(t, analysistest.TestData(), named, folders...)
}

// named is, in each package, the rule that is named like it.
var named = oneOf(func(p *types.Package) []*xanalysis.Analyzer {
	for _, rule := range analysis.Suite {
		if path.Base(rule.URL) == strings.TrimSuffix(p.Path(), "_test") {
			return []*xanalysis.Analyzer{rule}
		}
	}
	return nil
})
