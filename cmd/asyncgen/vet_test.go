package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"

	"github.com/asyncgen/asyncgen/analysis"
	"github.com/asyncgen/asyncgen/internal/sametemp"
	"github.com/asyncgen/asyncgen/internal/turns"
)

// The test binary is the tool that go vet runs for the command under test.
func TestMain(m *testing.M) {
	if analysis.IsUnit(os.Args[1:]) {
		analysis.Unit()
	}
	// Types and syntax live as long as a test or a go command does.
	debug.SetGCPercent(400)
	os.Setenv("GOGC", "400")
	os.Exit(m.Run())
}

func TestVetUsage(t *testing.T) {
	for want, args := range map[string]string{
		`severity "loud"`:      "vet -severity=loud",
		"-diff needs -fix":     "vet -diff",
		"goes without -fix":    "vet -fix -json",
		`unknown rule "AT999"`: "vet -rules=AT001,AT999",
		"at a time":            "vet -json -sarif=-",
		"want the name of":     "vet -sarif ./...",
		"want error, warning":  "vet -severity=worse",
		"needs an argument":    "vet -sarif",
		"no such file or":      "vet -sarif=nowhere/out.sarif",
		"-list and":            "vet -list -github",
		"-fix reports nothing": "vet -fix -baseline=x",
		"-write-baseline nowh": "vet -baseline=nowhere.json",
		"without -baseline":    "vet -write-baseline=x -new-from=HEAD",
		"it goes without":      "vet -write-baseline=x -baseline=x",
		`mean "severity"?`:     "vet -severty=info",
		`mean "AT009"?`:        "vet -rules=AT0009",
		"does not report":      "vet -fail-on=info",
		"-fail-on=loud: want":  "vet -fail-on=loud",
		"nowhere":              "vet -new-from=nowhere",
	} {
		if message := oneLine(t, exitTrouble, strings.Fields(args)...); !strings.Contains(message, want) {
			t.Errorf("asyncgen %s: %q, want a message with %q", args, message, want)
		}
	}
}

// stubModule makes a module of a user with these files and the library's signatures, goes there and returns its folder.
func stubModule(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := sametemp.Dir(t)
	stubs := filepath.Join("..", "..", "analysis", "testdata", "src", "github.com", "asyncgen", "asyncgen")
	if err := os.CopyFS(filepath.Join(dir, "asyncgen"), os.DirFS(stubs)); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	put(t, "asyncgen/go.mod", "module github.com/asyncgen/asyncgen\n\ngo 1.26\n")
	put(t, "go.mod", "module example.com/user\n\ngo 1.26\n\nrequire github.com/asyncgen/asyncgen v0.0.0\n\nreplace github.com/asyncgen/asyncgen => ./asyncgen\n")
	for name, text := range files {
		put(t, name, text)
	}
	return dir
}

