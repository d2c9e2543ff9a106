package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/asyncgen/asyncgen/internal/trace/page"
)

// tracedRun is a trace of two waits. %s is the file of the program.
const tracedRun = `[
{"ph":"M","name":"asyncgen","pid":1,"args":{"version":1,"go":"go1.26"}},
{"ph":"X","cat":"op","name":"Sum","ts":0,"dur":300,"pid":1,"tid":22,"args":{"id":"1.0","enqueued":0,"result":"float32[]","bytes":4,"at":"%[1]s:2","func":"main.main"}},
{"ph":"X","cat":"wait","name":"Item","ts":10,"dur":490,"pid":1,"tid":1,"args":{"for":"1.0","idle":400,"at":"%[1]s:3","func":"main.main"}},
{"ph":"X","cat":"wait","name":"Wait","ts":500,"dur":500,"pid":1,"tid":1,"args":{"idle":100,"at":"/nowhere/` + "\\u001b[31m" + `x.go:7","func":"x"}}
]
`

func TestTrace(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	write("main.go", "package main\n\n\tprintln(x.Item())\n")
	run := fmt.Sprintf(tracedRun, filepath.ToSlash(filepath.Join(here, "main.go")))
	write("run.json", run)
	const table = `50 % of 1.00 ms blocked; 80 % of that in main.go:3: println(x.Item())

  blocked   share     waits  call  found  line                         function
   400 µs    80 %         1  Item  -      main.go:3                    main.main
   100 µs    20 %         1  Wait  -      /nowhere/\x1b[31mx.go:7      x

The page is `
	for _, c := range []struct {
		args []string
		page string
	}{{[]string{"trace", "run.json"}, "run.json.html"}, {[]string{"trace", "-o", "other.html", "run.json"}, "other.html"}, {[]string{"trace", "run.json"}, "run.json.html"}} {
		stdout, stderr, code := asyncgen(t, c.args...)
		if want := table + c.page + "\n"; code != exitOK || stderr != "" || strings.Join(strings.Fields(stdout), " ") != strings.Join(strings.Fields(want), " ") {
			t.Errorf("%q exits with %d and prints\n%s%s\nwant\n%s", c.args, code, stdout, stderr, want)
		}
		if text, err := os.ReadFile(c.page); err != nil || !strings.HasPrefix(string(text), page.First) || !strings.HasSuffix(string(text), "</html>\n") {
			t.Errorf("%s: %v\n%.100s", c.page, err, text)
		}
	}

	write("cut.json", run[:len(run)-20])
	if stdout, _, code := asyncgen(t, "trace", "cut.json"); code != exitOK || !strings.Contains(stdout, "The last moments may be missing") || !strings.HasPrefix(stdout, "80 % of 500 µs blocked; 100 %") {
		t.Errorf("a trace without its end: exit code %d\n%s", code, stdout)
	}

	for range 2 { // the second time it replaces the files
		stdout, stderr, code := asyncgen(t, "trace", "-dot", "g.dot", "-svg", "g.svg", "-span", "main.go:2", "-span", "0s-1ms", "run.json")
		if code != exitOK || stdout+stderr != "" {
			t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
		}
	}
	for name, want := range map[string]string{"g.dot": `n1 [label="Sum\nfloat32[]\nmain.go:2"];`, "g.svg": ">Sum</text>"} {
		if text, err := os.ReadFile(name); err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s: %v\n%s", name, err, text)
		}
	}

	write("notes.html", "my notes")
	write("run.report", `{"asyncgen":"report","version":2,"run":"1","program":"p","pid":1,"turn":1}`+"\n")
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"trace"}, "which file?"},
		{[]string{"trace", "a", "b"}, "which file?"},
		{[]string{"trace", "absent.json"}, "no such file"},
		{[]string{"trace", "main.go"}, "main.go: this is no trace"},
		{[]string{"trace", "run.report"}, "run.report: this is no trace but a report of waits"},
		{[]string{"trace", "."}, "is a directory"},
		{[]string{"trace", "-o", "notes.html", "run.json"}, "notes.html has something else in it than a page of a trace, and stays as it is"},
		{[]string{"trace", "-o", "run.json", "run.json"}, "stays as it is"},
		{[]string{"trace", "-svg", "notes.html", "run.json"}, "notes.html has something else in it than a graph of a trace, and stays as it is"},
		{[]string{"trace", "-dot", "notes.html", "run.json"}, "stays as it is"},
		{[]string{"trace", "-svg", "g.svg", "-span", "main.go:7", "run.json"}, "no operation of the trace is in the span"},
		{[]string{"trace", "-svg", "g.svg", "-span", "7", "run.json"}, "want two times"},
		{[]string{"trace", "-svg", "g.svg", "-o", "page.html", "run.json"}, "without -o"},
		{[]string{"trace", "-span", "main.go:2", "run.json"}, "-span is for -dot and -svg"},
		{[]string{"trace", "-o", "absent/page.html", "run.json"}, "no such file"},
	} {
		if message := oneLine(t, exitTrouble, c.args...); !strings.Contains(message, c.want) {
			t.Errorf("asyncgen %q: %q, want a message with %q", c.args, message, c.want)
		}
	}
	if text, err := os.ReadFile("notes.html"); err != nil || string(text) != "my notes" {
		t.Errorf("%v: %q", err, text)
	}
}

