package benchmark_test

import (
	"testing"

	"github.com/asyncgen/asyncgen/analysis/benchmark"
	"github.com/asyncgen/asyncgen/analysis/internal/ruletest"
)

func Test(t *testing.T) {
	ruletest.RunWithFixes(t, benchmark.Analyzer, "benchmark")
}
