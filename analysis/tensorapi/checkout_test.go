package tensorapi_test

import (
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/asyncgen/asyncgen/analysis/tensorapi"
)

var checkouts = flag.String("checkouts", "", "look up the names in profiles in these folders with the sources of libraries: name=folder,name=folder")

// TestCheckouts looks for names in profiles that a library does not have in any of
// the versions given. A package of the same library counts as another version of a
// package, so that a name is misspelt rather than old:
//
//	go test ./analysis/tensorapi -run Checkouts -checkouts GoMLX=$HOME/gomlx-0.26,GoMLX=$HOME/gomlx-0.28
func TestCheckouts(t *testing.T) {
	if *checkouts == "" {
		t.Skip("needs the sources of other libraries: -checkouts")
	}
	names := make(map[string]map[string]bool)
	for item := range strings.SplitSeq(*checkouts, ",") {
		name, dir, ok := strings.Cut(item, "=")
		if !ok || tensorapi.NewSet().Named(name) == nil {
			t.Fatalf("-checkouts: %q: want the name of a profile, = and a folder", item)
		}
		if names[name] == nil {
			names[name] = make(map[string]bool)
		}
		declared(t, names[name], dir)
	}
	for name, have := range names {
		p := tensorapi.NewSet().Named(name)
		missing := make(map[string]bool)
		check := func(full string) {
			if i := strings.LastIndexByte(full, '/'); i >= 0 {
				full = full[i+1:]
			}
			_, short, _ := strings.Cut(full, ".")
			short = strings.ReplaceAll(short, ")", "")
			if !have[short] {
				missing[short] = true
			}
		}
		for full := range p.Funcs {
			check(full)
		}
		for full := range p.Rebuilds {
			check(full)
		}
		for _, full := range append(slices.Clip(p.Types), p.Cells...) {
			check(full)
		}
		t.Logf("%s: %d functions, %d declared in the sources", name, len(p.Funcs), len(have))
		for short := range missing {
			t.Errorf("%s: there is no %s", name, short)
		}
	}
}

// declared notes what the packages below dir declare: F, T, T.M.
func declared(t *testing.T, have map[string]bool, dir string) {
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil // a template
		}
		for _, decl := range file.Decls {
			switch decl := decl.(type) {
			case *ast.FuncDecl:
				have[receiver(decl)+decl.Name.Name] = true
			case *ast.GenDecl:
				for _, spec := range decl.Specs {
					if spec, ok := spec.(*ast.TypeSpec); ok {
						declareType(have, spec)
					}
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func receiver(decl *ast.FuncDecl) string {
	if decl.Recv == nil {
		return ""
	}
	for typ := decl.Recv.List[0].Type; ; {
		switch x := typ.(type) {
		case *ast.StarExpr:
			typ = x.X
		case *ast.IndexExpr:
			typ = x.X
		case *ast.IndexListExpr:
			typ = x.X
		case *ast.Ident:
			return x.Name + "."
		default:
			return ""
		}
	}
}

func declareType(have map[string]bool, spec *ast.TypeSpec) {
	have[spec.Name.Name] = true
	if it, ok := spec.Type.(*ast.InterfaceType); ok {
		for _, m := range it.Methods.List {
			for _, name := range m.Names {
				have[spec.Name.Name+"."+name.Name] = true
			}
		}
	}
}
