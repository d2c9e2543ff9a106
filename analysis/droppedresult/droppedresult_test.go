package droppedresult_test

import (
	"testing"

	"github.com/asyncgen/asyncgen/analysis/droppedresult"
	"github.com/asyncgen/asyncgen/analysis/internal/ruletest"
)

func Test(t *testing.T) {
	ruletest.Run(t, droppedresult.Analyzer, "droppedresult")
}
