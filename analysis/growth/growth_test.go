package growth_test

import (
	"testing"

	"github.com/asyncgen/asyncgen/analysis/growth"
	"github.com/asyncgen/asyncgen/analysis/internal/ruletest"
)

func Test(t *testing.T) {
	ruletest.Run(t, growth.Analyzer, "growth")
}
