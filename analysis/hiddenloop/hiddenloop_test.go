package hiddenloop_test

import (
	"testing"

	"github.com/asyncgen/asyncgen/analysis/hiddenloop"
	"github.com/asyncgen/asyncgen/analysis/internal/ruletest"
)

func Test(t *testing.T) {
	ruletest.Run(t, hiddenloop.Analyzer, "hiddenloop")
}
