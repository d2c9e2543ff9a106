package e2e_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/asyncgen/asyncgen/internal/sametemp"
	"github.com/asyncgen/asyncgen/internal/turns"
)

// TestRecipes does what testdata/recipes tells editors, hooks and workflows to do, in a module of a user.
func TestRecipes(t *testing.T) {
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("recipes are for bash: ", err)
	}
	dir := userModule(t)
	for _, part := range []struct {
		name string
		test func(*testing.T, string)
	}{{"editor", testMatcher}, {"workflow", testWorkflow}, {"hook", func(t *testing.T, dir string) {
		testHook(t, dir)
		testPage(t, dir) // in the repository with the hook
	}}} {
		t.Run(part.name, func(t *testing.T) {
			turns.Take(t)
			part.test(t, dir)
		})
	}
}

// testPage runs the commands of the linter's page, which has the tool in the path.
func testPage(t *testing.T, dir string) {
	tool, code := command(t, dir, "go", "tool", "-n", "asyncgen")
	if code != 0 {
		t.Fatal(tool)
	}
	t.Setenv("PATH", filepath.Dir(strings.TrimSpace(tool))+string(os.PathListSeparator)+os.Getenv("PATH"))
	put(t, dir, "loop/loop.go", waitingSource)
	_, page, _ := strings.Cut(readText(t, "docs/linter/README.md"), "\n## Use\n")
	n := 0
	for _, m := range regexp.MustCompile("(?ms)^```sh\n(.*?)^```").FindAllStringSubmatch(page, -1) {
		for line := range strings.Lines(m[1]) {
			if out, code := command(t, dir, "bash", "-c", line); code > 1 {
				t.Errorf("%s exits with %d and prints\n%s", line, code, out)
			}
			n++
		}
	}
	if n < 5 {
		t.Errorf("the page has %d commands to try", n)
	}
}

const (
	cleanSource = "package loop\n\nimport \"github.com/asyncgen/asyncgen/runtime/tensor\"\n\n" +
		"func Sum(x *tensor.Tensor) (sum float64) {\n\tfor range 100 {\n\t\tx = x.AddScalar(1)\n\t}\n\treturn x.Item()\n}\n"
	waitingSource = "package loop\n\nimport \"github.com/asyncgen/asyncgen/runtime/tensor\"\n\n" +
		"func Sum(x *tensor.Tensor) (sum float64) {\n\tfor range 100 {\n\t\tx = x.AddScalar(1)\n\t\tsum += x.Item()\n\t}\n\treturn sum\n}\n"
)

// userModule makes a module like testdata/quickstart with a package that waits in a loop.
func userModule(t *testing.T) string {
	t.Helper()
	root, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	dir := sametemp.Dir(t)
	quickstart := filepath.Join("testdata", "quickstart")
	put(t, dir, "go.mod", strings.Replace(readText(t, filepath.Join(quickstart, "go.mod")), "=> ../..", "=> "+root, 1))
	put(t, dir, "go.sum", readText(t, filepath.Join(quickstart, "go.sum")))
	put(t, dir, "loop/loop.go", waitingSource)
	return dir
}

