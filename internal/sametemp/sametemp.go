// Package sametemp gives tests folders whose names are the same in each run. The go command compiles a package anew
// where it lies in another folder, so a test that makes packages has them compiled once, not in each run.
package sametemp

import (
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// home is the folder that the test binary starts in, that of its package.
var home, _ = os.Getwd()

var unusual = regexp.MustCompile(`\W+`)

// Dir makes an empty folder and returns its name, without symbolic links. The folder is the test's own, and removed
// when the test ends. The Nth of a test has the same name each time, unless the same test of the same checkout
// runs twice at once.
func Dir(t testing.TB) string {
	t.Helper()
	dir, err := Make(t.Name())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// Make is [Dir] for what is no test, and has to remove the folder.
func Make(name string) (string, error) {
	temp, err := filepath.EvalSymlinks(os.TempDir())
	if err != nil {
		return "", err
	}
	whose := fnv.New32()
	fmt.Fprint(whose, home, os.Getuid())
	for n := 1; ; n++ {
		dir := filepath.Join(temp, fmt.Sprintf("asyncgen-%08x-%s-%d", whose.Sum32(), unusual.ReplaceAllString(name, "_"), n))
		if err := os.Mkdir(dir, 0o777); err == nil || !errors.Is(err, fs.ErrExist) {
			return dir, err
		}
	}
}
