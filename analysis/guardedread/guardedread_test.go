package guardedread_test

import (
	"testing"

	"github.com/asyncgen/asyncgen/analysis/guardedread"
	"github.com/asyncgen/asyncgen/analysis/internal/ruletest"
)

func Test(t *testing.T) {
	ruletest.RunWithFixes(t, guardedread.Analyzer, "guardedread")
}
