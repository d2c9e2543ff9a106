package deferredread_test

import (
	"testing"

	"github.com/asyncgen/asyncgen/analysis/deferredread"
	"github.com/asyncgen/asyncgen/analysis/internal/ruletest"
)

func Test(t *testing.T) {
	ruletest.Run(t, deferredread.Analyzer, "deferredread")
}
