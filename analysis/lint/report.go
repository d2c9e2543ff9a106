package lint

import (
	"errors"
	"flag"
	"go/ast"
	"go/token"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/asyncgen/asyncgen/analysis/blocking"
	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"golang.org/x/tools/go/analysis"
)

// A Severity says how sure it is that a finding deserves a change.
type Severity string

// The severities. Rules give the second and third, the first is for [Settings].
const (
	Error   Severity = "error"
	Warning Severity = "warning"
	Info    Severity = "info" // correct programs do it too; reported on request

	off Severity = "off" // not reported at all
)

// Reaches reports whether s is at least as grave as least.
func (s Severity) Reaches(least Severity) bool {
	order := []Severity{off, Info, Warning, Error}
	return slices.Index(order, s) >= slices.Index(order, least)
}

// ParseSeverity returns the severity that a flag names.
func ParseSeverity(word string) (Severity, error) {
	if s := Severity(word); s == Error || s == Warning || s == Info {
		return s, nil
	}
	return "", errors.New("want error, warning or info")
}

// SeverityOf returns the severity of a diagnostic with the given category. Diagnostics have no severity of their own,
// so the category is the rule's id and, unless it is a warning, the severity.
func SeverityOf(category string) Severity {
	if _, s, ok := strings.Cut(category, "-"); ok {
		return Severity(s)
	}
	return Warning
}

// The flags, which hold for all rules, are those of [blocking.Analyzer], which all rules require: drivers offer them
// by these names.
var (
	severity = Warning
	tests    bool
)

func init() { blocking.Analyzer.Flags = flags() }

func flags() flag.FlagSet {
	var fs flag.FlagSet
	fs.Func("severity", "report findings of this severity and worse: error, warning or info (default warning)", func(s string) (err error) {
		severity, err = ParseSeverity(s)
		return err
	})
	fs.BoolVar(&tests, "tests", false, "report findings in test files and helpers, too; without it only wrong timings are")
	fs.Func("profile", "the absolute names of `files` that describe other tensor libraries, with commas between them", func(list string) error {
		for file := range strings.SplitSeq(list, ",") {
			if err := blocking.LoadProfiles(file); err != nil {
				return err
			}
		}
		return nil
	})
	fs.String("profile-digest", "", "the digest of these files, by which the go command knows that they changed")
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
	// Severity is the gravest of its findings, a warning unless it is set.
	Severity Severity
	// Infos reports whether some of its findings are only infos, if the gravest are worse.
	Infos bool
	// Fixes reports whether it has fixes, which are safe to apply unseen.
	Fixes bool
	// InTests reports whether the rule holds for test files by default.
	InTests bool
	// Rewritten reports whether the generator removes what the rule finds, or says why it can't. The
	// rule then leaves functions that are marked for the generator, by //asyncgen:kernel, to it.
	Rewritten bool
	// Values reports whether the rule is about tensors that never change. It is silent about other
	// libraries.
	Values bool
	// Clocks reports whether the rule is about clocks that are read too early. It is silent about
	// libraries in which operations have finished when they return.
	Clocks bool
	// Requires are analyzers whose results Check asks for, besides [Analyzer].
	Requires []*analysis.Analyzer
	// Check reports the findings in one package.
	Check func(*Pass)
}

// A Pass is the application of one rule to one package.
type Pass struct {
	*analysis.Pass
	*blocking.Package
	rule *Rule
	used Directives
	set  *Settings

	names map[newName]bool // that fixes have given
}

// Directives are the places of comments that tell a rule to ignore findings, and that had findings to ignore.
type Directives map[token.Pos]bool

// Analyzer makes the analyzer of a rule. Its result is a [Directives].
func (rule *Rule) Analyzer() *analysis.Analyzer {
	if rule.Severity == "" {
		rule.Severity = Warning
	}
	rules[rule.ID] = rule
	return &analysis.Analyzer{
		Name:     rule.ID,
		Doc:      page(rule.Doc),
		URL:      "https://github.com/asyncgen/asyncgen/blob/main/docs/linter/" + rule.ID + ".md",
		Requires: append([]*analysis.Analyzer{blocking.Analyzer}, rule.Requires...),
		Run: func(pass *analysis.Pass) (any, error) {
			p := &Pass{pass, pass.ResultOf[blocking.Analyzer].(*blocking.Package), rule, make(Directives), new(Settings), make(map[newName]bool)}
			if len(p.Funcs) == 0 {
				return p.used, nil
			}
			var err error
			if p.set, err = knownSettings(p.dir()); err != nil {
				return nil, err
			}
			rule.Check(p)
			return p.used, nil
		},
		ResultType: reflect.TypeFor[Directives](),
	}
}

