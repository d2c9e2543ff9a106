package directives_test

import (
	"testing"

	"github.com/asyncgen/asyncgen/analysis/directives"
	"github.com/asyncgen/asyncgen/analysis/guardedread"
	"github.com/asyncgen/asyncgen/analysis/internal/ruletest"
	"github.com/asyncgen/asyncgen/analysis/loopexit"
	"github.com/asyncgen/asyncgen/analysis/loopprint"
	"github.com/asyncgen/asyncgen/analysis/loopread"
	"golang.org/x/tools/go/analysis"
)

// Infos are not asked for: a directive is no less of use for that.
func Test(t *testing.T) {
	rules := []*analysis.Analyzer{loopread.Analyzer, loopprint.Analyzer, loopexit.Analyzer, guardedread.Analyzer}
	ruletest.RunWithoutInfos(t, directives.New(rules), "directives")
}
