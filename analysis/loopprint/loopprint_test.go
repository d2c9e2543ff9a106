package loopprint_test

import (
	"testing"

	"github.com/asyncgen/asyncgen/analysis/internal/ruletest"
	"github.com/asyncgen/asyncgen/analysis/loopprint"
)

func Test(t *testing.T) {
	ruletest.Run(t, loopprint.Analyzer, "loopprint")
}
