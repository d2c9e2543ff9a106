package gentest_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/asyncgen/asyncgen/gen"
	"github.com/asyncgen/asyncgen/gen/internal/gentest"
	"github.com/asyncgen/asyncgen/internal/sametemp"
	"golang.org/x/tools/txtar"
)

var (
	update = flag.Bool("update", false, "rewrite the golden files")
	only   = flag.String("golden", "", "use the golden files whose names match this regular expression")
)

// temp is a folder for what several tests use.
var temp string

func TestMain(m *testing.M) {
	// Syntax and types live as long as a test does, in compilers, too: looking for what does not would take a third of
	// the time.
	debug.SetGCPercent(400)
	os.Setenv("GOGC", "400")
	os.Exit(runIn(m))
}

// runIn runs the tests while there is temp.
func runIn(m *testing.M) int {
	var err error
	if temp, err = sametemp.Make("goldens"); err != nil {
		panic(err)
	}
	defer os.RemoveAll(temp)
	return m.Run()
}

// goldenModule is a module with the sources of all golden files. Nothing is written to it:
// what the go command has compiled for one test is there for the next.
var goldenModule = struct {
	sync.Mutex
	dir string
}{}

// newGoldenModule makes goldenModule, if no test has, and returns its folder.
func newGoldenModule(t *testing.T) string {
	goldenModule.Lock()
	defer goldenModule.Unlock()
	if goldenModule.dir == "" {
		dir := filepath.Join(temp, "goldens")
		gentest.NewModuleIn(t, dir)
		for _, g := range gentest.Read(t, *only) {
			gentest.Write(t, g.SourceFile(dir), g.Section("in.go"))
		}
		goldenModule.dir = dir
	}
	return goldenModule.dir
}

func TestGolden(t *testing.T) {
	goldens := gentest.Read(t, *only)
	dir := newGoldenModule(t)
	result, err := gen.Generate(context.Background(), gen.Config{Dir: dir, Patterns: []string{"./w64/..."}})
	if err != nil {
		t.Fatal(err)
	}
	all, results := withKept(t, goldens, result)
	gentest.RunKernels(t, gentest.NewModule(t), all, results)
	if t.Failed() {
		return // what runs otherwise is not recorded
	}
	for _, g := range goldens {
		t.Run(g.Name, func(t *testing.T) { compareGolden(t, g, dir, result) })
	}
}

// withKept adds what older generators made to goldens and their output. It is not generated again, but has to compile
// and to run as it is: users have such files.
func withKept(t *testing.T, goldens []*gentest.Golden, result *gen.Result) ([]*gentest.Golden, *gen.Result) {
	paths, err := filepath.Glob("testdata/kept/*.txtar")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no kept files: %v", err)
	}
	all, results := slices.Clone(goldens), *result
	for _, path := range paths {
		if *only != "" {
			break
		}
		g := gentest.ReadFile(t, path)
		g.Name = "kept" + g.Name
		out := strings.TrimSuffix(g.SourceFile("/"), ".go") + "_async.go"
		all, results.Files = append(all, g), append(slices.Clip(results.Files), gen.File{Path: out, Text: g.Section("want_async.go")})
	}
	return all, &results
}

// compareGolden holds the output for g against its archive, or records it.
func compareGolden(t *testing.T, g *gentest.Golden, dir string, result *gen.Result) {
	folder := filepath.Dir(g.SourceFile(dir))
	text := g.Generated(t, result)
	var remarks bytes.Buffer
	for _, r := range result.Remarks {
		if r.Code >= "AG900" {
			t.Errorf("%v", r)
		}
		if filepath.Dir(r.Pos.Filename) == folder {
			fmt.Fprintln(&remarks, strings.ReplaceAll(r.Format(folder), dir+string(filepath.Separator), ""))
		}
	}
	if *update {
		g.Set("want_async.go", text)
		g.Set("remarks", remarks.Bytes())
		gentest.Write(t, g.Path, txtar.Format(g.Archive))
		return
	}
	for _, part := range []struct {
		name string
		got  []byte
	}{{"want_async.go", text}, {"remarks", remarks.Bytes()}} {
		if want := g.Section(part.name); !bytes.Equal(part.got, want) {
			t.Errorf("%s: %s is\n%s\nwant\n%s\nrun go test ./gen/internal/gentest -run TestGolden -update, and review the difference", g.Path, part.name, part.got, want)
		}
	}
}
