package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/asyncgen/asyncgen/analysis"
)

// vetFlags are the flags of vet.
type vetFlags struct {
	json, sarif, github      bool
	fix, diff                bool
	rules, severity, tags    string
	tests                    bool
	newFrom, report          string
	baseline, writesBaseline string
	profiles                 []string
}

func (v *vetFlags) register(fs *flag.FlagSet) {
	fs.BoolVar(&v.json, "json", false, "print the findings as JSON")
	fs.BoolVar(&v.sarif, "sarif", false, "print the findings as SARIF 2.1.0")
	fs.BoolVar(&v.github, "github", false, "print the findings as annotations for GitHub's workflows")
	fs.BoolVar(&v.fix, "fix", false, "apply the safe fixes instead of reporting")
	fs.BoolVar(&v.diff, "diff", false, "with -fix, print what would change instead of changing it")
	fs.StringVar(&v.rules, "rules", "", "apply only these `rules`: AT001,AT010")
	fs.StringVar(&v.severity, "severity", "warning", "report findings of this `severity` and worse: warning or info")
	fs.BoolVar(&v.tests, "tests", false, "report all findings in test files and helpers, too; without it, wrong timings and directives only")
	fs.StringVar(&v.tags, "tags", "", "build `tags`, as for the go command")
	fs.Func("profile", "know the tensor library that this `file` describes, too; may be repeated. The file asyncgen.json of the\nmodule can hold profiles as well", func(file string) error {
		v.profiles = append(v.profiles, file)
		return nil
	})
	fs.StringVar(&v.newFrom, "new-from", "", "report only what is on, or refers to, lines changed since the work left this git `revision`")
	fs.StringVar(&v.baseline, "baseline", "", "don't report the findings that are listed in this `file`")
	fs.StringVar(&v.writesBaseline, "write-baseline", "", "list the findings in this `file` instead of reporting them")
	fs.StringVar(&v.report, "report", "", "rank the findings by the time for which a run was blocked there, which this `file` tells: a program\nwrites it when the environment variable ASYNCGEN_REPORT names it")
}

// problem says what is wrong with the flags, or nothing.
func (v *vetFlags) problem() string {
	forms := 0
	for _, form := range []bool{v.json, v.sarif, v.github, v.writesBaseline != ""} {
		if form {
			forms++
		}
	}
	switch {
	case v.severity != "warning" && v.severity != "info":
		return fmt.Sprintf("severity %q: want warning or info", v.severity)
	case v.diff && !v.fix:
		return "-diff needs -fix"
	case v.fix && v.json:
		return "-json lists findings with their fixes; it goes without -fix"
	case v.fix && (forms > 0 || v.newFrom != "" || v.baseline != "" || v.report != ""):
		return "-fix reports nothing; it goes with -rules, -tests and -tags only"
	case forms > 1:
		return "one of -json, -sarif, -github and -write-baseline at a time"
	}
	for rule := range v.ruleIDs() {
		if !isRule(rule) {
			return fmt.Sprintf("unknown rule %q", rule)
		}
	}
	return ""
}

func (v *vetFlags) ruleIDs() func(func(string) bool) {
	return strings.FieldsFuncSeq(v.rules, func(r rune) bool { return r == ',' })
}

func (v *vetFlags) config(e *env, patterns []string) analysis.Config {
	cfg := analysis.Config{
		Patterns: patterns,
		Rules:    slices.Collect(v.ruleIDs()),
		Info:     v.severity == "info",
		Tests:    v.tests,
		Profiles: v.profiles,
		Stderr:   e.stderr,
	}
	if v.tags != "" {
		cfg.BuildFlags = []string{"-tags=" + v.tags}
	}
	return cfg
}

