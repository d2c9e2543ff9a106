package asyncgen_test

import (
	"errors"
	"go/types"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/asyncgen/asyncgen/internal/sametemp"
	"github.com/asyncgen/asyncgen/internal/turns"
	"golang.org/x/tools/go/packages"
)

func TestMain(m *testing.M) {
	// Syntax and types live as long as a test does, in go commands, too: looking for what does not would take a fifth
	// of the time.
	debug.SetGCPercent(400)
	os.Setenv("GOGC", "400")
	os.Exit(m.Run())
}

// output is a fence of commands with, right behind it, one of what they print.
var output = regexp.MustCompile("(?ms)^```sh\n(.*?)^```\n\n(?:```text\n(.*?)^```$)?")

// TestGuide runs the commands of the guide, and holds what they print against what the guide says
// that they do. Files that they write are in /tmp.
func TestGuide(t *testing.T) {
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("the guide is for bash: ", err)
	}
	files := sametemp.Dir(t)
	for _, page := range guidePages(t) {
		if !turns.Has(t, filepath.Base(page)) {
			continue
		}
		for _, m := range output.FindAllStringSubmatch(readText(t, page), -1) {
			commands := strings.ReplaceAll(m[1], "/tmp/", filepath.ToSlash(files)+"/")
			cmd := exec.Command("bash", "-c", commands)
			cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "ASYNCGEN_") })
			out, err := cmd.CombinedOutput()
			got := exitStatus.ReplaceAllString(string(out), "")
			switch {
			case m[2] != "" && got != m[2]:
				t.Errorf("%s: these commands print\n%s\nwhere the page has\n%s\n%s", page, got, m[2], m[1])
			case m[2] == "" && err != nil:
				t.Errorf("%s: %v\n%s%s", page, err, m[1], out)
			}
		}
	}
}

// TestGuideIsVetted runs our own linter on the programs of the guide. It finds nothing but what pages are about.
func TestGuideIsVetted(t *testing.T) {
	cmd := exec.Command("go", "run", "./cmd/asyncgen", "vet", "./testdata/guide/...")
	out, err := cmd.CombinedOutput()
	if _, failed := errors.AsType[*exec.ExitError](err); err != nil && !failed {
		t.Fatal(err)
	}
	var pages string
	for _, page := range guidePages(t) {
		pages += readText(t, page)
	}
	findings := 0
	for line := range strings.Lines(exitStatus.ReplaceAllString(string(out), "")) {
		if findings++; !strings.Contains(pages, line) {
			t.Errorf("no page of the guide has this finding:\n%s", line)
		}
	}
	if findings == 0 {
		t.Error("vet is silent about reads in loops that are there to be found")
	}
}

func guidePages(t *testing.T) []string {
	t.Helper()
	list, err := filepath.Glob("docs/guide/*.md")
	if err != nil || len(list) == 0 {
		t.Fatal("there is no guide: ", err)
	}
	return list
}

// exitStatus is what go run says of a program that ends with another status than 0.
var exitStatus = regexp.MustCompile(`(?m)^exit status \d+\n`)

// used is, in the text of a page, an exported name of a package, or a method of x, y or t, which are tensors.
var used = regexp.MustCompile("`(device|tensor|nn|optim|data|files|progress|scalars|curves|asyncrt|asynctest|fault|x|y|t)\\.([A-Z]\\w*)")

// TestGuideNames looks up the functions, types and methods that the guide names.
func TestGuideNames(t *testing.T) {
	paths := map[string]string{"device": "device", "tensor": "runtime/tensor", "nn": "runtime/nn", "optim": "runtime/optim",
		"data": "runtime/data", "files": "runtime/files", "progress": "runtime/progress", "scalars": "runtime/scalars",
		"curves": "runtime/curves", "asyncrt": "runtime", "asynctest": "runtime/asynctest", "fault": "device/fault"}
	var patterns []string
	for _, path := range paths {
		patterns = append(patterns, "./"+path)
	}
	loaded, err := packages.Load(&packages.Config{Mode: packages.NeedName | packages.NeedTypes}, patterns...)
	if err != nil {
		t.Fatal(err)
	}
	scopes := map[string]*types.Scope{}
	for _, pkg := range loaded {
		for short, path := range paths {
			if pkg.PkgPath == module+"/"+path {
				scopes[short] = pkg.Types.Scope()
			}
		}
	}
	methods := types.NewMethodSet(types.NewPointer(scopes["tensor"].Lookup("Tensor").Type()))
	pkg := scopes["tensor"].Lookup("Tensor").Pkg()
	for _, page := range guidePages(t) {
		for _, m := range used.FindAllStringSubmatch(fence.ReplaceAllString(readText(t, page), ""), -1) {
			if scope := scopes[m[1]]; scope == nil && methods.Lookup(pkg, m[2]) == nil || scope != nil && scope.Lookup(m[2]) == nil {
				t.Errorf("%s: there is no %s.%s", page, m[1], m[2])
			}
		}
	}
}
