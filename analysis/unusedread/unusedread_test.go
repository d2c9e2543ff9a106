package unusedread_test

import (
	"testing"

	"github.com/asyncgen/asyncgen/analysis/internal/ruletest"
	"github.com/asyncgen/asyncgen/analysis/unusedread"
)

func Test(t *testing.T) {
	ruletest.RunWithFixes(t, unusedread.Analyzer, "unusedread")
}
