package timing_test

import (
	"testing"

	"github.com/asyncgen/asyncgen/analysis/internal/ruletest"
	"github.com/asyncgen/asyncgen/analysis/timing"
)

func Test(t *testing.T) {
	ruletest.RunWithFixes(t, timing.Analyzer, "timing")
}
