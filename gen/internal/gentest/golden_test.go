package gentest_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
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
	for _, why := range result.Unexecuted {
		t.Error(why)
	}
	gentest.RunKernels(t, gentest.NewModule(t), goldens, result)
	if t.Failed() {
		return // what runs otherwise is not recorded
	}
	for _, g := range goldens {
		t.Run(g.Name, func(t *testing.T) { compareGolden(t, g, dir, result) })
	}
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
