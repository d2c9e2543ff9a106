package analysis_test

import (
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The stubs that the rules are tested with have the signatures of the real
// packages, so that the tests are about what users write.
func TestStubs(t *testing.T) {
	stubs := filepath.Join("testdata", "src", "github.com", "asyncgen", "asyncgen")
	err := filepath.WalkDir(filepath.Join(stubs, "runtime"), func(dir string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(stubs, dir)
		if err != nil {
			return err
		}
		stub, real := signatures(t, dir), signatures(t, filepath.Join("..", rel))
		for name, want := range stub {
			if got := real[name]; got != want {
				t.Errorf("%s: %s is %q in the stub and %q in the package", rel, name, want, got)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// signatures returns the types of the exported functions, methods and methods
// of interfaces in the files of a folder, without the names of parameters.
func signatures(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	sigs := make(map[string]string)
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, e.Name()), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Name.IsExported() {
					sigs[receiver(d)+d.Name.Name] = signature(d.Type)
				}
			case *ast.GenDecl:
				for _, s := range d.Specs {
					if ts, ok := s.(*ast.TypeSpec); ok && ts.Name.IsExported() {
						methods(sigs, ts)
					}
				}
			}
		}
	}
	return sigs
}

func receiver(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return ""
	}
	return text(d.Recv.List[0].Type) + "."
}

func methods(sigs map[string]string, ts *ast.TypeSpec) {
	it, ok := ts.Type.(*ast.InterfaceType)
	if !ok {
		return
	}
	for _, m := range it.Methods.List {
		for _, name := range m.Names {
			sigs[ts.Name.Name+"."+name.Name] = signature(m.Type.(*ast.FuncType))
		}
	}
}

func signature(f *ast.FuncType) string {
	s := ""
	for _, list := range []*ast.FieldList{f.TypeParams, f.Params, f.Results} {
		s += "("
		if list != nil {
			for _, field := range list.List {
				for range max(1, len(field.Names)) {
					s += text(field.Type) + ", "
				}
			}
		}
		s += ")"
	}
	return s
}

func text(n ast.Node) string {
	var b strings.Builder
	if err := printer.Fprint(&b, token.NewFileSet(), n); err != nil {
		return err.Error()
	}
	return b.String()
}
