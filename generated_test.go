package asyncgen_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/asyncgen/asyncgen/gen"
)

// TestGeneratedNames holds the names of files against what they say of
// themselves: ours that are generated begin with "z", and no others do. What
// asyncgen writes beside a user's file ends in _async.go instead.
func TestGeneratedNames(t *testing.T) {
	err := walkModule(func(file string) error {
		name := filepath.Base(file)
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.PackageClauseOnly|parser.ParseComments)
		if err != nil {
			return err
		}
		switch generated, z := ast.IsGenerated(f), strings.HasPrefix(name, "z"); {
		case generated && !z:
			t.Errorf("%s is generated: its name has to begin with z", file)
		case z && !generated:
			t.Errorf("%s begins with z, which is for generated files, but has no \"Code generated … DO NOT EDIT.\" line", file)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// assembler is the module that writes the assembly.
const assembler = "device/cpu/internal/vec/asm"

// directive is a go:generate line of this module: each runs a program of the repository.
var directive = regexp.MustCompile(`(?m)^//go:generate go run (?:-C (\S+) )?(\S+)$`)

// TestGenerate runs what the go:generate lines run on a copy of the module, and expects no file to change. The programs
// are built here, not in the copy, where nothing of them is in the go command's cache.
func TestGenerate(t *testing.T) {
	dir := t.TempDir()
	before := map[string][]byte{}
	var programs [][2]string // the folder to run in, and the package
	err := walkModule(func(file string) error {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		before[file] = text
		for _, m := range directive.FindAllSubmatch(text, -1) {
			programs = append(programs, [2]string{filepath.Join(filepath.Dir(file), string(m[1])), string(m[2])})
		}
		copied := filepath.Join(dir, file)
		if err := os.MkdirAll(filepath.Dir(copied), 0o777); err != nil {
			return err
		}
		return os.WriteFile(copied, text, 0o666)
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(dir, assembler), os.DirFS(assembler)); err != nil {
		t.Fatal(err)
	}
	if len(programs) != 2 {
		t.Errorf("%d programs write files, want that of the operations and that of the assembly: %q", len(programs), programs)
	}
	for _, p := range programs {
		if p[0] == assembler {
			if out, err := exec.Command("go", "list", "-C", assembler, "-deps", ".").CombinedOutput(); err != nil {
				t.Run("assembly", func(t *testing.T) { t.Skipf("what writes it can't be built: %v\n%s", err, out) })
				continue
			}
		}
		bin := filepath.Join(t.TempDir(), "program.exe")
		if out, err := exec.Command("go", "build", "-C", p[0], "-buildvcs=false", "-ldflags=-s -w", "-o", bin, p[1]).CombinedOutput(); err != nil {
			t.Fatalf("go build: %v\n%s", err, out)
		}
		run := exec.Command(bin)
		run.Dir = filepath.Join(dir, p[0])
		if out, err := run.CombinedOutput(); err != nil {
			t.Fatalf("in %s, %s: %v\n%s", p[0], p[1], err, out)
		}
	}
	t.Chdir(dir)
	err = walkModule(func(file string) error {
		text, err := os.ReadFile(file)
		if err == nil && !bytes.Equal(text, before[file]) {
			t.Errorf("%s is stale: run go generate ./...", file)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestQuickstart checks that the generated file of the quick start, a module
// of its own that go generate ./... does not reach, is the one that the
// generator writes today.
func TestQuickstart(t *testing.T) {
	r, err := gen.Generate(t.Context(), gen.Config{Dir: "testdata/quickstart"})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Files) == 0 {
		t.Error("nothing is generated")
	}
	if diff := r.Diff(""); len(diff) > 0 {
		t.Errorf("testdata/quickstart is stale: run go generate there\n%s", diff)
	}
}
