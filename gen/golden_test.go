package gen_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/asyncgen/asyncgen/gen"
	"golang.org/x/tools/txtar"
)

var (
	update = flag.Bool("update", false, "rewrite the golden files")
	only   = flag.String("golden", "", "use the golden files whose names match this regular expression")
)

// A golden is one archive of testdata/rewrite: a source file, the file that
// is generated from it, and the remarks. Each kernel in it also runs, as
// written and as generated, on inputs made by asynctest, with failing tensors,
// with windows 1, 2 and 64, on the CPU and on a simulated accelerator.
type golden struct {
	path    string
	name    string
	archive *txtar.Archive
}

func (g *golden) section(name string) []byte {
	for _, f := range g.archive.Files {
		if f.Name == name {
			return f.Data
		}
	}
	return nil
}

func (g *golden) set(name string, data []byte) {
	for i, f := range g.archive.Files {
		if f.Name == name {
			g.archive.Files[i].Data = data
			return
		}
	}
	g.archive.Files = append(g.archive.Files, txtar.File{Name: name, Data: data})
}

func readGoldens(t *testing.T) []*golden {
	paths, err := filepath.Glob("testdata/rewrite/*.txtar")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no archives: %v", err)
	}
	var gs []*golden
	for _, path := range paths {
		if !regexp.MustCompile(*only).MatchString(filepath.Base(path)) {
			continue
		}
		a, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		gs = append(gs, &golden{path, strings.TrimSuffix(filepath.Base(path), ".txtar"), a})
	}
	return gs
}

// root is the folder of this module.
func root(t testing.TB) string {
	dir, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// newModule makes a module that requires this one, in a new folder.
func newModule(t testing.TB) string {
	dir := t.TempDir()
	newModuleIn(t, dir)
	return dir
}

// newModuleIn makes a module that requires this one, in dir.
func newModuleIn(t testing.TB, dir string) {
	t.Helper()
	write(t, filepath.Join(dir, "go.mod"), []byte(fmt.Sprintf(`module example.com/user

go 1.26

require github.com/asyncgen/asyncgen v0.0.0

require (
	golang.org/x/sys v0.47.0 // indirect
	gonum.org/v1/gonum v0.17.0 // indirect
)

replace github.com/asyncgen/asyncgen => %s
`, root(t))))
	sum, err := os.ReadFile(filepath.Join(root(t), "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "go.sum"), sum)
}

func write(t testing.TB, path string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o666); err != nil {
		t.Fatal(err)
	}
}

// goldenModule is a module with the sources of all golden files, in w64. Nothing is written to it:
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
		newModuleIn(t, dir)
		for _, g := range readGoldens(t) {
			write(t, filepath.Join(dir, "w64", g.name, "in.go"), g.section("in.go"))
		}
		goldenModule.dir = dir
	}
	return goldenModule.dir
}

func TestGolden(t *testing.T) {
	goldens := readGoldens(t)
	dir := newGoldenModule(t)
	result, err := gen.Generate(context.Background(), gen.Config{Dir: dir, Patterns: []string{"./w64/..."}})
	if err != nil {
		t.Fatal(err)
	}
	runKernels(t, newModule(t), goldens, result)
	if t.Failed() {
		return // what runs otherwise is not recorded
	}
	for _, g := range goldens {
		t.Run(g.name, func(t *testing.T) { compareGolden(t, g, dir, result) })
	}
}

// generatedFile is what is generated for a golden's source.
func generatedFile(t *testing.T, g *golden, result *gen.Result) []byte {
	t.Helper()
	at := filepath.Join("w64", g.name, "in_async.go")
	for _, f := range result.Files {
		if strings.HasSuffix(f.Path, string(filepath.Separator)+at) {
			return f.Text
		}
	}
	t.Fatalf("%s: nothing is generated", g.path)
	return nil
}

// compareGolden holds the output for g against its archive, or records it.
func compareGolden(t *testing.T, g *golden, dir string, result *gen.Result) {
	folder := filepath.Join(dir, "w64", g.name)
	text := generatedFile(t, g, result)
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
		g.set("want_async.go", text)
		g.set("remarks", remarks.Bytes())
		write(t, g.path, txtar.Format(g.archive))
		return
	}
	for _, part := range []struct {
		name string
		got  []byte
	}{{"want_async.go", text}, {"remarks", remarks.Bytes()}} {
		if want := g.section(part.name); !bytes.Equal(part.got, want) {
			t.Errorf("%s: %s is\n%s\nwant\n%s\nrun go test ./gen -run TestGolden -update, and review the difference", g.path, part.name, part.got, want)
		}
	}
}

// windowUse is where a generated function makes its backlog. The tests make all of one size, which
// they choose at run time.
var windowUse = regexp.MustCompile(`(\.NewLater\[.*\]\()\w+Window\d*`)

