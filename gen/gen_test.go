package gen_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/asyncgen/asyncgen/gen"
	"github.com/asyncgen/asyncgen/gen/internal/gentest"
	"github.com/asyncgen/asyncgen/gen/overlay"
	"github.com/asyncgen/asyncgen/internal/turns"
)

func TestMain(m *testing.M) {
	// Syntax and types live as long as a test does, in compilers, too: looking for what does not would take a third of
	// the time.
	debug.SetGCPercent(400)
	os.Setenv("GOGC", "400")
	os.Exit(m.Run())
}

const kernelSource = `package p

import "github.com/asyncgen/asyncgen/runtime/tensor"

//asyncgen:kernel
func Sum(xs []*tensor.Tensor) (total float64) {
	for _, x := range xs {
		total += x.Sum().Item()
	}
	return total
}
`

// generate runs the generator on the module in dir.
func generate(t testing.TB, dir string, patterns ...string) (*gen.Result, error) {
	t.Helper()
	return gen.Generate(context.Background(), gen.Config{Dir: dir, Patterns: patterns})
}

// programPatterns are the programs of the repository, and what newcomers write.
var programPatterns = []string{"./testdata/programs/...", "./gen/testdata/newcomer"}

// generatePrograms rewrites all of programPatterns.
func generatePrograms() (*gen.Result, error) {
	return gen.Generate(context.Background(), gen.Config{Dir: "..", Patterns: programPatterns, All: true})
}

// programsInPlace is what generatePrograms returns the first time.
var programsInPlace = sync.OnceValues(generatePrograms)