// TestTraceSources asks for lines of files that a trace may name. Only sources are read.
func TestTraceSources(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		name, text string
		want       int
	}{
		{"main.go", "a\r\nb\n", 3}, {"secret", "a\nb\n", 0}, {"secret.txt", "a\nb\n", 0}, {"folder.go/x.go", "", 1}, {"long.go", strings.Repeat("\n", maxSource+1), 0},
	} {
		file := filepath.Join(dir, c.name)
		if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(c.text), 0o666); err != nil {
			t.Fatal(err)
		}
		if lines := sources()(file); len(lines) != c.want || c.want > 1 && lines[0] != "a" {
			t.Errorf("%s: %q", c.name, lines)
		}
	}
	t.Chdir(dir)
	for _, name := range []string{"main.go", "./main.go", "", filepath.Join(dir, "folder.go"), os.DevNull, filepath.Join(dir, "absent.go")} {
		if lines := sources()(name); lines != nil {
			t.Errorf("%s: %q", name, lines)
		}
	}
}

// TestFindings goes from a program that runs to its findings by their time, in each form in which there are some. In
// virtual time a trace has all waits.
func TestFindings(t *testing.T) {
	userModule(t, `package main

import "github.com/asyncgen/asyncgen/runtime/tensor"

func main() {
	x := tensor.Ones(100, 100)
	total := 0.0
	for range 20 {
		x = x.MatMul(x).MulScalar(0.01)
		total += mean(x)
	}
	seen := 0.0
	for range 30 {
		x = x.MatMul(x).MulScalar(0.01)
		seen += x.Sum().Item()
	}
	println(total + seen > 0)
}
`)
	helper := "package main\n\nimport \"github.com/asyncgen/asyncgen/runtime/tensor\"\n\nfunc mean(x *tensor.Tensor) float64 {\n\treturn x.Mean().Item()\n}\n"
	if err := os.WriteFile("helper.go", []byte(helper), 0o666); err != nil {
		t.Fatal(err)
	}
	run := exec.Command("go", "run", ".")
	run.Env = append(os.Environ(), "ASYNCGEN_DEVICE=sim:0", "ASYNCGEN_SIM=clock=virtual", "ASYNCGEN_REPORT=run.report", "ASYNCGEN_TRACE=run.json")
	if out, err := run.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var last string
	for _, file := range []string{"run.report", "run.json"} {
		stdout, stderr, code := asyncgen(t, "vet", "-report="+file)
		lines := strings.Split(stdout, "\n")
		if code != exitFindings || stderr != "" || len(lines) != 3 {
			t.Fatalf("vet -report=%s exits with %d and prints\n%s%s", file, code, stdout, stderr)
		}
		for i, want := range []string{`^main.go:15:11: .* \[AT001\] \(blocked for .*, 30 waits\)$`, `^main.go:10:12: .* \[AT010\] \(blocked for .*, 20 waits\)$`} {
			if !regexp.MustCompile(want).MatchString(lines[i]) {
				t.Errorf("vet -report=%s: %s, want %s", file, lines[i], want)
			}
		}
		if last != "" && last != stdout {
			t.Errorf("of a report, vet makes\n%sand of a trace\n%s", last, stdout)
		}
		last = stdout
	}
	stdout, stderr, code := asyncgen(t, "trace", "run.json")
	if code != exitOK || stderr != "" || !regexp.MustCompile(`(?s)^.* in main\.go:15: seen \+= x\.Sum\(\)\.Item\(\) \(AT001\)\n.* 30  Item  AT001  main\.go:15 .* 20  Item  AT010  helper\.go:6 .*\nAT001: main\.go:15: blocking read .*\nAT010: main\.go:10: blocking call [^\[]*\n`).MatchString(stdout) {
		t.Errorf("trace exits with %d and prints\n%s%s", code, stdout, stderr)
	}
	if stdout, _, _ := asyncgen(t, "trace", "-vet=false", "run.json"); strings.Contains(stdout, "AT0") {
		t.Errorf("without vet, trace prints\n%s", stdout)
	}
}
