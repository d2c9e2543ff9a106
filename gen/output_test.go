package gen_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/asyncgen/asyncgen/gen"
	"github.com/asyncgen/asyncgen/gen/internal/gentest"
	"github.com/asyncgen/asyncgen/gen/internal/load"
	"github.com/asyncgen/asyncgen/gen/overlay"
	"github.com/asyncgen/asyncgen/internal/turns"
	asyncrt "github.com/asyncgen/asyncgen/runtime"
)

// TestOutputVersion: what is written is of the newest version that the runtime knows.
func TestOutputVersion(t *testing.T) {
	if load.Output != asyncrt.NewestOutput || asyncrt.OldestOutput > asyncrt.NewestOutput {
		t.Errorf("version %d is written, the runtime knows %d to %d", load.Output, asyncrt.OldestOutput, asyncrt.NewestOutput)
	}
}

// TestOutputOfAnotherVersion: generated code compiles with the runtimes that know its version. With
// others, older or newer, the compiler says what to do.
func TestOutputOfAnotherVersion(t *testing.T) {
	turns.Take(t)
	dir := gentest.NewModule(t)
	gentest.Write(t, filepath.Join(dir, "p.go"), []byte(kernelSource))
	r, err := generate(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Commit(); err != nil {
		t.Fatal(err)
	}
	source := filepath.Join(gentest.Root(t), "runtime", "output.go")
	text, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	constants := regexp.MustCompile(`\t(Oldest|Newest)Output = .*`)
	const o = load.Output
	for _, c := range []struct {
		name           string
		oldest, newest string
		compiles       bool
	}{
		{"the same", "@-1", "@", true},
		{"newer, knows it", "@", "@+1", true},
		{"newer, means something else", "@+1", "@+1", false},
		{"older", "@-1", "@-1", false},
		{"before there were versions", "", "", false},
	} {
		other := filepath.Join(t.TempDir(), "output.go")
		changed := constants.ReplaceAllFunc(text, func(line []byte) []byte {
			value := c.oldest
			if strings.Contains(string(line), "Newest") {
				value = c.newest
			}
			name, _, _ := strings.Cut(string(line), "=")
			return []byte(name + "= " + strings.ReplaceAll(value, "@", jsonOf(t, o)))
		})
		if c.newest == "" {
			changed = []byte("package asyncrt\n")
		}
		gentest.Write(t, other, changed)
		overlay := filepath.Join(filepath.Dir(other), "overlay.json")
		gentest.Write(t, overlay, []byte(jsonOf(t, map[string]map[string]string{"Replace": {source: other}})))
		cmd := exec.Command("go", "build", "-overlay", overlay, ".")
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if c.compiles && err != nil {
			t.Errorf("%s: %v\n%s", c.name, err, out)
		}
		first := strings.SplitN(string(out), "\n", 3)
		if !c.compiles && (err == nil || len(first) < 2 || !strings.HasPrefix(first[1], "./p_async.go:") || !strings.Contains(first[1], "RunGoGenerate")) {
			t.Errorf("%s: %v\n%s", c.name, err, out)
		}
	}
}

func jsonOf(t *testing.T, v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestRuntimeOfAnotherVersion: the generator does not write, and -check does not pass, what
// the runtime of the module does not compile.
func TestRuntimeOfAnotherVersion(t *testing.T) {
	for constants, want := range map[string]string{
		"": "newer than the",
		"const OldestOutput, NewestOutput = 0, 0":       "newer than the",
		"const OldestOutput, NewestOutput = 1000, 1000": "older than the",
	} {
		dir := t.TempDir()
		gentest.Write(t, filepath.Join(dir, "go.mod"), []byte("module example.com/user\n\ngo 1.26\n\nrequire github.com/asyncgen/asyncgen v0.0.0\n\nreplace github.com/asyncgen/asyncgen => ./library\n"))
		gentest.Write(t, filepath.Join(dir, "p.go"), []byte("package p\n\nimport \"github.com/asyncgen/asyncgen/runtime/tensor\"\n\n//asyncgen:kernel\nfunc F(x *tensor.Tensor) float64 { return x.Item() }\n"))
		gentest.Write(t, filepath.Join(dir, "library", "go.mod"), []byte("module github.com/asyncgen/asyncgen\n\ngo 1.26\n"))
		gentest.Write(t, filepath.Join(dir, "library", "runtime", "tensor", "tensor.go"), []byte("package tensor\n\ntype Tensor struct{}\n\nfunc (*Tensor) Item() float64 { return 0 }\n"))
		gentest.Write(t, filepath.Join(dir, "library", "runtime", "asyncrt.go"), []byte("package asyncrt\n\n"+constants+"\n"))
		if _, err := generate(t, dir); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "go tool asyncgen") {
			t.Errorf("%q: %v", constants, err)
		}
	}
}

// TestBesideSiblings: what is rewritten in place has other names than what generated files of the package declare.
func TestBesideSiblings(t *testing.T) {
	dir := gentest.NewModule(t)
	gentest.Write(t, filepath.Join(dir, "p.go"), []byte(`package p

import "github.com/asyncgen/asyncgen/runtime/tensor"

func mean(x *tensor.Tensor) float64 { return x.Mean().Item() }

type model struct{ w *tensor.Tensor }

func (m *model) loss(x *tensor.Tensor) float64 { return x.Sub(m.w).Square().Mean().Item() }

//asyncgen:kernel
func Sum(m *model, xs []*tensor.Tensor) (total float64) {
	for _, x := range xs {
		total += mean(x)
		total += m.loss(x)
	}
	return total
}
`))
	r, err := generate(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Commit(); err != nil {
		t.Fatal(err)
	}
	inPlace, err := gen.Generate(t.Context(), gen.Config{Dir: dir, All: true})
	if err != nil {
		t.Fatal(err)
	}
	o, err := overlay.Of(inPlace)
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	cmd := exec.Command("go", "vet", o.Flag(), ".")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	if text := string(inPlace.Files[0].Text); !strings.Contains(text, "meanLater2(") || !strings.Contains(text, "lossLater2(") {
		t.Errorf("in place:\n%s", text)
	}
}