// page returns what follows the first heading of the package comment of a file, which has the form "# AT001: title".
// It does without a parser, as the go command starts the analysis anew for each package.
func page(src string) string {
	src, _, _ = strings.Cut(src, "\npackage ")
	_, src, ok := strings.Cut(src, "\n// # ")
	if ok {
		_, src, ok = strings.Cut(src, ": ")
	}
	if !ok {
		panic("rule without a heading in its doc.go")
	}
	var text strings.Builder
	text.Grow(len(src))
	for line := range strings.Lines(src) {
		line = strings.TrimPrefix(line, "//")
		text.WriteString(strings.TrimPrefix(line, " "))
	}
	text.WriteByte('\n')
	return text.String()
}

// Report reports a finding with the severity s. It doesn't
//
//   - if nobody asked for the severity, or the rule isn't for the library;
//
//   - in generated files, in tests, and in functions that are left to the generator;
//
//   - if a comment suppresses it, on the line of the finding or of its statement, or on the line above
//     either:
//
//     //asyncgen:ignore AT001,AT004 reason
//     //nolint:asyncgen
//
// The package's [Settings] may change the severity, or switch the finding off. Report sets the diagnostic's category,
// from which [SeverityOf] tells the severity, and appends the rule's id to the message.
func (p *Pass) Report(s Severity, d analysis.Diagnostic) {
	file := p.FileOf(d.Pos)
	if file == nil || isGenerated(file) {
		return
	}
	// First of all: a directive is of use also if nobody asks for the finding.
	ignored, hint := p.ignored(file, d.Pos)
	if ignored {
		return
	}
	if !p.rule.InTests && !tests && (strings.HasSuffix(p.Fset.File(d.Pos).Name(), "_test.go") || p.inTest(d.Pos)) {
		return
	}
	if p.rule.Rewritten && isKernel(file, d.Pos) {
		return
	}
	libs := p.librariesAt(d.Pos)
	if p.rule.Values && !every(libs, func(l *tensorapi.Profile) bool { return l.Values }) ||
		p.rule.Clocks && !every(libs, func(l *tensorapi.Profile) bool { return l.Async != tensorapi.Sync && !l.Finishes }) {
		return
	}
	if every(libs, func(l *tensorapi.Profile) bool { return l.Async == tensorapi.Sync }) {
		s = Info
		hint += " (what " + libs[0].Name + " is asked for is done when the call returns: little is lost)"
	}
	if s = p.set.severity(p.rule.ID, p.fileName(d.Pos), s); s == off || !s.Reaches(severity) {
		return
	}
	if !every(libs, func(l *tensorapi.Profile) bool { return l == tensorapi.Ours() }) {
		d.SuggestedFixes = nil // they rely on how our tensors behave
	}
	if p.Fset.Position(d.Pos).Filename != p.Fset.File(d.Pos).Name() {
		d.SuggestedFixes = nil // the text here is not what the user has written
	}
	d.Category = p.rule.ID
	if s != Warning {
		d.Category += "-" + string(s)
	}
	d.Message += hint + " [" + p.rule.ID + "]"
	p.Pass.Report(d)
}

// fileName returns the file with pos by the name that the user knows, whatever cgo has made of it.
func (p *Pass) fileName(pos token.Pos) string {
	if name := p.Fset.Position(pos).Filename; filepath.IsAbs(name) {
		return name
	}
	return p.Fset.File(pos).Name()
}

// dir returns the folder of the package.
func (p *Pass) dir() string {
	for _, f := range p.Files {
		// The file of declarations that cgo adds is somewhere else.
		if name := p.fileName(f.Package); !strings.HasPrefix(filepath.Base(name), "_cgo_") {
			return filepath.Dir(name)
		}
	}
	return "."
}

// inTest reports whether pos is in a function that is part of a test.
func (p *Pass) inTest(pos token.Pos) bool {
	cur, ok := p.Cursor(pos)
	if !ok {
		return false
	}
	f := p.FuncAt(cur)
	return f != nil && f.IsTest()
}

