package blocking

import (
	"errors"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
)

// A Severity says how sure it is that a finding deserves a change.
type Severity string

// The severities.
const (
	Warning Severity = "warning"
	Info    Severity = "info" // correct programs do it too; reported on request
)

// The flags of Analyzer hold for all rules: the drivers offer them by these
// names.
var (
	severity = string(Warning)
	tests    bool
)

func flags() flag.FlagSet {
	var fs flag.FlagSet
	fs.Func("severity", "report findings of this severity and worse: warning or info (default warning)", func(s string) error {
		if s != string(Warning) && s != string(Info) {
			return errors.New("want warning or info")
		}
		severity = s
		return nil
	})
	fs.BoolVar(&tests, "tests", false, "report findings in test files, too; without it only wrong timings are")
	return fs
}

// A Rule is one kind of finding.
type Rule struct {
	// ID is the rule's name everywhere: "AT001".
	ID string
	// Package is the last element of the rule's import path.
	Package string
	// Doc is the text of the rule's doc.go. What follows its first heading
	// is the rule's page.
	Doc string
	// InTests reports whether the rule holds for test files by default.
	InTests bool
	// Rewritten reports whether the generator removes what the rule finds, or
	// says why it can't. Functions marked for it, //asyncgen:kernel, are its own
	// business then.
	Rewritten bool
	// Check reports the findings in one package.
	Check func(*Pass)
}

// A Pass is the application of one rule to one package.
type Pass struct {
	*analysis.Pass
	*Result
	rule *Rule
}

// Analyzer makes the analyzer of a rule.
func (rule *Rule) Analyzer() *analysis.Analyzer {
	return &analysis.Analyzer{
		Name:     rule.ID,
		Doc:      page(rule.Doc),
		URL:      "https://pkg.go.dev/github.com/asyncgen/asyncgen/analysis/" + rule.Package,
		Requires: []*analysis.Analyzer{Analyzer},
		Run: func(pass *analysis.Pass) (any, error) {
			rule.Check(&Pass{pass, pass.ResultOf[Analyzer].(*Result), rule})
			return nil, nil
		},
	}
}

// page returns what follows the first heading of the package comment of a
// file, which has the form "# AT001: title".
func page(src string) string {
	f, err := parser.ParseFile(token.NewFileSet(), "doc.go", src, parser.PackageClauseOnly|parser.ParseComments)
	if err != nil || f.Doc == nil {
		panic("rule without a doc.go")
	}
	_, text, ok := strings.Cut(f.Doc.Text(), "# ")
	if ok {
		_, text, ok = strings.Cut(text, ": ")
	}
	if !ok {
		panic("rule without a heading in its doc.go")
	}
	return text
}

// Report reports a finding, unless it is of a severity that was not
// asked for, in a file that is generated or a test, in a function that is
// left to the generator, or suppressed there by
//
//	//asyncgen:ignore AT001,AT004 reason
//	//nolint:asyncgen
//
// on the line of the finding or of its statement, or on the line above either.
// Report sets the diagnostic's category and appends the rule's id to the
// message.
func (p *Pass) Report(s Severity, d analysis.Diagnostic) {
	if s == Info && severity != string(Info) {
		return
	}
	file := p.FileOf(d.Pos)
	if file == nil || ast.IsGenerated(file) {
		return
	}
	if strings.HasSuffix(p.Fset.File(d.Pos).Name(), "_test.go") && !p.rule.InTests && !tests {
		return
	}
	if p.rule.Rewritten && isKernel(file, d.Pos) {
		return
	}
	ignored, hint := p.ignored(file, d.Pos)
	if ignored {
		return
	}
	d.Category = p.rule.ID
	d.Message += hint + " [" + p.rule.ID + "]"
	p.Pass.Report(d)
}

// isKernel reports whether pos is in a function that is marked for the generator.
func isKernel(file *ast.File, pos token.Pos) bool {
	for _, decl := range file.Decls {
		f, ok := decl.(*ast.FuncDecl)
		if !ok || f.Doc == nil || pos < f.Pos() || f.End() <= pos {
			continue
		}
		return slices.ContainsFunc(f.Doc.List, func(c *ast.Comment) bool { return kernelDirective.MatchString(c.Text) })
	}
	return false
}

// FileOf returns the file of the package that pos is in.
func (p *Pass) FileOf(pos token.Pos) *ast.File {
	for _, f := range p.Files {
		if f.FileStart <= pos && pos < f.FileEnd {
			return f
		}
	}
	return nil
}

var (
	ignoreDirective = regexp.MustCompile(`^//asyncgen:ignore\s+(AT\d{3}(?:,AT\d{3})*)\b\s*(.*)$`)
	kernelDirective = regexp.MustCompile(`^//asyncgen:kernel(\s|$)`)
	nolintDirective = regexp.MustCompile(`^//nolint(?::([\w,-]+))?(?:\s|$)`)
)

// ignored reports whether a directive suppresses the rule at pos. A directive
// without a reason does not, and the hint says so.
func (p *Pass) ignored(file *ast.File, pos token.Pos) (yes bool, hint string) {
	on, above := p.linesOf(file, pos)
	for _, group := range file.Comments {
		for _, c := range group.List {
			line := p.line(c.Pos())
			if !slices.Contains(on, line) && !(slices.Contains(above, line) && p.standsAlone(c.Pos())) {
				continue
			}
			if m := nolintDirective.FindStringSubmatch(c.Text); m != nil {
				names := strings.Split(m[1], ",")
				if m[1] == "" || slices.Contains(names, "asyncgen") || slices.Contains(names, "all") {
					return true, ""
				}
			}
			m := ignoreDirective.FindStringSubmatch(c.Text)
			if m == nil || !slices.Contains(strings.Split(m[1], ","), p.rule.ID) {
				continue
			}
			if m[2] != "" {
				return true, ""
			}
			hint = " (an ignore directive needs a reason)"
		}
	}
	return false, hint
}

// linesOf lists the lines on which a directive covers pos: those of pos and of
// the statement around it; and the lines above these.
func (p *Pass) linesOf(file *ast.File, pos token.Pos) (on, above []int) {
	start := pos
	ast.Inspect(file, func(n ast.Node) bool {
		if n == nil || pos < n.Pos() || n.End() <= pos {
			return false
		}
		switch n.(type) {
		case *ast.BlockStmt, *ast.CaseClause, *ast.CommClause:
		case ast.Stmt:
			start = n.Pos()
		}
		return true
	})
	a, b := p.line(pos), p.line(start)
	return []int{a, b}, []int{a - 1, b - 1}
}

// Indentation returns the white space before pos on its line, and whether there
// is nothing else.
func (p *Pass) Indentation(pos token.Pos) (string, bool) {
	f := p.Fset.File(pos)
	src, err := p.ReadFile(f.Name())
	if err != nil {
		return "", false
	}
	before := string(src[f.Offset(f.LineStart(f.Line(pos))):f.Offset(pos)])
	return before, strings.TrimSpace(before) == ""
}

// standsAlone reports whether nothing stands before pos on its line.
func (p *Pass) standsAlone(pos token.Pos) bool {
	_, alone := p.Indentation(pos)
	return alone
}

func (p *Pass) line(pos token.Pos) int { return p.Fset.Position(pos).Line }