func put(t *testing.T, dir, name, text string) {
	t.Helper()
	name = filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

// command runs a program in dir, and returns what it prints and its exit code.
func command(t *testing.T, dir, name string, args ...string) (string, int) {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// testMatcher holds the pattern for editors against each form in which there is a place in what is printed.
func testMatcher(t *testing.T, dir string) {
	var file struct {
		Tasks []struct {
			Command        string
			ProblemMatcher struct {
				Pattern struct {
					Regexp                                      string
					File, Line, Column, Severity, Message, Code int
				}
			}
		}
	}
	if err := json.Unmarshal([]byte(readText(t, "testdata/recipes/tasks.json")), &file); err != nil {
		t.Fatal(err)
	}
	p := file.Tasks[0].ProblemMatcher.Pattern
	pattern, err := regexp.Compile(p.Regexp)
	if err != nil {
		t.Fatal(err)
	}
	tool, code := command(t, dir, "go", "tool", "-n", "asyncgen")
	if tool = strings.TrimSpace(tool); code != 0 {
		t.Fatal(tool)
	}
	put(t, dir, "report", `{"asyncgen":"report","version":2}
{"file":`+strconv.Quote(filepath.Join(dir, "loop", "loop.go"))+`,"line":8,"func":"f","op":"Item","waits":3,"wait_ns":2000000}
`)
	put(t, dir, "broken/broken.go", "package broken\n\nimport \"github.com/asyncgen/asyncgen/runtime/tensor\"\n\nvar x = tensor.Nothing\n")
	put(t, dir, "acme.json", `{"name": "acme", "async": true, "tensors": ["example.com/acme.T"],`+"\n"+` "tensor": []}`)
	defer os.RemoveAll(filepath.Join(dir, "broken")) // the rest is about what compiles

	own := strings.Replace(file.Tasks[0].Command, "./...", "./loop", 1)
	if own == file.Tasks[0].Command {
		t.Fatalf("the task is not about all packages: %s", own)
	}
	for _, c := range []struct{ command, file, line, column, code, message string }{
		{"echo '{\"rules\": {\"AT001\": \"error\"}}' > asyncgen.json; " + tool + " vet ./loop; code=$?; rm asyncgen.json; exit $code", "loop/loop.go", "8", "10", "AT001 error", "blocking read"},
		{own, "loop/loop.go", "8", "10", "AT001", "blocking read"},
		{tool + " vet -report=report ./loop", "loop/loop.go", "8", "10", "AT001", "blocking read"},
		{"go vet -vettool=" + tool + " ./loop", "loop/loop.go", "8", "10", "AT001", "blocking read"},
		{"cd loop && go vet -vettool=" + tool, "loop.go", "8", "10", "AT001", "blocking read"},
		{tool + " vet " + filepath.Join(dir, "loop"), "loop/loop.go", "8", "10", "AT001", "blocking read"},
		{tool + " vet ./broken", "broken/broken.go", "5", "16", "", "undefined: tensor.Nothing"},
		{tool + " vet -profile=acme.json ./loop", "acme.json", "2", "2", "", "there is no setting"},
	} {
		out, code := command(t, dir, "bash", "-c", c.command)
		if code == 0 {
			t.Errorf("%s finds nothing", c.command)
		}
		var places []string
		for line := range strings.Lines(out) {
			if m := pattern.FindStringSubmatch(strings.TrimSuffix(line, "\n")); m != nil {
				name := m[p.File]
				if rel, err := filepath.Rel(dir, name); err == nil && filepath.IsAbs(name) {
					name = rel
				}
				places = append(places, strings.TrimRight(fmt.Sprintf("%s %s %s %s %s", filepath.ToSlash(filepath.Clean(name)), m[p.Line], m[p.Column], m[p.Code], m[p.Severity]), " "))
				if !strings.HasPrefix(m[p.Message], c.message) || strings.Contains(m[p.Message], "[AT") || strings.Contains(m[p.Message], "blocked for") {
					t.Errorf("%s: the message is %q", c.command, m[p.Message])
				}
			}
		}
		if want := []string{strings.TrimRight(fmt.Sprintf("%s %s %s %s", c.file, c.line, c.column, c.code), " ")}; !slices.Equal(places, want) {
			t.Errorf("%s: the pattern finds %q, want %q in\n%s", c.command, places, want, out)
		}
	}
}

// testWorkflow runs the commands of the workflow as GitHub does.
func testWorkflow(t *testing.T, dir string) {
	commands := fields(t, "testdata/recipes/lint.yml", "run")
	if len(commands) != 1 {
		t.Fatalf("the workflow runs %q, want one command", commands)
	}
	outputs := filepath.Join(dir, "outputs")
	t.Setenv("GITHUB_OUTPUT", outputs)
	out, code := command(t, dir, "bash", "-e", "-c", commands[0])
	if code != 1 || readText(t, outputs) != "code=1\n" || !strings.Contains(out, "::warning file=loop/loop.go,line=8,endLine=8,col=10,") {
		t.Errorf("%s exits with %d and prints\n%s", commands[0], code, out)
	}
	name := fields(t, "testdata/recipes/lint.yml", "sarif_file")[0]
	var log struct {
		Version string
		Runs    []struct{ Results []struct{ RuleID string } }
	}
	if err := json.Unmarshal([]byte(readText(t, filepath.Join(dir, name))), &log); err != nil {
		t.Fatal(err)
	}
	if log.Version != "2.1.0" || len(log.Runs) != 1 || len(log.Runs[0].Results) != 1 || log.Runs[0].Results[0].RuleID != "AT001" {
		t.Errorf("%s has %+v", name, log)
	}
	put(t, dir, "nowhere/a.go", "package nowhere\n\nimport \"github.com/asyncgen/asyncgen/runtime/tensor\"\n\nvar x = tensor.Nothing\n")
	defer os.RemoveAll(filepath.Join(dir, "nowhere"))
	if out, code = command(t, dir, "bash", "-e", "-c", commands[0]); code != 2 || readText(t, outputs) != "code=1\ncode=2\n" {
		t.Errorf("%s exits with %d although a package does not compile:\n%s", commands[0], code, out)
	}
}

// testHook commits to a repository with the hook: what was there before is no reason to refuse, what is new is.
func testHook(t *testing.T, dir string) {
	const config = "testdata/recipes/pre-commit-config.yaml"
	hook := strings.Fields(fields(t, config, "entry")[0])
	if _, err := exec.LookPath("pre-commit"); err == nil {
		put(t, dir, ".pre-commit-config.yaml", readText(t, config))
		hook = []string{"pre-commit", "run"}
	} else {
		t.Logf("pre-commit is not installed, its command is run without it: %v", err)
	}
	git := func(args ...string) {
		t.Helper()
		if out, code := command(t, dir, "git", append([]string{"-c", "user.name=a", "-c", "user.email=a@example.com"}, args...)...); code != 0 {
			t.Fatalf("git %s: %s", args, out)
		}
	}
	git("init", "-q")
	if out, code := command(t, dir, hook[0], hook[1:]...); hook[0] != "pre-commit" && (code != 1 || strings.Count(out, "[AT001]") != 1) {
		t.Errorf("before the first commit %v exits with %d and prints\n%s", hook, code, out)
	}
	git("add", "go.mod", "go.sum", "loop")
	git("commit", "-q", "-m", "first")
	for _, c := range []struct {
		name, text string
		refused    bool
	}{
		{"something else", waitingSource + "\nvar X int\n", false},
		{"a wait", waitingSource + "\nfunc Twice(x *tensor.Tensor) (sum float64) {\n\tfor range 100 {\n\t\tx = x.AddScalar(1)\n\t\tsum += x.Item()\n\t}\n\treturn sum\n}\n", true},
		{"no wait", cleanSource, false},
	} {
		put(t, dir, "loop/loop.go", c.text)
		if hook[0] == "pre-commit" {
			put(t, dir, ".pre-commit-config.yaml", readText(t, config))
			git("add", ".pre-commit-config.yaml")
		}
		git("add", "loop")
		out, code := command(t, dir, hook[0], hook[1:]...)
		if code != 0 != c.refused || c.refused && strings.Count(out, "[AT001]") != 1 {
			t.Errorf("%s: %v exits with %d and prints\n%s", c.name, hook, code, out)
		}
	}
}

// fields returns the values of a key in a YAML file, each on the line of its key.
func fields(t *testing.T, file, key string) (list []string) {
	t.Helper()
	for line := range strings.Lines(readText(t, file)) {
		if value, ok := strings.CutPrefix(strings.TrimLeft(line, " -"), key+": "); ok {
			list = append(list, strings.TrimSpace(value))
		}
	}
	if len(list) == 0 {
		t.Fatalf("%s has no %s", file, key)
	}
	return list
}
