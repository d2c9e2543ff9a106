package report

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
)

func create(t *testing.T) (*Writer, string) {
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
	w, path := create(t)
	places := []Place{
		{"/src/train.go", 41, "main.train", "Item"},
		{"/src/a \"quoted\"\tname.go", 7, "main.(*T[...]).f.func1", "Float32s"},
		{"/src/train.go", 41, "main.train", "String"},
	}
	want := new(Report)
	for i, p := range places {
		want.Records = append(want.Records, Record{Place: p})
		for k := range int64(3) {
			c := Counts{Waits: 1, WaitNS: k * 1000, Stalls: int64(i), StallNS: 1 << 40, Helps: 7, HelpNS: 9, IdleNS: k}
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

// A report that is cut anywhere in its last line reads like one without that line; cut before, it is refused or shorter, never wrong.
func TestTorn(t *testing.T) {
	w, path := create(t)
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
		case len(r.Records) != max(0, lines-2):
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
		`{"asyncgen":"report","version":1}` + "\nrubbish\n{}\n":                "line 2",
		`{"asyncgen":"report","version":1}` + "\n" + `{"line":"x"}` + "\n{}\n": "line 2",
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
	w, path := create(t)
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
	w, _ := create(t)
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
	w, path := create(t)
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