// TestPrograms: every function of the programs of the repository goes through
// the generator. The output compiles, or it would not be there; it is the same
// bytes each time, however many threads there are; and its own output has
// nothing left to rewrite.
func TestPrograms(t *testing.T) {
	turns.Take(t)
	first, err := programsInPlace()
	if err != nil {
		t.Fatal(err)
	}
	if len(first.Files) == 0 {
		t.Error("nothing to rewrite in the programs")
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	gen.WithoutExecution(t) // which changes nothing where it finds nothing, see below
	second, err := generatePrograms()
	if err != nil {
		t.Fatal(err)
	}
	if !slices.EqualFunc(first.Files, second.Files, func(a, b gen.File) bool { return a.Path == b.Path && bytes.Equal(a.Text, b.Text) }) {
		t.Error("two runs give different files")
	}
	if !slices.EqualFunc(first.Remarks, second.Remarks, func(a, b gen.Remark) bool { return a.String() == b.String() }) {
		t.Error("two runs give different remarks")
	}
	for _, r := range first.Remarks {
		if r.Code >= "AG900" {
			t.Errorf("%v", r)
		}
	}
}

// TestRewrittenIsDone: what has been rewritten has nothing left to rewrite.
func TestRewrittenIsDone(t *testing.T) {
	dir := gentest.NewModule(t)
	gentest.Write(t, filepath.Join(dir, "p.go"), []byte(kernelSource))
	r, err := generate(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(r.Files[0].Text), gen.Header, "// By hand.", 1)
	gentest.Write(t, filepath.Join(dir, "q.go"), []byte(strings.ReplaceAll(strings.ReplaceAll(text, "sumWindow", "w"), "SumAsync", "Done")))
	// Somebody writes such code by hand, in another way.
	gentest.Write(t, filepath.Join(dir, "r.go"), []byte(`package p

import (
	asyncrt "github.com/asyncgen/asyncgen/runtime"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

func byHand(xs []*tensor.Tensor) (total float64) {
	later := asyncrt.NewLater[struct{}](3)
	for _, x := range xs {
		at := later.Read(x)
		later.Do(func() { total += at.Item() })
	}
	later.Flush()
	for _, x := range xs {
		total += x.Sum().Item()
	}
	return total
}
`))
	again, err := gen.Generate(context.Background(), gen.Config{Dir: dir, All: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range again.Files {
		if filepath.Base(f.Path) != "p.go" {
			t.Errorf("rewritten again:\n%s", f.Text)
		}
	}
}

// TestCommit: files appear, are left alone while they are right, replaced when
// they are stale or broken, removed when there is no reason for them.
func TestCommit(t *testing.T) {
	dir := gentest.NewModule(t)
	source, out := filepath.Join(dir, "p.go"), filepath.Join(dir, "p_async.go")
	gentest.Write(t, source, []byte(kernelSource))
	write := func(r *gen.Result) {
		t.Helper()
		if err := r.Commit(); err != nil {
			t.Fatal(err)
		}
		if entries, _ := filepath.Glob(filepath.Join(dir, ".asyncgen-*")); len(entries) > 0 {
			t.Errorf("left over: %v", entries)
		}
	}
	commit := func() {
		t.Helper()
		r, err := generate(t, dir)
		if err != nil {
			t.Fatal(err)
		}
		write(r)
	}
	commit()
	fresh, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	before, _ := os.Stat(out)
	commit()
	if after, _ := os.Stat(out); !os.SameFile(before, after) {
		t.Error("a file that was right has been written again")
	}

	// A checkout with other line ends is not stale.
	gentest.Write(t, out, bytes.ReplaceAll(fresh, []byte("\n"), []byte("\r\n")))
	if r, err := generate(t, dir); err != nil || len(r.Stale()) > 0 {
		t.Errorf("with \\r\\n at the ends of lines: %v\n%s", err, r.Diff(dir))
	}

	// The package uses the generated function, and the file is broken.
	gentest.Write(t, filepath.Join(dir, "use.go"), []byte("package p\n\nvar _ = SumAsync\n"))
	for _, broken := range []string{gen.Header + "\n\npackage p\n\nfunc SumAsync(", gen.Header + "\n\npackage p\n\nvar x int = \"no\"\n"} {
		gentest.Write(t, out, []byte(broken))
		r, err := generate(t, dir)
		if err != nil {
			t.Fatal(err)
		}
		diff := string(r.Diff(dir))
		if len(r.Stale()) != 1 || !strings.HasPrefix(diff, "--- p_async.go\n+++ p_async.go\n@@ -2,4 +2,28 @@\n") || !strings.Contains(diff, "\n+\tlater.Flush()\n") {
			t.Errorf("diff of a broken file:\n%s", diff)
		}
		write(r)
		if got, _ := os.ReadFile(out); !bytes.Equal(got, fresh) {
			t.Errorf("a broken file became\n%s", got)
		}
	}

	// The directive is gone, and with it the reason for the file.
	os.Remove(filepath.Join(dir, "use.go"))
	gentest.Write(t, source, []byte(strings.Replace(kernelSource, "//asyncgen:kernel", "//", 1)))
	commit()
	if _, err := os.Stat(out); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file is still there: %v", err)
	}
	if _, err := generate(t, dir); !errors.Is(err, gen.ErrNoKernel) {
		t.Errorf("no kernel: %v", err)
	}
}

// TestCommitRefuses: what is not ours stays, and nothing is half-written.
func TestCommitRefuses(t *testing.T) {
	setUp := func(t *testing.T) (dir string, a, b string) {
		dir = gentest.NewModule(t)
		gentest.Write(t, filepath.Join(dir, "a", "p.go"), []byte(kernelSource))
		gentest.Write(t, filepath.Join(dir, "b", "p.go"), []byte(kernelSource))
		return dir, filepath.Join(dir, "a", "p_async.go"), filepath.Join(dir, "b", "p_async.go")
	}
	check := func(t *testing.T, dir, first, want string) {
		r, err := generate(t, dir, "./...")
		if err != nil {
			t.Fatal(err)
		}
		err = r.Commit()
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("Commit: %v; want one line with %q", err, want)
		}
		if _, err := os.Stat(first); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s has been written", first)
		}
		if left, _ := filepath.Glob(filepath.Join(dir, "*", ".asyncgen-*")); len(left) > 0 {
			t.Errorf("left over: %v", left)
		}
	}
	t.Run("file of another", func(t *testing.T) {
		dir, a, b := setUp(t)
		gentest.Write(t, b, []byte("package p\n"))
		check(t, dir, a, "was not generated by asyncgen")
	})
	t.Run("link", func(t *testing.T) {
		dir, a, b := setUp(t)
		target := filepath.Join(dir, "target.txt")
		gentest.Write(t, target, []byte(gen.Header+"\n\npackage p\n"))
		if err := os.Symlink(target, b); err != nil {
			t.Skip("no symbolic links here:", err)
		}
		check(t, dir, a, "not a regular file")
	})
	t.Run("read-only folder", func(t *testing.T) {
		dir, a, b := setUp(t)
		if err := os.Chmod(filepath.Dir(b), 0o555); err != nil {
			t.Fatal(err)
		}
		defer os.Chmod(filepath.Dir(b), 0o777)
		if f, err := os.Create(filepath.Join(filepath.Dir(b), "probe")); err == nil {
			f.Close()
			t.Skip("folders can't be made read-only for this user")
		}
		check(t, dir, a, "permission denied")
	})
}

