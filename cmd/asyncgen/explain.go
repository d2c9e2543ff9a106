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
"asyncgen vet", AG201 of a remark of the generator.`)
	if code, ok := e.parse(fs, args); !ok {
		return code
	}
	if fs.NArg() != 1 {
		return e.trouble("explain: name one code, such as AT001 or AG201")
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
