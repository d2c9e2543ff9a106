package extrawait_test

import (
	"testing"

	"github.com/asyncgen/asyncgen/analysis/extrawait"
	"github.com/asyncgen/asyncgen/analysis/internal/ruletest"
)

func Test(t *testing.T) {
	ruletest.RunWithFixes(t, extrawait.Analyzer, "extrawait")
}
