package adjacentread_test

import (
	"testing"

	"github.com/asyncgen/asyncgen/analysis/adjacentread"
	"github.com/asyncgen/asyncgen/analysis/internal/ruletest"
)

func Test(t *testing.T) {
	ruletest.Run(t, adjacentread.Analyzer, "adjacentread")
}
