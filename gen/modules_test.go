package gen_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/asyncgen/asyncgen/gen"
	"github.com/asyncgen/asyncgen/gen/internal/gentest"
)

// TestConfigMistakes: what is wrong in asyncgen.json stops the generator, with its place. TestConfigMistakes of
// package load has every mistake.
func TestConfigMistakes(t *testing.T) {
	dir := gentest.NewModule(t)
	gentest.Write(t, filepath.Join(dir, "p.go"), []byte(kernelSource))
	gentest.Write(t, filepath.Join(dir, "asyncgen.json"), []byte("{\"effects\": {\n\"a/b.F\": \"none\",\n\"example.com/user.Summ\": \"none\"}, \"a\": 1}"))
	_, err := generate(t, dir)
	for _, want := range []string{"asyncgen.json:3:1: there is no function example.com/user.Summ in package example.com/user: did you mean Sum?", "asyncgen.json:3:35: there is no setting \"a\""} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %q", err, want)
		}
	}
}

// TestWorkspace: functions of another module in the same workspace are looked
// into like those of the module itself.
func TestWorkspace(t *testing.T) {
	dir := gentest.NewModule(t)
	mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	gentest.Write(t, filepath.Join(dir, "user", "go.mod"), mod)
	sum, _ := os.ReadFile(filepath.Join(dir, "go.sum"))
	gentest.Write(t, filepath.Join(dir, "user", "go.sum"), sum)
	gentest.Write(t, filepath.Join(dir, "other", "go.mod"), []byte("module example.com/other\n\ngo 1.26\n"))
	gentest.Write(t, filepath.Join(dir, "other", "other.go"), []byte("package other\n\nimport \"os\"\n\nfunc Twice(v float64) float64 { return 2 * v }\n\nfunc Wait() { os.Stdin.Read(nil) }\n"))
	gentest.Write(t, filepath.Join(dir, "user", "p.go"), []byte(`package p

import (
	"example.com/other"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

//asyncgen:kernel
func Sum(xs []*tensor.Tensor) (total float64) {
	for _, x := range xs {
		total += other.Twice(x.Sum().Item())
	}
	return total
}

//asyncgen:kernel
func Waits(xs []*tensor.Tensor) (total float64) {
	for _, x := range xs {
		total += x.Sum().Item()
		other.Wait()
	}
	return total
}
`))
	os.Remove(filepath.Join(dir, "go.mod"))
	gentest.Write(t, filepath.Join(dir, "go.work"), []byte("go 1.26\n\nuse (\n\t./user\n\t./other\n)\n"))
	r, err := gen.Generate(context.Background(), gen.Config{Dir: filepath.Join(dir, "user"), Env: append(os.Environ(), "GOWORK="+filepath.Join(dir, "go.work"))})
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(r.Files[0].Text, []byte("total += other.Twice(sumAt.Item())")) {
		t.Errorf("a loop that calls another module of the workspace is not rewritten:\n%v\n%s", r.Remarks, r.Files[0].Text)
	}
	if !slices.ContainsFunc(r.Remarks, func(m gen.Remark) bool { return m.Code == "AG205" && m.Function == "Waits" }) {
		t.Errorf("a wait in another module of the workspace is not seen: %v", r.Remarks)
	}
}
