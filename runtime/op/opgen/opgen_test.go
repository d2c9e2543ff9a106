package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The generated files in the repository are up to date.
func TestFresh(t *testing.T) {
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	files, err := generate(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		have, err := os.ReadFile(filepath.Join(root, f.path))
		if err != nil {
			t.Error(err)
		} else if !bytes.Equal(have, f.text) {
			t.Errorf("%s is stale: run go generate ./...", f.path)
		}
	}
}

// writeModule makes a folder with the packages that opgen reads.
func writeModule(t *testing.T, asyncrt string) string {
	t.Helper()
	root := t.TempDir()
	for path, text := range map[string]string{
		"go.mod": "module m", "runtime/asyncrt.go": asyncrt, "runtime/tensor/x.go": "package tensor", "analysis/tensorapi/x.go": "package tensorapi",
	} {
		name := filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestTable(t *testing.T) {
	root := writeModule(t, `package asyncrt

// F takes a function.
//
//asyncgen:api call 0 later
func F(func()) {}

type L[S any] struct{}

//asyncgen:api read f64=Number
func (l *L[S]) Read() {}

//asyncgen:api meta none
func (L[S]) Len() {}

type I interface {
	//asyncgen:api wait
	Wait()
}

//asyncgen:api read 1 batch fails index=AtIndex
func At(i int, x *I) {}

func hidden() {}

type private struct{}

func (private) Exported() {}
`)
	if err := write(root); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "analysis/tensorapi/zapi.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`{"github.com/asyncgen/asyncgen/runtime.F", Call, 0, Later, Alone, "", ""},`,
		`{"(*github.com/asyncgen/asyncgen/runtime.L[S]).Read", Read, Recv, Never, Alone, "Number", ""},`,
		`{"(github.com/asyncgen/asyncgen/runtime.L[S]).Len", Meta, None, Never, Alone, "", ""},`,
		`{"(github.com/asyncgen/asyncgen/runtime.I).Wait", Wait, Recv, Never, Alone, "", ""},`,
		`{"github.com/asyncgen/asyncgen/runtime.At", Read, 1, Never, BatchedFails, "", "AtIndex"},`,
		`{"(*github.com/asyncgen/asyncgen/runtime/tensor.Tensor).Div", Op, None, Never, BatchedFails, "", ""},`,
		`{"(*github.com/asyncgen/asyncgen/runtime/tensor.Tensor).MulScalar", Op, None, Never, Batched, "MulF64", ""},`,
		// of zops.go, which was not there
		`{"(*github.com/asyncgen/asyncgen/runtime/tensor.Tensor).Add", Op, None, Never, Batched, "", ""},`,
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no row %s in\n%s", want, text)
		}
	}
	if strings.Contains(string(text), "hidden") || strings.Contains(string(text), "Exported") {
		t.Error("a row for what users can't call")
	}
}

// All functions without a kind are listed, with their places.
func TestMissing(t *testing.T) {
	root := writeModule(t, `package asyncrt

func A() {}

//asyncgen:api sing
func B() {}

//asyncgen:api read me
func C() {}

//asyncgen:api call 0
func D() {}

//asyncgen:api op fails
func E() {}
`)
	err := write(root)
	for _, want := range []string{
		"runtime/asyncrt.go:3:1: github.com/asyncgen/asyncgen/runtime.A has no //asyncgen:api KIND",
		`runtime.B: no kind "sing"`,
		`runtime.C: "me" is no operand and no time`,
		`runtime.E: "fails" is no operand and no time`,
		"runtime.D: a function that calls another says when",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in %v", want, err)
		}
	}
}

func TestBrokenSource(t *testing.T) {
	if err := write(writeModule(t, "package asyncrt\nfunc {")); err == nil {
		t.Error("no error for a file that does not parse")
	}
	t.Chdir(t.TempDir())
	if root, err := moduleRoot(); err == nil {
		t.Errorf("the module root of an empty folder is %s", root)
	}
}
