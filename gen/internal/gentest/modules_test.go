package gentest_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/asyncgen/asyncgen/gen"
	"github.com/asyncgen/asyncgen/gen/internal/gentest"
)

// TestModules: loops that call modules of other people are rewritten as the
// data about these modules allows, and behave the same.
func TestModules(t *testing.T) {
	g := gentest.ReadFile(t, "testdata/modules/modules.txtar")
	dir := gentest.NewModule(t)
	mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range g.Archive.Files {
		if !strings.HasPrefix(f.Name, "stubs/") {
			continue
		}
		gentest.Write(t, filepath.Join(dir, f.Name), f.Data)
		if path, ok := strings.CutSuffix(f.Name, "/go.mod"); ok {
			module := strings.Fields(string(f.Data))[1]
			version := "v1.0.0"
			if strings.HasSuffix(module, "/v3") {
				version = "v3.0.0"
			}
			mod = fmt.Appendf(mod, "\nrequire %s %s\n\nreplace %s => ./%s\n", module, version, module, path)
		}
	}
	gentest.Write(t, filepath.Join(dir, "go.mod"), mod)
	gentest.Write(t, filepath.Join(dir, "asyncgen.json"), g.Section("asyncgen.json"))
	gentest.Write(t, g.SourceFile(dir), g.Section("in.go"))
	result, err := gen.Generate(context.Background(), gen.Config{Dir: dir, Patterns: []string{"./w64/..."}})
	if err != nil {
		t.Fatal(err)
	}
	if err := result.Commit(); err != nil {
		t.Fatal(err)
	}
	gentest.RunKernels(t, dir, []*gentest.Golden{g}, result)
	if !t.Failed() {
		compareGolden(t, g, dir, result)
	}
}

// TestPackages: loops that call functions of other packages of their module are rewritten, and behave the same.
func TestPackages(t *testing.T) {
	g := gentest.ReadFile(t, "testdata/packages/lift.txtar")
	dir := gentest.NewModule(t)
	for _, f := range g.Archive.Files {
		if strings.Contains(f.Name, "/") {
			gentest.Write(t, filepath.Join(dir, filepath.FromSlash(f.Name)), f.Data)
		}
	}
	gentest.Write(t, g.SourceFile(dir), g.Section("in.go"))
	generate := func() *gen.Result {
		r, err := gen.Generate(context.Background(), gen.Config{Dir: dir, Patterns: []string{"./w64/..."}})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	result := generate()
	if err := result.Commit(); err != nil {
		t.Fatal(err)
	}
	gentest.RunKernels(t, dir, []*gentest.Golden{g}, result)
	if !t.Failed() {
		compareGolden(t, g, dir, result)
	}

	if stale := generate().Stale(); len(stale) > 0 {
		t.Errorf("stale right after it was written: %s", stale[0].Path)
	}
	if !slices.ContainsFunc(result.Files, func(f gen.File) bool {
		return strings.HasSuffix(f.Path, "_test.go") && bytes.Contains(f.Text, []byte(`asynctest.Fresh(t, "../../internal/stats/stats.go", "Mean", `))
	}) {
		t.Error("the written test does not look whether a function of another package has changed, of which there is a variant")
	}
	inPlace, err := gen.Generate(context.Background(), gen.Config{Dir: dir, Patterns: []string{"./w64/..."}, All: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range inPlace.Remarks {
		if m.Code >= "AG900" {
			t.Errorf("in place: %v", m)
		}
	}
	if !slices.ContainsFunc(inPlace.Files, func(f gen.File) bool {
		return filepath.Base(f.Path) == "in.go" && bytes.Contains(f.Text, []byte("lossAt := lossLater2(later, m, b)"))
	}) {
		t.Error("in place, no function of another package is called in two parts")
	}
	changed := bytes.Replace(g.Section("internal/stats/stats.go"), []byte("x.Mean()"), []byte("x.Sum()"), 1)
	gentest.Write(t, filepath.Join(dir, "internal", "stats", "stats.go"), changed)
	if len(generate().Stale()) == 0 {
		t.Error("a function of another package has changed, of which there is a variant, and nothing is stale")
	}
}
