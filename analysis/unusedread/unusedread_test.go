package unusedread_test

import (
	"path/filepath"
	"testing"

	"github.com/asyncgen/asyncgen/analysis/blocking"
	"github.com/asyncgen/asyncgen/analysis/unusedread"
	"golang.org/x/tools/go/analysis/analysistest"
)

func Test(t *testing.T) {
	blocking.Analyzer.Flags.Set("severity", "info")
	analysistest.RunWithSuggestedFixes(t, filepath.Join(analysistest.TestData(), "../../testdata"), unusedread.Analyzer, "unusedread")
}
