package gen

import (
	"fmt"
	"strings"
)

// CodesPage is the page of the docs about all codes, in Markdown.
func CodesPage() string {
	var b strings.Builder
	b.WriteString("<!-- Code generated from gen/codes.go by go generate; DO NOT EDIT. -->\n\n# Codes of the generator\n\n" +
		"`asyncgen` prints one line for each decision: AG1xx for what it rewrote, AG2xx for what it refused. " +
		"`asyncgen explain AG101` prints the entry of a code. Each rewrite has a name as well, which is in the remarks; " +
		"`//asyncgen:kernel off=defer-print,undo` switches two of them off for a function.\n")
	for _, part := range []struct{ title, prefix string }{{"Rewrites", "AG1"}, {"Refusals", "AG2"}} {
		name, rule := "", ""
		if part.prefix == "AG1" {
			name, rule = " name |", " --- |"
		}
		fmt.Fprintf(&b, "\n| %s |%s |\n| --- |%s --- |\n", part.title, name, rule)
		for _, e := range explanations {
			if strings.HasPrefix(string(e.Code), part.prefix) {
				if name != "" {
					name = " " + e.Rewrite() + " |"
				}
				fmt.Fprintf(&b, "| [%s](#%s) |%s %s |\n", e.Code, strings.ToLower(string(e.Code)), name, e.Title)
			}
		}
	}
	for _, e := range explanations {
		fmt.Fprintf(&b, "\n## %s\n\n**%s%s.** %s\n", e.Code, strings.ToUpper(e.Title[:1]), e.Title[1:], strings.TrimSpace(e.Text))
		before, after := e.captions()
		for _, example := range []struct{ caption, code string }{{before, e.Wrong}, {after, e.Right}} {
			if example.code != "" {
				fmt.Fprintf(&b, "\n%s\n\n```go\n%s\n```\n", example.caption, strings.ReplaceAll(strings.TrimSpace(example.code), "\t", "    "))
			}
		}
	}
	return b.String()
}