// vet finds calls that wait in loops, and other mistakes with asynchrony.
func vet(ctx context.Context, e *env, args []string) int {
	fs := e.flags("vet", `Vet reports where packages wait for the device in loops, and other mistakes
with asynchrony. "asyncgen explain AT001" explains a rule. Findings are
suppressed by a comment, on the line or the line above:

	//asyncgen:ignore AT001 reason

The same rules run as "go vet -vettool=$(which asyncgen)" and, with their
safe fixes, as "go fix -fixtool=$(which asyncgen)".

Rules:
`+ruleList())
	var v vetFlags
	v.register(fs)
	if code, ok := e.parse(fs, args); !ok {
		return code
	}
	if problem := v.problem(); problem != "" {
		return e.trouble("vet: %s", problem)
	}
	cfg := v.config(e, fs.Args())
	if v.fix {
		changes, err := analysis.ApplyFixes(ctx, cfg, v.diff, e.stdout)
		switch {
		case err != nil:
			return e.trouble("%v", err)
		case changes:
			return exitFindings
		}
		return exitOK
	}
	findings, err := v.find(ctx, e, cfg)
	if err != nil && (len(findings) == 0 || v.writesBaseline != "") {
		return e.trouble("%v", err)
	}
	if v.writesBaseline != "" {
		if err := writeBaseline(v.writesBaseline, findings); err != nil {
			return e.trouble("%v", err)
		}
		return exitOK
	}
	if failure := v.print(e, findings); failure != nil {
		return e.trouble("vet: %v", failure)
	}
	if err != nil {
		return e.trouble("%v", err) // with what is known of the other packages
	}
	if len(findings) > 0 {
		return exitFindings
	}
	return exitOK
}

// find returns the findings that the flags ask for, in their order. Beside an
// error they are those in the packages that could be analysed.
func (v *vetFlags) find(ctx context.Context, e *env, cfg analysis.Config) ([]analysis.Finding, error) {
	// What is wrong with the other inputs is said before the long part.
	var known *analysis.Baseline
	if v.baseline != "" {
		var err error
		if known, err = analysis.ReadBaseline(v.baseline); err != nil {
			return nil, err
		}
	}
	var changed *analysis.Changes
	if v.newFrom != "" {
		var err error
		if changed, err = analysis.ChangedSince(ctx, ".", v.newFrom); err != nil {
			return nil, err
		}
	}
	findings, failure := analysis.Vet(ctx, cfg)
	if failure != nil && len(findings) == 0 {
		return nil, failure
	}
	var err error
	if known != nil {
		if findings, err = known.New(findings); err != nil {
			return nil, err
		}
	}
	if changed != nil {
		findings = slices.DeleteFunc(findings, func(f analysis.Finding) bool { return !changed.Touch(f) })
	}
	if v.report != "" {
		rest, err := analysis.Rank(ctx, cfg, v.report, findings)
		if err != nil {
			return nil, err
		}
		if ns := rest.BlockedNS(); ns > 0 {
			fmt.Fprintf(e.stderr, "asyncgen: vet: the run was blocked for another %v on lines without a finding\n", time.Duration(ns).Round(time.Microsecond))
		}
	}
	return findings, failure
}

func writeBaseline(path string, findings []analysis.Finding) error {
	b, err := analysis.NewBaseline(path, findings)
	if err != nil {
		return err
	}
	return b.Write()
}

// print prints the findings in the form that the flags ask for.
func (v *vetFlags) print(e *env, findings []analysis.Finding) error {
	if v.json {
		if findings == nil {
			findings = []analysis.Finding{} // an empty list, not null
		}
		enc := json.NewEncoder(e.stdout)
		enc.SetIndent("", "\t")
		return enc.Encode(findings)
	}
	if !v.sarif && !v.github {
		return analysis.WriteText(e.stdout, ".", findings)
	}
	root, err := analysis.Root(".")
	if err != nil {
		return err
	}
	if v.github {
		return analysis.WriteGitHub(e.stdout, root, findings)
	}
	return analysis.WriteSARIF(e.stdout, root, ownVersion(), findings)
}

func isRule(id string) bool {
	for _, a := range analysis.Suite {
		if a.Name == id {
			return true
		}
	}
	return false
}
