package directives_test

import (
	"path/filepath"
	"testing"

	"github.com/asyncgen/asyncgen/analysis/directives"
	"github.com/asyncgen/asyncgen/analysis/guardedread"
	"github.com/asyncgen/asyncgen/analysis/loopexit"
	"github.com/asyncgen/asyncgen/analysis/loopprint"
	"github.com/asyncgen/asyncgen/analysis/loopread"
	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/analysistest"
)

// Infos are not asked for: a directive is no less of use for that.
func Test(t *testing.T) {
	rules := []*analysis.Analyzer{loopread.Analyzer, loopprint.Analyzer, loopexit.Analyzer, guardedread.Analyzer}
	analysistest.Run(t, filepath.Join(analysistest.TestData(), "../../testdata"), directives.New(rules), "directives")
}
