package e2e_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/asyncgen/asyncgen/device/devicetest"
	"github.com/asyncgen/asyncgen/gen"
	"github.com/asyncgen/asyncgen/gen/overlay"
)

const module = "github.com/asyncgen/asyncgen"

// temp is a folder for what several tests use.
var temp string

func TestMain(m *testing.M) {
	devicetest.QuickSim()
	debug.SetGCPercent(400) // syntax and types live as long as a test does; programs run as users run them
	os.Exit(runIn(m))
}

// runIn runs the tests in the module's root folder, while there is temp.
func runIn(m *testing.M) int {
	err := os.Chdir(filepath.Join("..", ".."))
	if err != nil {
		panic(err)
	}
	if temp, err = os.MkdirTemp("", "asyncgen-test"); err != nil {
		panic(err)
	}
	defer os.RemoveAll(temp)
	return m.Run()
}

// A shared is made by the first test that needs it. Linking a program costs more than most tests.
type shared[T any] struct {
	mu    sync.Mutex // guards what follows
	made  bool
	value T
}

// of returns the value, made by f if no test has made it yet.
func (s *shared[T]) of(t *testing.T, f func(t *testing.T) T) T {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.made {
		s.value = f(t)
		s.made = true
	}
	return s.value
}

var (
	builtTool         shared[string]
	rewrittenPrograms shared[*gen.Result]
	builtPrograms     shared[everyProgram]
)

// buildTool builds the command.
func buildTool(t *testing.T) string {
	t.Helper()
	return builtTool.of(t, func(t *testing.T) string {
		t.Helper()
		bin := filepath.Join(temp, "asyncgen"+exeSuffix())
		if out, err := exec.Command("go", "build", "-buildvcs=false", stripped, "-o", bin, "./cmd/asyncgen").CombinedOutput(); err != nil {
			t.Fatalf("go build: %v\n%s", err, out)
		}
		return bin
	})
}

// rewritePrograms rewrites the example programs, in place.
func rewritePrograms(t *testing.T) *gen.Result {
	t.Helper()
	return rewrittenPrograms.of(t, func(t *testing.T) *gen.Result {
		t.Helper()
		result, err := gen.Generate(t.Context(), gen.Config{Patterns: []string{"./testdata/programs/..."}, All: true})
		if err != nil {
			t.Fatal(err)
		}
		return result
	})
}

// stripped leaves out of a program what only debuggers need: half of what linking costs.
const stripped = "-ldflags=-s -w"

// buildOverlaid builds a main package with the given files, which need not exist on disk.
func buildOverlaid(t *testing.T, files map[string][]byte, bin, pkg string) {
	t.Helper()
	o, err := overlay.New(files)
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	if out, err := overlay.Command(t.Context(), "build", "-buildvcs=false", stripped, o.Flag(), "-o", bin, pkg).CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
}

