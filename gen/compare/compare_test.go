package compare

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/asyncgen/asyncgen/gen"
	"github.com/asyncgen/asyncgen/internal/sametemp"
	"github.com/asyncgen/asyncgen/internal/turns"
)

// TestRun compares a real program, built twice. It has no loop, so that
// nothing is rewritten.
func TestRun(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	var steps []string
	r, err := Run(t.Context(), Config{
		Dir:      "../..",
		Package:  "./testdata/programs/graph",
		Args:     []string{"-small"},
		Devices:  []string{"cpu"},
		Count:    1,
		Progress: func(step string) { steps = append(steps, step) },
	})
	if err != nil {
		t.Fatal(err)
	}
	if !r.Same() || len(r.Rewritten) > 0 || len(r.Devices) != 1 || r.Devices[0].Lines == 0 || len(r.Devices[0].Notes) != 1 {
		t.Errorf("%+v", r)
	}
	if all := strings.Join(steps, "\n"); !strings.Contains(all, "building") || !strings.Contains(all, "cpu: run 1 of 1, rewritten") {
		t.Errorf("steps:\n%s", all)
	}
	if left, err := filepath.Glob(filepath.Join(temp, "asyncgen-*")); err != nil || len(left) > 0 {
		t.Errorf("temporary files are left behind: %v, %v", left, err)
	}
}

// A program need not import the backend of the device that it is compared on.
func TestRunImportsBackends(t *testing.T) {
	turns.Take(t)
	t.Setenv("ASYNCGEN_LIBOPENCL", filepath.Join(t.TempDir(), "none.so"))
	_, err := Run(t.Context(), Config{Dir: "../..", Package: "./testdata/programs/graph", Args: []string{"-small"}, Devices: []string{"opencl:0"}, Count: 1})
	if err == nil || !strings.HasPrefix(err.Error(), "ASYNCGEN_DEVICE: ") || !strings.Contains(err.Error(), "none.so") {
		t.Errorf("error %v, want that of the backend, which finds no library", err)
	}
}

