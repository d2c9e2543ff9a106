package analysis_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/asyncgen/asyncgen/analysis"
	"github.com/asyncgen/asyncgen/device/report"
)

// write writes a file in dir and returns its path.
func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	name = filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	return name
}

// realTemp is a temporary folder, as the go command calls it.
func realTemp(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// finding is one on a line of a file.
func finding(file string, line int) analysis.Finding {
	return analysis.Finding{
		Rule: "AT001", Severity: "warning", Message: fmt.Sprintf("line %d [AT001]", line),
		Posn: fmt.Sprintf("%s:%d:2", file, line), End: fmt.Sprintf("%s:%d:5", file, line),
	}
}

// lines are those of the findings.
func lines(findings []analysis.Finding) (list []int) {
	for _, f := range findings {
		_, line, _ := analysis.SplitPosn(f.Posn)
		list = append(list, line)
	}
	return list
}

func TestText(t *testing.T) {
	dir := realTemp(t)
	inside, outside := filepath.Join(dir, "a", "b,1.go"), filepath.Join(filepath.Dir(dir), "c.go")
	list := []analysis.Finding{
		{Rule: "AT001", Message: "waits", Posn: inside + ":3:4", End: inside + ":3:9", Measured: &report.Counts{Waits: 2, WaitNS: 1_500_000}},
		{Rule: "AT005", Severity: "info", Message: "100 %:\nlate", Posn: outside + ":5:1", End: outside + ":7:2"},
	}
	var text, github bytes.Buffer
	if err := analysis.WriteText(&text, dir, list); err != nil {
		t.Fatal(err)
	}
	if want := filepath.Join("a", "b,1.go") + ":3:4: waits (blocked for 1.5ms, 2 waits)\n" + outside + ":5:1: info: 100 %:\nlate\n"; text.String() != want {
		t.Errorf("text is\n%swant\n%s", &text, want)
	}
	if err := analysis.WriteGitHub(&github, dir, list); err != nil {
		t.Fatal(err)
	}
	want := "::warning file=a/b%2C1.go,line=3,endLine=3,col=4,endColumn=9,title=asyncgen AT001::waits\n" +
		"::notice file=" + strings.ReplaceAll(filepath.ToSlash(outside), ":", "%3A") + ",line=5,endLine=7,title=asyncgen AT005::100 %25:%0Alate\n"
	if github.String() != want {
		t.Errorf("annotations are\n%swant\n%s", &github, want)
	}
}

// A baseline holds when lines move, and names findings by what they are about.
func TestBaseline(t *testing.T) {
	dir := realTemp(t)
	const before = "package a\n\nfunc f() {\n\tx()\n\tx()\n\ty()\n}\n\nfunc (t *T[K]) f() {\n\tx()\n}\n"
	file := write(t, dir, "a/a.go", before)
	base := filepath.Join(dir, "ci", "base.json")
	if err := os.Mkdir(filepath.Dir(base), 0o777); err != nil {
		t.Fatal(err)
	}
	known, err := analysis.NewBaseline(base, []analysis.Finding{finding(file, 4), finding(file, 5), finding(file, 10)})
	if err != nil {
		t.Fatal(err)
	}
	if err := known.Write(); err != nil {
		t.Fatal(err)
	}
	if text := readFile(t, base); !strings.Contains(text, `"func": "(*T[K]).f"`) || !strings.Contains(text, `"package": "../a"`) || strings.Contains(text, dir) {
		t.Errorf("the baseline is\n%s", text)
	}
	for _, c := range []struct {
		name, text string
		found      []int
		want       []int
	}{
		{"nothing changed", before, []int{4, 5, 10}, nil},
		{"another line", before, []int{4, 5, 6, 10}, []int{6}},
		{"moved", "package a\n\n// Comment.\n\nfunc (t *T[K]) f() {\n\t  x()\n}\n\nfunc f() {\n\ty()\n\tx()\n\tx()\n}\n", []int{6, 11, 12}, nil},
		{"one more", "package a\n\nfunc f() {\n\tx()\n\tx()\n\tx()\n}\n", []int{4, 5, 6}, []int{6}},
		{"another text", "package a\n\nfunc f() {\n\tx( )\n\tx()\n}\n", []int{4, 5}, []int{4}},
		{"comments", "package a\n\nfunc f() {\n\tx() // y\n\t/* z */ x() /* \" */ // z\n}\n", []int{4, 5}, nil},
		{"text like a comment", "package a\n\nfunc f() {\n\tx() + \"//\"\n}\n", []int{4}, []int{4}},
		{"another function", "package a\n\nfunc g() {\n\tx()\n}\n", []int{4}, []int{4}},
	} {
		write(t, dir, "a/a.go", c.text)
		read, err := analysis.ReadBaseline(base)
		if err != nil {
			t.Fatal(err)
		}
		var found []analysis.Finding
		for _, line := range c.found {
			found = append(found, finding(file, line))
		}
		fresh, err := read.New(found)
		if err != nil {
			t.Fatal(err)
		}
		if got := lines(fresh); !slices.Equal(got, c.want) {
			t.Errorf("%s: new findings on lines %v, want %v", c.name, got, c.want)
		}
		other := found[0]
		other.Rule = "AT010"
		if fresh, err := read.New([]analysis.Finding{other}); err != nil || len(fresh) != 1 {
			t.Errorf("%s: another rule: %v, %v", c.name, fresh, err)
		}
	}
	for text, want := range map[string]string{"{": "base.json", `{"version":2}`: "version 2", `{"version":1,"findings":[{"rule":"AT001","count":0}]}`: "count"} {
		write(t, dir, "ci/base.json", text)
		if _, err := analysis.ReadBaseline(base); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("baseline %s: error %v, want one with %q", text, err, want)
		}
		before, _ := os.ReadFile(base)
		if err := known.Write(); len(before) > 0 && err == nil {
			t.Errorf("%q is written over", before)
		}
	}
}

