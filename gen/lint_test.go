package gen_test

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/asyncgen/asyncgen/analysis"
	"github.com/asyncgen/asyncgen/analysis/blocking"
	"github.com/asyncgen/asyncgen/analysis/lint"
	"github.com/asyncgen/asyncgen/gen/internal/gentest"
	"golang.org/x/tools/go/analysis/checker"
	"golang.org/x/tools/go/packages"
)

// reasons are why the linter may be silent about a read that the generator defers.
var reasons = map[string]bool{
	"guarded": true, // it happens rarely: every third iteration, on an error, when a loop ends
	"few":     true, // the loop has at most four iterations
	"epoch":   true, // it happens once for each pass over data, of the loop or of the function called
	"fit":     true, // the loop calls a function each time that goes on until something has converged
	"older":   true, // what is read was made before the loop, so nobody waits for the loop's work
	"another": true, // another finding of the function is about the same value
}

// deferredRead are the codes of remarks about reads that come later than as written.
var deferredRead = regexp.MustCompile(`^(AG10[1-6]|AG118|AG120) applied [\w-]+: (.*?) (is|are|reads|decides) `)

// TestLinter holds what the generator rewrites, in its golden files, the example programs and what
// newcomers write, against what the linter reports. Each read that is deferred is a finding, or
// silent.txt has one of the reasons why it is none.
func TestLinter(t *testing.T) {
	dir := gentest.Root(t)
	cfg := &packages.Config{
		Mode: packages.LoadFiles | packages.LoadImports | packages.NeedDeps | packages.NeedExportFile | packages.NeedTypesSizes | packages.NeedModule,
		Dir:  dir, Fset: token.NewFileSet(), Overlay: make(map[string][]byte), Context: t.Context(),
	}
	remarks := goldenRemarks(t, cfg.Overlay)
	result, err := programsInPlace()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range result.Remarks {
		remarks = append(remarks, remark{r.Pos.Filename, r.Pos.Line, fmt.Sprintf("%s %s %s: %s", r.Code, r.Verdict, r.Rule, r.Message)})
	}
	newcomers, err := filepath.Glob("testdata/newcomer/*s.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range newcomers {
		cfg.Overlay[filepath.Join(dir, "gen", path)] = unmarked(read(t, path))
	}
	found := lintFiles(t, cfg, append(slices.Clone(programPatterns), "./gen/testdata/linted/..."))

	silent := silentReads(t)
	deferred := 0
	for _, r := range remarks {
		m := deferredRead.FindStringSubmatch(r.text)
		if m == nil || strings.HasPrefix(m[2], "the end of the loop") {
			continue
		}
		deferred++
		fn := found.function(r)
		if fn == nil || fn.lines[r.line] || fn.mentions(m[2]) {
			continue
		}
		key := fmt.Sprintf("%s %s %s", filepath.Base(filepath.Dir(r.file)), fn.name, m[2])
		if _, ok := silent[key]; !ok {
			t.Errorf("%s:%d: the linter is silent about what is rewritten, and testdata/silent.txt has no reason: %s", r.file, r.line, key)
		}
		silent[key] = true
	}
	for key, used := range silent {
		if !used {
			t.Errorf("testdata/silent.txt: %s is a finding, or not rewritten", key)
		}
	}
	t.Logf("%d reads deferred, %d of them silent for a reason", deferred, len(silent))
}

// A remark is a line of what the generator says.
type remark struct {
	file string
	line int
	text string
}

// goldenRemarks returns the remarks in the golden files, and adds their sources to an overlay.
func goldenRemarks(t *testing.T, overlay map[string][]byte) (remarks []remark) {
	for _, g := range gentest.Read(t, "") {
		path := filepath.Join(gentest.Root(t), "gen", "testdata", "linted", g.Name, "in.go")
		overlay[path] = unmarked(g.Section("in.go"))
		for line := range strings.Lines(string(g.Section("remarks"))) {
			var n, col int
			if _, err := fmt.Sscanf(line, "in.go:%d:%d:", &n, &col); err == nil {
				_, text, _ := strings.Cut(line, ": ")
				remarks = append(remarks, remark{path, n, text})
			}
		}
	}
	return remarks
}

// unmarked is a source without kernels, about which the linter leaves the word to the generator.
func unmarked(source []byte) []byte {
	return bytes.ReplaceAll(source, []byte("//asyncgen:kernel"), []byte("//-asyncgen:kernel"))
}

