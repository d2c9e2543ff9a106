package loopexit_test

import (
	"testing"

	"github.com/asyncgen/asyncgen/analysis/internal/ruletest"
	"github.com/asyncgen/asyncgen/analysis/loopexit"
)

func Test(t *testing.T) {
	ruletest.Run(t, loopexit.Analyzer, "loopexit")
}
