package lastread_test

import (
	"path/filepath"
	"testing"

	"github.com/asyncgen/asyncgen/analysis/blocking"
	"github.com/asyncgen/asyncgen/analysis/lastread"
	"golang.org/x/tools/go/analysis/analysistest"
)

func Test(t *testing.T) {
	blocking.Analyzer.Flags.Set("severity", "info")
	analysistest.RunWithSuggestedFixes(t, filepath.Join(analysistest.TestData(), "../../testdata"), lastread.Analyzer, "lastread")
}