// TestBadInput: one clear message for each mistake.
func TestBadInput(t *testing.T) {
	cases := map[string]struct{ source, want string }{
		"type error":          {"package p\n\nvar x int = \"s\"\n", "3:13: cannot use \"s\""},
		"syntax error":        {"package p\n\nfunc {\n", "3:6: expected"},
		"misspelt directive":  {"package p\n\n//asyncgen:kernal\nfunc F() {}\n", "unknown directive //asyncgen:kernal: did you mean kernel?"},
		"misspelt and called": {"package p\n\n//asyncgen:kernal\nfunc F() {}\n\nvar _ = FAsync\n", "unknown directive //asyncgen:kernal: did you mean kernel?"},
		"misplaced directive": {"package p\n\n//asyncgen:kernel\nvar x int\n", "belongs in the comment directly above a function"},
		"unknown option":      {"package p\n\n//asyncgen:kernel windw=3\nfunc F() {}\n", "no option \"windw=3\": did you mean window?"},
		"bad window":          {"package p\n\n//asyncgen:kernel window=0\nfunc F() {}\n", "window=0: want a number of at least 1"},
		"bad bound":           {"package p\n\n//asyncgen:kernel ahead=-1\nfunc F() {}\n", "ahead=-1: want a number of at least 1"},
		"no bound":            {"package p\n\n//asyncgen:kernel ahead\nfunc F() {}\n", "no option \"ahead\""},
		"bad name":            {"package p\n\n//asyncgen:kernel name=a-b\nfunc F() {}\n", "name=a-b: not an identifier"},
		"tested as nothing":   {"package p\n\n//asyncgen:kernel test=int\nfunc F[T any]() {}\n", "test=int: want type arguments for F: F[…]"},
		"tested as another":   {"package p\n\ntype G[T any] int\n\n//asyncgen:kernel test=F[int]\nfunc (G[T]) F() {}\n", "test=F[int]: want type arguments for G: G[…]"},
		"bad rewrite":         {"package p\n\n//asyncgen:kernel off=R99\nfunc F() {}\n", "off=R99: there is no such rewrite; there are "},
		"misspelt rewrite":    {"package p\n\n//asyncgen:kernel off=defer-sums\nfunc F() {}\n", "off=defer-sums: there is no such rewrite: did you mean defer-sum?"},
		"number of a rewrite": {"package p\n\n//asyncgen:kernel off=undo,R4\nfunc F() {}\n", "off=R4: rewrites have names now: this is off=defer-print"},
		"number of several":   {"package p\n\n//asyncgen:kernel off=R15\nfunc F() {}\n", "off=R15: rewrites have names now: this is off=batch-rows,map-rows"},
		"no such parameter":   {"package p\n\n//asyncgen:kernel output=report\nfunc F(show func()) {}\n", "output=report: F has no such parameter"},
		"not of a parameter":  {"package p\n\n//asyncgen:kernel outptu=show\nfunc F(show func()) {}\n", "no option \"outptu=show\": did you mean output?"},
		"bad effect":          {"package p\n\n//asyncgen:effects outptu\nfunc F() {}\n", "knows output, input, device, stamps, builds, formats, changes, none, not \"outptu\": did you mean output?"},
		"no effect":           {"package p\n\n//asyncgen:effects\nfunc F() {}\n", "says nothing"},
		"misplaced effect":    {"package p\n\n//asyncgen:pure\nvar x int\n", "belongs in the comment of a function, a function type"},
		"no function":         {"package p\n\ntype T struct {\n\t//asyncgen:pure\n\tF []func()\n}\n", "F is no function, so that the directive says nothing: write it above a type of functions"},
		"no such function":    {"package p\n\n//asyncgen:kernel pure=n\nfunc F(n int) {}\n", "n is no function"},
		"embedded effect":     {"package p\n\ntype T interface {\n\t//asyncgen:pure\n\terror\n}\n", "belongs in the comment of a function, a function type"},
		"no output":           {"package p\n\n//asyncgen:kernel pure=ch\nfunc F(ch chan int) {}\n", "ch is no function"},
		"no body":             {"package p\n\n//asyncgen:kernel\nfunc F()\n", "F has no body to rewrite"},
		"taken name":          {"package p\n\n//asyncgen:kernel\nfunc F() {}\n\nfunc FAsync() {}\n", "the generated function would be called FAsync, as the one at "},
		"own name":            {"package p\n\n//asyncgen:kernel name=F\nfunc F() {}\n", "choose another with //asyncgen:kernel name="},
		"spaced directive":    {"package p\n\n// asyncgen:kernel window=8\nfunc F() {}\n", "write //asyncgen:kernel window=8, without the space"},
		"spaced effects":      {"package p\n\ntype T struct {\n\t// asyncgen:effects output\n\tF func()\n}\n", "write //asyncgen:effects output, without the space"},
		"no name":             {"package p\n\n//asyncgen:kernel\nfunc _() {}\n", "nothing can call _"},
		"runs by itself":      {"package p\n\n//asyncgen:kernel\nfunc init() {}\n", "nothing can call init"},
		"one name for two":    {"package p\n\n//asyncgen:kernel name=H\nfunc F() {}\n\n//asyncgen:kernel name=H\nfunc G() {}\n", "the generated function would be called H, as the one for "},
		"in a function":       {"package p\n\nfunc F() {\n\t//asyncgen:kernel\n\tf := func() {}\n\tf()\n}\n", "belongs in the comment directly above a function"},
		"of an interface":     {"package p\n\ntype I interface {\n\t//asyncgen:kernel\n\tF()\n}\n", "belongs in the comment directly above a function"},
		"apart":               {"package p\n\n//asyncgen:kernel\n\nfunc F() {}\n", "belongs in the comment directly above a function"},
		"in a file of C":      {"package p\n\n// int x;\nimport \"C\"\n\n//asyncgen:kernel\nfunc F() {}\n\nvar _ = C.x\n", "functions in files that import \"C\" can't be rewritten"},
		"two directives":      {"package p\n\n//asyncgen:kernel\n//asyncgen:kernel\nfunc F() {}\n", "two //asyncgen:kernel directives on F"},
	}
	if out, err := exec.Command("go", "env", "CGO_ENABLED").Output(); err != nil || strings.TrimSpace(string(out)) != "1" {
		t.Logf("without cgo, files of C are not tried (%v)", err)
		delete(cases, "in a file of C")
	}
	dir := gentest.NewModule(t)
	for name, c := range cases {
		gentest.Write(t, filepath.Join(dir, strings.ReplaceAll(name, " ", "_"), "p.go"), []byte(c.source))
	}
	gentest.Write(t, filepath.Join(dir, "no_body", "p.s"), nil) // the body may be in it
	_, err := generate(t, dir, "./...")
	if err == nil {
		t.Fatal("no error")
	}
	lines := strings.Split(err.Error(), "\n")
	for name, c := range cases {
		at := slices.IndexFunc(lines, func(l string) bool {
			return strings.Contains(l, "/"+strings.ReplaceAll(name, " ", "_")+"/p.go:") && strings.Contains(l, c.want)
		})
		if at < 0 {
			t.Errorf("%s: no line with %q in\n%v", name, c.want, err)
		}
	}
	dir = gentest.NewModule(t)
	gentest.Write(t, filepath.Join(dir, "tested", "p.go"), []byte("package p\n\n//asyncgen:kernel test=F[string]\nfunc F[T ~int]() {}\n\n//asyncgen:kernel test=G[int]\nfunc G() {}\n"))
	_, err = generate(t, dir, "./tested")
	for _, want := range []string{"p.go:3:1: test=F[string]: string does not satisfy ~int", "p.go:6:1: test=G[int]: "} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %q", err, want)
		}
	}
	dir = gentest.NewModule(t)
	gentest.Write(t, filepath.Join(dir, "marked", "p.go"), []byte("package p\n"))
	gentest.Write(t, filepath.Join(dir, "marked", "p_test.go"), []byte(kernelSource))
	for pattern, want := range map[string]string{"./nothere": "nothere", ".": "no Go files", "./marked": "p_test.go:6:6: functions in test files can't be rewritten: move Sum"} {
		if _, err := generate(t, dir, pattern); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %q", pattern, err, want)
		}
	}

	// Beside others they are no reason to stop.
	gentest.Write(t, filepath.Join(dir, "other", "p.go"), []byte(kernelSource))
	gentest.Write(t, filepath.Join(dir, "tests", "p_test.go"), []byte(strings.ReplaceAll(kernelSource, "//asyncgen:kernel", "//asyncgen:kernel strict")))
	r, err := generate(t, dir, "./...")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range r.Remarks {
		if m.Code == "AG218" {
			got = append(got, m.Format(dir))
		}
	}
	want := []string{"marked/p_test.go:6:6: AG218 refused: Sum stays as it is: functions in test files can't be rewritten\n\thint: move Sum to another file",
		"tests/p_test.go:6:6: AG218 refused: Sum stays as it is: functions in test files can't be rewritten\n\thint: move Sum to another file"}
	if !slices.Equal(got, want) || len(r.Files) == 0 || len(r.Waits()) != 1 {
		t.Errorf("remarks %q, want %q; %d files, %v", got, want, len(r.Files), r.Waits())
	}
}

