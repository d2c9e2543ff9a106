package loopdata_test

import (
	"testing"

	"github.com/asyncgen/asyncgen/analysis/internal/ruletest"
	"github.com/asyncgen/asyncgen/analysis/loopdata"
)

func Test(t *testing.T) {
	ruletest.Run(t, loopdata.Analyzer, "loopdata")
}
