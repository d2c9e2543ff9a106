package gentest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/asyncgen/asyncgen/gen"
	"golang.org/x/tools/txtar"
)

// A Golden is an archive with a source file (in.go), the file that is generated from it (want_async.go), and the
// remarks. [RunKernels] runs each kernel of the source, as written and as generated.
type Golden struct {
	Path    string // of the archive
	Name    string // the package's folder
	Archive *txtar.Archive
}

// Read reads the archives in testdata/rewrite whose file names match a regular expression.
func Read(t testing.TB, names string) []*Golden {
	t.Helper()
	match, err := regexp.Compile(names)
	if err != nil {
		t.Fatal(err)
	}
	paths, err := filepath.Glob(filepath.Join(Root(t), "gen", "internal", "gentest", "testdata", "rewrite", "*.txtar"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no archives: %v", err)
	}
	var goldens []*Golden
	for _, path := range paths {
		if match.MatchString(filepath.Base(path)) {
			goldens = append(goldens, ReadFile(t, path))
		}
	}
	return goldens
}

// ReadFile reads one archive.
func ReadFile(t testing.TB, path string) *Golden {
	t.Helper()
	archive, err := txtar.ParseFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return &Golden{path, strings.TrimSuffix(filepath.Base(path), ".txtar"), archive}
}

// Section returns a file of the archive, nil if there is none of that name.
func (g *Golden) Section(name string) []byte {
	for _, f := range g.Archive.Files {
		if f.Name == name {
			return f.Data
		}
	}
	return nil
}

// Set replaces a file of the archive, or adds it.
func (g *Golden) Set(name string, data []byte) {
	for i, f := range g.Archive.Files {
		if f.Name == name {
			g.Archive.Files[i].Data = data
			return
		}
	}
	g.Archive.Files = append(g.Archive.Files, txtar.File{Name: name, Data: data})
}

// SourceFile is where the tests put the source of g in a module: the name of the folder is the window that
// generated functions have by default, 64.
func (g *Golden) SourceFile(module string) string {
	return filepath.Join(module, "w64", g.Name, "in.go")
}

// Generated returns what is generated from SourceFile.
func (g *Golden) Generated(t testing.TB, result *gen.Result) []byte {
	t.Helper()
	at := g.SourceFile(string(filepath.Separator))
	at = strings.TrimSuffix(at, ".go") + "_async.go"
	for _, f := range result.Files {
		if strings.HasSuffix(f.Path, at) {
			return f.Text
		}
	}
	t.Fatalf("%s: nothing is generated", g.Path)
	return nil
}

// kernels returns the names of the marked functions of a file, as Go expressions, and those of the generated ones.
func kernels(t testing.TB, source []byte) (names [][2]string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "in.go", source, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range file.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Doc == nil || !strings.Contains(fn.Doc.List[len(fn.Doc.List)-1].Text, "//asyncgen:kernel") || fn.Type.TypeParams != nil {
			continue
		}
		prefix := ""
		if fn.Recv != nil {
			prefix = "(*" + fn.Recv.List[0].Type.(*ast.StarExpr).X.(*ast.Ident).Name + ")."
		}
		names = append(names, [2]string{prefix + fn.Name.Name, prefix + fn.Name.Name + "Async"})
	}
	return names
}