// What is new is what differs from where the work left another revision,
// committed or not.
func TestChangedSince(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skipf("no git: %v", err)
	}
	dir := realTemp(t)
	git := func(args ...string) {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-c", "user.name=n", "-c", "user.email=e@example.com", "-c", "commit.gpgsign=false"}, args...)...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_SYSTEM="+os.DevNull)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	git("init", "-q", "-b", "main")
	if changes, err := analysis.ChangedSince(t.Context(), dir, "HEAD"); err != nil || !changes.Touch(finding(filepath.Join(dir, "a.go"), 7)) {
		t.Errorf("before the first commit not all is new: %v", err)
	}
	if _, err := analysis.ChangedSince(t.Context(), dir, "main"); err == nil {
		t.Error("a branch without commits is none to compare with")
	}
	a := write(t, dir, "a ü.go", "1\n2\n3\n4\n5\n6\n7\n8\n9\n")
	b := write(t, dir, "sub/b.go", "1\n2\n3\n")
	git("add", ".")
	git("commit", "-q", "-m", "one")
	git("branch", "work")
	write(t, dir, "sub/b.go", "0\n1\n2\n3\n") // main goes on; that is not the work's
	git("commit", "-q", "-a", "-m", "two")
	git("checkout", "-q", "work")
	write(t, dir, "a ü.go", "1\nchanged\n3\n4\n5\n6\n8\n9\n") // 7 is gone
	git("commit", "-q", "-a", "-m", "three")
	write(t, dir, "a ü.go", "1\nchanged\n3\n4\n5\n6\n8\n9\nadded\n++ not a header\n")
	c := write(t, dir, "sub/new.go", "1\n")

	for _, from := range []string{dir, filepath.Join(dir, "sub")} {
		changes, err := analysis.ChangedSince(t.Context(), from, "main")
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, file := range []string{a, b, c} {
			for line := 1; line <= 10; line++ {
				if changes.Touch(finding(file, line)) {
					got = append(got, fmt.Sprint(filepath.Base(file), line))
				}
			}
		}
		want := []string{"a ü.go2", "a ü.go6", "a ü.go7", "a ü.go9", "a ü.go10"}
		for line := 1; line <= 10; line++ {
			want = append(want, fmt.Sprint("new.go", line))
		}
		if !slices.Equal(got, want) {
			t.Errorf("from %s the changes are %v, want %v", from, got, want)
		}
		f := finding(a, 4)
		f.Related = []analysis.Related{{Posn: a + ":2:1", End: a + ":20:1"}}
		if !changes.Touch(f) {
			t.Error("a finding in a loop whose head was changed is not new")
		}
		f.Related = []analysis.Related{{Posn: a + ":1:1", End: a + ":20:1"}}
		if changes.Touch(f) {
			t.Error("a finding in a loop that was not changed is new")
		}
	}
	if _, err := analysis.ChangedSince(t.Context(), dir, "--nowhere"); err == nil || !strings.Contains(err.Error(), "--nowhere") {
		t.Errorf("no such revision: %v", err)
	}
	git("checkout", "-q", "--orphan", "other")
	git("commit", "-q", "-m", "four")
	if _, err := analysis.ChangedSince(t.Context(), dir, "main"); err == nil || !strings.Contains(err.Error(), "no commit in common") {
		t.Errorf("without a common commit: %v", err)
	}
}

