package analysis

import (
	"fmt"
	"go/doc/comment"
	"strings"

	"github.com/asyncgen/asyncgen/analysis/lint"
)

// Pages are the pages of the rules and the table of them in Markdown, by the names of
// their files in docs/linter.
func Pages() map[string]string {
	pages := make(map[string]string)
	var table strings.Builder
	table.WriteString("| rule | what it reports | severity | fix |\n| --- | --- | --- | --- |\n")
	for _, r := range RuleTable() {
		generated := "<!-- Code generated from analysis/" + r.folder + "/doc.go by go generate; DO NOT EDIT. -->\n\n"
		pages[r.ID+".md"] = generated + "# " + r.ID + ": " + r.Title + "\n\n" + markdown(r.page) +
			"\nSeverity: " + string(r.Severity) + ". [All rules](rules.md), [settings](settings.md), [editors](editors.md).\n"
		fmt.Fprintf(&table, "| [%s](%s.md) | %s | %s | %s |\n", r.ID, r.ID, r.Title, r.Severity, r.fix())
	}
	pages["rules.md"] = "<!-- Code generated from the pages of the rules by go generate; DO NOT EDIT. -->\n\n" +
		"# The rules of asyncgen vet\n\n" + table.String() + "\n" +
		"The severity is that of the gravest finding of a rule; those of which the rule is less sure are infos, which\n" +
		"`-severity=info` shows. The fixes are applied by `asyncgen vet -fix`. `asyncgen explain AT001` prints a page and\n" +
		"`asyncgen vet -list` this table, with what a file `asyncgen.json` [says about the rules](settings.md).\n"
	return pages
}

// A RuleInfo is a line of the table of rules.
type RuleInfo struct {
	ID, Title string
	Severity  lint.Severity // of its gravest findings
	Fixes     bool          // it has fixes, which are safe to apply unseen

	folder, page string
}

// RuleTable lists the rules.
func RuleTable() []RuleInfo {
	var list []RuleInfo
	for _, a := range Suite {
		r := lint.RuleOf(a.Name)
		title, page, _ := strings.Cut(a.Doc, "\n\n")
		list = append(list, RuleInfo{r.ID, title, r.Severity, r.Fixes, r.Package, page})
	}
	return list
}

func (r RuleInfo) fix() string {
	if r.Fixes {
		return "yes"
	}
	return ""
}

// markdown is the text of a doc comment in Markdown.
func markdown(text string) string {
	var parser comment.Parser
	var printer comment.Printer
	return string(printer.Markdown(parser.Parse(text)))
}
