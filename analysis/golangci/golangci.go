// Package golangci makes the rules of asyncgen vet a linter of golangci-lint, by its module plugin
// system. It is a module of its own, so that users of asyncgen without golangci-lint don't download
// golangci-lint.
//
// golangci-lint is built with the plugin by "golangci-lint custom", which a file
// .custom-gcl.yml tells what to build:
//
//	version: v2.15.0
//	plugins:
//	  - module: github.com/asyncgen/asyncgen
//	    import: github.com/asyncgen/asyncgen/analysis
//	    path: ../asyncgen
//	  - module: github.com/asyncgen/asyncgen/analysis/golangci
//	    path: ../asyncgen/analysis/golangci
//
// where ../asyncgen is a checkout; both modules have to be named, as golangci-lint
// takes no notice of the replace directive by which the second finds the first.
// The result, custom-gcl, has a linter with the name asyncgen, which a file
// .golangci.yml switches on; all settings can be left out:
//
//	version: "2"
//	linters:
//	  enable: [asyncgen]
//	  settings:
//	    custom:
//	      asyncgen:
//	        type: module
//	        settings:
//	          severity: warning     # or info, for findings of that severity as well, or error
//	          rules: [AT001, AT010] # these only
//	          tests: false          # whether to report all findings in test files
//	          profiles: [acme.json] # other tensor libraries, see tensorapi.Parse
//	issues: # golangci-lint leaves out the second on a line, and the fourth that is alike
//	  uniq-by-line: false
//	  max-same-issues: 0
//
// Findings, their fixes, the directives that suppress them and what the files
// asyncgen.json say about rules are those of asyncgen vet. The file in the current
// folder, or the nearest above in its module, may name profiles, too. Findings that
// golangci-lint has kept are forgotten when such a file or a profile changes.
package golangci

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	suite "github.com/asyncgen/asyncgen/analysis"
	"github.com/asyncgen/asyncgen/analysis/blocking"
	"github.com/asyncgen/asyncgen/analysis/lint"
	"github.com/asyncgen/asyncgen/analysis/sites"
	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"github.com/golangci/plugin-module-register/register"
	"golang.org/x/tools/go/analysis"
)

// Importing the package is what golangci-lint does with a plugin.
func init() { register.Plugin("asyncgen", New) }

// Settings are what .golangci.yml may say. Unknown ones are an error.
type Settings struct {
	// Severity is the least that is reported, "error", "warning" or "info"; empty
	// means warning.
	Severity string `json:"severity"`
	// Rules are the ids of the rules to apply; none means all.
	Rules []string `json:"rules"`
	// Tests asks for all findings in test files.
	Tests bool `json:"tests"`
	// Profiles are files that describe tensor libraries. Relative names are
	// meant from the current folder.
	Profiles []string `json:"profiles"`
}

// New is the plugin with the settings in .golangci.yml, as golangci-lint has
// decoded them. A process can have it once, as the settings are those of the rules.
func New(settings any) (register.LinterPlugin, error) {
	s, err := register.DecodeSettings[Settings](settings)
	if err != nil {
		return nil, fmt.Errorf("asyncgen: %w", err)
	}
	dir, err := os.Getwd()
	if err != nil {
		return nil, fmt.Errorf("asyncgen: %w", err)
	}
	if _, err := lint.SettingsAbove(dir); err != nil {
		return nil, fmt.Errorf("asyncgen: %w", err)
	}
	if found := tensorapi.Find(dir); found != "" {
		s.Profiles = append(s.Profiles, found)
	}
	return plugin{s}, nil
}

type plugin struct{ Settings }

// GetLoadMode asks for types.
func (p plugin) GetLoadMode() string { return register.LoadModeTypesInfo }

// BuildAnalyzers returns the rules that the settings ask for.
func (p plugin) BuildAnalyzers() ([]*analysis.Analyzer, error) {
	flags := &blocking.Analyzer.Flags
	if p.Severity != "" {
		if err := flags.Set("severity", p.Severity); err != nil {
			return nil, fmt.Errorf("asyncgen: severity %q: %w", p.Severity, err)
		}
	}
	if err := flags.Set("tests", fmt.Sprint(p.Tests)); err != nil {
		return nil, fmt.Errorf("asyncgen: %w", err)
	}
	for _, file := range p.Profiles {
		abs, err := filepath.Abs(file)
		if err != nil {
			return nil, fmt.Errorf("asyncgen: %w", err)
		}
		if err := blocking.LoadProfiles(abs); err != nil {
			return nil, fmt.Errorf("asyncgen: %w", err)
		}
	}
	withoutRelated()
	list := slices.Clone(suite.Suite)
	if len(p.Rules) > 0 {
		list = nil
	}
	for _, id := range p.Rules {
		i := slices.IndexFunc(suite.Suite, func(a *analysis.Analyzer) bool { return a.Name == id })
		if i < 0 {
			return nil, fmt.Errorf("asyncgen: unknown rule %q", id)
		}
		lint.Ask(id)
		list = append(list, suite.Suite[i])
	}
	if digest := suite.ConfigDigest(".", p.Profiles...); digest != "" {
		// golangci-lint keeps findings and facts under the names of analyzers.
		blocking.Analyzer.Name = "blocking_" + digest
		sites.Analyzer.Name = "sites_" + digest
		list = append(list, &analysis.Analyzer{
			Name: "asyncgen_" + digest,
			Doc:  "tell that settings have changed\n\nIt reports nothing.",
			Run:  func(*analysis.Pass) (any, error) { return nil, nil },
		})
	}
	return list, nil
}

// withoutRelated makes the rules leave out the places that findings refer to, such
// as their loops: golangci-lint takes each for an issue of its own. The rules
// themselves are changed, not copies, as AT031 asks for the results of the others.
var withoutRelated = sync.OnceFunc(func() {
	for _, a := range suite.Suite {
		run := a.Run
		a.Run = func(pass *analysis.Pass) (any, error) {
			own := *pass
			own.Report = func(d analysis.Diagnostic) {
				d.Related = nil
				pass.Report(d)
			}
			return run(&own)
		}
	}
})
