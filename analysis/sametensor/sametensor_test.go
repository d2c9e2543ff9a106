package sametensor_test

import (
	"testing"

	"github.com/asyncgen/asyncgen/analysis/internal/ruletest"
	"github.com/asyncgen/asyncgen/analysis/sametensor"
)

func Test(t *testing.T) {
	ruletest.Run(t, sametensor.Analyzer, "sametensor")
}
