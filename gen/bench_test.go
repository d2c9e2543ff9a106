package gen_test

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/asyncgen/asyncgen/gen"
	"github.com/asyncgen/asyncgen/gen/internal/gentest"
	"github.com/asyncgen/asyncgen/gen/internal/load"
)

// BenchmarkGenerate generates for a package with 50 kernels, those of testdata/newcomer two and a
// half times, and also reports what of the shortest time is not loading: ms/beyond-loading.
func BenchmarkGenerate(b *testing.B) {
	const directive, kernels = "//asyncgen:kernel\n", 50
	text, err := os.ReadFile("testdata/newcomer/kernels.go")
	if err != nil {
		b.Fatal(err)
	}
	file, err := parser.ParseFile(token.NewFileSet(), "", text, 0)
	if err != nil {
		b.Fatal(err)
	}
	var names []string
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			names = append(names, d.Name.Name)
		case *ast.GenDecl:
			if d.Tok == token.TYPE {
				names = append(names, d.Specs[0].(*ast.TypeSpec).Name.Name)
			}
		}
	}
	declared := regexp.MustCompile(`\b(` + strings.Join(names, "|") + `)\b`)
	dir := gentest.NewModule(b)
	for i, left := 0, kernels; left > 0; i++ {
		source := string(text)
		if n := strings.Count(source, directive); n > left {
			kept := strings.SplitAfterN(source, directive, left+1)
			source = strings.Join(kept[:left], "") + strings.ReplaceAll(kept[left], directive, "")
			left = 0
		} else {
			left -= n
		}
		source = declared.ReplaceAllString(source, fmt.Sprintf("${1}%d", i))
		gentest.Write(b, filepath.Join(dir, fmt.Sprintf("kernels%d.go", i)), []byte(source))
	}

	loading, generating := time.Hour, time.Hour // the shortest
	for b.Loop() {
		b.StopTimer()
		start := time.Now()
		if _, err := load.Load(context.Background(), load.Config{Dir: dir}); err != nil {
			b.Fatal(err)
		}
		loading = min(loading, time.Since(start))
		b.StartTimer()
		start = time.Now()
		r, err := gen.Generate(context.Background(), gen.Config{Dir: dir})
		if err != nil {
			b.Fatal(err)
		}
		generating = min(generating, time.Since(start))
		generated := 0
		for _, f := range r.Files {
			generated += strings.Count(string(f.Text), "Async(")
		}
		if generated < kernels {
			b.Fatalf("%d kernels are generated", generated)
		}
	}
	b.ReportMetric(float64((generating - loading).Milliseconds()), "ms/beyond-loading")
}