func readText(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func exeSuffix() string {
	if runtime.GOOS == "windows" {
		return ".exe"
	}
	return ""
}

// programsMain is the main function of a program that is all the example programs, as written and
// rewritten, on devices that ASYNCGEN_FAULT makes fail. When one ends, except by os.Exit, it writes
// what is left to the file that FAULTS_REPORT names, if it names one.
const programsMain = `package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/asyncgen/asyncgen/device"
	_ "github.com/asyncgen/asyncgen/device/fault"
	_ "github.com/asyncgen/asyncgen/device/opencl"
	asyncrt "github.com/asyncgen/asyncgen/runtime"
)

func main() {
	f := programs[os.Args[1]]
	os.Args = append(os.Args[:1], os.Args[2:]...)
	if os.Getenv("FAULTS_REPORT") == "" {
		f()
		return
	}
	v := recovered(f)
	report(v)
	if v != nil {
		panic(v)
	}
}

func recovered(f func()) (v any) {
	defer func() { v = recover() }()
	f()
	return nil
}

type opError struct {
	Op     string
	Shapes []device.Shape
	DTypes int
	File   string
	Line   int
	Text   string
}

func errorOf(err error) (o opError) {
	if op, ok := errors.AsType[*asyncrt.OpError](err); ok {
		return opError{op.Op, op.Shapes, len(op.DTypes), op.File, op.Line, fmt.Sprintf("%+v", err)}
	}
	return opError{Text: fmt.Sprintf("%T: %v", err, err)}
}

// ours counts the goroutines that the library has started.
func ours() int {
	text := make([]byte, 1<<20)
	text = text[:runtime.Stack(text, true)]
	const by = "\ncreated by github.com/asyncgen/asyncgen/"
	return strings.Count(string(text), by+"runtime") + strings.Count(string(text), by+"device") + strings.Count(string(text), by+"internal")
}

func report(v any) {
	var r struct {
		Panic      *opError
		WaitAll    []opError
		Goroutines int
		Live       int64
	}
	if err, ok := v.(error); ok {
		r.Panic = new(errorOf(err))
	} else if v != nil {
		r.Panic = &opError{Text: fmt.Sprint(v)}
	}
	if joined, ok := asyncrt.WaitAll().(interface{ Unwrap() []error }); ok {
		for _, err := range joined.Unwrap() {
			r.WaitAll = append(r.WaitAll, errorOf(err))
		}
	}
	for range 3 { // what is freed may have held something else
		device.Collect()
		r.Live = 0
		for _, m := range asyncrt.Stats().Memory {
			r.Live += m.Live + m.InFlight
		}
	}
	most, _ := strconv.Atoi(os.Getenv("FAULTS_GOROUTINES"))
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); runtime.Gosched() { // what is about to end does
		if r.Goroutines = ours(); most < 0 || r.Goroutines <= most {
			break
		}
	}
	text, err := json.Marshal(r)
	if err == nil {
		err = os.WriteFile(os.Getenv("FAULTS_REPORT"), text, 0o644)
	}
	if err != nil {
		panic(err)
	}
}
`

// rewrittenSuffix is what the names of rewritten programs end in.
const rewrittenSuffix = "-rewritten"

// packageClause is what makes a file part of a program.
var packageClause = regexp.MustCompile(`(?m)^package main\b`)

// An everyProgram is all example programs in one binary. Its first argument is the name of one:
// that of the folder for a program as written, with rewrittenSuffix for one that is rewritten.
type everyProgram struct {
	bin   string
	names []string
}

// buildPrograms builds all example programs.
func buildPrograms(t *testing.T) everyProgram {
	t.Helper()
	return builtPrograms.of(t, linkPrograms)
}

// linkPrograms builds programsMain with the example programs.
func linkPrograms(t *testing.T) (all everyProgram) {
	t.Helper()
	root, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	result := rewritePrograms(t)
	rewritten := map[string][]byte{}
	for _, f := range result.Files {
		rewritten[f.Path] = f.Text
	}
	sources, err := filepath.Glob(filepath.Join(root, "testdata", "programs", "*", "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	imports, table := "", ""
	for _, path := range sources {
		original, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Base(filepath.Dir(path))
		add := func(name, path string, text []byte) {
			ident := strings.ReplaceAll(name, "-", "_")
			text = packageClause.ReplaceAll(text, []byte("package "+ident))
			exported := bytes.Replace(text, []byte("\nfunc main() {"), []byte("\nfunc Main() {"), 1)
			if !bytes.Equal(exported, text) {
				all.names = append(all.names, name)
				dir, err := filepath.Rel(root, filepath.Dir(path))
				if err != nil {
					t.Fatal(err)
				}
				imports += fmt.Sprintf("import %s %q\n", ident, module+"/"+filepath.ToSlash(dir))
				table += fmt.Sprintf("\t%q: %s.Main,\n", name, ident)
			}
			files[path] = exported
		}
		if strings.HasSuffix(path, "_test.go") {
			files[path] = packageClause.ReplaceAll(original, []byte("package "+name)) // beside it is that package
			continue
		}
		add(name, path, original)
		text := rewritten[path]
		if text == nil {
			text = append(fmt.Appendf(nil, "//line %s:1\n", path), original...)
		}
		dir := filepath.Join(root, "testdata", "programs", "all", name)
		if slices.ContainsFunc(result.Files, func(f gen.File) bool { return filepath.Dir(f.Path) == filepath.Dir(path) }) {
			add(name+rewrittenSuffix, filepath.Join(dir, filepath.Base(path)), text)
		}
	}
	dir := filepath.Join(root, "testdata", "programs", "all")
	files[filepath.Join(dir, "main.go")] = []byte(programsMain)
	files[filepath.Join(dir, "programs.go")] = []byte("package main\n\n" + imports + "\nvar programs = map[string]func(){\n" + table + "}\n")
	slices.Sort(all.names)
	for _, path := range sources {
		if name := filepath.Base(filepath.Dir(path)); !slices.Contains(all.names, name) {
			t.Fatalf("%s: no file has the line \"func main() {\"", filepath.Dir(path))
		}
	}
	all.bin = filepath.Join(temp, "programs"+exeSuffix())
	buildOverlaid(t, files, all.bin, "./testdata/programs/all")
	return all
}
