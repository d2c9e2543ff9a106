package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/asyncgen/asyncgen/analysis"
	"github.com/asyncgen/asyncgen/gen"
)

// explain prints the page of a rule or of a remark.
func explain(ctx context.Context, e *env, args []string) int {
	fs := e.flags("explain", `Explain prints what a code means, with examples: AT001 of a finding of
"asyncgen vet", AG201 of a remark of the generator. Without a code it lists
them all.`)
	if code, ok := e.parse(fs, args); !ok {
		return code
	}
	switch fs.NArg() {
	case 0:
		fmt.Fprintf(e.stdout, "Findings of \"asyncgen vet\":\n%s\nRemarks of the generator:\n", ruleList())
		for _, page := range gen.Explanations() {
			fmt.Fprintf(e.stdout, "  %s  %s\n", page.Code, page.Title)
		}
		return exitOK
	case 1:
	default:
		return e.trouble("explain: one code at a time")
	}
	code := strings.ToUpper(fs.Arg(0))
	if page, ok := gen.Explain(code); ok {
		fmt.Fprint(e.stdout, page)
		return exitOK
	}
	for _, a := range analysis.Suite {
		if a.Name == code {
			fmt.Fprintf(e.stdout, "%s: %s\n", a.Name, a.Doc)
			return exitOK
		}
	}
	return e.trouble("explain: there is no code %q", code)
}

// ruleList is one line for each rule of vet: its code and its title.
func ruleList() string {
	var b strings.Builder
	for _, a := range analysis.Suite {
		title, _, _ := strings.Cut(a.Doc, "\n")
		fmt.Fprintf(&b, "  %s  %s\n", a.Name, strings.TrimPrefix(title, a.Name+": "))
	}
	return b.String()
}
