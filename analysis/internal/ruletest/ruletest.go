// Package ruletest tests rules of the linter on the folders that they share,
// analysis/testdata/src.
package ruletest

import (
	"path/filepath"
	"runtime/debug"
	"testing"

	"github.com/asyncgen/asyncgen/analysis/blocking"
	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/analysistest"
)

// Run holds what a rule finds in a folder, infos included, against the // want comments there.
func Run(t *testing.T, rule *analysis.Analyzer, folder string) {
	blocking.Analyzer.Flags.Set("severity", "info")
	RunWithoutInfos(t, rule, folder)
}

// RunWithoutInfos is Run of what finds no infos unless it is asked to.
func RunWithoutInfos(t *testing.T, rule *analysis.Analyzer, folder string) {
	prepare()
	analysistest.Run(t, testdata(), rule, folder)
}

// RunWithFixes is Run, and holds what the fixes make of the files against those called .golden.
func RunWithFixes(t *testing.T, rule *analysis.Analyzer, folder string) {
	blocking.Analyzer.Flags.Set("severity", "info")
	prepare()
	analysistest.RunWithSuggestedFixes(t, testdata(), rule, folder)
}

// prepare stops the collector. What a test makes is syntax and types, some 300 MB, and they live as long as it does: looking for what
// does not takes a third of the time.
func prepare() { debug.SetGCPercent(-1) }

// testdata is where the folders are, seen from that of a rule.
func testdata() string { return filepath.Join(analysistest.TestData(), "../../testdata") }
