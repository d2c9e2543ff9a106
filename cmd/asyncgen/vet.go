package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/asyncgen/asyncgen/analysis"
	"github.com/asyncgen/asyncgen/analysis/lint"
	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"github.com/asyncgen/asyncgen/device/report"
)

// vetFlags are the flags of vet.
type vetFlags struct {
	json, github, list       bool
	fix, diff                bool
	sarif                    string
	rules, severity, tags    string
	failOn                   string
	tests                    bool
	newFrom, report          string
	baseline, writesBaseline string
	profiles                 []string
}

func (v *vetFlags) register(fs *flag.FlagSet) {
	fs.BoolVar(&v.json, "json", false, "print the findings as JSON")
	fs.BoolVar(&v.list, "list", false, "list the rules, with the severity of each and whether it has fixes, instead of applying them")
	fs.StringVar(&v.sarif, "sarif", "", "write the findings to this `file` as SARIF 2.1.0, beside what is printed; - prints them so")
	fs.BoolVar(&v.github, "github", false, "print the findings as annotations for GitHub's workflows")
	fs.BoolVar(&v.fix, "fix", false, "apply the safe fixes instead of reporting")
	fs.BoolVar(&v.diff, "diff", false, "with -fix, print what would change instead of changing it, a patch for git apply -p0")
	fs.StringVar(&v.rules, "rules", "", "apply only these `rules`: AT001,AT010")
	fs.StringVar(&v.severity, "severity", "warning", "report findings of this `severity` and worse: error, warning or info. Errors are what\nasyncgen.json makes errors")
	fs.StringVar(&v.failOn, "fail-on", "", "exit with 1 only for findings of this `severity` and worse: error for errors alone (default: for all that\nare reported)")
	fs.BoolVar(&v.tests, "tests", false, "report all findings in test files and helpers, too; without it, wrong timings and directives only")
	fs.StringVar(&v.tags, "tags", "", "build `tags`, as for the go command")
	fs.Func("profile", "know the tensor library that this `file` describes, too; may be repeated. The file asyncgen.json of the\nmodule can hold profiles as well", func(file string) error {
		v.profiles = append(v.profiles, file)
		return nil
	})
	fs.StringVar(&v.newFrom, "new-from", "", "report only what is on, or refers to, lines changed since the work left this git `revision`")
	fs.StringVar(&v.baseline, "baseline", "", "don't report the findings that are listed in this `file`")
	fs.StringVar(&v.writesBaseline, "write-baseline", "", "list the findings in this `file` instead of reporting them; what it lists for other packages or rules\nthan are asked for stays")
	fs.StringVar(&v.report, "report", "", "rank the findings by the time for which a run was blocked there, which this `file` tells: a program\nwrites it when the environment variable ASYNCGEN_REPORT names it, or ASYNCGEN_TRACE")
}

// problem says what is wrong with the flags, or nothing.
func (v *vetFlags) problem() string {
	forms := 0
	for _, form := range []bool{v.json, v.sarif == "-", v.github, v.list, v.writesBaseline != ""} {
		if form {
			forms++
		}
	}
	if _, err := lint.ParseSeverity(v.severity); err != nil {
		return fmt.Sprintf("severity %q: %v", v.severity, err)
	}
	if v.failOn != "" {
		if _, err := lint.ParseSeverity(v.failOn); err != nil {
			return fmt.Sprintf("-fail-on=%s: %v", v.failOn, err)
		}
		if !lint.Severity(v.failOn).Reaches(lint.Severity(v.severity)) {
			return fmt.Sprintf("-fail-on=%s is for findings that -severity=%s does not report", v.failOn, v.severity)
		}
	}
	switch {
	case v.diff && !v.fix:
		return "-diff needs -fix"
	case v.fix && v.json:
		return "-json lists findings with their fixes; it goes without -fix"
	case v.fix && (forms > 0 || v.sarif != "" || v.newFrom != "" || v.baseline != "" || v.report != "" || v.failOn != ""):
		return "-fix reports nothing; it goes with -diff, -rules, -severity, -profile, -tests and -tags only"
	case forms > 1, v.writesBaseline != "" && v.sarif != "":
		return "one of -json, -sarif=-, -github, -list and -write-baseline at a time"
	case v.writesBaseline != "" && (v.newFrom != "" || v.baseline != "" || v.report != "" || v.failOn != ""):
		return "-write-baseline lists all findings; it goes without -baseline, -new-from, -report and -fail-on"
	case isPattern(v.sarif):
		return fmt.Sprintf("-sarif=%s: want the name of a file, or - for standard output, before the packages", v.sarif)
	}
	for rule := range v.ruleIDs() {
		if !isRule(rule) {
			return fmt.Sprintf("unknown rule %q%s; \"asyncgen vet -list\" lists them", rule, lint.DidYouMean(rule, lint.IDs()))
		}
	}
	return ""
}

