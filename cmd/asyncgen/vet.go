package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/asyncgen/asyncgen/analysis"
)

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
	asJSON := fs.Bool("json", false, "print the findings as JSON")
	fix := fs.Bool("fix", false, "apply the safe fixes instead of reporting")
	diff := fs.Bool("diff", false, "with -fix, print what would change instead of changing it")
	rules := fs.String("rules", "", "apply only these `rules`: AT001,AT010")
	severity := fs.String("severity", "warning", "report findings of this `severity` and worse: warning or info")
	tests := fs.Bool("tests", false, "report findings in test files, too; without it only wrong timings are")
	tags := fs.String("tags", "", "build `tags`, as for the go command")
	if code, ok := e.parse(fs, args); !ok {
		return code
	}
	if *severity != "warning" && *severity != "info" {
		return e.trouble("vet: severity %q: want warning or info", *severity)
	}
	if *diff && !*fix {
		return e.trouble("vet: -diff needs -fix")
	}
	if *fix && *asJSON {
		return e.trouble("vet: -json lists findings with their fixes; it goes without -fix")
	}
	cfg := analysis.Config{Patterns: fs.Args(), Info: *severity == "info", Tests: *tests, Stderr: e.stderr}
	if *tags != "" {
		cfg.BuildFlags = []string{"-tags=" + *tags}
	}
	for rule := range strings.FieldsFuncSeq(*rules, func(r rune) bool { return r == ',' }) {
		if !isRule(rule) {
			return e.trouble("vet: unknown rule %q", rule)
		}
		cfg.Rules = append(cfg.Rules, rule)
	}
	if *fix {
		changes, err := analysis.ApplyFixes(ctx, cfg, *diff, e.stdout)
		switch {
		case err != nil:
			return e.trouble("%v", err)
		case changes:
			return exitFindings
		}
		return exitOK
	}
	findings, err := analysis.Vet(ctx, cfg)
	if err != nil {
		return e.trouble("%v", err)
	}
	if err := printFindings(e, findings, *asJSON); err != nil {
		return e.trouble("vet: %v", err)
	}
	if len(findings) > 0 {
		return exitFindings
	}
	return exitOK
}

func isRule(id string) bool {
	for _, a := range analysis.Suite {
		if a.Name == id {
			return true
		}
	}
	return false
}

func printFindings(e *env, findings []analysis.Finding, asJSON bool) error {
	if asJSON {
		if findings == nil {
			findings = []analysis.Finding{} // an empty list, not null
		}
		enc := json.NewEncoder(e.stdout)
		enc.SetIndent("", "\t")
		return enc.Encode(findings)
	}
	wd, _ := os.Getwd()
	for _, f := range findings {
		file, line, col := analysis.SplitPosn(f.Posn)
		if rel, err := filepath.Rel(wd, file); err == nil && filepath.IsLocal(rel) {
			file = rel
		}
		if _, err := fmt.Fprintf(e.stdout, "%s:%d:%d: %s\n", file, line, col, f.Message); err != nil {
			return err
		}
	}
	return nil
}
