package golangci

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	suite "github.com/asyncgen/asyncgen/analysis"
	"github.com/asyncgen/asyncgen/analysis/blocking"
	"github.com/golangci/plugin-module-register/register"
	"golang.org/x/tools/go/analysis"
)

var version = flag.String("golangci-lint", "", "build this version of golangci-lint with the plugin, as TestGolangciLint says")

func TestSettings(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, c := range []struct {
		settings any
		wrong    string // part of the error; empty for none
		rules    int
	}{
		{nil, "", len(suite.Suite)},
		{map[string]any{"severity": "info", "tests": true}, "", len(suite.Suite)},
		{map[string]any{"rules": []any{"AT010", "AT001"}, "severity": "warning"}, "", 2},
		{map[string]any{"rules": "AT010"}, "rules", 0},
		{map[string]any{"rules": []any{"AT999"}}, `unknown rule "AT999"`, 0},
		{map[string]any{"severity": "loud"}, `severity "loud": want error, warning or info`, 0},
		{map[string]any{"level": "info"}, "level", 0},
		{map[string]any{"profiles": []any{"nowhere.json"}}, "nowhere.json", 0},
	} {
		constructor, err := register.GetPlugin("asyncgen")
		if err != nil {
			t.Fatal(err)
		}
		text := ""
		n := 0
		if p, err := constructor(c.settings); err != nil {
			text = err.Error()
		} else if list, err := p.BuildAnalyzers(); err != nil {
			text = err.Error()
		} else if n = len(list); p.GetLoadMode() != register.LoadModeTypesInfo {
			t.Errorf("%v: load mode %s", c.settings, p.GetLoadMode())
		}
		if n != c.rules || c.wrong == "" && text != "" || !strings.Contains(text, c.wrong) {
			t.Errorf("%v gives %d rules and the error %q, want %d and one with %q", c.settings, n, text, c.rules, c.wrong)
		}
	}
}

// A file that names profiles is found as asyncgen vet finds it.
func TestProfiles(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "go.mod"), "module example.com/user\n")
	write(t, filepath.Join(dir, "asyncgen.json"), `{"profiles": ["acme.json"]}`)
	write(t, filepath.Join(dir, "acme.json"), `{"name": "acme", "async": true, "core": ["example.com/acme"], "tensors": ["example.com/acme.T"]}`)
	below := filepath.Join(dir, "a", "b")
	if err := os.MkdirAll(below, 0o777); err != nil {
		t.Fatal(err)
	}
	t.Chdir(below)
	p, err := New(nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.BuildAnalyzers(); err != nil {
		t.Fatal(err)
	}
	// What golangci-lint has kept is forgotten when a file changes.
	names := func() string {
		t.Helper()
		list, err := p.BuildAnalyzers()
		if err != nil {
			t.Fatal(err)
		}
		if err := analysis.Validate(list); err != nil {
			t.Error(err)
		}
		return list[len(list)-1].Name + " " + blocking.Analyzer.Name
	}
	before := names()
	if again := names(); again != before {
		t.Errorf("the names change by themselves: %s, %s", before, again)
	}
	write(t, filepath.Join(dir, "acme.json"), `{"name": "acme", "async": false, "core": ["example.com/acme"], "tensors": ["example.com/acme.T"]}`)
	profile := names()
	write(t, filepath.Join(dir, "asyncgen.json"), `{"profiles": ["acme.json"], "rules": {"AT001": "off"}}`)
	if rules := names(); profile == before || rules == profile {
		t.Errorf("the names don't change with the files: %s, %s, %s", before, profile, rules)
	}
	write(t, filepath.Join(dir, "asyncgen.json"), `{"rules": {"AT1": "off"}}`)
	if _, err := New(nil); err == nil || !strings.Contains(err.Error(), `there is no rule "AT1"`) {
		t.Errorf("wrong settings: %v", err)
	}
	if !blocking.IsLibrary("example.com/acme") {
		t.Error("the library of a profile is not known")
	}
}

