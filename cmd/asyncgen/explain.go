package main

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/asyncgen/asyncgen/analysis"
	"github.com/asyncgen/asyncgen/analysis/lint"
	"github.com/asyncgen/asyncgen/gen"
)

// otherLibraries follows the page of a rule.
const otherLibraries = `The code above is for asyncgen's own tensors. With another library write the
same in its terms: keep the tensors, read after the loop. Neither the generator
nor the fixes touch what uses it.
`

// explain prints the page of a rule or of a remark.
func explain(ctx context.Context, e *env, args []string) int {
	fs := e.flags("explain", `Explain prints what a code means, with examples: AT001 of a finding of
"asyncgen vet", AG201 of a remark of the generator, defer-sum of a rewrite. Without
a code it lists them all.`)
	all := fs.Bool("all", false, "print the pages of all rules and remarks")
	if code, ok := e.parse(fs, args); !ok {
		return code
	}
	if *all {
		if fs.NArg() > 0 {
			return e.trouble("explain: -all goes without a code")
		}
		for _, a := range analysis.Suite {
			fmt.Fprintf(e.stdout, "%s: %s\n", a.Name, a.Doc)
		}
		for _, page := range gen.Explanations() {
			fmt.Fprintln(e.stdout, page)
		}
		return exitOK
	}
	switch fs.NArg() {
	case 0:
		fmt.Fprintf(e.stdout, "Findings of \"asyncgen vet\":\n%s\nRemarks of the generator:\n", ruleTable())
		for _, page := range gen.Explanations() {
			name := ""
			if page.Rewrite() != "" {
				name = " (" + page.Rewrite() + ")"
			}
			fmt.Fprintf(e.stdout, "  %s  %s%s\n", page.Code, page.Title, name)
		}
		return exitOK
	case 1:
	default:
		return e.trouble("explain: one code at a time")
	}
	if text := explained(fs.Arg(0)); text != "" {
		fmt.Fprint(e.stdout, text)
		return exitOK
	}
	code := strings.ToUpper(fs.Arg(0))
	known := make([]string, 0, len(analysis.Suite))
	for _, a := range analysis.Suite {
		known = append(known, a.Name)
	}
	for _, page := range gen.Explanations() {
		known = append(known, string(page.Code))
	}
	return e.trouble("explain: there is no code %q%s; \"asyncgen explain\" lists them", code, lint.DidYouMean(code, known))
}

// explained is what a code, or the name of a rewrite, means; "" if there is none of that name.
func explained(name string) string {
	if page, ok := explanation(name); ok {
		return page.String()
	}
	for _, a := range analysis.Suite {
		if a.Name == strings.ToUpper(name) {
			return fmt.Sprintf("%s: %s\n%s", a.Name, a.Doc, otherLibraries)
		}
	}
	return ""
}

// explanation is the page of the remark with a code, in capitals or not, or of a rewrite with a name.
func explanation(name string) (gen.Explanation, bool) {
	if page, ok := gen.Explain(strings.ToUpper(name)); ok {
		return page, true
	}
	return gen.Explain(strings.ToLower(name))
}

// ruleTable is one line for each rule of vet: its code, its severity, whether it has
// fixes, and its title.
func ruleTable() string {
	return ruleTableWith(func(r analysis.RuleInfo) string { return r.Severities() })
}

func ruleTableWith(severity func(analysis.RuleInfo) string) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, r := range analysis.RuleTable() {
		fix := ""
		if r.Fixes {
			fix = "-fix"
		}
		fmt.Fprintf(w, "  %s\t%s\t%s\t%s\n", r.ID, severity(r), fix, r.Title)
	}
	w.Flush()
	return b.String()
}
