package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/asyncgen/asyncgen/gen/compare"
	"github.com/asyncgen/asyncgen/internal/trace/page"
	"github.com/asyncgen/asyncgen/internal/turns"
)

const programs = "../../testdata/programs/"

// TestCompare runs the main job at a small size, and reads all forms of its output.
func TestCompare(t *testing.T) {
	turns.Take(t)
	file := filepath.Join(t.TempDir(), "page.html")
	args := []string{"-count", "1", "-html", file, programs + "metrics", "--", "-small"}
	stdout, stderr, code := asyncgen(t, append([]string{"compare", "-json"}, args...)...)
	if code != exitOK || stderr != "" {
		t.Fatalf("exit code %d, standard error %q", code, stderr)
	}
	var r compare.Result
	if err := json.Unmarshal([]byte(stdout), &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Devices) != 2 || r.Devices[0].Simulated || !r.Devices[1].Simulated || !r.Same() {
		t.Fatalf("want two devices, the second simulated, and no difference: %s", stdout)
	}
	for _, d := range r.Devices {
		if len(d.Original.Times) != 1 || len(d.Rewritten.Times) != 1 || d.Lines == 0 {
			t.Errorf("%s: %+v", d.Name, d)
		}
	}
	html, err := os.ReadFile(file)
	if err != nil || !strings.HasPrefix(string(html), page.First) || !strings.Contains(string(html), `id="data1" data-name="sim:0 (simulated)"`) || !strings.Contains(string(html), "identical: same output") {
		t.Errorf("the page: %v\n%.3000s", err, html)
	}
	// One batch in 16 at most, of 256, while the program as written waits for
	// each on a device that takes its time.
	if o, w := r.Devices[1].Original.Sync.Waits, r.Devices[1].Rewritten.Sync.Waits; o < 256 || w > 256/16 {
		t.Errorf("on %s, %d waits as written and %d rewritten; want 256 or more, and at most 16", r.Devices[1].Name, o, w)
	}
}

// TestCompareTrouble gives compare what can't be compared.
func TestCompareTrouble(t *testing.T) {
	for _, c := range []struct{ pkg, want string }{
		{"../../device", "is no program"},
		{programs + "...", "packages, not one"},
		{"./no-such-folder", "directory not found"},
		{"no.such/module", "no required module provides package"},
	} {
		stdout, stderr, code := asyncgen(t, "compare", c.pkg)
		if code != exitTrouble || stdout != "" || !strings.Contains(stderr, c.want) {
			t.Errorf("compare %s: exit code %d, standard error %q; want %d and a message with %q", c.pkg, code, stderr, exitTrouble, c.want)
		}
	}
}

// A page replaces pages only, and that is said before the programs are built.
func TestCompareStays(t *testing.T) {
	name := filepath.Join(t.TempDir(), "notes.html")
	if err := os.WriteFile(name, []byte("<!doctype html>\nmy notes"), 0o666); err != nil {
		t.Fatal(err)
	}
	stdout, stderr, code := asyncgen(t, "compare", "-html", name, "./no-such-folder")
	if code != exitTrouble || stdout != "" || !strings.Contains(stderr, "notes.html has something else in it") {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
	if text, err := os.ReadFile(name); err != nil || string(text) != "<!doctype html>\nmy notes" {
		t.Errorf("%v: %q", err, text)
	}
}

// A program of another library was found to be identical, as if it had been looked at.
func TestCompareOtherLibrary(t *testing.T) {
	userModule(t, "package main\n\nfunc main() { print(\"no tensor\") }\n")
	stdout, stderr, code := asyncgen(t, "compare", "-count=1", "-device=cpu", ".")
	if code != exitOK || !strings.Contains(stdout, "identical") || stderr != "asyncgen: compare: the program does not wait for a tensor of asyncgen; compare does not look at other libraries\n" {
		t.Errorf("compare exits with %d and prints\n%s%s", code, stdout, stderr)
	}
}
