package gen

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"strings"
	"testing"

	"github.com/asyncgen/asyncgen/gen/internal/load"
)

// What rows are computed of may change where none is asked for any more: on the way out of the loop around them.
func TestChangedRows(t *testing.T) {
	const frame = `package p

import asyncrt "` + load.RuntimePath + `"

func f(xs []int, x int, ended func() bool) {
outer:
	for range xs {
		if x > 9 {
			break outer
		}
		rows := asyncrt.MapRows(2, func(i int) int { return x + i })
		for i := range 2 {
			STATEMENTS
			_ = rows.Row(i)
		}
		x++
	}
}
`
	for _, c := range []struct {
		statements string
		isFine     bool
	}{
		{"", true},
		{"x++", false},
		{"if ended() { x = 1; break outer }", true},
		{"if ended() { x = 1; continue outer }", true},
		{"if ended() { x = 1; return }", true},
		{"switch { case ended(): x = 1; return }", true},
		{"if ended() { x = 1; break }", false},
		{"if ended() { x = 1; continue }", false},
		{"if ended() { x = 1; _ = rows.Row(0); return }", false},
		{"func() { if ended() { x = 1; return } }()", false},
		{"inner: for { x = 1; break inner }", false},
		{"if ended() { if x > 0 { x = 1 }; return }", true},
		{"if ended() { if x > 0 { return }; x = 1 }", false},
	} {
		fset := token.NewFileSet()
		check := func(path, text string, imports types.Importer) (*ast.File, *types.Package, *types.Info) {
			file, err := parser.ParseFile(fset, path+".go", text, 0)
			if err != nil {
				t.Fatal(err)
			}
			info := &types.Info{Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{}, Types: map[ast.Expr]types.TypeAndValue{}, Selections: map[*ast.SelectorExpr]*types.Selection{}}
			pkg, err := (&types.Config{Importer: imports}).Check(path, fset, []*ast.File{file}, info)
			if err != nil {
				t.Fatal(err)
			}
			return file, pkg, info
		}
		_, runtime, _ := check(load.RuntimePath, `package asyncrt

type MappedRows struct{}

func MapRows(n int, f func(int) int) *MappedRows { return nil }
func (*MappedRows) Row(i int) int                { return 0 }
`, nil)
		file, _, info := check("p", strings.Replace(frame, "STATEMENTS", c.statements, 1), onePackage{runtime})
		got := changedRows(file.Decls[1].(*ast.FuncDecl), info)
		if (got == "") != c.isFine {
			t.Errorf("%s: %q", c.statements, got)
		}
	}
}

// onePackage imports only this.
type onePackage struct{ pkg *types.Package }

func (p onePackage) Import(string) (*types.Package, error) { return p.pkg, nil }
