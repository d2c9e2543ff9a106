package roundtrip_test

import (
	"testing"

	"github.com/asyncgen/asyncgen/analysis/internal/ruletest"
	"github.com/asyncgen/asyncgen/analysis/roundtrip"
)

func Test(t *testing.T) {
	ruletest.Run(t, roundtrip.Analyzer, "roundtrip")
}