// isGenerated is ast.IsGenerated, except for files that cgo makes of the user's.
func isGenerated(file *ast.File) bool {
	for _, group := range file.Comments {
		for _, c := range group.List {
			if c.Pos() > file.Package {
				return false
			}
			if generated.MatchString(c.Text) && c.Text != "// Code generated by cmd/cgo; DO NOT EDIT." {
				return true
			}
		}
	}
	return false
}

// generated is the line by which the go command knows generated files.
var generated = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)

// librariesAt lists the libraries that a finding at pos may be about: that of the call at pos or, if there is none,
// all that the package can reach.
func (p *Pass) librariesAt(pos token.Pos) []*tensorapi.Profile {
	for _, f := range p.Funcs {
		for _, c := range f.Calls {
			if c.Lib != nil && c.Expr.Pos() == pos {
				return []*tensorapi.Profile{c.Lib}
			}
		}
	}
	var libs []*tensorapi.Profile
	for _, name := range p.LibraryNames {
		if lib := blocking.Libraries().Named(name); lib != nil {
			libs = append(libs, lib)
		}
	}
	return libs
}

// every reports whether all libs have a property.
func every(libs []*tensorapi.Profile, has func(*tensorapi.Profile) bool) bool {
	return len(libs) > 0 && !slices.ContainsFunc(libs, func(l *tensorapi.Profile) bool { return !has(l) })
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

// IgnoreDirective splits the text of a comment that tells rules to ignore findings. It reports false for other
// comments. If it returns no rules, the comment is not well-formed.
func IgnoreDirective(text string) (rules []string, reason string, ok bool) {
	rest, ok := strings.CutPrefix(text, "//asyncgen:ignore")
	if !ok || rest != "" && !unicode.IsSpace(rune(rest[0])) {
		return nil, "", false
	}
	m := ignoredRules.FindStringSubmatch(rest)
	if m == nil {
		return nil, "", true
	}
	return strings.Split(m[1], ","), m[2], true
}

var (
	ignoredRules    = regexp.MustCompile(`^\s+(AT\d{3}(?:,AT\d{3})*)(?:\s+(.*))?$`)
	kernelDirective = regexp.MustCompile(`^//asyncgen:kernel(\s|$)`)
	nolintDirective = regexp.MustCompile(`^//nolint(?::([\w,-]+))?(?:\s|$)`)
)

// ignored reports whether a comment suppresses the rule at pos. Where a reason is required, a comment
// without one suppresses nothing; the hint says so.
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
				if m[1] != "" && !slices.Contains(names, "asyncgen") && !slices.Contains(names, "all") {
					continue
				}
				if p.set.reasons != "required" || strings.Trim(c.Text[len(m[0]):], "/ \t") != "" {
					return true, ""
				}
				hint = " (a nolint comment needs a reason: //nolint:asyncgen // why)"
				continue
			}
			rules, reason, ok := IgnoreDirective(c.Text)
			if !ok || !slices.Contains(rules, p.rule.ID) {
				continue
			}
			p.used[c.Pos()] = true
			if reason != "" || !p.NeedsReason() {
				return true, ""
			}
			hint = " (an ignore directive needs a reason)"
		}
	}
	return false, hint
}

// NeedsReason reports whether comments without a reason suppress nothing.
func (p *Pass) NeedsReason() bool { return p.set.reasons != "optional" }

// linesOf lists the lines on which a comment suppresses a finding at pos. These are the lines of pos
// and of the statement around it (on), and the lines above these two.
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

// Indentation returns the white space before pos on its line, and reports whether there is nothing else.
func (p *Pass) Indentation(pos token.Pos) (string, bool) {
	f := p.Fset.File(pos)
	src, err := p.ReadFile(f.Name())
	if err != nil {
		return "", false
	}
	before := string(src[f.Offset(f.LineStart(LineOf(f, pos))):f.Offset(pos)])
	return before, strings.TrimSpace(before) == ""
}

// LineOf returns the number of the line with pos in the text of its file, whatever //line comments say.
func LineOf(f *token.File, pos token.Pos) int { return f.PositionFor(pos, false).Line }

// standsAlone reports whether nothing stands before pos on its line.
func (p *Pass) standsAlone(pos token.Pos) bool {
	_, alone := p.Indentation(pos)
	return alone
}

// line returns the number of the line with pos.
func (p *Pass) line(pos token.Pos) int { return p.Fset.Position(pos).Line }