// moduleOf makes a module that requires this one, without what backends import. It adds its go.mod and go.sum to files.
func moduleOf(t *testing.T, files map[string]string) (dir string) {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	sum, err := os.ReadFile(filepath.Join(root, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	files["go.sum"] = regexp.MustCompile(`(?m)^github.com/ebitengine/purego .*\n`).ReplaceAllString(string(sum), "")
	files["go.mod"] = fmt.Sprintf("module example.com/user\n\ngo 1.26\n\nrequire (\n\tgithub.com/asyncgen/asyncgen v0.0.0\n\tgolang.org/x/sys v0.47.0 // indirect\n\tgonum.org/v1/gonum v0.17.0 // indirect\n)\n\nreplace github.com/asyncgen/asyncgen => %s\n", root)
	dir = sametemp.Dir(t)
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Nor need its module know of what the backend imports, and it stays as it is.
func TestRunInAModuleWithoutBackends(t *testing.T) {
	turns.Take(t)
	t.Setenv("ASYNCGEN_LIBOPENCL", filepath.Join(t.TempDir(), "none.so"))
	t.Setenv("GOPROXY", "off") // it is all here
	t.Setenv("GONOSUMDB", "*")
	files := map[string]string{"main.go": "package main\n\nimport \"github.com/asyncgen/asyncgen/runtime/tensor\"\n\nfunc main() { println(tensor.Ones(2).Sum().Item()) }\n"}
	dir := moduleOf(t, files)
	_, err := Run(t.Context(), Config{Dir: dir, Package: ".", Devices: []string{"opencl:0"}, Count: 1})
	if err == nil || !strings.HasPrefix(err.Error(), "ASYNCGEN_DEVICE: ") || !strings.Contains(err.Error(), "none.so") {
		t.Errorf("error %v, want that of the backend, which finds no library", err)
	}
	for name, text := range files {
		if now, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(now) != text {
			t.Errorf("%s has become %q, %v", name, now, err)
		}
	}
}

func TestImports(t *testing.T) {
	const line = "\n\nimport _ \"github.com/asyncgen/asyncgen/device/opencl\"\n"
	for _, c := range []struct {
		cfg        Config
		file, text string // "": none
	}{
		{Config{Devices: []string{"cpu", "sim:0"}}, "", ""},
		{Config{Devices: []string{"opencl:0", "cpu", "opencl:1"}}, "asyncgen_backends.go", "package main" + line},
		{Config{Devices: []string{"opencl:0"}, Bench: "."}, "asyncgen_backends_test.go", "package main_test" + line},
	} {
		got := imports(c.cfg, "main", "dir")
		want := map[string][]byte{}
		if c.file != "" {
			want[filepath.Join("dir", c.file)] = []byte(c.text)
		}
		if !maps.EqualFunc(got, want, bytes.Equal) {
			t.Errorf("%+v: got %q, want %q", c.cfg, got, want)
		}
	}
}

// TestRunTrouble gives Run what it can't build.
func TestRunTrouble(t *testing.T) {
	broken := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":  "module example.com/broken\n\ngo 1.26\n",
		"main.go": "package main\n\nfunc main() { undefined() }\n",
	} {
		if err := os.WriteFile(filepath.Join(broken, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		cfg  Config
		want string
	}{
		{Config{Dir: broken, Package: "."}, "undefined: undefined"},
		{Config{Dir: "..", Package: "./compare"}, "is no program"},
		{Config{Dir: "..", Package: "./..."}, "packages, not one"},
		{Config{Dir: "..", Package: "./nowhere"}, "directory not found"},
		{Config{Dir: "..", Package: "./compare", Devices: []string{"abacus"}}, `unknown device "abacus"`},
	} {
		if r, err := Run(t.Context(), c.cfg); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, %v; want an error with %q", c.cfg, r, err, c.want)
		}
	}
}

// A program that calls the generated form itself was timed against itself.
func TestRunOfGeneratedForms(t *testing.T) {
	turns.Take(t)
	dir := moduleOf(t, map[string]string{
		"train.go": `package main

import (
	"fmt"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

//asyncgen:kernel
func train(xs []*tensor.Tensor) (total float64) {
	for _, x := range xs {
		total += x.Sum().Item()
	}
	return total
}

func main() { fmt.Println(run([]*tensor.Tensor{tensor.Ones(2), tensor.Ones(3)})) }
`,
		"run.go":    "package main\n\nvar run = train\n",
		"x_test.go": "package main\n\nimport \"testing\"\n\nfunc BenchmarkX(b *testing.B) {\n\tfor b.Loop() {\n\t\ttrainAsync(nil)\n\t}\n}\n",
	})
	result, err := gen.Generate(t.Context(), gen.Config{Dir: dir})
	if err == nil {
		err = result.Commit()
	}
	if err != nil {
		t.Fatal(err)
	}
	cfg := Config{Dir: dir, Package: ".", Devices: []string{"cpu"}, Count: 1}
	for _, c := range []struct{ run, bench, note, failure string }{
		{"package main\n\nvar run = trainAsync\n", "", "", ". calls trainAsync at run.go:3, which is generated: both forms of the program would do the same there; call train,"},
		{"package main\n\nvar run, other = train, trainAsync\n", "", "trainAsync is generated, and called at run.go:3", ""},
		{"package main\n\nvar run = func(...any) int { return 0 }\n", "X", "", ". calls trainAsync at x_test.go:7,"},
	} {
		if err := os.WriteFile(filepath.Join(dir, "run.go"), []byte(c.run), 0o666); err != nil {
			t.Fatal(err)
		}
		cfg.Bench = c.bench
		r, err := Run(t.Context(), cfg)
		switch {
		case c.failure != "":
			if err == nil || !strings.Contains(err.Error(), c.failure) {
				t.Errorf("%s: error %v, want one with %q", c.run, err, c.failure)
			}
		case err != nil:
			t.Errorf("%s: %v", c.run, err)
		case len(r.Rewritten) == 0 || len(r.Devices[0].Notes) == 0 || !strings.HasPrefix(r.Devices[0].Notes[0], c.note):
			t.Errorf("%s: %+v", c.run, r)
		}
	}
}