// put writes a file below the current folder.
func put(t *testing.T, name, text string) {
	t.Helper()
	name = filepath.FromSlash(name)
	if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

// loopSource has a finding with a fix, and trainSource, which imports it, one without.
const (
	loopSource = `package loop

import "github.com/asyncgen/asyncgen/runtime/tensor"

func Sum(x *tensor.Tensor) (sum float64) {
	for i := range 100 {
		x = x.AddScalar(1)
		v := x.Item()
		if i%10 == 0 {
			sum += v
		}
	}
	return sum
}
`
	trainSource = `package train

import (
	"example.com/user/loop"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

func Total(x *tensor.Tensor) (sum float64) {
	for range 100 {
		x = x.AddScalar(1)
		sum += x.Item()
	}
	return sum + loop.Sum(x)
}
`
)

func TestVet(t *testing.T) {
	dir := stubModule(t, map[string]string{
		"clean/clean.go": "package clean\n",
		"wrong/wrong.go": "package wrong\n\nfunc f() { nothing() }\n",
		"broken/broken.go": `package broken

import "github.com/asyncgen/asyncgen/runtime/tensor"

var x = tensor.Nothing
`,
		"loop/loop.go": loopSource,
	})

	const nothing = "asyncgen: vet: nothing to look at: no package here uses a tensor library that is known\n"
	loop := filepath.Join("loop", "loop.go")
	stdout, stderr, code := asyncgen(t, "vet", "./loop", "./clean")
	if code != exitFindings || stderr != "" || !strings.HasPrefix(stdout, loop+":8:8: ") || strings.Count(stdout, "\n") != 1 {
		t.Errorf("vet exits with %d and prints\n%s%s", code, stdout, stderr)
	}

	stdout, stderr, code = asyncgen(t, "vet", "-json", "./loop")
	var found []analysis.Finding
	if err := json.Unmarshal([]byte(stdout), &found); err != nil {
		t.Fatalf("vet -json: %v in\n%s%s", err, stdout, stderr)
	}
	if code != exitFindings || len(found) != 1 || found[0].Rule != "AT008" || len(found[0].Fixes) != 1 || len(found[0].Related) != 1 {
		t.Errorf("vet -json exits with %d and prints\n%s", code, stdout)
	}

	if stdout, stderr, code = asyncgen(t, "vet", "-json", "./clean"); code != exitOK || strings.TrimSpace(stdout) != "[]" || stderr != nothing {
		t.Errorf("vet -json of a clean package exits with %d and prints\n%s%s", code, stdout, stderr)
	}

	if stdout, stderr, code = asyncgen(t, "vet", "./broken"); code != exitTrouble || stdout != "" || !strings.Contains(stderr, "undefined: tensor.Nothing") {
		t.Errorf("vet of a broken package exits with %d and prints\n%s%s", code, stdout, stderr)
	}

	if stdout, stderr, code = asyncgen(t, "vet", "./wrong"); code != exitTrouble || stdout != "" || !strings.Contains(stderr, "undefined: nothing") {
		t.Errorf("vet of a broken package without tensors exits with %d and prints\n%s%s", code, stdout, stderr)
	}

	stdout, stderr, code = asyncgen(t, "vet", "./loop", "./broken")
	if code != exitTrouble || !strings.HasPrefix(stdout, loop+":8:8: ") || !strings.Contains(stderr, "undefined: tensor.Nothing") || !strings.Contains(stderr, "could not analyse all packages") {
		t.Errorf("vet beside a broken package exits with %d and prints\n%s%s", code, stdout, stderr)
	}
	stdout, _, _ = asyncgen(t, "vet", "-sarif=-", "./loop", "./broken")
	if !strings.Contains(stdout, `"executionSuccessful": false`) {
		t.Errorf("what vet -sarif knows of some packages is said to be all:\n%s", stdout)
	}
	if stdout, stderr, code = asyncgen(t, "vet", "-write-baseline=none.json", "./loop", "./broken"); code != exitTrouble || stdout != "" {
		t.Errorf("vet -write-baseline beside a broken package exits with %d and prints\n%s%s", code, stdout, stderr)
	}
	if _, err := os.Stat("none.json"); err == nil {
		t.Error("there is a baseline of a part of the packages")
	}

	if err := os.WriteFile("acme.json", []byte("{\"name\": \"acme\",\n \"tensor\": []}"), 0o666); err != nil {
		t.Fatal(err)
	}
	if stdout, stderr, code = asyncgen(t, "vet", "-profile=acme.json", "./loop"); code != exitTrouble || !strings.Contains(stderr, `acme.json:2:2: there is no setting "tensor"; did you mean "tensors"?`) {
		t.Errorf("vet with a wrong profile exits with %d and prints\n%s%s", code, stdout, stderr)
	}

	for form, want := range map[string]string{"-sarif=-": `"executionSuccessful": true`, "-github": "::warning file=loop/loop.go,line=8,"} {
		if stdout, stderr, code = asyncgen(t, "vet", form, "./loop"); code != exitFindings || !strings.Contains(stdout, want) {
			t.Errorf("vet %s exits with %d and prints\n%s%s", form, code, stdout, stderr)
		}
	}
	stdout, stderr, code = asyncgen(t, "vet", "-github", "-sarif=out.sarif", "./loop")
	if code != exitFindings || !strings.HasPrefix(stdout, "::warning ") || !strings.Contains(readText(t, "out.sarif"), `"ruleId": "AT008"`) {
		t.Errorf("vet -github -sarif exits with %d and prints\n%s%s", code, stdout, stderr)
	}
	if stdout, stderr, code = asyncgen(t, "vet", "-sarif", "out.sarif", "./clean"); code != exitOK || stdout != "" || stderr != nothing || !strings.Contains(readText(t, "out.sarif"), `"results": []`) {
		t.Errorf("vet -sarif of a clean package exits with %d and prints\n%s%s", code, stdout, stderr)
	}
	if _, stderr, code = asyncgen(t, "vet", "-sarif", loop, "./loop"); code != exitTrouble || !strings.Contains(stderr, "something else in it than SARIF") {
		t.Errorf("vet -sarif over another file exits with %d and prints\n%s", code, stderr)
	}
	if _, stderr, code = asyncgen(t, "vet", "-sarif=new.sarif", "./broken"); code != exitTrouble {
		t.Errorf("vet -sarif of a broken package exits with %d and prints\n%s", code, stderr)
	} else if _, err := os.Stat("new.sarif"); err == nil {
		t.Error("there is a file of findings although there are none")
	}

	// Settings, and what is said when they or the severity hide everything.
	settings := func(text string) {
		if err := os.WriteFile("asyncgen.json", []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	settings(`{"rules": {"AT008": "info"}}`)
	if stdout, stderr, code = asyncgen(t, "vet", "./loop"); code != exitOK || stdout != "" || stderr != "asyncgen: vet: nothing of severity warning; -severity=info shows 1 of severity info\n" {
		t.Errorf("vet without a warning exits with %d and prints\n%s%s", code, stdout, stderr)
	}
	if stdout, stderr, code = asyncgen(t, "vet", "-severity=info", "./loop"); code != exitFindings || stderr != "" {
		t.Errorf("vet -severity=info exits with %d and prints\n%s%s", code, stdout, stderr)
	}
	settings(`{"rules": {"AT008": "error"}}`)
	if stdout, stderr, code = asyncgen(t, "vet", "-severity=error", "-github", "./loop"); code != exitFindings || !strings.HasPrefix(stdout, "::error ") || stderr != "" {
		t.Errorf("vet -severity=error exits with %d and prints\n%s%s", code, stdout, stderr)
	}
	if stdout, stderr, code = asyncgen(t, "vet", "./loop"); code != exitFindings || !strings.HasPrefix(stdout, loop+":8:8: error: blocking read") || stderr != "" {
		t.Errorf("vet of an error exits with %d and prints\n%s%s", code, stdout, stderr)
	}
	if stdout, stderr, code = asyncgen(t, "vet", "-fail-on=error", "./loop"); code != exitFindings || stderr != "" {
		t.Errorf("vet -fail-on=error of an error exits with %d and prints\n%s%s", code, stdout, stderr)
	}
	if stdout, _, code = asyncgen(t, "vet", "-list"); code != exitOK || !strings.Contains(stdout, "  AT008  error (asyncgen.json)  -fix  ") || !strings.Contains(stdout, "  AT010  warning, info ") {
		t.Errorf("vet -list exits with %d and prints\n%s", code, stdout)
	}
	t.Chdir("loop")
	if stdout, _, code = asyncgen(t, "vet", "-list"); code != exitOK || !strings.Contains(stdout, "  AT008  error ("+filepath.Join("..", "asyncgen.json")+")  -fix  ") {
		t.Errorf("vet -list in a folder below exits with %d and prints\n%s", code, stdout)
	}
	t.Chdir(dir)
	settings(`{"rules": {"AT008": "off"}}`)
	if stdout, stderr, code = asyncgen(t, "vet", "./loop"); code != exitOK || stdout+stderr != "" {
		t.Errorf("vet without the rule exits with %d and prints\n%s%s", code, stdout, stderr)
	}
	if stdout, stderr, code = asyncgen(t, "vet", "-rules=AT010, at008", "./loop"); code != exitFindings {
		t.Errorf("vet -rules of a rule that is off exits with %d and prints\n%s%s", code, stdout, stderr)
	}
	settings("{\n \"rule\": {}}")
	if stdout, stderr, code = asyncgen(t, "vet", "./clean"); code != exitTrouble || stdout != "" || !strings.HasSuffix(stderr, `asyncgen.json:2:2: there is no setting "rule"; did you mean "rules"?`+"\n") {
		t.Errorf("vet with wrong settings exits with %d and prints\n%s%s", code, stdout, stderr)
	}
	os.Remove("asyncgen.json")
	if stdout, stderr, code = asyncgen(t, "vet", "-fail-on=error", "./loop"); code != exitOK || !strings.HasPrefix(stdout, loop+":8:8: blocking read") || stderr != "" {
		t.Errorf("vet -fail-on=error of a warning exits with %d and prints\n%s%s", code, stdout, stderr)
	}

	if stdout, stderr, code = asyncgen(t, "vet", "-write-baseline=base.json", "./loop"); code != exitOK || stdout != "" || stderr != "asyncgen: vet: base.json lists 1 finding\n" {
		t.Errorf("vet -write-baseline exits with %d and prints\n%s%s", code, stdout, stderr)
	}
	if stdout, stderr, code = asyncgen(t, "vet", "-baseline=base.json", "./loop"); code != exitOK || stdout+stderr != "" {
		t.Errorf("vet -baseline exits with %d and prints\n%s%s", code, stdout, stderr)
	}
	measured := `{"asyncgen":"report","version":2}
{"file":` + strconv.Quote(filepath.Join(dir, loop)) + `,"line":8,"func":"f","op":"Item","waits":3,"wait_ns":2000000}
{"file":"/elsewhere.go","line":8,"func":"f","op":"Item","waits":1,"wait_ns":1000000}
`
	if err := os.WriteFile("report", []byte(measured), 0o666); err != nil {
		t.Fatal(err)
	}
	stdout, stderr, code = asyncgen(t, "vet", "-report=report", "./loop")
	if code != exitFindings || !strings.HasSuffix(stdout, " [AT008] (blocked for 2ms, 3 waits)\n") || !strings.Contains(stderr, "another 1ms") {
		t.Errorf("vet -report exits with %d and prints\n%s%s", code, stdout, stderr)
	}

	if stdout, stderr, code = asyncgen(t, "vet", "-fix", "-diff", "./loop"); code != exitFindings || !strings.Contains(stdout, "+\t\t\tv := x.Item()\n") {
		t.Errorf("vet -fix -diff exits with %d and prints\n%s%s", code, stdout, stderr)
	}
	if stdout, stderr, code = asyncgen(t, "vet", "-fix", "./loop"); code != exitOK || stdout != "" || stderr != "asyncgen: vet: 1 file changed; 0 findings left, 0 with a fix\n" {
		t.Errorf("vet -fix exits with %d and prints\n%s%s", code, stdout, stderr)
	}
	if stdout, stderr, code = asyncgen(t, "vet", "./loop"); code != exitOK || stdout+stderr != "" {
		t.Errorf("vet of the fixed package exits with %d and prints\n%s%s", code, stdout, stderr)
	}
}

func readText(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Rules without fixes made the tool fail that go fix runs.
func TestVetFixRules(t *testing.T) {
	turns.Take(t)
	stubModule(t, map[string]string{"loop/loop.go": loopSource, "train/train.go": trainSource})
	if message := oneLine(t, exitTrouble, "vet", "-fix", "-rules=AT001,AT007", "./..."); !strings.Contains(message, "-fix: AT001, AT007: there are no fixes; rules with fixes are AT002, AT006,") {
		t.Errorf("vet -fix of rules without fixes says %q", message)
	}
	if stdout, stderr, code := asyncgen(t, "vet", "-fix", "-diff", "-rules=AT001,AT002", "./..."); code != exitOK || stdout+stderr != "" {
		t.Errorf("vet -fix -diff of a rule that finds nothing exits with %d and prints\n%s%s", code, stdout, stderr)
	}
	if stdout, stderr, code := asyncgen(t, "vet", "-fix", "-diff", "-rules=AT001,AT008", "./..."); code != exitFindings || !strings.Contains(stdout, "+\t\t\tv := x.Item()\n") || stderr != "" {
		t.Errorf("vet -fix -diff of a rule with fixes exits with %d and prints\n%s%s", code, stdout, stderr)
	}
	put(t, "broken/broken.go", "package broken\n\nimport \"github.com/asyncgen/asyncgen/runtime/tensor\"\n\nvar x = tensor.Nothing\n")
	if _, stderr, code := asyncgen(t, "vet", "-fix", "./broken"); code != exitTrouble || !strings.Contains(stderr, "undefined: tensor.Nothing") || !strings.Contains(stderr, "could not apply all fixes") {
		t.Errorf("vet -fix of a broken package exits with %d and prints\n%s", code, stderr)
	}
}

// Of packages that are imported only, the go command prints what it has found earlier.
func TestVetNamedPackages(t *testing.T) {
	stubModule(t, map[string]string{"loop/loop.go": loopSource, "train/train.go": trainSource})
	for _, c := range []struct {
		packages string
		want     []string
	}{
		{"./...", []string{"loop/loop.go:8:8: ", "train/train.go:11:10: "}},
		{"./train", []string{"train/train.go:11:10: "}},
		{"train/train.go", []string{"train/train.go:11:10: "}},
		{"./loop", []string{"loop/loop.go:8:8: "}},
	} {
		stdout, stderr, code := asyncgen(t, "vet", c.packages)
		lines := strings.SplitAfter(strings.TrimSuffix(stdout, "\n"), "\n")
		ok := code == exitFindings && stderr == "" && len(lines) == len(c.want)
		for i := range c.want {
			ok = ok && strings.HasPrefix(filepath.ToSlash(lines[i]), c.want[i])
		}
		if !ok {
			t.Errorf("vet %s exits with %d and prints\n%s%s", c.packages, code, stdout, stderr)
		}
	}
	if stdout, _, _ := asyncgen(t, "vet", "-fix", "-diff", "./..."); !strings.Contains(stdout, "+++ ") {
		t.Errorf("vet -fix -diff prints\n%s", stdout)
	}
	if stdout, stderr, code := asyncgen(t, "vet", "-fix", "-diff", "./train"); code != exitOK || stdout+stderr != "" {
		t.Errorf("vet -fix -diff of a package without fixes exits with %d and prints\n%s%s", code, stdout, stderr)
	}
}

// What -fix -diff prints is a patch that git takes, also where a file changes in several places.
func TestVetPatch(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip(err)
	}
	_, body, _ := strings.Cut(loopSource, "\n\nfunc Sum")
	far := func(name string) string { return strings.Repeat("\n// Far from it.\n", 9) + "\nfunc " + name + body }
	last := "\nfunc Last(x *tensor.Tensor) (v float64) {\n\tfor range 3 {\n\t\tx = x.AddScalar(1)\n\t\tv = x.Item()\n\t}\n\treturn v\n}\n"
	dir := stubModule(t, map[string]string{"loop/loop.go": loopSource + last + far("Second") + far("Third")})
	stdout, stderr, code := asyncgen(t, "vet", "-fix", "-diff", "./...")
	if code != exitFindings || stderr != "" || strings.Contains(stdout, dir) {
		t.Errorf("vet -fix -diff exits with %d and prints\n%s%s", code, stdout, stderr)
	}
	apply := exec.Command("git", "apply", "-p0", "--verbose")
	apply.Stdin = strings.NewReader(stdout)
	out, err := apply.CombinedOutput()
	if err != nil || strings.Contains(string(out), "offset") {
		t.Errorf("git apply: %v\n%s\n%s", err, out, stdout)
	}
	if stdout, stderr, code := asyncgen(t, "vet", "-fix", "-diff", "./..."); code != exitOK || stdout+stderr != "" {
		t.Errorf("after the patch vet -fix -diff exits with %d and prints\n%s%s", code, stdout, stderr)
	}
}

// A baseline that was written for one package lost what it had for the others.
func TestVetBaselineOfSome(t *testing.T) {
	turns.Take(t)
	stubModule(t, map[string]string{"loop/loop.go": loopSource, "train/train.go": trainSource})
	for _, c := range []struct{ name, args, stderr string }{
		{"all", "./...", "base.json lists 2 findings"},
		{"one package", "./loop", "base.json lists 2 findings, and listed 2 before"},
		{"one rule", "-rules=AT007 ./...", "base.json lists 2 findings, and listed 2 before"},
	} {
		args := append([]string{"vet", "-write-baseline=base.json"}, strings.Fields(c.args)...)
		if stdout, stderr, code := asyncgen(t, args...); code != exitOK || stdout != "" || stderr != "asyncgen: vet: "+c.stderr+"\n" {
			t.Errorf("%s: vet -write-baseline exits with %d and prints\n%s%s", c.name, code, stdout, stderr)
		}
		if stdout, stderr, code := asyncgen(t, "vet", "-baseline=base.json", "./..."); code != exitOK || stdout+stderr != "" {
			t.Errorf("%s: vet -baseline exits with %d and prints\n%s%s", c.name, code, stdout, stderr)
		}
	}
	// What is mended, or no longer there, leaves.
	put(t, "loop/loop.go", "package loop\n\nimport \"github.com/asyncgen/asyncgen/runtime/tensor\"\n\nfunc Sum(x *tensor.Tensor) float64 { return x.Item() }\n")
	if _, stderr, _ := asyncgen(t, "vet", "-write-baseline=base.json", "./loop"); !strings.Contains(stderr, "base.json lists 1 finding, and listed 2 before") {
		t.Errorf("of a mended package: %s", stderr)
	}
	if err := os.RemoveAll("train"); err != nil {
		t.Fatal(err)
	}
	if _, stderr, _ := asyncgen(t, "vet", "-write-baseline=base.json", "./loop"); !strings.Contains(stderr, "base.json lists 0 findings, and listed 1 before") {
		t.Errorf("without the other package: %s", stderr)
	}
	if message := oneLine(t, exitTrouble, "vet", "-write-baseline=go.mod/base.json", "./loop"); !strings.Contains(message, "write "+filepath.Join("go.mod/base.json")+": ") {
		t.Errorf("to where nothing can be written: %s", message)
	}
	if message := oneLine(t, exitTrouble, "vet", "-write-baseline=go.mod", "./loop"); !strings.Contains(message, "stays as it is") {
		t.Errorf("over another file: %s", message)
	}
}

// An interrupt was reported as packages that can't be analysed.
func TestVetInterrupted(t *testing.T) {
	stubModule(t, map[string]string{"loop/loop.go": loopSource})
	vet := func(ctx context.Context) {
		t.Helper()
		for _, args := range []string{"vet ./...", "vet -fix ./...", "vet -fix -diff ./..."} {
			var stdout, stderr bytes.Buffer
			code := run(ctx, &env{strings.NewReader(""), &stdout, &stderr}, strings.Fields(args))
			if code != exitTrouble || stdout.Len() > 0 || stderr.String() != "asyncgen: vet: interrupted\n" {
				t.Errorf("%s, interrupted, exits with %d and prints\n%s%s", args, code, &stdout, &stderr)
			}
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	vet(ctx)
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip(err)
	}
	// A terminal interrupts the go command, too, which may end first.
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "go"), []byte("#!/bin/sh\nkill -INT $$\n"), 0o777); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	vet(t.Context())
}