// A file of somebody else in the way of the output, and a missing go.mod, came
// out as calls of undefined functions and as what go/packages calls an error.
func TestBadSurroundings(t *testing.T) {
	dir := gentest.NewModule(t)
	source := "package p\n\n//asyncgen:kernel\nfunc F() {}\n\nvar _ = FAsync\n"
	gentest.Write(t, filepath.Join(dir, "p.go"), []byte(source))
	gentest.Write(t, filepath.Join(dir, "p_async.go"), []byte("package p\n"))
	_, err := generate(t, dir)
	if want := "p_async.go: was not generated by asyncgen, and stands where the functions generated from p.go belong\n"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("with p_async.go by somebody else: %v; want %q", err, want)
	}
	_, err = generate(t, t.TempDir())
	if want := "load .: go: go.mod file not found"; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("without go.mod: %v; want %q", err, want)
	}
}

// A variable of a type that another package keeps for itself was declared before the entry that sets it.
func TestUnexportedType(t *testing.T) {
	dir := gentest.NewModule(t)
	gentest.Write(t, filepath.Join(dir, "q", "q.go"), []byte("package q\n\ntype hidden struct{ N float64 }\n\nfunc Make(x float64) hidden { return hidden{x} }\n"))
	gentest.Write(t, filepath.Join(dir, "p.go"), []byte(`package p

import (
	"example.com/user/q"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

//asyncgen:kernel
func Sum(w *tensor.Tensor, xs []*tensor.Tensor) (total float64) {
	for _, x := range xs {
		h := q.Make(x.Sum().Item())
		w = w.Add(x)
		total += h.N + w.Sum().Item()
	}
	return total
}
`))
	r, err := generate(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Remarks) == 0 || r.Remarks[0].Code != "AG217" {
		t.Errorf("%v; want AG217", r.Remarks)
	}
}

