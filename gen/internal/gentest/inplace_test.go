package gentest_test

import (
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"strings"
	"testing"

	"github.com/asyncgen/asyncgen/gen"
	"github.com/asyncgen/asyncgen/gen/internal/gentest"
	"github.com/asyncgen/asyncgen/internal/turns"
)

// What is rewritten in place compiles, stands the checks of the output, and keeps the lines of the original, so
// that positions are those of the user.
func TestGoldenInPlace(t *testing.T) {
	dir := newGoldenModule(t)
	sources := make(map[string][]byte)
	var patterns []string
	for _, g := range gentest.Read(t, *only) {
		if *only != "" || turns.Has(t, g.Name) {
			file := g.SourceFile(dir)
			sources[file] = g.Section("in.go")
			patterns = append(patterns, filepath.Dir(file))
		}
	}
	result, err := gen.Generate(context.Background(), gen.Config{Dir: dir, Patterns: patterns, All: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range result.Remarks {
		if r.Code >= "AG900" {
			t.Errorf("%v", r)
		}
	}
	if len(result.Files) < len(sources)/2 {
		t.Errorf("%d of %d files are rewritten", len(result.Files), len(sources))
	}
	for _, f := range result.Files {
		want, got := functionLines(t, f.Path, sources[f.Path]), functionLines(t, f.Path, f.Text)
		for name, lines := range want {
			if got[name] != lines {
				t.Errorf("%s: %s is on lines %v, want %v\n%s", f.Path, name, got[name], lines, f.Text)
			}
		}
	}
}

// functionLines returns the first and the last line of each function of a file, as line directives have it.
func functionLines(t *testing.T, path string, text []byte) map[string][2]int {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, path, text, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	lines := make(map[string][2]int)
	for _, d := range file.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok {
			name := fn.Name.Name
			if fn.Recv != nil {
				name = types.ExprString(fn.Recv.List[0].Type) + "." + name
			}
			first, last := fset.Position(fn.Pos()), fset.Position(fn.End())
			if first.Filename != path || last.Filename != path {
				t.Errorf("%s is in %v and %v", name, first, last)
			}
			lines[name] = [2]int{first.Line, last.Line}
		}
	}
	return lines
}

// A library calls methods of its main package through an interface. In place, what they do counts: that of half changes
// the scale of the loop's tensors, so the loop must wait.
func TestMethodsInPlace(t *testing.T) {
	dir := gentest.NewModule(t)
	gentest.Write(t, filepath.Join(dir, "fade", "fade.go"), []byte(`package fade

import (
	"fmt"
	"io"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

var Scale = 1.0

func Sum(w io.Writer, xs []*tensor.Tensor) (total float64) {
	for _, x := range xs {
		total += x.MulScalar(Scale).Sum().Item()
		fmt.Fprintln(w, x.Max().Item())
	}
	return total
}
`))
	gentest.Write(t, filepath.Join(dir, "main.go"), []byte(`package main

import (
	"fmt"

	"example.com/user/fade"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

type half struct{}

func (half) Write(p []byte) (int, error) {
	fade.Scale /= 2
	return len(p), nil
}

func main() { fmt.Println(fade.Sum(half{}, []*tensor.Tensor{tensor.Full(1, 2), tensor.Full(1, 2)})) }
`))
	for pattern, refused := range map[string]string{"./fade": "", ".": "it reads Scale"} {
		result, err := gen.Generate(context.Background(), gen.Config{Dir: dir, Patterns: []string{pattern}, All: true})
		if err != nil {
			t.Fatal(err)
		}
		found := ""
		for _, r := range result.Remarks {
			if r.Verdict == gen.Refused {
				found += r.String()
			}
		}
		if refused == "" && found != "" || !strings.Contains(found, refused) {
			t.Errorf("%s: want refused because of %q, got %s", pattern, refused, found)
		}
	}
}
