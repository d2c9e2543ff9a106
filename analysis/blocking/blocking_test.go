package blocking_test

import (
	"path/filepath"
	"testing"

	"github.com/asyncgen/asyncgen/analysis/blocking"
	"golang.org/x/tools/go/analysis/analysistest"
)

func TestFacts(t *testing.T) {
	analysistest.Run(t, testdata, blocking.Analyzer, "batch")
}

// testdata is the folder that the tests of all rules share.
var testdata = filepath.Join(analysistest.TestData(), "../../testdata")
