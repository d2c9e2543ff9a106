package gentest

import (
	"go/ast"
	"path/filepath"
	"strings"
	"testing"

	"github.com/asyncgen/asyncgen/gen/internal/load"
	"github.com/asyncgen/asyncgen/gen/internal/plan"
	"github.com/asyncgen/asyncgen/gen/rewrite"
)

// Functions returns the functions of a file with the given declarations, as rewrites see them. The file imports fmt,
// math and package tensor.
func Functions(t testing.TB, declarations ...string) (functions []*plan.Function) {
	t.Helper()
	dir := NewModule(t)
	Write(t, filepath.Join(dir, "in.go"), []byte(`package in

import (
	"fmt"
	"math"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

var (
	_ = fmt.Println
	_ = math.Sqrt
	_ = tensor.From[float64]
)

`+strings.Join(declarations, "\n\n")+"\n"))
	program, err := load.Load(t.Context(), load.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	pkg, analysis := program.Roots[0], plan.New(program, rewrite.Divide)
	for _, d := range pkg.Syntax[0].Decls {
		if d, ok := d.(*ast.FuncDecl); ok {
			functions = append(functions, analysis.Function(pkg, d))
		}
	}
	return functions
}

// LoopBody returns the text of the body of the first loop of f, on one line.
func LoopBody(f *plan.Function) string {
	var body *ast.BlockStmt
	ast.Inspect(f.Decl.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.RangeStmt:
			body = n.Body
		case *ast.ForStmt:
			body = n.Body
		}
		return body == nil
	})
	return strings.Join(strings.Fields(f.Text(body.Lbrace+1, body.Rbrace)), " ")
}
