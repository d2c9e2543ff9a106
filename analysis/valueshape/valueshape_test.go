package valueshape_test

import (
	"testing"

	"github.com/asyncgen/asyncgen/analysis/internal/ruletest"
	"github.com/asyncgen/asyncgen/analysis/valueshape"
)

func Test(t *testing.T) {
	ruletest.Run(t, valueshape.Analyzer, "valueshape")
}
