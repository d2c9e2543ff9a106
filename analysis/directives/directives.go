package directives

import (
	_ "embed"
	"go/ast"
	"regexp"
	"slices"
	"strings"

	"github.com/asyncgen/asyncgen/analysis/internal/jsonfile"
	"github.com/asyncgen/asyncgen/analysis/lint"
	"golang.org/x/tools/go/analysis"
)

//go:embed doc.go
var doc string

// New returns rule AT031 for directives about the given rules. The result of each of these tells what
// it has ignored.
func New(rules []*analysis.Analyzer) *analysis.Analyzer {
	rule := &lint.Rule{ID: "AT031", Package: "directives", Doc: doc, InTests: true}
	rule.Check = func(p *lint.Pass) {
		if len(p.Funcs) > 0 {
			check(p, rule.ID, rules)
		}
	}
	a := rule.Analyzer()
	a.Requires = append(a.Requires, rules...)
	return a
}

func check(p *lint.Pass, own string, rules []*analysis.Analyzer) {
	for _, file := range p.Files {
		for _, group := range file.Comments {
			for _, c := range group.List {
				ids, reason, ok := lint.IgnoreDirective(c.Text)
				if !ok {
					if m := spaced.FindString(c.Text); m != "" {
						p.Report(lint.Warning, analysis.Diagnostic{
							Pos: c.Pos(), End: c.End(), Message: "a directive has no space after //; write //" + strings.TrimLeft(m, "/ \t"),
						})
					} else if word := unknown(c); word != "" {
						p.Report(lint.Warning, analysis.Diagnostic{
							Pos: c.Pos(), End: c.End(), Message: "there is no directive //asyncgen:" + word + jsonfile.DidYouMean(word, words),
						})
					}
					continue
				}
				if problem := wrong(p, c, ids, reason, own, rules); problem != "" {
					p.Report(lint.Warning, analysis.Diagnostic{Pos: c.Pos(), End: c.End(), Message: problem})
				}
			}
		}
	}
}

// spaced is a comment that would be a directive without the space. Any other text that begins with
// asyncgen: may be prose about directives.
//
//	// asyncgen:ignore AT001 it is short
var spaced = regexp.MustCompile(`^//[ \t]+asyncgen:(?:ignore[ \t]+AT\d+|(?:kernel|pure|effects)$)`)

// words are what may follow //asyncgen: in a comment. The generator reads all of them but ignore; api
// is only used in this module.
var words = []string{"api", "effects", "ignore", "kernel", "pure"}

// unknown returns the word of a directive of asyncgen that does not exist, or "".
//
//	//asyncgen:kernal
func unknown(c *ast.Comment) string {
	d, ok := ast.ParseDirective(c.Pos(), c.Text)
	if !ok || d.Tool != "asyncgen" || slices.Contains(words, d.Name) {
		return ""
	}
	return d.Name
}

// wrong says what is wrong with a directive, or nothing.
func wrong(p *lint.Pass, c *ast.Comment, ids []string, reason, own string, rules []*analysis.Analyzer) string {
	if len(ids) == 0 {
		return "directive names no rule" + nearest(c.Text) + "; write //asyncgen:ignore AT001 and the reason"
	}
	var unused []string
	for _, id := range ids {
		i := slices.IndexFunc(rules, func(a *analysis.Analyzer) bool { return a.Name == id })
		switch {
		case i < 0 && id != own:
			return "directive names " + id + ", which is no rule" + jsonfile.DidYouMean(id, lint.IDs())
		case i >= 0 && !p.ResultOf[rules[i]].(lint.Directives)[c.Pos()]:
			unused = append(unused, id)
		}
	}
	switch {
	case len(unused) > 0:
		return "directive has no finding of " + strings.Join(unused, ", ") + " to ignore; remove it"
	case reason == "" && p.NeedsReason() && slices.Contains(ids, own):
		return "directive gives no reason" // there is no finding that says it
	}
	return ""
}

// nearest says which rule a directive was probably to name, where it has something like one: AT06, at006.
func nearest(text string) string {
	fields := strings.Fields(text)
	if len(fields) < 2 {
		return ""
	}
	for id := range strings.SplitSeq(fields[1], ",") {
		if almost.MatchString(id) && !slices.Contains(lint.IDs(), id) {
			return ": there is no " + id + jsonfile.DidYouMean(id, lint.IDs())
		}
	}
	return ""
}

var almost = regexp.MustCompile(`^(?i:AT)\d+$`)
