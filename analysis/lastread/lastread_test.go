package lastread_test

import (
	"testing"

	"github.com/asyncgen/asyncgen/analysis/internal/ruletest"
	"github.com/asyncgen/asyncgen/analysis/lastread"
)

func Test(t *testing.T) {
	ruletest.RunWithFixes(t, lastread.Analyzer, "lastread")
}
