package history_test

import (
	"testing"

	"github.com/asyncgen/asyncgen/analysis/history"
	"github.com/asyncgen/asyncgen/analysis/internal/ruletest"
)

func Test(t *testing.T) {
	ruletest.Run(t, history.Analyzer, "history")
}
