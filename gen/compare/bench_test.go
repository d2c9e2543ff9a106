package compare

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/asyncgen/asyncgen/internal/turns"
)

// library is a package with benchmarks, and a function that is rewritten.
var library = map[string]string{
	"lib.go": `package lib

import "github.com/asyncgen/asyncgen/runtime/tensor"

func Total(xs []*tensor.Tensor) (total float64) {
	for _, x := range xs {
		total += x.Square().Sum().Item()
	}
	return total
}
`,
	"lib_test.go": `package lib

import (
	"fmt"
	"os"
	"testing"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

func TestFails(t *testing.T) { t.Fatal("tests are not run") }

func BenchmarkTotal(b *testing.B) {
	xs := []*tensor.Tensor{tensor.Ones(3), tensor.Zeros(2)}
	total := 0.0
	for b.Loop() {
		total += Total(xs)
	}
	fmt.Println("total of", b.N, "is", total)
}

func BenchmarkNothing(b *testing.B) {
	for b.Loop() {
	}
}

func BenchmarkFails(b *testing.B) {
	if _, err := os.Stat("lib.go"); err != nil {
		b.Fatal("this is not the folder of the package")
	}
	b.Fatal("on purpose")
}
`,
	"none/none.go": "package none\n",
}

// TestBench compares the benchmarks of a package that is no program.
func TestBench(t *testing.T) {
	turns.Take(t)
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	sum, err := os.ReadFile(filepath.Join(root, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	files := map[string]string{
		"go.sum": string(sum),
		"go.mod": fmt.Sprintf("module example.com/lib\n\ngo 1.26\n\nrequire (\n\tgithub.com/asyncgen/asyncgen v0.0.0\n\tgolang.org/x/sys v0.47.0 // indirect\n\tgonum.org/v1/gonum v0.17.0 // indirect\n)\n\nreplace github.com/asyncgen/asyncgen => %s\n", root),
	}
	for name, text := range library {
		files[name] = text
	}
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	cfg := Config{Dir: dir, Package: ".", Bench: "Total|Nothing", Times: 3, Devices: []string{"cpu"}, Count: 2}
	r, err := Run(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	d := r.Devices[0]
	if !r.Same() || len(r.Rewritten) == 0 || len(d.Benchmarks) != 2 || !strings.HasPrefix(d.Benchmarks[1].Name, "BenchmarkTotal") ||
		len(d.Benchmarks[1].Original) != 2 || d.Benchmarks[1].Rewritten[1] <= 0 {
		t.Errorf("%+v, %+v", r, d)
	}
	var text strings.Builder
	if err := r.WriteText(&text); err != nil || !strings.Contains(text.String(), ". -bench Total|Nothing\n") || !strings.Contains(text.String(), "  BenchmarkTotal") {
		t.Errorf("%v\n%s", err, text.String())
	}

	cfg.Bench, cfg.Count = "Fails", 1
	if r, err = Run(t.Context(), cfg); err != nil || !strings.Contains(r.Failure(), "exit status 1") || r.Devices[0].Lines < 2 {
		t.Errorf("%+v, %v", r, err)
	}
	for _, c := range []struct{ pkg, bench, want string }{
		{".", "Elsewhere", `no benchmark of . matches "Elsewhere"`},
		{"./none", ".", "./none has no tests, and so no benchmarks"},
		{"./...", ".", "packages, not one"},
	} {
		cfg.Package, cfg.Bench = c.pkg, c.bench
		if _, err := Run(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s -bench %s: %v, want an error with %q", c.pkg, c.bench, err, c.want)
		}
	}
}

// TestBenchmarks reads what test binaries print.
func TestBenchmarks(t *testing.T) {
	got := benchmarks([]byte("goos: linux\nBenchmarkA-2   \t      20\t      1500 ns/op\t  12 B/op\nBenchmarkB/n=3 \t hello\n      20\t         0.5 ns/op\nBenchmarkC\nPASS\n"))
	if len(got) != 2 || got["BenchmarkA-2"] != 1500*time.Nanosecond || got["BenchmarkB/n=3"] != 0 {
		t.Errorf("%v", got)
	}
}
