package extrawait_test

import (
	"path/filepath"
	"testing"

	"github.com/asyncgen/asyncgen/analysis/blocking"
	"github.com/asyncgen/asyncgen/analysis/extrawait"
	"golang.org/x/tools/go/analysis/analysistest"
)

func Test(t *testing.T) {
	blocking.Analyzer.Flags.Set("severity", "info")
	analysistest.RunWithSuggestedFixes(t, filepath.Join(analysistest.TestData(), "../../testdata"), extrawait.Analyzer, "extrawait")
}