// TestVendor: a folder vendor has what is imported, and the first generated file imports more.
func TestVendor(t *testing.T) {
	dir := t.TempDir()
	gentest.Write(t, filepath.Join(dir, "go.mod"), fmt.Appendf(nil, "module example.com/user\n\ngo 1.26\n\nrequire github.com/asyncgen/asyncgen v0.0.0\n\nreplace github.com/asyncgen/asyncgen => %s\n", gentest.Root(t)))
	gentest.Write(t, filepath.Join(dir, "vendor", "modules.txt"), fmt.Appendf(nil, "# github.com/asyncgen/asyncgen v0.0.0 => %s\n## explicit; go 1.26\n# github.com/asyncgen/asyncgen => %[1]s\n", gentest.Root(t)))
	gentest.Write(t, filepath.Join(dir, "p.go"), []byte("package p\n\n//asyncgen:kernel\nfunc F() {}\n"))
	_, err := generate(t, dir)
	if want := "generate with GOFLAGS=-mod=mod, and then run go mod vendor"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v; want %q", err, want)
	}
}

// TestStrict: what still waits is reported, of functions that are strict.
func TestStrict(t *testing.T) {
	dir := gentest.NewModule(t)
	source := kernelSource + `
//asyncgen:kernel strict off=speculate
func Exit(xs []*tensor.Tensor) int {
	for i, x := range xs {
		if x.Sum().Item() > 1 {
			return i
		}
	}
	return -1
}

//asyncgen:kernel off=speculate
func Lax(xs []*tensor.Tensor) int {
	for i, x := range xs {
		if x.Sum().Item() > 1 {
			return i
		}
	}
	return -1
}
`
	gentest.Write(t, filepath.Join(dir, "p.go"), []byte(source))
	for _, strict := range []bool{false, true} {
		r, err := gen.Generate(context.Background(), gen.Config{Dir: dir, Strict: strict})
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, w := range r.Waits() {
			names = append(names, w.Function)
		}
		want := []string{"Exit"}
		if strict {
			want = append(want, "Lax")
		}
		if !slices.Equal(names, want) {
			t.Errorf("strict %v: waits in %v, want %v", strict, names, want)
		}
	}
}

// TestVariantsOfOtherSystems: the variant of a function that is called is built when the function is, and in
// one file: where another file has another function of that name, the loop calls that.
func TestVariantsOfOtherSystems(t *testing.T) {
	const head = "package p\n\nimport \"github.com/asyncgen/asyncgen/runtime/tensor\"\n\n"
	const kernel = "//asyncgen:kernel\nfunc %s(xs []*tensor.Tensor) (total float64) {\n\tfor _, x := range xs {\n\t\ttotal += %s(x)\n\t}\n\treturn total\n}\n\n"
	const helper = "func %s(x *tensor.Tensor) float64 { return x.%s().Item() }\n\n"
	dir := gentest.NewModule(t)
	for name, text := range map[string]string{
		"a.go":        head + fmt.Sprintf(kernel, "A", "mean") + fmt.Sprintf(kernel, "Shared", "shared") + fmt.Sprintf(helper, "shared", "Max"),
		"mean_on.go":  "//go:build !other\n\n" + head + fmt.Sprintf(helper, "mean", "Mean") + fmt.Sprintf(kernel, "On", "shared") + fmt.Sprintf(kernel, "Same", "mean"),
		"mean_off.go": "//go:build other\n\n" + head + fmt.Sprintf(helper, "mean", "Sum"),
	} {
		gentest.Write(t, filepath.Join(dir, name), []byte(text))
	}
	r, err := generate(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Commit(); err != nil {
		t.Fatal(err)
	}
	rewritten := make(map[string]bool)
	for _, m := range r.Remarks {
		rewritten[m.Function] = m.Verdict == gen.Applied
		if m.Verdict == gen.Refused && !strings.Contains(m.Format(dir), "another build constraint") {
			t.Error(m)
		}
	}
	if want := map[string]bool{"A": false, "Shared": true, "On": false, "Same": true}; !maps.Equal(rewritten, want) {
		t.Errorf("rewritten %v, want %v", rewritten, want)
	}
	for _, tags := range []string{"-tags=", "-tags=other"} {
		cmd := exec.Command("go", "vet", tags, ".")
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", tags, err, out)
		}
	}
}

