package valueshape_test

import (
	"path/filepath"
	"testing"

	"github.com/asyncgen/asyncgen/analysis/blocking"
	"github.com/asyncgen/asyncgen/analysis/valueshape"
	"golang.org/x/tools/go/analysis/analysistest"
)

func Test(t *testing.T) {
	blocking.Analyzer.Flags.Set("severity", "info")
	analysistest.Run(t, filepath.Join(analysistest.TestData(), "../../testdata"), valueshape.Analyzer, "valueshape")
}
