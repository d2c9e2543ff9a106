package rebuilt_test

import (
	"testing"

	"github.com/asyncgen/asyncgen/analysis/internal/ruletest"
	"github.com/asyncgen/asyncgen/analysis/rebuilt"
)

func Test(t *testing.T) {
	ruletest.Run(t, rebuilt.Analyzer, "rebuilt")
}
