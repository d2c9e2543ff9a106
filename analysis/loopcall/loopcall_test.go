package loopcall_test

import (
	"testing"

	"github.com/asyncgen/asyncgen/analysis/internal/ruletest"
	"github.com/asyncgen/asyncgen/analysis/loopcall"
)

func Test(t *testing.T) {
	ruletest.Run(t, loopcall.Analyzer, "loopcall")
}
