package report

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
)

func newReport(t *testing.T) (*Writer, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "report.jsonl")
	w, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return w, path
}

func TestRoundTrip(t *testing.T) {
	w, path := newReport(t)
	places := []Place{
		{"/src/train.go", 41, "main.train", "Item"},
		{"/src/a \"quoted\"\tname.go", 7, "main.(*T[...]).f.func1", "Float32s"},
		{"/src/train.go", 41, "main.train", "String"},
	}
	want := new(Report)
	for i, p := range places {
		want.Records = append(want.Records, Record{Place: p})
		for k := range int64(3) {
			c := Counts{Waits: 1, WaitNS: k * 1000, Stalls: int64(i), StallNS: 1 << 40, Helps: 7, HelpNS: 9, IdleNS: k, PeakBytes: 9 - k}
			if err := w.Add(p, c); err != nil {
				t.Fatal(err)
			}
			want.Records[i].Add(c)
			want.Total.Add(c)
			// Exact after each step, without Close.
			got, err := ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("after %d of place %d: got %+v, want %+v", k, i, got, want)
			}
		}
	}
}

// A report that is cut anywhere in its last line reads like one without that line. Cut earlier, it is
// refused or shorter, never wrong.
func TestTorn(t *testing.T) {
	w, path := newReport(t)
	for i := range 3 {
		w.Add(Place{"f.go", i, "f", "Item"}, Counts{Waits: 1})
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for n := range len(data) {
		r, err := Read(bytes.NewReader(data[:n]))
		lines := bytes.Count(data[:n], []byte("\n"))
		switch {
		case lines == 0:
			if err == nil {
				t.Errorf("%d bytes: no error", n)
			}
		case err != nil:
			t.Errorf("%d bytes: %v", n, err)
		case len(r.Records) != max(0, lines-2) || r.Total.Waits > 3:
			t.Errorf("%d bytes, %d lines: %d records", n, lines, len(r.Records))
		}
	}
}

func TestBadInput(t *testing.T) {
	for in, want := range map[string]string{
		"":                        "no header",
		"hello\n":                 "line 1",
		"{}\n":                    "not a synchronisation report",
		`{"asyncgen":"x"}` + "\n": "not a synchronisation report",
		`{"asyncgen":"report","version":99}` + "\n":                            "version 99",
		`{"asyncgen":"report","version":2}` + "\nrubbish\n{}\n":                "line 2",
		`{"asyncgen":"report","version":2}` + "\n" + `{"line":"x"}` + "\n{}\n": "line 2",
	} {
		_, err := Read(strings.NewReader(in))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Read(%q): error %v, want %q in it", in, err, want)
		}
	}
	if _, err := ReadFile(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("no error for a file that does not exist")
	}
	if _, err := Create(filepath.Join(t.TempDir(), "no", "such", "folder")); err == nil {
		t.Error("no error for a folder that does not exist")
	}
}

func TestClosed(t *testing.T) {
	w, path := newReport(t)
	w.Add(Place{Op: "Item"}, Counts{Waits: 1})
	w.Close()
	if err := w.Add(Place{Op: "Item"}, Counts{Waits: 1}); err == nil {
		t.Error("Add after Close: no error")
	}
	if r, err := ReadFile(path); err != nil || r.Total.Waits != 1 {
		t.Errorf("got %+v, %v", r, err)
	}
}

func TestWriteError(t *testing.T) {
	w, _ := newReport(t)
	w.f.Close() // the disk is gone
	first := w.Add(Place{Op: "Item"}, Counts{Waits: 1})
	if first == nil {
		t.Fatal("no error")
	}
	if second := w.Add(Place{Op: "Item"}, Counts{Waits: 1}); second != first {
		t.Errorf("second error %v, want %v", second, first)
	}
}

func TestConcurrent(t *testing.T) {
	w, path := newReport(t)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 100 {
				w.Add(Place{File: "f.go", Line: (g + i) % 5}, Counts{Waits: 1, WaitNS: 2})
			}
		})
	}
	wg.Wait()
	r, err := ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if want := (Counts{Waits: 800, WaitNS: 1600}); r.Total != want || len(r.Records) != 5 {
		t.Errorf("total %+v of %d records, want %+v of 5", r.Total, len(r.Records), want)
	}
}

