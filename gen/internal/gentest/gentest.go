// Package gentest has what the tests of the generator share: modules to generate code in, archives
// with expected output ("golden files"), and a test binary that runs original functions beside generated
// ones. Its own tests are those of the golden files, in testdata.
package gentest

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/asyncgen/asyncgen/internal/sametemp"
)

// Root returns the folder of this module.
func Root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for ; filepath.Dir(dir) != dir; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
	}
	t.Fatal("the test runs outside of the module")
	return ""
}

// NewModule makes a module that requires this one, in a folder of sametemp, which it returns.
func NewModule(t testing.TB) string {
	dir := sametemp.Dir(t)
	NewModuleIn(t, dir)
	return dir
}

// NewModuleIn makes a module that requires this one, in dir.
func NewModuleIn(t testing.TB, dir string) {
	t.Helper()
	Write(t, filepath.Join(dir, "go.mod"), []byte(fmt.Sprintf(`module example.com/user

go 1.26

require github.com/asyncgen/asyncgen v0.0.0

require (
	github.com/VividCortex/ewma v1.2.0 // indirect
	github.com/cheggaaa/pb/v3 v3.2.1 // indirect
	github.com/clipperhouse/uax29/v2 v2.2.0 // indirect
	github.com/fatih/color v1.19.0 // indirect
	github.com/mattn/go-colorable v0.1.15 // indirect
	github.com/mattn/go-isatty v0.0.24 // indirect
	github.com/mattn/go-runewidth v0.0.27 // indirect
	golang.org/x/sys v0.47.0 // indirect
	gonum.org/v1/gonum v0.17.0 // indirect
)

replace github.com/asyncgen/asyncgen => %s
`, Root(t))))
	sum, err := os.ReadFile(filepath.Join(Root(t), "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	Write(t, filepath.Join(dir, "go.sum"), sum)
}

// Write writes a file, and makes the folders that lead to it.
func Write(t testing.TB, path string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o666); err != nil {
		t.Fatal(err)
	}
}
