package analysis_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/asyncgen/asyncgen/analysis"
	"github.com/asyncgen/asyncgen/analysis/lint"
	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"github.com/asyncgen/asyncgen/internal/turns"
)

// What is wrong with the settings is said with its place, and with what was meant.
func TestWrongSettings(t *testing.T) {
	for text, want := range map[string]string{
		``:                                            `:1:1: unexpected EOF`,
		"\ufeff{}":                                    `:1:1: invalid character`,
		"\x00":                                        `:1:1: invalid character`,
		`[]`:                                          `:1:1: the file is an object`,
		`{"rules": {"AT001": "off"}`:                  `unexpected EOF`,
		`{"rules": {"AT001": "off"},}`:                `:1:28: `,
		"{\n\t// why\n\t\"rules\": {}}":               `:2:2: invalid character '/'`,
		`{} {}`:                                       `:1:4: there is something after the end`,
		`{"rule": {}}`:                                `:1:2: there is no setting "rule"; did you mean "rules"?`,
		`{"Rules": {}}`:                               `:1:2: there is no setting "Rules"; did you mean "rules"?`,
		`{"zzzzzzzzz": {}}`:                           `:1:2: there is no setting "zzzzzzzzz"`,
		`{"rules": {}, "rules": {}}`:                  `:1:15: "rules" is there twice`,
		`{"rules": []}`:                               `:1:11: "rules" is an object`,
		`{"rules": {"AT099": "off"}}`:                 `:1:12: there is no rule "AT099"; did you mean "AT0`,
		`{"rules": {"at001": "off"}}`:                 `:1:12: there is no rule "at001"; did you mean "AT001"?`,
		`{"rules": {"*": "off"}}`:                     `:1:12: there is no rule "*"`,
		`{"rules": {"loopread": "off"}}`:              `:1:12: there is no rule "loopread"`,
		`{"rules": {"AT001": "of"}}`:                  `:1:21: AT001 is "error", "warning", "info", "off" or "on", not "of"; did you mean "off"?`,
		`{"rules": {"AT001": "warn"}}`:                `not "warn"; did you mean "warning"?`,
		`{"rules": {"AT001": false}}`:                 `:1:21: AT001 is "error",`,
		`{"rules": {"AT001": null}}`:                  `:1:21: AT001 is "error",`,
		`{"rules": {"AT001": ["off"]}}`:               `:1:21: AT001 is "error",`,
		`{"rules": {"AT001": {"info": "on"}}}`:        `:1:30: "info" of AT001 is "error", "warning", "info" or "off", not "on"`,
		`{"rules": {"AT001": {"infos": "off"}}}`:      `:1:22: AT001 has findings of the severities "warning" and "info", not "infos"; did you mean "info"?`,
		`{"rules": {"AT001": {"error": "off"}}}`:      `not "error"`,
		`{"rules": {"AT001": {"severity": "error"}}}`: `not "severity"`,
		`{"paths": ["a"]}`:                            `:1:11: "paths" is an object`,
		`{"paths": {"a": "off"}}`:                     `:1:17: "a" is an object`,
		`{"paths": {"a": {"AT1": "off"}}}`:            `:1:18: there is no rule "AT1"`,
		`{"paths": {"/a": {}}}`:                       `:1:12: path "/a": paths are relative to the folder of this file`,
		`{"paths": {"../a": {}}}`:                     `path "../a": what is above the folder`,
		`{"paths": {"a/../../b": {}}}`:                `what is above the folder`,
		`{"paths": {"": {}}}`:                         `path "": the folder itself is meant by "**"`,
		`{"paths": {".": {}}}`:                        `the folder itself`,
		`{"paths": {"a\\b": {}}}`:                     `folders are separated by slashes`,
		`{"paths": {"a[": {}}}`:                       `want a list of characters`,
		`{"paths": {"a[]": {}}}`:                      `want a list of characters`,
		`{"paths": {"[z-a]": {}}}`:                    `want a pattern like`,
		`{"paths": {"{a,b": {}}}`:                     `braces are not paired`,
		`{"paths": {"a}": {}}}`:                       `braces are not paired`,
		`{"paths": {"{a,{b}}": {}}}`:                  `braces are not paired`,
		`{"paths": {"a**": {}}}`:                      `** stands for folders`,
		`{"paths": {"a": {}, "a": {}}}`:               `:1:21: "a" is there twice`,
		`{"reasons": true}`:                           `:1:13: "reasons" is "required" or "optional"`,
		`{"reasons": "require"}`:                      `"reasons" is "required" or "optional", not "require"; did you mean "required"?`,
		"{\"rules\": {\"AT001\": \"x\"},\n \"reasons\": \"y\"}": ":2:13: ",
	} {
		_, err := lint.ParseSettings("f.json", []byte(text))
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "f.json:") ||
			strings.Contains(err.Error(), "\n") != strings.Contains(text, "\n \"") {
			t.Errorf("%s\ngives %v, want an error with %q", text, err, want)
		}
	}
	for _, text := range []string{`{}`, `{"effects": {"a.F": 3}, "profiles": [7]}`, `{"rules": {"all": "off", "AT001": "on"}, "paths": {}, "reasons": "optional"}`} {
		if _, err := lint.ParseSettings("f.json", []byte(text)); err != nil {
			t.Errorf("%s gives %v", text, err)
		}
	}
}

