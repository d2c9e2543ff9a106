package loopread_test

import (
	"testing"

	"github.com/asyncgen/asyncgen/analysis/internal/ruletest"
	"github.com/asyncgen/asyncgen/analysis/loopread"
)

func Test(t *testing.T) {
	ruletest.Run(t, loopread.Analyzer, "loopread")
}