// kernels returns the names of the marked functions of a file, as Go
// expressions, and those of the generated ones.
func kernels(t testing.TB, source []byte) (names [][2]string) {
	file, err := parser.ParseFile(token.NewFileSet(), "in.go", source, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range file.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Doc == nil || !strings.Contains(fn.Doc.List[len(fn.Doc.List)-1].Text, "//asyncgen:kernel") || fn.Type.TypeParams != nil {
			continue
		}
		prefix := ""
		if fn.Recv != nil {
			prefix = "(*" + fn.Recv.List[0].Type.(*ast.StarExpr).X.(*ast.Ident).Name + ")."
		}
		names = append(names, [2]string{prefix + fn.Name.Name, prefix + fn.Name.Name + "Async"})
	}
	return names
}

// runKernels builds and runs all kernels, as written and as generated, in one test
// binary of the module in dir, to which it adds what that needs.
func runKernels(t *testing.T, dir string, goldens []*golden, result *gen.Result) {
	var test bytes.Buffer
	fmt.Fprint(&test, "package user\n\nimport (\n\t\"fmt\"\n\t\"os\"\n\t\"testing\"\n\t\"github.com/asyncgen/asyncgen/runtime/asynctest\"\n")
	var body bytes.Buffer
	for i, g := range goldens {
		in, out := g.section("in.go"), generatedFile(t, g, result)
		list := "package p\n\n// Window is how much the functions put off before they wait.\nvar Window int\n\n// Cases are original, generated function and the function that makes arguments.\nvar Cases = map[string][3]any{\n"
		for _, k := range kernels(t, in) {
			args := "nil"
			if name := "args" + strings.NewReplacer("(*", "", ").", "").Replace(k[0]); bytes.Contains(in, []byte("func "+name+"(")) {
				args = name
			}
			list += fmt.Sprintf("\t%q: {%s, %s, %s},\n", k[0], k[0], k[1], args)
		}
		list += "}\n"
		if all, found := bytes.Count(out, []byte(".NewLater[")), len(windowUse.FindAll(out, -1)); all != found {
			t.Fatalf("%s: %d backlogs, %d of them with a window that can be chosen", g.path, all, found)
		}
		to := filepath.Join(dir, "run", g.name)
		write(t, filepath.Join(to, "in.go"), in)
		write(t, filepath.Join(to, "in_async.go"), windowUse.ReplaceAll(out, []byte("${1}Window")))
		write(t, filepath.Join(to, "cases.go"), []byte(list))
		fmt.Fprintf(&test, "\tp%d \"example.com/user/run/%s\"\n", i, g.name)
		fmt.Fprintf(&body, "\trun(t, %q, p%d.Cases, &p%[2]d.Window)\n", g.name, i)
	}
	fmt.Fprintf(&test, ")\n\nfunc TestCases(t *testing.T) {\n%s}\n", body.Bytes())
	test.WriteString(`
func run(t *testing.T, folder string, cases map[string][3]any, window *int) {
	windows := []int{1, 2, 64}
	if os.Getenv("ASYNCGEN_DEVICE") != "cpu" {
		windows = windows[2:] // where values come late, what waits for them is the same in all
	}
	for _, *window = range windows {
		for name, c := range cases {
			t.Run(fmt.Sprintf("%s/window=%d/%s", folder, *window, name), func(t *testing.T) { asynctest.Same(t, c[0], c[1], c[2]) })
		}
	}
}
`)
	write(t, filepath.Join(dir, "user_test.go"), test.Bytes())
	// Vet would look through every package for facts, and judge only the file above. What runs for
	// seconds is compiled in the quickest way.
	runTests(t, dir, "-vet=off", "-gcflags=example.com/user/...=-N -l")
}

// runTests builds the test binary of the module in dir, without what debuggers need, and runs it on every device.
// The go command takes the module for one in testdata, wherever it is, and so has compiled before what has not changed.
func runTests(t *testing.T, dir string, flags ...string) {
	t.Helper()
	home := filepath.Join(root(t), "gen", "testdata")
	replaced := make(map[string]string)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		replaced[filepath.Join(home, rel)] = path
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	temp := t.TempDir()
	overlay, binary := filepath.Join(temp, "overlay.json"), filepath.Join(temp, "user.test")
	write(t, overlay, []byte(jsonOf(t, map[string]map[string]string{"Replace": replaced})))
	build := exec.Command("go", slices.Concat([]string{"test", "-c", "-ldflags=-s -w", "-overlay=" + overlay, "-o", binary}, flags, []string{"."})...)
	build.Dir = home
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go test -c: %v\n%s", err, out)
	}
	var wg sync.WaitGroup
	for _, device := range []string{"cpu", "sim:0"} {
		wg.Go(func() {
			run := exec.Command(binary)
			run.Dir = dir
			run.Env = slices.Concat(os.Environ(), []string{"ASYNCGEN_DEVICE=" + device, "ASYNCGEN_SIM=n=1,launch=0us,latency=1us,copy=1us"})
			if out, err := run.CombinedOutput(); err != nil {
				t.Errorf("on %s: %v\n%s", device, err, out)
			}
		})
	}
	wg.Wait()
}

func archive(name string, data []byte) *txtar.Archive {
	return &txtar.Archive{Files: []txtar.File{{Name: name, Data: data}}}
}
