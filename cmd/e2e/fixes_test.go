package e2e_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/asyncgen/asyncgen/internal/sametemp"
	"github.com/asyncgen/asyncgen/internal/turns"
)

// TestFixes applies the linter's fixes to a program of a user and runs it as it was and as it is
// then: it prints the same and fails in the same way. What is fixed is formatted, compiles, and has
// nothing left to fix.
func TestFixes(t *testing.T) {
	turns.Take(t)
	temp := sametemp.Dir(t)
	tool := buildTool(t)
	dir := filepath.Join(temp, "fixes")
	if err := os.CopyFS(dir, os.DirFS("testdata/fixes")); err != nil {
		t.Fatal(err)
	}
	root, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	mod := strings.Replace(readText(t, "testdata/quickstart/go.mod"), "=> ../..", "=> "+filepath.ToSlash(root), 1)
	for name, text := range map[string]string{"go.mod": mod, "go.sum": readText(t, "testdata/quickstart/go.sum")} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	command := func(dir, name string, args ...string) string {
		t.Helper()
		cmd := exec.Command(name, args...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
		}
		return string(out)
	}

	before, after := filepath.Join(temp, "before"+exeSuffix()), filepath.Join(temp, "after"+exeSuffix())
	command(dir, "go", "build", stripped, "-o", before, ".")
	main, bench := readText(t, filepath.Join(dir, "main.go")), readText(t, filepath.Join(dir, "main_test.go"))
	command(dir, tool, "vet", "-fix", ".")
	fixed, fixedBench := readText(t, filepath.Join(dir, "main.go")), readText(t, filepath.Join(dir, "main_test.go"))
	if n := strings.Count(fixed, "WaitIdle()"); n != 2 || strings.Count(fixed, ".Wait()") != 3 || strings.Count(fixed, "WaitContext(ctx)") != 3 || strings.Count(fixedBench, "WaitIdle()") != 2 ||
		!strings.Contains(fixed, "\t\t\tv := y.Item()") || strings.Contains(fixed, "\t\tvalue = y.Item()\n\t}") || strings.Contains(fixed, "total += scale.Item()") {
		t.Errorf("the fixed program is\n%s\n%s", fixed, fixedBench)
	}
	if main == fixed || bench == fixedBench {
		t.Fatal("nothing is fixed")
	}
	command(dir, "go", "build", stripped, "-o", after, ".")
	command(dir, "go", "test", "-count=1", "-run=^$", "-bench=.", "-benchtime=1x", ".")
	command(dir, tool, "vet", "-fix", "-diff", ".") // fails if there is a difference
	if unformatted := command(dir, "gofmt", "-l", "."); unformatted != "" {
		t.Errorf("gofmt would change %s", unformatted)
	}
	for _, device := range []string{"cpu", "sim:0"} {
		for _, engine := range []string{"async", "naive"} {
			run := func(program string) []byte { // what it prints, but for the lines of errors, which a fix moves
				return where.ReplaceAll(runProgram(t, []string{program}, "ASYNCGEN_DEVICE="+device, "ASYNCGEN_ENGINE="+engine), nil)
			}
			was, is := run(before), run(after)
			if !bytes.Equal(was, is) {
				t.Errorf("on %s, %s: as written it prints\n%sas fixed\n%s", device, engine, was, is)
			}
			if !bytes.Contains(was, []byte("panics with")) || !bytes.Contains(was, []byte("dropped returns")) {
				t.Errorf("on %s, %s: the program does not do what it is for:\n%s", device, engine, was)
			}
		}
	}
}