// TestPaths holds patterns against paths that they stand for and others.
func TestPaths(t *testing.T) {
	for pattern, want := range map[string]string{
		"*.go":           "a.go b/a.go b/c/a.go ü/a.go b/a.b.go",
		"a.go":           "a.go b/a.go b/c/a.go ü/a.go",
		"./a.go":         "a.go",
		"./*.go":         "a.go",
		"**":             "a.go b/a.go b/c/a.go ü/a.go b/a.b.go",
		"**/a.go":        "a.go b/a.go b/c/a.go ü/a.go",
		"b":              "b/a.go b/c/a.go b/a.b.go",
		"b/":             "b/a.go b/c/a.go b/a.b.go",
		"b/**":           "b/a.go b/c/a.go b/a.b.go",
		"b/*":            "b/a.go b/c/a.go b/a.b.go", // the folder b/c, too
		"b/*.go":         "b/a.go b/a.b.go",
		"c":              "b/c/a.go",
		"c/**":           "",
		"**/c":           "b/c/a.go",
		"b/**/a.go":      "b/a.go b/c/a.go",
		"?/a.go":         "b/a.go ü/a.go",
		"ü":              "ü/a.go",
		"[bü]/*.go":      "b/a.go ü/a.go b/a.b.go",
		"[!b]/*.go":      "ü/a.go",
		"[^b]/*.go":      "ü/a.go",
		"{b,ü}/a.go":     "b/a.go ü/a.go",
		"b/{a,c/a}.go":   "b/a.go b/c/a.go",
		"a.b.go":         "b/a.b.go",
		"a?b.go":         "b/a.b.go",
		"go":             "",
		"B":              "",
		"b/a.go/":        "b/a.go",
		"b/**/**/a.go":   "b/a.go b/c/a.go",
		"**/b/**/c/a.go": "b/c/a.go",
	} {
		root := filepath.FromSlash("/root/x")
		set, err := lint.ParseSettings(filepath.Join(root, tensorapi.ConfigName), []byte(`{"paths": {"`+pattern+`": {"all": "off"}}}`))
		if err != nil {
			t.Errorf("%s: %v", pattern, err)
			continue
		}
		var got []string
		for _, file := range []string{"a.go", "b/a.go", "b/c/a.go", "ü/a.go", "b/a.b.go"} {
			if set.In("AT001", filepath.Join(root, filepath.FromSlash(file)), lint.Warning) == "off" {
				got = append(got, file)
			}
		}
		if !slices.Equal(got, strings.Fields(want)) {
			t.Errorf("%s stands for %q, want %q", pattern, got, strings.Fields(want))
		}
		if set.In("AT001", filepath.FromSlash("/root/b/a.go"), lint.Warning) != lint.Warning {
			t.Errorf("%s stands for a file outside the folder", pattern)
		}
	}
}

// Which of several settings counts.
func TestSettings(t *testing.T) {
	const text = `{
		"rules": {"all": "off", "AT001": "on", "AT002": "error", "AT003": {"warning": "info"}},
		"paths": {
			"b":      {"all": "info", "AT001": {"info": "error"}},
			"b/c":    {"all": "on"},
			"b/c/*x": {"AT002": "off"}
		}
	}`
	root := t.TempDir()
	set, err := lint.ParseSettings(filepath.Join(root, tensorapi.ConfigName), []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		rule, file        string
		ofWarning, ofInfo lint.Severity
	}{
		{"AT004", "a.go", "off", "off"},
		{"AT001", "a.go", "warning", "info"},
		{"AT002", "a.go", "error", "error"},
		{"AT003", "a.go", "info", "info"},
		{"AT004", "b/a.go", "info", "info"},
		{"AT002", "b/a.go", "info", "info"},
		{"AT001", "b/a.go", "warning", "error"},
		{"AT004", "b/c/a.go", "warning", "info"},
		{"AT001", "b/c/a.go", "warning", "info"},
		{"AT002", "b/c/a.gox", "off", "off"},
		{"AT003", "b/c/a.gox", "warning", "info"},
	} {
		file := filepath.Join(root, filepath.FromSlash(c.file))
		if w, i := set.In(c.rule, file, lint.Warning), set.In(c.rule, file, lint.Info); w != c.ofWarning || i != c.ofInfo {
			t.Errorf("%s in %s: a warning is %s, an info %s; want %s, %s", c.rule, c.file, w, i, c.ofWarning, c.ofInfo)
		}
	}
}