// What a run measured is told about the finding on the line, else about one that
// leads there, and findings come in the order of it.
func TestRank(t *testing.T) {
	dir := realTemp(t)
	write(t, dir, "go.mod", "module example.com/ranked\n\ngo 1.26\n")
	a, lib := filepath.Join(dir, "a.go"), filepath.Join(dir, "lib", "lib.go")
	path := filepath.Join(dir, "report")
	w, err := report.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []report.Record{
		{Place: report.Place{File: a, Line: 3, Op: "Item"}, Counts: report.Counts{Waits: 1, WaitNS: 10}},
		{Place: report.Place{File: a, Line: 3, Op: "At"}, Counts: report.Counts{Waits: 2, HelpNS: 20}},
		{Place: report.Place{File: "example.com/ranked/lib/lib.go", Line: 7, Op: "Item"}, Counts: report.Counts{Waits: 4, StallNS: 500}},
		{Place: report.Place{File: lib, Line: 8, Op: "Item"}, Counts: report.Counts{Waits: 8, WaitNS: 7}},
		{Place: report.Place{File: "unknown/b.go", Line: 3, Op: "Item"}, Counts: report.Counts{Waits: 16, WaitNS: 1}},
	} {
		w.Add(r.Place, r.Counts)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	through := finding(a, 5)
	through.Message = "blocking call in loop: f waits (g at a.go:99, then x.Item() at lib.go:7); return the tensor [AT010]"
	also := finding(a, 6)
	also.Message = "blocking call in loop: f waits (x.Item() at a.go:3) [AT010]"
	findings := []analysis.Finding{finding(a, 1), finding(a, 3), through, also}
	rep, err := report.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	rest, err := analysis.Rank(t.Context(), analysis.Config{Dir: dir, Stderr: t.Output()}, rep, findings)
	if err != nil {
		t.Fatal(err)
	}
	if got := lines(findings); !slices.Equal(got, []int{5, 3, 1, 6}) {
		t.Errorf("order %v", got)
	}
	if m := findings[0].Measured; m == nil || m.Waits != 4 || m.BlockedNS() != 500 {
		t.Errorf("measured in the function: %v", m)
	}
	if m := findings[1].Measured; m == nil || m.Waits != 3 || m.BlockedNS() != 30 {
		t.Errorf("measured on the line: %v", m)
	}
	if findings[2].Measured != nil || findings[3].Measured != nil {
		t.Error("measured twice")
	}
	if rest.Waits != 24 {
		t.Errorf("the rest is %v", rest)
	}
}