// isPattern reports whether a word names packages, not a file to write to.
func isPattern(word string) bool {
	info, err := os.Stat(word)
	return strings.Contains(word, "...") || err == nil && info.IsDir()
}

func (v *vetFlags) ruleIDs() func(func(string) bool) {
	return strings.FieldsFuncSeq(strings.ToUpper(v.rules), func(r rune) bool { return r == ',' || r == ' ' })
}

func (v *vetFlags) config(e *env, patterns []string) analysis.Config {
	cfg := analysis.Config{
		Patterns: patterns,
		Rules:    slices.Collect(v.ruleIDs()),
		Info:     true, // what is not asked for is counted
		Tests:    v.tests,
		Profiles: v.profiles,
		Stderr:   visible{e.stderr},
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
safe fixes, as "go fix -fixtool=$(which asyncgen)". What asyncgen.json, in the
folder of the packages or above it in their module or workspace, says about
rules holds for all of them, but only asyncgen vet has a baseline:

	{"rules": {"AT024": "off", "AT001": "error"}, "paths": {"internal/old": {"all": "off"}}}

Rules:
`+ruleTable())
	var v vetFlags
	v.register(fs)
	if n := len(args); n > 0 && (args[n-1] == "-rules" || args[n-1] == "--rules") {
		args = append(args[:n-1:n-1], "-list") // which rules?
	}
	if code, ok := e.parse(fs, args); !ok {
		return code
	}
	if problem := v.problem(); problem != "" {
		return e.trouble("vet: %s", problem)
	}
	if v.list {
		return listRules(e)
	}
	patterns, ok := e.packages(fs)
	if !ok {
		return exitTrouble
	}
	cfg := v.config(e, patterns)
	if v.fix && v.diff {
		changes, err := analysis.ApplyFixes(ctx, cfg, true, e.stdout)
		switch {
		case err != nil:
			return e.trouble("%v", err)
		case changes:
			return exitFindings
		}
		return exitOK
	}
	if v.fix {
		if err := v.applyFixes(ctx, e, cfg); err != nil {
			return e.trouble("%v", err)
		}
		return exitOK
	}
	sarif, err := openSARIF(v.sarif)
	if err != nil {
		return e.trouble("vet: %v", err)
	}
	defer sarif.close()
	findings, err := v.find(ctx, e, cfg)
	if err != nil && (len(findings) == 0 || v.writesBaseline != "") {
		return e.trouble("%v", err)
	}
	if v.writesBaseline != "" {
		if err := v.writeBaseline(ctx, e, cfg, findings); err != nil {
			return e.trouble("%v", err)
		}
		return exitOK
	}
	if failure := cmp.Or(v.print(e, findings, err == nil), sarif.write(findings, err == nil)); failure != nil {
		return e.trouble("vet: %v", failure)
	}
	if err != nil {
		return e.trouble("%v", err) // with what is known of the other packages
	}
	if slices.ContainsFunc(findings, func(f analysis.Finding) bool { return f.Severity.Reaches(lint.Severity(v.failOn)) }) {
		return exitFindings
	}
	return exitOK
}

// applyFixes applies fixes and says what became of the findings.
func (v *vetFlags) applyFixes(ctx context.Context, e *env, cfg analysis.Config) error {
	quiet := cfg
	quiet.Stderr = nil                    // what is said while fixing is said once
	before, _ := analysis.Vet(ctx, quiet) // a failure is one of fixing, too
	texts := make(map[string][]byte)      // of files with fixes, as they were
	for _, f := range before {
		for _, fix := range f.Fixes {
			for _, edit := range fix.Edits {
				texts[edit.Filename], _ = os.ReadFile(edit.Filename)
			}
		}
	}
	if _, err := analysis.ApplyFixes(ctx, cfg, false, e.stdout); err != nil {
		return err
	}
	changed := 0
	for name, text := range texts {
		if now, err := os.ReadFile(name); err == nil && !bytes.Equal(now, text) {
			changed++
		}
	}
	after, err := analysis.Vet(ctx, quiet)
	if err != nil {
		return err
	}
	left, fixable := 0, 0
	for _, f := range after {
		if f.Severity.Reaches(lint.Severity(v.severity)) {
			left++
			fixable += min(len(f.Fixes), 1)
		}
	}
	e.message("vet: %s changed; %s left, %d with a fix", count(changed, "file"), count(left, "finding"), fixable)
	return nil
}

// count is a number of things: "1 file", "2 files".
func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprint(n, " ", what, "s")
}

// find returns the findings that the flags ask for, in their order. Beside an
// error they are those in the packages that could be analysed.
func (v *vetFlags) find(ctx context.Context, e *env, cfg analysis.Config) ([]analysis.Finding, error) {
	// What is wrong with the other inputs is said before the long part.
	var measured *report.Report
	if v.report != "" {
		var err error
		if measured, err = readReport(v.report); err != nil {
			return nil, fmt.Errorf("vet: %w", err)
		}
	}
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
	if len(findings) == 0 {
		if known, err := analysis.KnowsLibrary(ctx, cfg); err != nil {
			return nil, err
		} else if !known {
			e.message("vet: nothing to look at: no package here uses a tensor library that is known")
		}
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
	findings = v.shown(e, findings)
	if measured != nil {
		rest, err := analysis.Rank(ctx, cfg, measured, findings)
		if err != nil {
			return nil, err
		}
		if ns := rest.BlockedNS(); ns > 0 {
			e.message("vet: the run was blocked for another %v on lines without a finding", time.Duration(ns).Round(time.Microsecond))
		}
	}
	return findings, failure
}

// shown returns the findings of the severity that is asked for. If that hides all of
// them, it says so.
func (v *vetFlags) shown(e *env, findings []analysis.Finding) []analysis.Finding {
	hidden := make(map[lint.Severity]int)
	shown := slices.DeleteFunc(findings, func(f analysis.Finding) bool {
		hides := !f.Severity.Reaches(lint.Severity(v.severity))
		if hides {
			hidden[f.Severity]++
		}
		return hides
	})
	if len(shown) > 0 {
		return shown
	}
	for _, s := range []lint.Severity{lint.Warning, lint.Info} {
		if n := hidden[s]; n > 0 {
			fmt.Fprintf(e.stderr, "asyncgen: vet: nothing of severity %s; -severity=%s shows %d of severity %s\n", v.severity, s, n, s)
		}
	}
	return shown
}

// A sarifFile is written beside what is printed; nil is none.
type sarifFile struct {
	*os.File
	isNew, written bool
}

// openSARIF opens the file before the analysis, which takes long. The old contents stay until it is
// written.
func openSARIF(name string) (*sarifFile, error) {
	if name == "" || name == "-" {
		return nil, nil
	}
	old, err := os.Stat(name)
	isNew := errors.Is(err, fs.ErrNotExist)
	if err == nil && old.Mode().IsRegular() && old.Size() > 0 {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		if !bytes.Contains(text[:min(len(text), 1000)], []byte("sarif")) {
			return nil, fmt.Errorf("-sarif: %s has something else in it than SARIF, and stays as it is", name)
		}
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE, 0o666)
	if err != nil {
		return nil, err
	}
	return &sarifFile{f, isNew, false}, nil
}

func (f *sarifFile) write(findings []analysis.Finding, complete bool) error {
	if f == nil {
		return nil
	}
	root, err := analysis.Root(".")
	if err != nil {
		return err
	}
	if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
		if err := f.Truncate(0); err != nil {
			return err
		}
	}
	f.written = true
	return errors.Join(analysis.WriteSARIF(f, root, ownVersion(), findings, complete), f.Close())
}

// close removes the file if it is new and nothing was written.
func (f *sarifFile) close() {
	if f != nil && !f.written {
		f.Close()
		if f.isNew {
			os.Remove(f.Name())
		}
	}
}

// writeBaseline writes the findings to the file of the baseline. What that lists for packages and rules
// that were not asked for stays.
func (v *vetFlags) writeBaseline(ctx context.Context, e *env, cfg analysis.Config, findings []analysis.Finding) error {
	b, err := analysis.NewBaseline(v.writesBaseline, findings)
	if err != nil {
		return err
	}
	before := ""
	if old, err := os.Stat(v.writesBaseline); err == nil && old.Size() > 0 {
		known, err := analysis.ReadBaseline(v.writesBaseline)
		if err != nil {
			return fmt.Errorf("%w: it has something else in it than a baseline, and stays as it is", err)
		}
		folders, err := analysis.Folders(ctx, cfg)
		if err != nil {
			return err
		}
		if err := b.KeepOthers(known, slices.Collect(maps.Values(folders)), cfg.Rules); err != nil {
			return err
		}
		before = fmt.Sprintf(", and listed %d before", known.Len())
	}
	if err := b.Write(); err != nil {
		return err
	}
	e.message("vet: %s lists %s%s", v.writesBaseline, count(b.Len(), "finding"), before)
	return nil
}

// print prints the findings in the form that the flags ask for. They are not complete if some packages could not be
// analysed.
func (v *vetFlags) print(e *env, findings []analysis.Finding, complete bool) error {
	if v.json {
		if findings == nil {
			findings = []analysis.Finding{} // an empty list, not null
		}
		enc := json.NewEncoder(e.stdout)
		enc.SetIndent("", "\t")
		return enc.Encode(findings)
	}
	if v.sarif != "-" && !v.github {
		return analysis.WriteText(e.stdout, ".", findings)
	}
	root, err := analysis.Root(".")
	if err != nil {
		return err
	}
	if v.github {
		return analysis.WriteGitHub(e.stdout, root, findings)
	}
	return analysis.WriteSARIF(e.stdout, root, ownVersion(), findings, complete)
}

func isRule(id string) bool { return lint.RuleOf(id) != nil }

// listRules prints the table of rules with what the settings for this folder make of
// each.
func listRules(e *env) int {
	set, err := lint.SettingsAbove(".")
	if err != nil {
		return e.trouble("vet: %v", err)
	}
	dir, err := os.Getwd()
	if err != nil {
		return e.trouble("vet: %v", err)
	}
	file, err := filepath.Rel(dir, set.File())
	if err != nil {
		file = set.File()
	}
	fmt.Fprint(e.stdout, ruleTableWith(func(r analysis.RuleInfo) string {
		if s := set.Of(r.ID, r.Severity); s != r.Severity {
			return string(s) + " (" + tensorapi.Visible(file) + ")"
		}
		return r.Severities()
	}))
	return exitOK
}