// Whatever runs the rules keeps to the settings of the nearest file, also when only
// these change.
func TestSettingsOfDrivers(t *testing.T) {
	turns.Take(t)
	files := map[string]string{"sub/sub.go": strings.Replace(fineLoop, "package fine", "package sub", 1), "fine/fine.go": fineLoop}
	dir := module(t, files)
	find := func(rules ...string) string {
		t.Helper()
		findings, err := analysis.Vet(t.Context(), analysis.Config{Dir: dir, Patterns: []string{"./..."}, Rules: rules, Stderr: t.Output()})
		if err != nil {
			t.Fatal(err)
		}
		var list []string
		for _, f := range findings {
			list = append(list, filepath.Base(filepath.Dir(f.Posn))+" "+string(f.Severity))
		}
		return strings.Join(list, ", ")
	}
	for _, s := range []struct{ name, config, sub, want string }{
		{"off", `{"rules": {"AT001": "off"}}`, "", ""},
		{"error", `{"rules": {"AT001": "error"}}`, "", "fine error, sub error"},
		{"off by path", `{"paths": {"sub": {"all": "off"}}}`, "", "fine warning"},
		{"a nearer file", `{"rules": {"AT001": "off"}}`, `{}`, "sub warning"},
		{"it changes", `{"rules": {"AT001": "info"}}`, `{"rules": {"AT001": "error"}}`, "sub error"},
		{"none", "", "", "fine warning, sub warning"},
	} {
		for name, text := range map[string]string{tensorapi.ConfigName: s.config, "sub/" + tensorapi.ConfigName: s.sub} {
			if text == "" {
				os.Remove(filepath.Join(dir, name))
			} else {
				write(t, dir, name, text)
			}
		}
		if got := find(); got != s.want {
			t.Errorf("%s: findings are %q, want %q", s.name, got, s.want)
		}
		if s.name != "off" && s.name != "it changes" && s.name != "none" {
			continue
		}
		out := goCommand(t, dir, -1, "vet", "-vettool="+os.Args[0], "./...")
		for _, pkg := range []string{"fine", "sub"} {
			if strings.Contains(out, pkg+".go:") != strings.Contains(s.want, pkg) {
				t.Errorf("%s: go vet prints\n%s\nwant %q", s.name, out, s.want)
			}
		}
	}
	write(t, dir, tensorapi.ConfigName, `{"rules": {"AT001": "off"}, "paths": {"sub": {"AT001": "off"}}}`)
	if got := find("AT001"); got != "fine warning" {
		t.Errorf("asked for by its id, the rule finds %q", got)
	}

	// Fixes are those of rules that are on.
	write(t, dir, "fix/fix.go", "package fix\n\nimport \"github.com/asyncgen/asyncgen/runtime/tensor\"\n\nfunc F(x *tensor.Tensor) error {\n\tx.Item()\n\treturn nil\n}\n")
	for _, s := range []struct {
		config string
		fixed  bool
	}{{`{"paths": {"fix/*.go": {"all": "off"}}}`, false}, {`{"rules": {"AT030": "error"}}`, true}} {
		write(t, dir, tensorapi.ConfigName, s.config)
		var diff strings.Builder
		changes, err := analysis.ApplyFixes(t.Context(), analysis.Config{Dir: dir, Patterns: []string{"./fix"}, Stderr: t.Output()}, true, &diff)
		if err != nil || changes != s.fixed {
			t.Errorf("%s: -fix changes something: %v, %v\n%s", s.config, changes, err, &diff)
		}
		out := goCommand(t, dir, -1, "fix", "-diff", "-fixtool="+os.Args[0], "./fix")
		if strings.Contains(out, "x.Wait()") != s.fixed {
			t.Errorf("%s: go fix prints\n%s", s.config, out)
		}
	}

	// Wrong settings are trouble, wherever they are, and also where no tensor is.
	write(t, dir, tensorapi.ConfigName, "{\n\t\"rules\": {\"AT01\": \"off\"}\n}\n")
	write(t, dir, "none/none.go", "package none\n")
	want := tensorapi.ConfigName + `:2:12: there is no rule "AT01"; did you mean "AT001"?`
	if _, err := analysis.Vet(t.Context(), analysis.Config{Dir: dir, Patterns: []string{"./none"}}); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %s", err, want)
	}
	if out := goCommand(t, dir, 1, "vet", "-vettool="+os.Args[0], "./none"); !strings.Contains(out, want) || strings.Count(out, want) != 1 {
		t.Errorf("go vet says\n%s\nwant once %s", out, want)
	}
}

