// Package sites finds the calls that wait for the device in each iteration of a loop. It says what
// becomes of the value, and what is wrong with the wait: the [Pattern] of a [Site]. Each rule about
// reads in loops takes the sites of some patterns. Which functions wait, and for what, is found out by
// package blocking.
package sites

import (
	"go/types"
	"reflect"
	"slices"
	"sync"

	"github.com/asyncgen/asyncgen/analysis/blocking"
	"github.com/asyncgen/asyncgen/analysis/lint"
	"golang.org/x/tools/go/analysis"
)

// Analyzer finds the sites of a package.
var Analyzer = &analysis.Analyzer{
	Name:       "sites",
	Doc:        "find the calls that wait in loops\n\nIt reports nothing; rules of asyncgen vet build on it.",
	Requires:   []*analysis.Analyzer{blocking.Analyzer},
	FactTypes:  []analysis.Fact{new(InLoop)},
	ResultType: reflect.TypeFor[*result](),
	Run: func(pass *analysis.Pass) (any, error) {
		return find(pass, pass.ResultOf[blocking.Analyzer].(*blocking.Package)), nil
	},
}

// A result is what Analyzer finds in a package.
type result struct {
	sites    []*Site                           // in the order of the source
	repeated map[*blocking.Func]*blocking.Loop // functions that run again and again, each with its body as a loop
}

// resultOf returns what Analyzer has found in the package that p is about.
func resultOf(p *lint.Pass) *result { return p.ResultOf[Analyzer].(*result) }

// Of lists the sites of the package that p is about, in the order of the source.
func Of(p *lint.Pass) []*Site { return resultOf(p).sites }

// find finds the sites of a package.
func find(pass *analysis.Pass, pkg *blocking.Package) *result {
	var list []*Site
	// One finding for the calls of a function on a line is enough, unless
	// only one of them decides what the loop does.
	type key struct {
		loop    *blocking.Loop
		callee  *types.Func
		line    string
		decides bool
	}
	reported := make(map[key]bool)
	repeated := repeatedFuncs(pass, pkg)
	for _, f := range pkg.Funcs {
		for _, c := range f.Calls {
			if c.Away && !runsAtEnd(c) {
				continue
			}
			var s *Site
			if len(divided(pkg, c)) == 0 {
				s = site(pkg, c)
			}
			if s == nil {
				s = looped(pkg, c)
			}
			if s == nil {
				s = laterSite(pkg, c)
			}
			if l := repeated[f.Owner()]; s == nil && l != nil {
				s = repeatedSite(pkg, c, l)
			}
			if s == nil {
				s = registeredSite(pass, pkg, c)
			}
			if s == nil {
				continue
			}
			if s.Kind == blocking.WaitCallee && c.Callee != nil {
				k := key{s.Loop, c.Callee, pkg.PosOf(s.Call.Pos()), s.Uses&Decides != 0}
				if reported[k] {
					continue
				}
				reported[k] = true
			}
			if s.pat == nil {
				s.pat = sync.OnceValue(func() Pattern { return pattern(pkg, s) })
			}
			list = append(list, s)
		}
	}
	slices.SortStableFunc(list, func(s, t *Site) int { return int(s.Call.Pos() - t.Call.Pos()) })
	return &result{list, repeated}
}