func read(t *testing.T, path string) []byte {
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// A linted is a function with the lines of findings in it.
type linted struct {
	name      string
	from, end int
	lines     map[int]bool
	source    [][]byte // the lines of its file
}

// mentions reports whether a line with a finding has the expression, or assigns the variable that it begins with.
func (f *linted) mentions(expr string) bool {
	name := regexp.MustCompile(`^\w+`).FindString(expr)
	assigned := regexp.MustCompile(`\b` + name + `\b[^=]*[:+]?= `)
	for line := range f.lines {
		if text := f.source[line-1]; bytes.Contains(text, []byte(expr)) || name != "" && assigned.Match(text) {
			return true
		}
	}
	return false
}

type lintedFiles map[string][]*linted

func (l lintedFiles) function(r remark) *linted {
	i := slices.IndexFunc(l[r.file], func(f *linted) bool { return f.from <= r.line && r.line <= f.end })
	if i < 0 {
		return nil
	}
	return l[r.file][i]
}

// lint loads packages and returns their functions with what all rules find in them, infos included.
func lintFiles(t *testing.T, cfg *packages.Config, patterns []string) lintedFiles {
	severity := blocking.Analyzer.Flags.Lookup("severity").Value
	if err := severity.Set(string(lint.Info)); err != nil {
		t.Fatal(err)
	}
	defer severity.Set(string(lint.Warning))
	pkgs, err := packages.Load(cfg, patterns...)
	if err != nil {
		t.Fatal(err)
	}
	addTypes(t, cfg, pkgs)
	files := make(lintedFiles)
	for _, p := range pkgs {
		for _, file := range p.Syntax {
			path := p.Fset.Position(file.Pos()).Filename
			source, ok := cfg.Overlay[path]
			if !ok {
				source = read(t, path)
			}
			for _, d := range file.Decls {
				if fn, ok := d.(*ast.FuncDecl); ok {
					from, end := p.Fset.Position(fn.Pos()).Line, p.Fset.Position(fn.End()).Line
					files[path] = append(files[path], &linted{fn.Name.Name, from, end, make(map[int]bool), bytes.Split(source, []byte("\n"))})
				}
			}
		}
	}
	graph, err := checker.Analyze(analysis.Suite, pkgs, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, act := range graph.Roots {
		if act.Err != nil {
			t.Error(act.Err)
		}
		for _, d := range act.Diagnostics {
			p := act.Package.Fset.Position(d.Pos)
			if fn := files.function(remark{file: p.Filename, line: p.Line}); fn != nil {
				fn.lines[p.Line] = true
			}
		}
	}
	return files
}

// addTypes gives the packages their syntax and types. What they import has the types that the compiler has written:
// where a file is replaced by another text, go/packages would take all from source.
func addTypes(t *testing.T, cfg *packages.Config, pkgs []*packages.Package) {
	exported := make(map[string]string)
	packages.Visit(pkgs, nil, func(p *packages.Package) { exported[p.PkgPath] = p.ExportFile })
	imported := importer.ForCompiler(cfg.Fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exported[path]) })
	for _, p := range pkgs {
		for _, err := range p.Errors {
			t.Error(err)
		}
		for _, path := range p.CompiledGoFiles {
			var text any // nil: what is in the file
			if other, ok := cfg.Overlay[path]; ok {
				text = other
			}
			file, err := parser.ParseFile(cfg.Fset, path, text, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			p.Syntax = append(p.Syntax, file)
		}
		p.TypesInfo = &types.Info{
			Types: make(map[ast.Expr]types.TypeAndValue), Defs: make(map[*ast.Ident]types.Object), Uses: make(map[*ast.Ident]types.Object),
			Implicits: make(map[ast.Node]types.Object), Instances: make(map[*ast.Ident]types.Instance), Scopes: make(map[ast.Node]*types.Scope),
			Selections: make(map[*ast.SelectorExpr]*types.Selection), FileVersions: make(map[*ast.File]string),
		}
		check := types.Config{Importer: imported, Sizes: p.TypesSizes, GoVersion: "go" + p.Module.GoVersion}
		var err error
		if p.Types, err = check.Check(p.PkgPath, cfg.Fset, p.Syntax, p.TypesInfo); err != nil {
			t.Fatal(err)
		}
		p.Fset, p.Imports = cfg.Fset, nil // there are no facts about what has no syntax
	}
}

// silentReads are the reads in silent.txt, none of which has been met.
func silentReads(t *testing.T) map[string]bool {
	silent := make(map[string]bool)
	for line := range strings.Lines(string(read(t, "testdata/silent.txt"))) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		reason, key, _ := strings.Cut(line, " ")
		if !reasons[reason] {
			t.Errorf("testdata/silent.txt: %s is no reason", reason)
		}
		silent[strings.TrimSpace(key)] = false
	}
	return silent
}
