package earlyread_test

import (
	"testing"

	"github.com/asyncgen/asyncgen/analysis/earlyread"
	"github.com/asyncgen/asyncgen/analysis/internal/ruletest"
)

func Test(t *testing.T) {
	ruletest.Run(t, earlyread.Analyzer, "earlyread")
}
