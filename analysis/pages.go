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
			"\nSeverity: " + r.Severities() + ". [All rules](rules.md), [settings](settings.md), [editors](editors.md).\n"
		fmt.Fprintf(&table, "| [%s](%s.md) | %s | %s | %s |\n", r.ID, r.ID, r.Title, r.Severities(), r.fix())
	}
	pages["rules.md"] = "<!-- Code generated from the pages of the rules by go generate; DO NOT EDIT. -->\n\n" +
		"# The rules of asyncgen vet\n\n" + table.String() + "\n" +
		"Findings of which a rule is less sure, or that cost less, are infos: `-severity=info` shows them. The fixes are\n" +
		"applied by `asyncgen vet -fix`. `asyncgen explain AT001` prints a page and `asyncgen vet -list` this table, with\n" +
		"what a file `asyncgen.json` [says about the rules](settings.md).\n"
	return pages
}

// A RuleInfo is a line of the table of rules.
type RuleInfo struct {
	ID, Title string
	Severity  lint.Severity // of its gravest findings
	Infos     bool          // others are only infos
	Fixes     bool          // it has fixes, which are safe to apply unseen

	folder, page string
}

// RuleTable lists the rules.
func RuleTable() []RuleInfo {
	var list []RuleInfo
	for _, a := range Suite {
		r := lint.RuleOf(a.Name)
		title, page, _ := strings.Cut(a.Doc, "\n\n")
		list = append(list, RuleInfo{r.ID, title, r.Severity, r.Infos, r.Fixes, r.Package, page})
	}
	return list
}

// Severities are those that findings of the rule have without settings, the gravest first.
func (r RuleInfo) Severities() string {
	if r.Infos {
		return string(r.Severity) + ", " + string(lint.Info)
	}
	return string(r.Severity)
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
