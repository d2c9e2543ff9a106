package gen_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/asyncgen/asyncgen/gen"
	"golang.org/x/tools/txtar"
)

// TestModules: loops that call modules of other people are rewritten as the
// data about these modules allows, and behave the same.
func TestModules(t *testing.T) {
	archive, err := txtar.ParseFile("testdata/modules/modules.txtar")
	if err != nil {
		t.Fatal(err)
	}
	g := &golden{"testdata/modules/modules.txtar", "modules", archive}
	dir := newModule(t)
	mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range archive.Files {
		if !strings.HasPrefix(f.Name, "stubs/") {
			continue
		}
		write(t, filepath.Join(dir, f.Name), f.Data)
		if path, ok := strings.CutSuffix(f.Name, "/go.mod"); ok {
			module := strings.Fields(string(f.Data))[1]
			version := "v1.0.0"
			if strings.HasSuffix(module, "/v3") {
				version = "v3.0.0"
			}
			mod = fmt.Appendf(mod, "\nrequire %s %s\n\nreplace %s => ./%s\n", module, version, module, path)
		}
	}
	write(t, filepath.Join(dir, "go.mod"), mod)
	write(t, filepath.Join(dir, "asyncgen.json"), g.section("asyncgen.json"))
	write(t, filepath.Join(dir, "w64", g.name, "in.go"), g.section("in.go"))
	result, err := gen.Generate(context.Background(), gen.Config{Dir: dir, Patterns: []string{"./w64/..."}})
	if err != nil {
		t.Fatal(err)
	}
	if err := result.Commit(); err != nil {
		t.Fatal(err)
	}
	runKernels(t, dir, []*golden{g}, result)
	if !t.Failed() {
		compareGolden(t, g, dir, result)
	}
}

// TestPackages: loops that call functions of other packages of their module are rewritten, and behave the same.
func TestPackages(t *testing.T) {
	archive, err := txtar.ParseFile("testdata/packages/lift.txtar")
	if err != nil {
		t.Fatal(err)
	}
	g := &golden{"testdata/packages/lift.txtar", "lift", archive}
	dir := newModule(t)
	for _, f := range archive.Files {
		if strings.Contains(f.Name, "/") {
			write(t, filepath.Join(dir, filepath.FromSlash(f.Name)), f.Data)
		}
	}
	write(t, filepath.Join(dir, "w64", g.name, "in.go"), g.section("in.go"))
	generate := func() *gen.Result {
		r, err := gen.Generate(context.Background(), gen.Config{Dir: dir, Patterns: []string{"./w64/..."}})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	result := generate()
	if err := result.Commit(); err != nil {
		t.Fatal(err)
	}
	runKernels(t, dir, []*golden{g}, result)
	if !t.Failed() {
		compareGolden(t, g, dir, result)
	}

	if stale := generate().Stale(); len(stale) > 0 {
		t.Errorf("stale right after it was written: %s", stale[0].Path)
	}
	if !slices.ContainsFunc(result.Files, func(f gen.File) bool {
		return strings.HasSuffix(f.Path, "_test.go") && bytes.Contains(f.Text, []byte(`asynctest.Fresh(t, "../../internal/stats/stats.go", "Mean", `))
	}) {
		t.Error("the written test does not look whether a function of another package has changed, of which there is a variant")
	}
	inPlace, err := gen.Generate(context.Background(), gen.Config{Dir: dir, Patterns: []string{"./w64/..."}, All: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range inPlace.Remarks {
		if m.Code >= "AG900" {
			t.Errorf("in place: %v", m)
		}
	}
	if !slices.ContainsFunc(inPlace.Files, func(f gen.File) bool {
		return filepath.Base(f.Path) == "in.go" && bytes.Contains(f.Text, []byte("lossAt := lossLater(later, m, b)"))
	}) {
		t.Error("in place, no function of another package is called in two parts")
	}
	changed := bytes.Replace(g.section("internal/stats/stats.go"), []byte("x.Mean()"), []byte("x.Sum()"), 1)
	write(t, filepath.Join(dir, "internal", "stats", "stats.go"), changed)
	if len(generate().Stale()) == 0 {
		t.Error("a function of another package has changed, of which there is a variant, and nothing is stale")
	}
}

// TestConfigMistakes: what is wrong in asyncgen.json is said with its place.
func TestConfigMistakes(t *testing.T) {
	dir := newModule(t)
	write(t, filepath.Join(dir, "p.go"), []byte(kernelSource+"\ntype set struct{ n int }\n\nfunc (s *set) add() { s.n++ }\n\nvar _ = (&set{}).add\n"))
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
		write(t, filepath.Join(dir, "asyncgen.json"), []byte(config))
		_, err := generate(t, dir)
		for _, w := range want {
			if err == nil || !slices.ContainsFunc(strings.Split(err.Error(), "\n"), func(line string) bool {
				return strings.Contains(line, "asyncgen.json:") && strings.Contains(line, w)
			}) {
				t.Errorf("%s\ngives %v, want a line with %q", config, err, w)
			}
		}
	}
	write(t, filepath.Join(dir, "asyncgen.json"), []byte("{\"profiles\": [\"acme.json\", {}], \"rules\": {\"AT001\": \"off\"}, \"paths\": {}, \"reasons\": 3, \"effects\": {\"(*example.com/user.set).*\": \"none\", \"example.com/elsewhere.F\": \"none\"}}\n"))
	if _, err := generate(t, dir); err != nil {
		t.Error(err)
	}
}

// TestWorkspace: functions of another module in the same workspace are looked
// into like those of the module itself.
func TestWorkspace(t *testing.T) {
	dir := newModule(t)
	mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "user", "go.mod"), mod)
	sum, _ := os.ReadFile(filepath.Join(dir, "go.sum"))
	write(t, filepath.Join(dir, "user", "go.sum"), sum)
	write(t, filepath.Join(dir, "other", "go.mod"), []byte("module example.com/other\n\ngo 1.26\n"))
	write(t, filepath.Join(dir, "other", "other.go"), []byte("package other\n\nimport \"os\"\n\nfunc Twice(v float64) float64 { return 2 * v }\n\nfunc Wait() { os.Stdin.Read(nil) }\n"))
	write(t, filepath.Join(dir, "user", "p.go"), []byte(`package p

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
	write(t, filepath.Join(dir, "go.work"), []byte("go 1.26\n\nuse (\n\t./user\n\t./other\n)\n"))
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
