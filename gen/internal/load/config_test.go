package load

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestConfigMistakes: what is wrong in asyncgen.json is said with its place.
func TestConfigMistakes(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		name = filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	write("go.mod", "module example.com/user\n\ngo 1.26\n\nrequire github.com/asyncgen/asyncgen v0.0.0\n\nreplace github.com/asyncgen/asyncgen => ./library\n")
	write("p.go", "package p\n\nimport (\n\t_ \"fmt\"\n\t_ \"image/png\"\n)\n\nfunc Sum() {}\n\ntype set struct{ n int }\n\nfunc (s *set) add() { s.n++ }\n\nvar _ = (&set{}).add\n")
	write("library/go.mod", "module github.com/asyncgen/asyncgen\n\ngo 1.26\n")
	write("library/runtime/asyncrt.go", "package asyncrt\n\nconst OldestOutput, NewestOutput = 1, 9\n")
	prog, err := Load(context.Background(), Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	for config, want := range map[string][]string{
		"":                     {"1:1: EOF"},
		"[]":                   {"1:1: the file is an object"},
		"{\n\t\"efects\": {}}": {"2:2: there is no setting \"efects\": did you mean effects?"},
		"{\"effects\": {\n\t\"fmt.Prinln\": \"output\",\n\t\"fmt.Println\": \"outptu\"\n}}": {
			"3:17: fmt.Println: knows output, input, device, stamps, builds, formats, changes, none, not \"outptu\": did you mean output?"},
		"{\"effects\": {\"x\": \"none\"}}":                                       {"1:14: \"x\" is not the name of a function"},
		"{\"effects\": {\"example.com/user.F\": 3}}":                             {"the effects of example.com/user.F are words in one string"},
		"{\"effects\": {\"example.com/user.Summ\": \"none\"}}":                   {"1:14: there is no function example.com/user.Summ in package example.com/user: did you mean Sum?"},
		"{\"effects\": {\"png.Encode\": \"output\"}}":                            {"1:14: png.Encode: the program needs no package png: did you mean image/png?"},
		"{\"effects\": {\n\"(*example.com/user.sett).add\": \"none\"}}":          {"2:1: package example.com/user has no type sett: did you mean set?"},
		"{\"effects\": {\n\"(example.com/user.set).add\": \"none\"}}":            {"2:1: the name of this method is (*example.com/user.set).add"},
		"{\"effects\": {\n\"(*example.com/user.set).ad\": \"none\"}}":            {"2:1: there is no function (*example.com/user.set).ad in package example.com/user: did you mean add?"},
		"{\"effects\": {\"a/b.F\": \"none\", \n\"a/b.F\": \"output\"}}":          {"2:1: \"a/b.F\" is there twice"},
		"{\"effects\": {\"a/b.F\": \"\"}}":                                       {"a/b.F: says nothing"},
		"{\"effects\": {}} {}":                                                   {"there is something after the end"},
		"{\"effects\": {\"a/b.F\": \"none\"}, \"a\": {\"b\": [1]}, \"c\": true}": {"there is no setting \"a\"", "there is no setting \"c\""},
	} {
		write(ConfigName, config)
		err := prog.configure()
		for _, w := range want {
			if err == nil || !slices.ContainsFunc(strings.Split(err.Error(), "\n"), func(line string) bool {
				return strings.Contains(line, ConfigName+":") && strings.Contains(line, w)
			}) {
				t.Errorf("%s\ngives %v, want a line with %q", config, err, w)
			}
		}
	}
	write(ConfigName, "{\"profiles\": [\"acme.json\", {}], \"rules\": {\"AT001\": \"off\"}, \"paths\": {}, \"reasons\": 3, \"effects\": {\"(*example.com/user.set).*\": \"none\", \"example.com/elsewhere.F\": \"none\"}}\n")
	if err := prog.configure(); err != nil {
		t.Error(err)
	}
}