// TestNames: options, methods, generic functions, build constraints and file
// names.
func TestNames(t *testing.T) {
	dir := gentest.NewModule(t)
	gentest.Write(t, filepath.Join(dir, "step_linux.go"), []byte(`//go:build linux && !nothing

package p

import (
	tt "github.com/asyncgen/asyncgen/runtime/tensor"
	str "strings"
)

type Model[T any] struct{ v T }

//asyncgen:kernel name=Run window=7
func (*Model[T]) run(xs []*tt.Tensor, rest ...int) (s string, n T) {
	for _, x := range xs {
		s += str.Repeat("x", int(x.Sum().Item()))
	}
	return s, n
}

//asyncgen:kernel
func gen[K comparable, V any](m map[K]V, _ int, xs []*tt.Tensor) (out map[K]float64) {
	out = make(map[K]float64)
	var key K
	for _, x := range xs {
		v := x.Sum().Item()
		x = x.Neg()
		out[key] = v
	}
	return out
}

//asyncgen:kernel
func plain(int, string, ...float64) {}
`))
	r, err := generate(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Files) != 1 || filepath.Base(r.Files[0].Path) != "step_async_linux.go" {
		t.Fatalf("files: %v", r.Files)
	}
	text := string(r.Files[0].Text)
	for _, want := range []string{
		gen.Header + "\n", "//go:build linux && !nothing\n\npackage p\n",
		"\tstr \"strings\"\n", "\ttt \"github.com/asyncgen/asyncgen/runtime/tensor\"\n",
		"func (*Model[T]) Run(xs []*tt.Tensor, rest ...int) (s string, n T) {",
		"const modelRunWindow = 7 ",
		"func genAsync[K comparable, V any](m map[K]V, _ int, xs []*tt.Tensor) (out map[K]float64) {",
		"func plainAsync(p1 int, p2 string, p3 ...float64) {\n\tplain(p1, p2, p3...)\n}",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

// TestGeneratedTests: a package that says how arguments are made gets a test,
// which passes, notices that its source has changed, and goes when it can't
// run any more.
func TestGeneratedTests(t *testing.T) {
	turns.Take(t)
	dir := gentest.NewModule(t)
	source := kernelSource + `
type Model struct{ w *tensor.Tensor }

// Eval is a method.
//
//asyncgen:kernel
func (m *Model) Eval(xs []*tensor.Tensor) (all []float64) {
	for _, x := range xs {
		all = append(all, x.Mul(m.w).Sum().Item())
	}
	return all
}
`
	makers := `package p

import (
	"math/rand/v2"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

func asyncgenSumArgs(r *rand.Rand) []*tensor.Tensor {
	return []*tensor.Tensor{tensor.Randn(1 + r.IntN(3)), tensor.Randn(2, 2)}
}

func asyncgenModelEvalArgs(*rand.Rand) (*Model, []*tensor.Tensor) {
	return &Model{tensor.Randn(3)}, []*tensor.Tensor{tensor.Randn(3), tensor.Randn(2, 3)}
}
`
	gentest.Write(t, filepath.Join(dir, "p.go"), []byte(source))
	gentest.Write(t, filepath.Join(dir, "args_test.go"), []byte(makers))
	commit := func() {
		t.Helper()
		r, err := generate(t, dir)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Commit(); err != nil {
			t.Fatal(err)
		}
	}
	commit()
	test := func() (string, error) {
		cmd := exec.Command("go", "test", "-count=1", "-vet=off", "-v", ".")
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	out, err := test()
	if err != nil || !strings.Contains(out, "--- PASS: TestSumAsync ") || !strings.Contains(out, "--- PASS: TestModelEvalAsync ") {
		t.Fatalf("go test: %v\n%s", err, out)
	}
	gentest.Write(t, filepath.Join(dir, "p.go"), []byte(strings.Replace(source, "total += x", "total += /* as before */\n\t\t\tx", 1)))
	if out, err := test(); err != nil {
		t.Errorf("after a change of layout: %v\n%s", err, out)
	}
	gentest.Write(t, filepath.Join(dir, "p.go"), []byte(strings.Replace(source, "total += x", "total += 1 * x", 1)))
	if out, err := test(); err == nil || !strings.Contains(out, "Sum has changed since its rewritten version was generated: run go generate") {
		t.Errorf("after a change: %v\n%s", err, out)
	}
	if err := os.Remove(filepath.Join(dir, "args_test.go")); err != nil {
		t.Fatal(err)
	}
	commit()
	if left, _ := filepath.Glob(filepath.Join(dir, "*_test.go")); len(left) > 0 {
		t.Errorf("left over: %v", left)
	}
}

// TestOddFiles: what else a file may say, and how it may be written, makes no
// difference to either form of output.
func TestOddFiles(t *testing.T) {
	const source = `package odd

import (
	"fmt"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// Watch prints sums.
//
//asyncgen:kernel
func Watch(x *tensor.Tensor, n int) (total float64) {
	for i := range n {
		x = x.AddScalar(1)
		loss := x.Sum() // the loss
		total += loss.Item()
		fmt.Println(i, loss, tensor.ItemOf[float32](loss))
	}
	return total
}

func Main() { fmt.Println(Watch(tensor.Ones(2, 2), 3)) }
`
	const want = "0 8 8\n1 12 12\n2 16 16\n36\n"
	replace := func(oldnew ...string) string { return strings.NewReplacer(oldnew...).Replace(source) }
	cases := map[string]string{
		"crlf":       replace("\n", "\r\n"),
		"bom":        "\uFEFF" + source,
		"dot":        replace(`"github.com`, `. "github.com`, "tensor.", ""),
		"both":       replace(`"github.com/asyncgen/asyncgen/runtime/tensor"`, ". \"github.com/asyncgen/asyncgen/runtime/tensor\"\n\ttt \"github.com/asyncgen/asyncgen/runtime/tensor\"", "x *tensor.", "x *tt.", "tensor.", ""),
		"modules":    replace("import (", "import (\n\t. \"github.com/asyncgen/asyncgen/runtime/nn\"", "n int)", "n int, _ ...Module)"),
		"renamed":    replace(`"github.com`, `asyncrt "github.com`, "tensor.", "asyncrt."),
		"global":     source + "\nfunc asyncrt() {}\n\nvar later, lossAt, watchWindow, lossAt2 int\n",
		"local":      replace("loss := ", "asyncrt, later := 1, 2\n\t\t_, _ = asyncrt, later\n\t\tloss := "),
		"shadowed":   replace("import (", "import (\n\trt \"github.com/asyncgen/asyncgen/runtime\"", "func Main() {", "func Main() {\n\t_ = rt.WaitAll\n\t", "loss := ", "for rt := range 1 {\n\t\t\t_ = rt\n\t\t}\n\t\tloss := "),
		"imported":   replace("import (", "import (\n\trt \"github.com/asyncgen/asyncgen/runtime\"", "loss := ", "_ = rt.WaitAll\n\t\tloss := "),
		"commented":  replace("package odd\n", "/* a */ package odd // b\n", "total += loss.Item()", "total /* c */ += loss.Item() /* d */ // e"),
		"one-liners": replace("package odd\n", "package odd;", "{\n\t\tx = x", "{ x = x", "\n\t\tloss :=", "; loss :=", "\n\t\ttotal", "\n\t\t;total"),
	}
	dir := gentest.NewModule(t)
	// What cgo makes of a file was to be removed from its cache, as generated for nothing.
	cases["cgo"] = source
	gentest.Write(t, filepath.Join(dir, "cgo", "c.go"), []byte("package odd\n\n// static int one(void) { return 1; }\nimport \"C\"\n\nfunc one() int { return int(C.one()) }\n"))
	imports, calls, printed := "", "", ""
	for i, name := range slices.Sorted(maps.Keys(cases)) {
		gentest.Write(t, filepath.Join(dir, name, "odd.go"), []byte(cases[name]))
		imports += fmt.Sprintf("import p%d %q\n", i, "example.com/user/"+name)
		calls += fmt.Sprintf("\tfmt.Println(%q)\n\tp%d.Main()\n", name, i)
		printed += name + "\n" + want
	}
	gentest.Write(t, filepath.Join(dir, "main.go"), []byte("package main\n\nimport \"fmt\"\n"+imports+"\nfunc main() {\n"+calls+"}\n"))
	for _, all := range []bool{true, false} {
		r, err := gen.Generate(context.Background(), gen.Config{Dir: dir, Patterns: []string{"./..."}, All: all})
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range r.Remarks {
			if m.Verdict != gen.Applied {
				t.Errorf("%v", m)
			}
		}
		if !all {
			if err := r.Commit(); err != nil {
				t.Fatal(err)
			}
			if _, err := generate(t, dir, "./..."); err != nil {
				t.Errorf("once more: %v", err)
			}
			continue
		}
		o, err := overlay.Of(r)
		if err != nil {
			t.Fatal(err)
		}
		defer o.Close()
		cmd := exec.Command("go", "run", "-ldflags=-s -w", o.Flag(), ".")
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil || string(out) != printed {
			t.Errorf("%v\n%s\nwant\n%s", err, out, printed)
		}
	}
}

// TestRunsWhenArrived: what was queued runs in the iteration in which its value has
// arrived, also if that iteration and all that come after it queue nothing.
func TestRunsWhenArrived(t *testing.T) {
	dir := gentest.NewModule(t)
	gentest.Write(t, filepath.Join(dir, "p.go"), []byte(`package p

import (
	"fmt"
	"io"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

var reached func()

// step tells the test how far the loop has got. The directive hides that from the generator.
//
//asyncgen:pure
func step() float64 { reached(); return 1 }

//asyncgen:kernel
func Once(out io.Writer, x *tensor.Tensor) {
	for i := 0; ; i++ {
		x = x.Tanh()
		if i == 0 {
			fmt.Fprintln(out, x.Sum().Item())
		}
		if i == 3 {
			return
		}
		x = x.AddScalar(step())
	}
}

//asyncgen:kernel
func Epochs(out io.Writer, x *tensor.Tensor) {
	for range 2 {
		x = x.Tanh()
		fmt.Fprintln(out, x.Sum().Item())
		for range 3 {
			x = x.AddScalar(step())
		}
	}
}
`))
	gentest.Write(t, filepath.Join(dir, "p_test.go"), []byte(`package p

import (
	"io"
	"strings"
	"testing"

	"github.com/asyncgen/asyncgen/device"
	asyncrt "github.com/asyncgen/asyncgen/runtime"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// A gate is a CPU on which Tanh waits until the gate is open.
type gate struct {
	device.Backend
	open chan struct{}
}

func (g gate) Submit(cmds []device.Command) (device.Ticket, error) {
	for _, c := range cmds {
		if c.Kernel.Name == "Tanh" {
			<-g.open
		}
	}
	return g.Backend.Submit(cmds)
}

func TestRunsWhenArrived(t *testing.T) {
	for name, kernel := range map[string]func(io.Writer, *tensor.Tensor){"Once": OnceAsync, "Epochs": EpochsAsync} {
		var out strings.Builder
		g := gate{device.CPU().Backend(), make(chan struct{})}
		steps := 0
		reached = func() {
			switch steps++; steps {
			case 1:
				if out.Len() > 0 {
					t.Errorf("%s: %q is written before there is a value", name, out.String())
				}
				close(g.open)
				if err := asyncrt.WaitAll(); err != nil {
					t.Error(err)
				}
			case 2:
				if out.Len() == 0 {
					t.Errorf("%s: nothing is written an iteration after the value has arrived", name)
				}
			}
		}
		kernel(&out, tensor.On(device.Wrap("gated", device.KindCPU, g)).Ones(1))
		if steps < 3 {
			t.Errorf("%s: %d steps", name, steps)
		}
	}
}
`))
	r, err := generate(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Commit(); err != nil {
		t.Fatal(err)
	}
	test := exec.Command("go", "test", "-count=1", ".")
	test.Dir = dir
	test.Env = append(os.Environ(), "ASYNCGEN_ENGINE=async", "ASYNCGEN_DEVICE=cpu")
	if out, err := test.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s\n%s", err, out, r.Files[0].Text)
	}
}

// TestGenericTests: generic functions and methods of generic types are tested for the types that their directives name.
func TestGenericTests(t *testing.T) {
	dir := gentest.NewModule(t)
	gentest.Write(t, filepath.Join(dir, "p.go"), []byte(`package p

import (
	"fmt"
	"io"
	"math/rand/v2"

	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

type model interface {
	//asyncgen:effects device
	Forward(x *tensor.Tensor) *tensor.Tensor
}

type net struct{ w *nn.Param }

func (n *net) Forward(x *tensor.Tensor) *tensor.Tensor { return x.MatMul(n.w.Value()) }

type trainer[M model, T any] struct {
	model M
	out   io.Writer
	label T
}

//asyncgen:kernel name=Fast test=trainer[*net,int]
func (t *trainer[M, T]) Losses(xs []*tensor.Tensor) (all []float64) {
	for i, x := range xs {
		l := t.model.Forward(x).Square().Mean().Item()
		all = append(all, l)
		fmt.Fprintln(t.out, i, l)
	}
	return all
}

func asyncgentrainerLossesArgs(r *rand.Rand) (*trainer[*net, int], []*tensor.Tensor) {
	return &trainer[*net, int]{&net{nn.NewParam(tensor.Randn(3, 2))}, io.Discard, 7}, []*tensor.Tensor{tensor.Randn(2, 3), tensor.Randn(4, 3)}
}

//asyncgen:kernel test=largest[float32]
func largest[T float32 | float64](xs []*tensor.Tensor) (best T) {
	for _, x := range xs {
		best = max(best, T(x.Max().Item()))
	}
	return best
}

//asyncgen:kernel
func untested[T float32 | float64](xs []*tensor.Tensor) (last T) {
	for _, x := range xs {
		last = T(x.Max().Item())
	}
	return last
}
`))
	r, err := generate(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Commit(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "p_async_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"asynctest.Same(t, (*trainer[*net,int]).Losses, (*trainer[*net,int]).Fast, asyncgentrainerLossesArgs)", "asynctest.Same(t, largest[float32], largestAsync[float32], nil)"} {
		if !strings.Contains(strings.ReplaceAll(string(text), ", int]", ",int]"), want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if n := strings.Count(string(text), "func Test"); n != 2 {
		t.Errorf("%d tests:\n%s", n, text)
	}
	cmd := exec.Command("go", "test", "-count=1", ".")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
