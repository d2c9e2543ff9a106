package analysis_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/asyncgen/asyncgen/analysis"
	"github.com/asyncgen/asyncgen/analysis/lint"
	"github.com/asyncgen/asyncgen/internal/sametemp"
	xanalysis "golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/unitchecker"
)

// The test binary is the tool that go vet runs in these tests. It does not
// know what it was built with, so it is told.
func TestMain(m *testing.M) {
	analysis.UseTools(cmp.Or(os.Getenv("TOOLS_VERSION"), "v0.49.0"))
	if analysis.IsUnit(os.Args[1:]) {
		analysis.Unit()
	}
	debug.SetGCPercent(400) // types and syntax live as long as a test does, or a go command
	os.Setenv("GOGC", "400")
	os.Exit(m.Run())
}

func TestSuite(t *testing.T) {
	if err := xanalysis.Validate(analysis.Suite); err != nil {
		t.Error(err)
	}
	for i, a := range analysis.Suite {
		if i > 0 && analysis.Suite[i-1].Name >= a.Name {
			t.Errorf("%s is not in order", a.Name)
		}
		source, err := parser.ParseFile(token.NewFileSet(), filepath.Join(lint.RuleOf(a.Name).Package, "doc.go"), nil, parser.PackageClauseOnly|parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		if _, text, _ := strings.Cut(source.Doc.Text(), "# "+a.Name+": "); a.Doc != text {
			t.Errorf("%s: the page is\n%q, the comment says\n%q", a.Name, a.Doc, text)
		}
		title, page, _ := strings.Cut(a.Doc, "\n\n")
		if len(title) > 60 || strings.HasSuffix(title, ".") {
			t.Errorf("%s: %q is no title", a.Name, title)
		}
		for _, part := range []string{"\nWRONG\n", "\nRIGHT\n", "\nSilent", "issed", "\nFix: "} {
			if !strings.Contains(page, part) {
				t.Errorf("%s: the page does not say %q", a.Name, strings.TrimSpace(part))
			}
		}
		if fixes := !strings.Contains(page, "\nFix: none."); fixes != lint.RuleOf(a.Name).Fixes || fixes != slices.Contains(analysis.FixSuite, a) {
			t.Errorf("%s: the page says that it has fixes: %v; the rule and FixSuite do not agree", a.Name, fixes)
		}
	}
}

func TestIsUnit(t *testing.T) {
	for args, want := range map[string]bool{
		"":                            false,
		"vet ./...":                   false,
		"-V=full":                     true,
		"-flags":                      true,
		"-json /tmp/b001/vet.cfg":     true,
		"-severity=info -fix vet.cfg": true,
	} {
		if got := analysis.IsUnit(strings.Fields(args)); got != want {
			t.Errorf("IsUnit(%q) = %v", args, got)
		}
	}
}

// module makes a module of a user, with the stubs of the runtime as a second
// module beside it, and returns its folder.
func module(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := sametemp.Dir(t)
	stubs := filepath.Join("testdata", "src", "github.com", "asyncgen", "asyncgen")
	if err := os.CopyFS(filepath.Join(dir, "asyncgen"), os.DirFS(stubs)); err != nil {
		t.Fatal(err)
	}
	all := map[string]string{
		"asyncgen/go.mod": "module github.com/asyncgen/asyncgen\n\ngo 1.26\n",
		"user/go.mod": `module example.com/user

go 1.26

require github.com/asyncgen/asyncgen v0.0.0

replace github.com/asyncgen/asyncgen => ../asyncgen
`,
	}
	for name, text := range files {
		all["user/"+name] = text
	}
	for name, text := range all {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "user")
}

// program is a module with findings of each severity, across packages.
var program = map[string]string{
	"lib/lib.go": `package lib

import "github.com/asyncgen/asyncgen/runtime/tensor"

// Value waits.
func Value(t *tensor.Tensor) float64 { return t.Item() }

// New hides the tensor library from those who import lib.
func New() *tensor.Tensor { return tensor.Randn(3) }

// Next is what comes after v.
func Next(v float64) *tensor.Tensor { return tensor.Randn(1 + int(v)%3) }
`,
	"main.go": `package main

import (
	"fmt"
	"time"

	"example.com/user/lib"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

func main() {
	start := time.Now()
	x := lib.New()
	fmt.Println(time.Since(start))
	loop(x)
}

func loop(x *tensor.Tensor) {
	for i := range 100 {
		x = x.AddScalar(1)
		v := x.Item()
		if i%10 == 0 {
			fmt.Println(v)
		}
		x = x.AddScalar(1)
		// What comes next has to be asked for.

		x = lib.Next(lib.Value(x))
		y := x.MulScalar(2)
		lib.Value(y)
	}
}
`,
	"plain/plain.go": `package plain

func Plain() {}
`,
	"main_test.go": `package main

import (
	"testing"

	"example.com/user/lib"
)

func Test(t *testing.T) {
	x := lib.New()
	for range 10 {
		x = x.AddScalar(1)
		x.Item()
		t.Log(x.AddScalar(1))
	}
}
`,
}

func TestVet(t *testing.T) {
	dir := module(t, program)
	for _, c := range []struct {
		name string
		cfg  analysis.Config
		want []string
	}{
		{"warnings", analysis.Config{}, []string{"main.go:14 AT020", "main.go:21 AT008", "main.go:30 AT010"}},
		{"everything", analysis.Config{Info: true, Tests: true}, []string{"main.go:14 AT020", "main.go:21 AT008", "main.go:28 AT010", "main.go:30 AT010", "main_test.go:13 AT030", "main_test.go:14 AT004"}},
		{"rules", analysis.Config{Rules: []string{"AT008"}, BuildFlags: []string{"-tags=x"}}, []string{"main.go:21 AT008"}},
		{"clean", analysis.Config{Patterns: []string{"./plain", "./lib"}}, nil},
	} {
		c.cfg.Dir = dir
		if c.cfg.Patterns == nil {
			c.cfg.Patterns = []string{"./..."}
		}
		var stderr bytes.Buffer
		c.cfg.Stderr = &stderr
		findings, err := analysis.Vet(t.Context(), c.cfg)
		if err != nil {
			t.Fatalf("%s: %v\n%s", c.name, err, &stderr)
		}
		got := places(findings)
		for _, f := range findings {
			if !strings.HasSuffix(f.Message, "["+f.Rule+"]") {
				t.Errorf("%s: %q does not end with its rule", c.name, f.Message)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: findings are\n%s\nwant\n%s", c.name, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
		if stderr.Len() > 0 {
			t.Errorf("%s: stderr:\n%s", c.name, &stderr)
		}
	}
}

// What is reported about tests, and only if that is asked for.
func TestTests(t *testing.T) {
	dir := module(t, map[string]string{
		"helper.go": `package user

import (
	"testing"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

func sum(t testing.TB, xs []*tensor.Tensor) (total float64) {
	for _, x := range xs {
		total += x.AddScalar(1).Item()
	}
	each(xs, func(x *tensor.Tensor) {
		total += x.AddScalar(1).Item()
	})
	return total
}

func each(xs []*tensor.Tensor, f func(*tensor.Tensor)) {
	for _, x := range xs {
		f(x)
	}
}
`,
		"a_test.go": `package user

import (
	"testing"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

func Test(t *testing.T) {
	x := tensor.Ones(3)
	for i := range 100 {
		x = x.AddScalar(1)
		if x.Dim(0) != i {
			t.Errorf("%d: %v", i, x)
		}
		t.Run("sub", func(t *testing.T) {
			if y := x.AddScalar(2); y.Dim(0) != i {
				t.Fatalf("%d: %v", i, y.Item())
			}
		})
		t.Log(x)
	}
}

func Benchmark(b *testing.B) {
	x := tensor.Ones(3)
	for b.Loop() {
		x.AddScalar(1).Wait()
	}
	last := 0.0
	for b.Loop() {
		last = x.AddScalar(1).Item()
	}
	for range b.N {
		x.AddScalar(1).Wait()
	}
	for range b.N {
		last += x.AddScalar(1).Item()
	}
	b.Log(last)
}
`,
	})
	for _, tests := range []bool{false, true} {
		var want []string
		if tests {
			want = []string{"a_test.go:21 AT004", "a_test.go:38 AT001", "helper.go:11 AT001", "helper.go:14 AT012"}
		}
		cfg := analysis.Config{Dir: dir, Patterns: []string{"."}, Tests: tests, Stderr: t.Output()}
		findings, err := analysis.Vet(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		if got := places(findings); !slices.Equal(got, want) {
			t.Errorf("with tests %v findings are\n%s\nwant\n%s", tests, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

// places lists where findings are and which rule says so: "main.go:14 AT020".
func places(findings []analysis.Finding) []string {
	var list []string
	for _, f := range findings {
		file, line, _ := analysis.SplitPosn(f.Posn)
		list = append(list, fmt.Sprintf("%s:%d %s", filepath.Base(file), line, f.Rule))
	}
	return list
}

// What does not compile, or does not exist, is trouble, and go vet says why.
func TestVetTrouble(t *testing.T) {
	dir := module(t, map[string]string{"broken/broken.go": "package broken\n\nimport _ \"github.com/asyncgen/asyncgen/runtime/tensor\"\n\nfunc f() { undefined() }\n"})
	for pattern, want := range map[string]string{
		"./broken":  "undefined: undefined",
		"./missing": "missing",
	} {
		var stderr bytes.Buffer
		findings, err := analysis.Vet(t.Context(), analysis.Config{Dir: dir, Patterns: []string{pattern}, Stderr: &stderr})
		if err == nil || len(findings) > 0 || !strings.Contains(stderr.String(), want) {
			t.Errorf("%s: error %v, stderr %q; want one with %q", pattern, err, &stderr, want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := analysis.Vet(ctx, analysis.Config{Dir: dir}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// What does not compile is trouble also where no tensor can be reached: in a package
// that nobody imports, in its tests, in a function that nobody calls.
func TestBrokenWithoutTensors(t *testing.T) {
	files := make(map[string]string)
	broken := []struct{ file, text, want string }{
		{"p.go", "func f() { undefined() }", "undefined: undefined"},
		{"p.go", "func f() { x := 1 }", "declared and not used"},
		{"p.go", "func f( {", "expected ')'"},
		{"p_test.go", `var x int = ""`, "cannot use"},
		{"x_test.go", `import "fmt"`, "imported and not used"},
		{"p.go", "func f() int {}", "missing return"},
		{"p.go", "func p() {}\n\nvar p int", "p redeclared"},
		{"p.go", "func g[T any]() {}\n\nfunc f() { g() }", "cannot infer T"},
	}
	for i, b := range broken {
		pkg := fmt.Sprintf("p%d", i)
		files[pkg+"/fine.go"] = "package " + pkg + "\n"
		if b.file == "x_test.go" {
			pkg += "_test"
		}
		files[fmt.Sprintf("p%d/%s", i, b.file)] = "package " + pkg + "\n\n" + b.text + "\n"
	}
	var stderr bytes.Buffer
	findings, err := analysis.Vet(t.Context(), analysis.Config{Dir: module(t, files), Patterns: []string{"./..."}, Stderr: &stderr})
	if err == nil || len(findings) > 0 {
		t.Errorf("findings %v, error %v", findings, err)
	}
	for i, b := range broken {
		place := filepath.Join(fmt.Sprintf("p%d", i), b.file)
		if !slices.ContainsFunc(strings.Split(stderr.String(), "\n"), func(line string) bool {
			return strings.Contains(line, place) && strings.Contains(line, b.want)
		}) {
			t.Errorf("stderr is\n%s\nwant a line about %s with %q", &stderr, place, b.want)
		}
	}
}

// Fixed programs compile, do what go fix makes of them, and need no more
// fixing.
func TestFix(t *testing.T) {
	dir := module(t, program)
	cfg := analysis.Config{Dir: dir, Patterns: []string{"./..."}, Stderr: t.Output()}
	var diff bytes.Buffer
	changes, err := analysis.ApplyFixes(t.Context(), cfg, true, &diff)
	if err != nil || !changes {
		t.Fatalf("diff: %v, %v", changes, err)
	}
	for _, want := range []string{"-\t\tv := x.Item()\n", "+\t\t\tv := x.Item()\n", "+\tasyncrt.WaitIdle()\n", "+\tasyncrt \"github.com/asyncgen/asyncgen/runtime\"\n"} {
		if !strings.Contains(diff.String(), want) {
			t.Errorf("the diff lacks %q:\n%s", want, &diff)
		}
	}
	if changes, err := analysis.ApplyFixes(t.Context(), cfg, false, nil); err != nil || changes {
		t.Fatalf("fix: %v, %v", changes, err)
	}
	goCommand(t, dir, 0, "build", "-o", os.DevNull, ".")
	text, err := os.ReadFile(filepath.Join(dir, "main.go"))
	if err != nil {
		t.Fatal(err)
	}
	diff.Reset()
	if changes, err := analysis.ApplyFixes(t.Context(), cfg, true, &diff); err != nil || changes {
		t.Errorf("fixing again: %v, %v:\n%s\nof\n%s", changes, err, &diff, text)
	}

	other := module(t, program)
	goCommand(t, other, 0, "fix", "-fixtool="+os.Args[0], "./...")
	fixed, err := os.ReadFile(filepath.Join(other, "main.go"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(fixed, text) {
		t.Errorf("go fix gives\n%s\nnot\n%s", fixed, text)
	}
}

// go vet runs the same rules, prints the ids, and exits with 1.
func TestVettool(t *testing.T) {
	dir := module(t, program)
	out := goCommand(t, dir, 1, "vet", "-vettool="+os.Args[0], "./...")
	if n := strings.Count(out, "[AT"); n != 3 {
		t.Errorf("%d findings, want 3:\n%s", n, out)
	}
	out = goCommand(t, dir, 0, "vet", "-json", "-vettool="+os.Args[0], "-severity=info", "-AT010", ".")
	var tree map[string]map[string][]struct{ Category string }
	data := out[strings.IndexByte(out, '{'):]
	if err := json.NewDecoder(strings.NewReader(data)).Decode(&tree); err != nil {
		t.Fatalf("%v in\n%s", err, out)
	}
	for _, rules := range tree {
		if len(rules) != 1 || len(rules["AT010"]) != 2 || rules["AT010"][0].Category != "AT010-info" || rules["AT010"][1].Category != "AT010" {
			t.Errorf("findings by rule: %v", rules)
		}
	}
}

// A unit that cannot reach a tensor leaves empty facts and empty output; no
// other is skipped.
func TestSkip(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		return name
	}
	none, some := write("none.vetx", ""), write("some.vetx", "facts")
	base := unitchecker.Config{
		ImportPath:  "example.com/a",
		ImportMap:   map[string]string{"fmt": "fmt"},
		PackageVetx: map[string]string{"fmt": none},
		VetxOutput:  filepath.Join(dir, "out.vetx"),
		Stdout:      filepath.Join(dir, "out.json"),
	}
	for _, c := range []struct {
		name    string
		change  func(*unitchecker.Config)
		version string
		want    bool
	}{
		{"plain", func(*unitchecker.Config) {}, "v0.49.0", true},
		{"older tools", func(*unitchecker.Config) {}, "v0.45.1-pre", true},
		{"newer tools", func(*unitchecker.Config) {}, "v0.50.0", false},
		{"much newer tools", func(*unitchecker.Config) {}, "v1.0.0", false},
		{"unknown tools", func(*unitchecker.Config) {}, "", false},
		{"imports tensors", func(c *unitchecker.Config) {
			c.ImportMap = map[string]string{"tensor": "github.com/asyncgen/asyncgen/runtime/tensor"}
		}, "v0.49.0", false},
		{"is the library", func(c *unitchecker.Config) { c.ImportPath = "github.com/asyncgen/asyncgen/runtime" }, "v0.49.0", false},
		{"imports facts", func(c *unitchecker.Config) { c.PackageVetx = map[string]string{"b": some} }, "v0.49.0", false},
		{"facts are missing", func(c *unitchecker.Config) { c.PackageVetx = map[string]string{"b": "nowhere"} }, "v0.49.0", false},
		{"fixes", func(c *unitchecker.Config) { c.FixArchive = "fixes.zip" }, "v0.49.0", false},
		{"cannot write", func(c *unitchecker.Config) { c.VetxOutput = filepath.Join(dir, "no", "folder") }, "v0.49.0", false},
	} {
		cfg := base
		c.change(&cfg)
		os.Remove(base.VetxOutput)
		os.Remove(base.Stdout)
		data, err := json.Marshal(cfg)
		if err != nil {
			t.Fatal(err)
		}
		analysis.UseTools(c.version)
		if got := analysis.Skip(write("vet.cfg", string(data))); got != c.want {
			t.Errorf("%s: skipped: %v", c.name, got)
		}
		for _, out := range []string{base.VetxOutput, base.Stdout} {
			if info, err := os.Stat(out); c.want && (err != nil || info.Size() != 0) {
				t.Errorf("%s: %s: %v, %v", c.name, out, info, err)
			} else if !c.want && err == nil {
				t.Errorf("%s: wrote %s", c.name, out)
			}
		}
	}
	if analysis.Skip("nowhere.cfg") || analysis.Skip(write("bad.cfg", "{")) {
		t.Error("skipped a unit without a description")
	}
}

// With a version of x/tools that wants types in every file of facts, nothing
// is skipped and the findings are the same.
func TestNewerTools(t *testing.T) {
	dir := module(t, program)
	self, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(t.TempDir(), "othertool") // another program to go vet's cache
	if err := os.WriteFile(other, append(self, '\n'), 0o777); err != nil {
		t.Fatal(err)
	}
	fast := goCommand(t, dir, 1, "vet", "-vettool="+os.Args[0], "./...")
	t.Setenv("TOOLS_VERSION", "v0.50.0")
	slow := goCommand(t, dir, 1, "vet", "-vettool="+other, "./...")
	if sorted(fast) != sorted(slow) {
		t.Errorf("without skipping the findings are\n%s\nwith skipping\n%s", slow, fast)
	}
}

// sorted sorts lines, as go vet prints findings in any order.
func sorted(text string) string {
	lines := strings.Split(text, "\n")
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// goCommand runs the go command in dir, and returns what it prints. It has to exit
// with code, unless that is negative.
func goCommand(t *testing.T, dir string, code int, args ...string) string {
	t.Helper()
	cmd := exec.Command("go", args...)
	cmd.Dir = dir
	out, _ := cmd.CombinedOutput()
	if got := cmd.ProcessState.ExitCode(); got != code && code >= 0 {
		t.Fatalf("go %s exits with %d, not %d:\n%s", strings.Join(args, " "), got, code, out)
	}
	return string(out)
}
