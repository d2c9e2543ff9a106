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

// TestConfigMistakes: what is wrong in asyncgen.json is said with its place.
func TestConfigMistakes(t *testing.T) {
	dir := gentest.NewModule(t)
	gentest.Write(t, filepath.Join(dir, "p.go"), []byte(kernelSource+"\ntype set struct{ n int }\n\nfunc (s *set) add() { s.n++ }\n\nvar _ = (&set{}).add\n"))
	for config, want := range map[string][]string{
		"":                     {"1:1: EOF"},
		"[]":                   {"1:1: the file is an object"},
		"{\n\t\"efects\": {}}": {"2:2: there is no setting \"efects\": did you mean effects?"},
		"{\"effects\": {\n\t\"fmt.Prinln\": \"output\",\n\t\"fmt.Println\": \"outptu\"\n}}": {
			"3:17: fmt.Println: knows output, input, device, stamps, builds, formats, changes, none, not \"outptu\": did you mean output?"},
		"{\"effects\": {\"x\": \"none\"}}":                                       {"1:14: \"x\" is not the name of a function"},
		"{\"effects\": {\"example.com/user.F\": 3}}":                             {"the effects of example.com/user.F are words in one string"},
		"{\"effects\": {\"example.com/user.Summ\": \"none\"}}":                   {"1:14: there is no function example.com/user.Summ in package example.com/user: did you mean Sum?"},
		"{\"effects\": {\n\"(*example.com/user.sett).add\": \"none\"}}":          {"2:1: package example.com/user has no type sett: did you mean set?"},
		"{\"effects\": {\n\"(example.com/user.set).add\": \"none\"}}":            {"2:1: the name of this method is (*example.com/user.set).add"},
		"{\"effects\": {\n\"(*example.com/user.set).ad\": \"none\"}}":            {"2:1: there is no function (*example.com/user.set).ad in package example.com/user: did you mean add?"},
		"{\"effects\": {\"a/b.F\": \"none\", \n\"a/b.F\": \"output\"}}":          {"2:1: \"a/b.F\" is there twice"},
		"{\"effects\": {\"a/b.F\": \"\"}}":                                       {"a/b.F: says nothing"},
		"{\"effects\": {}} {}":                                                   {"there is something after the end"},
		"{\"effects\": {\"a/b.F\": \"none\"}, \"a\": {\"b\": [1]}, \"c\": true}": {"there is no setting \"a\"", "there is no setting \"c\""},
	} {
		gentest.Write(t, filepath.Join(dir, "asyncgen.json"), []byte(config))
		_, err := generate(t, dir)
		for _, w := range want {
			if err == nil || !slices.ContainsFunc(strings.Split(err.Error(), "\n"), func(line string) bool {
				return strings.Contains(line, "asyncgen.json:") && strings.Contains(line, w)
			}) {
				t.Errorf("%s\ngives %v, want a line with %q", config, err, w)
			}
		}
	}
	gentest.Write(t, filepath.Join(dir, "asyncgen.json"), []byte("{\"profiles\": [\"acme.json\", {}], \"rules\": {\"AT001\": \"off\"}, \"paths\": {}, \"reasons\": 3, \"effects\": {\"(*example.com/user.set).*\": \"none\", \"example.com/elsewhere.F\": \"none\"}}\n"))
	if _, err := generate(t, dir); err != nil {
		t.Error(err)
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
	r, err := gen.Generate(context.Background(), gen.Config{Dir: filepath.Join(dir, "user"), Env: append(os.Environ(), "GOWORK="+filepath.Join(dir, "go.work"), "GOFLAGS=")})
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