// Several processes write to one file at the same time, and some are killed. The file has all that
// each of them has added.
func TestProcesses(t *testing.T) {
	const processes, places, times = 6, 7, 40
	if path := os.Getenv("REPORT_TEST_FILE"); path != "" {
		w, err := Create(path)
		if err != nil {
			t.Fatal(err)
		}
		for i := range times {
			if err := w.Add(Place{"f.go", i % places, os.Getenv("REPORT_TEST_FUNC"), "Item"}, Counts{Waits: 1, WaitNS: 5}); err != nil {
				t.Fatal(err)
			}
		}
		fmt.Println("told")
		io.Copy(io.Discard, os.Stdin) // until the test kills this process or closes its input
		return
	}
	path := filepath.Join(t.TempDir(), "report.jsonl")
	var children []*exec.Cmd
	var inputs []io.Closer
	var outputs []*bufio.Scanner
	for i := range processes {
		cmd := exec.Command(os.Args[0], "-test.run=^TestProcesses$")
		cmd.Env = append(os.Environ(), "REPORT_TEST_FILE="+path, fmt.Sprintf("REPORT_TEST_FUNC=%d", i))
		stdin, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		stdout, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		children, inputs, outputs = append(children, cmd), append(inputs, stdin), append(outputs, bufio.NewScanner(stdout))
	}
	for i, out := range outputs {
		if !out.Scan() || out.Text() != "told" {
			t.Errorf("process %d: %q", i, out.Text())
		}
	}
	want := func(programs int) {
		t.Helper()
		r, err := ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		n := int64(programs * times)
		if want := (Counts{Waits: n, WaitNS: 5 * n}); r.Total != want || len(r.Records) != programs*places {
			t.Errorf("total %+v of %d records, want %+v of %d", r.Total, len(r.Records), want, programs*places)
		}
	}
	want(processes)
	for i, cmd := range children {
		if i%2 == 0 {
			cmd.Process.Kill()
		}
		inputs[i].Close()
		cmd.Wait()
	}
	want(processes)
	for _, next := range []struct {
		program string
		left    int
	}{{"another", processes}, {program(), 0}} {
		w, err := create(path, next.program)
		if err != nil {
			t.Fatal(err)
		}
		w.Close()
		want(next.left)
	}
}

// The numbers of a program that runs again begin anew. Those of other programs stay, whether another process writes at
// the time or not.
func TestTurns(t *testing.T) {
	path := filepath.Join(t.TempDir(), "report.jsonl")
	tell := func(program string, waits int64) *Writer {
		t.Helper()
		w, err := create(path, program)
		if err == nil {
			err = w.Add(Place{File: program + ".go", Line: 1, Op: "Item"}, Counts{Waits: waits})
		}
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	want := func(what string, counts map[string]int64) {
		t.Helper()
		r, err := ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		got, sum := make(map[string]int64), int64(0)
		for _, rec := range r.Records {
			got[strings.TrimSuffix(rec.File, ".go")] += rec.Waits
			sum += rec.Waits
		}
		if !maps.Equal(got, counts) || r.Total.Waits != sum {
			t.Errorf("%s: %v, in all %d, want %v", what, got, r.Total.Waits, counts)
		}
	}
	tell("a", 1).Close()
	tell("b", 2).Close()
	tell("b", 3).Close()
	want("b again", map[string]int64{"a": 1, "b": 3})
	c := tell("c", 4)
	tell("c", 5).Close()
	want("two of c at once", map[string]int64{"a": 1, "b": 3, "c": 9})
	dead(t, path, "a", "b")
	tell("a", 6).Close()
	want("a again, beside c", map[string]int64{"a": 6, "b": 3, "c": 9})
	c.Close()
	tell("b", 7).Close()
	tell("c", 8).Close()
	want("all again", map[string]int64{"a": 6, "b": 7, "c": 8})
	if text, err := os.ReadFile(path); err != nil || bytes.Count(text, []byte("\n")) > 12 {
		t.Errorf("what nobody needs stays: %s", text)
	}
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(path), ".*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// dead changes the process number in the headers of programs to that of a process that has ended. In
// truth, this process wrote their lines.
func dead(t *testing.T, path string, programs ...string) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range programs {
		before, after := fmt.Sprintf(`"program":%q,"pid":%d`, p, os.Getpid()), fmt.Sprintf(`"program":%q,"pid":%d`, p, cmd.Process.Pid)
		after += strings.Repeat(" ", max(0, len(before)-len(after)))
		if len(after) != len(before) { // the lines of other writers would move
			t.Skipf("the number of the process, %d, is longer than that of another, %d", cmd.Process.Pid, os.Getpid())
		}
		text = bytes.Replace(text, []byte(before), []byte(after), 1)
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt(text, 0); err != nil {
		t.Fatal(err)
	}
}

// Create once emptied files that are no reports, such as sources of the program.
func TestNotAReport(t *testing.T) {
	path := filepath.Join(t.TempDir(), "train.go")
	for _, text := range []string{"package main\n", "{}", "{\"asyncgen\":\"profiles\"}\n"} {
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		if _, err := Create(path); err == nil || !strings.Contains(err.Error(), "stays as it is") {
			t.Errorf("%q: %v", text, err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != text {
			t.Errorf("%q is %q, %v", text, got, err)
		}
	}
	if _, err := Create(t.TempDir()); err == nil {
		t.Error("no error for a folder")
	}
}

func ExampleReport_Summary() {
	r := &Report{Records: []Record{
		{Place{"b.go", 9, "main.b", "Item"}, Counts{Waits: 1, WaitNS: 100}},
		{Place{"a.go", 3, "main.a", "String"}, Counts{Waits: 1, WaitNS: 10}},
		{Place{"a.go", 3, "main.a", "Item"}, Counts{Waits: 2, WaitNS: 200, HelpNS: 5}},
	}}
	for _, rec := range r.Summary() {
		fmt.Printf("%s:%d %s: %d waits, blocked %d ns\n", rec.File, rec.Line, rec.Op, rec.Waits, rec.BlockedNS())
	}
	// Output:
	// a.go:3 Item: 2 waits, blocked 205 ns
	// a.go:3 String: 1 waits, blocked 10 ns
	// b.go:9 Item: 1 waits, blocked 100 ns
}
