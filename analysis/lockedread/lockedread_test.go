package lockedread_test

import (
	"testing"

	"github.com/asyncgen/asyncgen/analysis/internal/ruletest"
	"github.com/asyncgen/asyncgen/analysis/lockedread"
)

func Test(t *testing.T) {
	ruletest.Run(t, lockedread.Analyzer, "lockedread")
}
