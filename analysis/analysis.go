// Package analysis lists the rules of asyncgen vet and runs them: by itself,
// as the tool of go vet, and as the tool of go fix. It has no rules of its
// own; each is a package below it, with a page that says what it reports, why,
// what it misses and whether its fix is safe.
package analysis

import (
	"github.com/asyncgen/asyncgen/analysis/guardedread"
	"github.com/asyncgen/asyncgen/analysis/loopcall"
	"github.com/asyncgen/asyncgen/analysis/loopexit"
	"github.com/asyncgen/asyncgen/analysis/loopprint"
	"github.com/asyncgen/asyncgen/analysis/loopread"
	"github.com/asyncgen/asyncgen/analysis/timing"
	"golang.org/x/tools/go/analysis"
)

// Suite is every rule, by number.
var Suite = []*analysis.Analyzer{
	loopread.Analyzer,    // AT001
	loopprint.Analyzer,   // AT004
	loopexit.Analyzer,    // AT005
	guardedread.Analyzer, // AT008
	loopcall.Analyzer,    // AT010
	timing.Analyzer,      // AT020
}

// FixSuite is the rules whose fixes are safe to apply without looking at them.
var FixSuite = []*analysis.Analyzer{
	guardedread.Analyzer,
	timing.Analyzer,
}