// fineLoop waits once in a loop.
var fineLoop = clib["fine/fine.go"]

// Comments without a reason suppress or don't, as the settings say.
func TestReasons(t *testing.T) {
	comments := []struct{ comment, hidden string }{ // under which settings
		{"//asyncgen:ignore AT001", "optional"},
		{"//asyncgen:ignore AT001 it is short", "required optional none"},
		{"//nolint:asyncgen", "optional none"},
		{"//nolint:asyncgen // it is short", "required optional none"},
		{"//nolint", "optional none"},
		{"//nolint // it is short", "required optional none"},
		{"//nolint:other // it is short", ""},
	}
	_, loop, _ := strings.Cut(fineLoop, "func sum")
	source := strings.TrimSuffix(fineLoop, "func sum"+loop)
	for i, c := range comments {
		source += fmt.Sprintf("func sum%d", i) + strings.Replace(loop, "s += x.Item()", "s += x.Item() "+c.comment, 1)
	}
	dir := module(t, map[string]string{"fine/fine.go": source})
	for _, reasons := range []string{"required", "optional", "none"} {
		if reasons != "none" {
			write(t, dir, tensorapi.ConfigName, `{"reasons": "`+reasons+`"}`)
		} else {
			os.Remove(filepath.Join(dir, tensorapi.ConfigName))
		}
		findings, err := analysis.Vet(t.Context(), analysis.Config{Dir: dir, Patterns: []string{"./fine"}, Stderr: t.Output()})
		if err != nil {
			t.Fatal(err)
		}
		messages := make(map[int]string) // by line
		for i, line := range lines(findings) {
			messages[line] = findings[i].Message
		}
		for i, line := range strings.Split(source, "\n") {
			_, comment, ok := strings.Cut(line, "s += x.Item() ")
			if !ok {
				continue
			}
			at := slices.IndexFunc(comments, func(c struct{ comment, hidden string }) bool { return c.comment == comment })
			message, found := messages[i+1]
			if hidden := strings.Contains(comments[at].hidden, reasons); hidden == found {
				t.Errorf("%s with reasons %s: found: %v", comment, reasons, found)
			}
			if found && comments[at].hidden != "" && !strings.Contains(message, "needs a reason") {
				t.Errorf("%s: %q does not say that a reason is lacking", comment, message)
			}
		}
	}
}

// The pages of the rules in docs are current, and each is where reports say that it
// is.
func TestPages(t *testing.T) {
	docs := filepath.Join("..", "docs", "linter")
	pages := analysis.Pages()
	for name, want := range pages {
		if got := readFile(t, filepath.Join(docs, name)); got != want {
			t.Errorf("%s is not what go generate . writes", name)
		}
	}
	entries, err := os.ReadDir(docs)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if _, ok := pages[e.Name()]; !ok && strings.HasPrefix(e.Name(), "AT") {
			t.Errorf("%s is the page of no rule", e.Name())
		}
	}
	for _, a := range analysis.Suite {
		path, ok := strings.CutPrefix(a.URL, "https://github.com/asyncgen/asyncgen/blob/main/")
		if !ok {
			t.Errorf("%s: the page is at %s", a.Name, a.URL)
		}
		if text := readFile(t, filepath.Join("..", filepath.FromSlash(path))); !strings.Contains(text, "# "+a.Name+": ") {
			t.Errorf("%s: %s is another page", a.Name, path)
		}
	}
}

// What a rule's page says of functions that are marked for the generator is what the rule does: "what AT001 is silent
// about" has them, unless it names them.
func TestPagesOnKernels(t *testing.T) {
	for _, a := range analysis.Suite {
		page := strings.Join(strings.Fields(a.Doc), " ")
		said := strings.Contains(page, "what AT001 is silent about") || strings.Contains(page, "functions marked //asyncgen:kernel, about which")
		if said = said && !strings.Contains(page, "apart from functions marked //asyncgen:kernel"); said != lint.RuleOf(a.Name).Rewritten {
			t.Errorf("%s: the page says that it is silent about kernels: %v; it is: %v", a.Name, said, !said)
		}
	}
}
