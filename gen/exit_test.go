package gen_test

import (
	"bytes"
	"context"
	"path/filepath"
	"testing"

	"github.com/asyncgen/asyncgen/gen"
)

// What is rewritten in place compiles, stands the checks of the output, and keeps the lines of the original, so
// that positions are those of the user.
func TestGoldenInPlace(t *testing.T) {
	dir := newModule(t)
	lines := make(map[string]int)
	for _, g := range readGoldens(t) {
		path := filepath.Join(dir, g.name, "in.go")
		lines[path] = bytes.Count(g.section("in.go"), []byte("\n"))
		write(t, path, g.section("in.go"))
	}
	result, err := gen.Generate(context.Background(), gen.Config{Dir: dir, Patterns: []string{"./..."}, All: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range result.Remarks {
		if r.Code >= "AG900" {
			t.Errorf("%v", r)
		}
	}
	if len(result.Files) < len(lines)/2 {
		t.Errorf("%d of %d files are rewritten", len(result.Files), len(lines))
	}
	for _, f := range result.Files {
		_, text, _ := bytes.Cut(f.Text, []byte("\n"))     // the line directive
		text, _, _ = bytes.Cut(text, []byte("\n//line ")) // variants of functions, at the end
		text, _, _ = bytes.Cut(text, []byte("\nvar _ "))  // what keeps an import in use
		if got, want := bytes.Count(bytes.TrimRight(text, "\n"), []byte("\n")), lines[f.Path]-1; got != want {
			t.Errorf("%s has %d lines, want %d\n%s", f.Path, got+1, want+1, f.Text)
		}
	}
}