// TestGolangciLint builds golangci-lint with the plugin, as "golangci-lint custom"
// does, and holds what it finds in the programs against what asyncgen vet does. It
// downloads and compiles a lot:
//
//	go test . -run GolangciLint -v -timeout 1h -golangci-lint v2.15.0
func TestGolangciLint(t *testing.T) {
	if *version == "" {
		t.Skip("downloads a lot: -golangci-lint v2.15.0")
	}
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	lint, vet := filepath.Join(dir, "custom-gcl"), filepath.Join(dir, "asyncgen")
	write(t, filepath.Join(dir, "go.mod"), fmt.Sprintf(`module example.com/custom

go 1.26

require (
	github.com/asyncgen/asyncgen v0.0.0
	github.com/asyncgen/asyncgen/analysis/golangci v0.0.0
	github.com/golangci/golangci-lint/v2 %s
)

replace (
	github.com/asyncgen/asyncgen => %s
	github.com/asyncgen/asyncgen/analysis/golangci => %s
)
`, *version, root, filepath.Join(root, "analysis", "golangci")))
	write(t, filepath.Join(dir, "main.go"), `package main

import (
	"fmt"
	"os"

	_ "github.com/asyncgen/asyncgen/analysis"
	_ "github.com/asyncgen/asyncgen/analysis/golangci"
	"github.com/golangci/golangci-lint/v2/pkg/commands"
)

func main() {
	if err := commands.Execute(commands.BuildInfo{Version: "`+strings.TrimPrefix(*version, "v")+`"}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(3)
	}
}
`)
	run(t, dir, 0, "go", "build", "-mod=mod", "-o", lint, ".")
	run(t, root, 0, "go", "build", "-o", vet, "./cmd/asyncgen")
	t.Setenv("GOLANGCI_LINT_CACHE", filepath.Join(dir, "cache"))

	programs, err := filepath.Glob(filepath.Join(root, "testdata", "programs", "*"))
	if err != nil || len(programs) == 0 {
		t.Fatalf("programs: %v, %v", programs, err)
	}
	for i, p := range programs {
		programs[i] = "./testdata/programs/" + filepath.Base(p)
	}
	for _, c := range []struct {
		name, settings string
		flags          []string
	}{
		{"warnings", "{}", nil},
		{"infos", "{severity: info, tests: true}", []string{"-severity=info", "-tests"}},
		{"rules", "{rules: [AT010, AT004]}", []string{"-rules=AT010,AT004"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			config := filepath.Join(dir, c.name+".yml")
			write(t, config, `version: "2"
linters:
  default: none
  enable: [asyncgen]
  settings:
    custom:
      asyncgen:
        type: module
        settings: `+c.settings+`
issues:
  uniq-by-line: false
  max-same-issues: 0
  max-issues-per-linter: 0
`)
			got := issues(t, run(t, root, 1, lint, append([]string{"run", "--config", config, "--output.json.path=stdout", "--show-stats=false", "--path-mode=abs"}, programs...)...))
			want := findings(t, run(t, root, 1, vet, append(append([]string{"vet", "-json"}, c.flags...), programs...)...))
			if len(want) == 0 || !slices.Equal(got, want) {
				t.Errorf("golangci-lint finds\n%s\nasyncgen vet finds\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
			t.Logf("%d findings", len(want))
		})
	}
}

// issues reads what golangci-lint has found, in the form of findings.
func issues(t *testing.T, out []byte) (list []string) {
	t.Helper()
	var all struct {
		Issues []struct {
			Text string
			Pos  struct {
				Filename     string
				Line, Column int
			}
			SuggestedFixes []any
		}
	}
	if err := json.Unmarshal(out, &all); err != nil {
		t.Fatalf("%v in\n%s", err, out)
	}
	for _, i := range all.Issues {
		_, text, _ := strings.Cut(i.Text, ": ") // the name of the rule
		list = append(list, fmt.Sprintf("%s:%d:%d: %s (%d fixes)", i.Pos.Filename, i.Pos.Line, i.Pos.Column, text, len(i.SuggestedFixes)))
	}
	slices.Sort(list)
	return list
}

// findings reads what asyncgen vet has found.
func findings(t *testing.T, out []byte) (list []string) {
	t.Helper()
	var all []suite.Finding
	if err := json.Unmarshal(out, &all); err != nil {
		t.Fatalf("%v in\n%s", err, out)
	}
	for _, f := range all {
		list = append(list, fmt.Sprintf("%s: %s (%d fixes)", f.Posn, f.Message, len(f.Fixes)))
	}
	slices.Sort(list)
	return list
}

// run runs a program that has to exit with code, and returns its standard output.
func run(t *testing.T, dir string, code int, name string, args ...string) []byte {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if got := cmd.ProcessState.ExitCode(); got != code {
		t.Fatalf("%s: %v, want exit code %d\n%s%s", cmd, err, code, out, &stderr)
	}
	return out
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}
