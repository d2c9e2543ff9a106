package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/asyncgen/asyncgen/internal/trace"
)

// TestWaitingPackages asks which folders vet looks at for a trace: those of its waits, in this module.
func TestWaitingPackages(t *testing.T) {
	root := t.TempDir()
	here := filepath.Join(root, "module", "cmd")
	tr := &trace.Trace{Rows: make([]trace.Row, 1)}
	add := func(kind trace.Kind, file string) {
		tr.Slices = append(tr.Slices, trace.Slice{Kind: kind, At: &trace.Place{File: filepath.ToSlash(file), Line: 1}})
	}
	for _, dir := range []string{"module/cmd", "module/lib", "module/lib/a b", "module/ops", "module/nested/x", "other", "module/\x1b"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o777); err != nil {
			t.Skip(err) // no such names here
		}
		kind := trace.Wait
		if dir == "module/ops" {
			kind = trace.Op
		}
		add(kind, filepath.Join(root, dir, "x.go"))
	}
	for _, mod := range []string{"module/go.mod", "module/nested/go.mod", "other/go.mod"} {
		if err := os.WriteFile(filepath.Join(root, mod), []byte("module m\n"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	add(trace.Stall, filepath.Join(root, "module", "absent", "x.go"))
	add(trace.Stall, filepath.Join(root, "module", "lib", "y.go"))
	add(trace.Wait, "lib/z.go")
	tr.Slices = append(tr.Slices, trace.Slice{Kind: trace.Wait})
	t.Chdir(here)
	if got, want := waitingPackages([]*trace.Trace{tr}), []string{"./.", "./../lib", "./../lib/a b"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	t.Chdir(root)
	if got := waitingPackages([]*trace.Trace{tr}); got != nil {
		t.Errorf("outside of a module: %q", got)
	}
}
