// Package analysis lists the rules of asyncgen vet and runs them: by itself,
// as the tool of go vet, and as the tool of go fix. Each rule is a package
// below it. The rule's doc.go is its page: what it reports and why, what it
// misses, and whether its fix is safe.
package analysis

import (
	"cmp"
	"slices"

	"github.com/asyncgen/asyncgen/analysis/addedgrad"
	"github.com/asyncgen/asyncgen/analysis/adjacentread"
	"github.com/asyncgen/asyncgen/analysis/benchmark"
	"github.com/asyncgen/asyncgen/analysis/deferredread"
	"github.com/asyncgen/asyncgen/analysis/directives"
	"github.com/asyncgen/asyncgen/analysis/droppedresult"
	"github.com/asyncgen/asyncgen/analysis/earlyread"
	"github.com/asyncgen/asyncgen/analysis/elementread"
	"github.com/asyncgen/asyncgen/analysis/extrawait"
	"github.com/asyncgen/asyncgen/analysis/goroutineread"
	"github.com/asyncgen/asyncgen/analysis/growth"
	"github.com/asyncgen/asyncgen/analysis/guardedread"
	"github.com/asyncgen/asyncgen/analysis/hiddenloop"
	"github.com/asyncgen/asyncgen/analysis/history"
	"github.com/asyncgen/asyncgen/analysis/lastread"
	"github.com/asyncgen/asyncgen/analysis/lint"
	"github.com/asyncgen/asyncgen/analysis/lockedread"
	"github.com/asyncgen/asyncgen/analysis/loopcall"
	"github.com/asyncgen/asyncgen/analysis/loopdata"
	"github.com/asyncgen/asyncgen/analysis/loopexit"
	"github.com/asyncgen/asyncgen/analysis/loopprint"
	"github.com/asyncgen/asyncgen/analysis/loopread"
	"github.com/asyncgen/asyncgen/analysis/rebuilt"
	"github.com/asyncgen/asyncgen/analysis/regrown"
	"github.com/asyncgen/asyncgen/analysis/roundtrip"
	"github.com/asyncgen/asyncgen/analysis/rowwise"
	"github.com/asyncgen/asyncgen/analysis/sametensor"
	"github.com/asyncgen/asyncgen/analysis/timing"
	"github.com/asyncgen/asyncgen/analysis/unusedread"
	"github.com/asyncgen/asyncgen/analysis/valueshape"
	"golang.org/x/tools/go/analysis"
)

// Suite is every rule, by number.
var Suite = func() []*analysis.Analyzer {
	all := append(slices.Clone(rules), directives.New(rules)) // AT031
	slices.SortFunc(all, func(a, b *analysis.Analyzer) int { return cmp.Compare(a.Name, b.Name) })
	return all
}()

// rules is every rule but the one about what the others were told to ignore.
var rules = []*analysis.Analyzer{
	loopread.Analyzer,      // AT001
	lastread.Analyzer,      // AT002
	roundtrip.Analyzer,     // AT003
	loopprint.Analyzer,     // AT004
	loopexit.Analyzer,      // AT005
	elementread.Analyzer,   // AT006
	adjacentread.Analyzer,  // AT007
	guardedread.Analyzer,   // AT008
	extrawait.Analyzer,     // AT009
	loopcall.Analyzer,      // AT010
	lockedread.Analyzer,    // AT011
	hiddenloop.Analyzer,    // AT012
	goroutineread.Analyzer, // AT013
	deferredread.Analyzer,  // AT014
	timing.Analyzer,        // AT020
	benchmark.Analyzer,     // AT021
	growth.Analyzer,        // AT022
	history.Analyzer,       // AT023
	earlyread.Analyzer,     // AT024
	loopdata.Analyzer,      // AT025
	valueshape.Analyzer,    // AT026
	unusedread.Analyzer,    // AT030
	droppedresult.Analyzer, // AT032
	sametensor.Analyzer,    // AT033
	rebuilt.Analyzer,       // AT034
	regrown.Analyzer,       // AT035
	addedgrad.Analyzer,     // AT036
	rowwise.Analyzer,       // AT037
}

// FixSuite is the rules whose fixes are safe to apply without looking at them.
var FixSuite = slices.DeleteFunc(slices.Clone(Suite), func(a *analysis.Analyzer) bool { return !lint.RuleOf(a.Name).Fixes })
