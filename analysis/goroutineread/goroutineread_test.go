package goroutineread_test

import (
	"testing"

	"github.com/asyncgen/asyncgen/analysis/goroutineread"
	"github.com/asyncgen/asyncgen/analysis/internal/ruletest"
)

func Test(t *testing.T) {
	ruletest.Run(t, goroutineread.Analyzer, "goroutineread")
}
