package load

import (
	"context"
	"fmt"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"testing"

	"golang.org/x/tools/go/packages"
)

// TestCheck: what names mean in a package, one file of which is replaced and one added, is what
// go/packages says, which takes all from source; also where what the compiler has written about a
// package can't be read.
func TestCheck(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // syntax and types live as long as the test does
	dir, err := filepath.Abs("../../../testdata/programs/metrics")
	if err != nil {
		t.Fatal(err)
	}
	main := filepath.Join(dir, "main.go")
	text, err := os.ReadFile(main)
	if err != nil {
		t.Fatal(err)
	}
	config := func(mode packages.LoadMode) *packages.Config {
		return &packages.Config{Context: context.Background(), Dir: dir, Mode: mode, Fset: token.NewFileSet(), Overlay: map[string][]byte{
			main:                         append(slices.Clip(text), "\nvar _, _ = added, \"\" + 1\n"...),
			filepath.Join(dir, "new.go"): []byte("package main\n\nimport \"text/template\"\n\nvar added = template.New(\"a\").Option\n"),
		}}
	}
	all, err := packages.Load(config(deep|packages.NeedTypes|packages.NeedSyntax|packages.NeedTypesInfo), ".")
	if err != nil {
		t.Fatal(err)
	}
	want := meanings(all[0])
	if len(want) < 100 {
		t.Fatalf("%d names have a meaning", len(want))
	}
	junk := filepath.Join(t.TempDir(), "junk")
	if err := os.WriteFile(junk, []byte("junk"), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, isBroken := range []bool{false, true} {
		pc := config(deep)
		found, err := packages.Load(pc, ".")
		if err != nil {
			t.Fatal(err)
		}
		tensor := found[0].Imports["github.com/asyncgen/asyncgen/runtime/tensor"]
		if isBroken {
			tensor.ExportFile = junk
		}
		if err := check(pc, found, map[string]bool{found[0].PkgPath: true}); err != nil {
			t.Fatal(err)
		}
		if got := meanings(found[0]); !slices.Equal(got, want) {
			t.Errorf("a broken file: %v\ngot  %q\nwant %q", isBroken, got, want)
		}
		if (len(tensor.Syntax) > 0) != isBroken {
			t.Errorf("a broken file: %v, and %d files of package tensor have been read", isBroken, len(tensor.Syntax))
		}
	}
}

// meanings is what the names of p mean, and what is wrong with it.
func meanings(p *packages.Package) (all []string) {
	for ident, obj := range p.TypesInfo.Uses {
		at := p.Fset.Position(ident.Pos())
		of := p.Fset.Position(obj.Pos())
		all = append(all, fmt.Sprintf("%s:%d:%d %s of %s:%d", filepath.Base(at.Filename), at.Line, at.Column, types.ObjectString(obj, nil), filepath.Base(of.Filename), of.Line))
	}
	for _, e := range p.Errors {
		if e.Kind != packages.ListError { // the compiler's view of the same mistakes
			all = append(all, e.Error())
		}
	}
	slices.Sort(all)
	return all
}
