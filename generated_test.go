package asyncgen_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
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

// TestGenerate runs go generate on a copy of the module, and expects no file to change.
func TestGenerate(t *testing.T) {
	dir := t.TempDir()
	before := map[string][]byte{}
	err := walkModule(func(file string) error {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		before[file] = text
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
	args := []string{"generate", "./..."}
	if out, err := exec.Command("go", "list", "-C", assembler, "-deps", ".").CombinedOutput(); err != nil {
		args = []string{"generate", "-skip", "go run -C asm", "./..."}
		t.Run("assembly", func(t *testing.T) { t.Skipf("what writes it can't be built: %v\n%s", err, out) })
	}
	cmd := exec.Command("go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PWD="+dir, "GOFLAGS=-trimpath") // so that what is built there is cached from run to run
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go generate: %v\n%s", err, out)
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
