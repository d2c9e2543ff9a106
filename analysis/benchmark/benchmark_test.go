package benchmark_test

import (
	"path/filepath"
	"testing"

	"github.com/asyncgen/asyncgen/analysis/benchmark"
	"github.com/asyncgen/asyncgen/analysis/blocking"
	"golang.org/x/tools/go/analysis/analysistest"
)

func Test(t *testing.T) {
	blocking.Analyzer.Flags.Set("severity", "info")
	analysistest.RunWithSuggestedFixes(t, filepath.Join(analysistest.TestData(), "../../testdata"), benchmark.Analyzer, "benchmark")
}
