package elementread_test

import (
	"testing"

	"github.com/asyncgen/asyncgen/analysis/elementread"
	"github.com/asyncgen/asyncgen/analysis/internal/ruletest"
)

func Test(t *testing.T) {
	ruletest.RunWithFixes(t, elementread.Analyzer, "elementread")
}
