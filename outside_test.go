package asyncgen

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// outside lists every place outside tests that starts a program, or makes, changes or replaces
// files, with what a user, or another user of the machine, has a say in, and what keeps that from
// being more than it looks like.
const outside = `
# programs
analysis/changed.go exec.CommandContext           git: a revision, after --end-of-options
analysis/measured.go exec.CommandContext          go list -m: tags, in one word with their flag
analysis/skipped.go exec.CommandContext           go list: packages, after --
analysis/vet.go exec.CommandContext               go vet: packages, after --
cmd/asyncgen/doctor.go exec.CommandContext        go build and install of a package of ours; what they built, in a new folder
gen/compare/process.go exec.CommandContext        what go built, in a new folder, with the arguments that follow --
gen/internal/fuzz/fuzz.go exec.CommandContext     go build in a new folder; what it built
gen/internal/gentest/run.go exec.Command           go test of a module that a test has made; what it built
gen/overlay/command.go exec.CommandContext        go: what run, build and test are given for it; packages that NoPackage lets pass

# files
analysis/baseline.go os.CreateTemp                beside the baseline, then renamed: a link is replaced, not followed
analysis/baseline.go os.Rename                    over a baseline, or nothing
analysis/unit.go os.WriteFile                     where go vet wants what it asked for
cmd/asyncgen/doctor.go os.MkdirTemp               a new folder
cmd/asyncgen/trace.go os.Create                   -o, -dot, -svg, compare -html: a page, a graph, an empty or a new file
cmd/asyncgen/vet.go os.OpenFile                   -sarif: a file of SARIF, an empty or a new one
device/fault/env.go os.OpenFile                   ASYNCGEN_FAULT, for tests: one write a line, at the end
device/opencl/cache.go os.Chtimes                 what usable lets pass
device/opencl/cache.go os.CreateTemp              what usable lets pass
device/opencl/cache.go os.MkdirAll                what usable lets pass, before and after
device/opencl/cache.go os.OpenFile                for reading
device/opencl/cache.go os.Rename                  what usable lets pass
device/report/report.go os.CreateTemp             beside the report, locked
device/report/report.go os.OpenFile               a report, or an empty file; shared with other processes
device/report/report.go os.Rename                 over a report to which nobody writes
gen/commit.go os.CreateTemp                       beside a file of ours; below the module behind no link
gen/commit.go os.Rename                           over a file of ours, or nothing
gen/compare/compare.go os.MkdirTemp               a new folder
gen/internal/fuzz/fuzz.go os.MkdirAll             in a new folder
gen/internal/fuzz/fuzz.go os.WriteFile            in a new folder
gen/internal/gentest/gentest.go os.MkdirAll       in a folder of a test
gen/internal/gentest/gentest.go os.WriteFile      in a folder of a test
gen/overlay/module.go os.WriteFile                in a folder of its caller, which is new
gen/overlay/overlay.go os.MkdirTemp               a new folder
gen/overlay/overlay.go os.WriteFile               in that folder
internal/docpages/main.go os.MkdirAll            docs of this module
internal/docpages/main.go os.WriteFile           files of this module
internal/sametemp/sametemp.go os.Mkdir           a new folder, for tests
internal/trace/create.go os.OpenFile              in the place of a trace or an empty file, or a new file
runtime/asynctest/asynctest.go os.CreateTemp      a new file
runtime/curves/curves.go os.MkdirAll              of the picture that the program names
runtime/curves/curves.go os.WriteFile             that picture
runtime/files/atomic.go os.Mkdir                  the folder that the program names
runtime/files/atomic.go os.OpenFile               a new file beside the one that the program names
runtime/files/atomic.go os.Rename                 over the file that the program names: a link is replaced, not followed
runtime/op/opgen/main.go os.WriteFile             files of this module
runtime/scalars/events.go os.MkdirAll             the folder that the program names
runtime/scalars/events.go os.OpenFile             a new file in it; of the host's name only what follows the last slash
runtime/scalars/lines.go os.MkdirAll              of the file that the program names
runtime/scalars/lines.go os.OpenFile              that file, if it is empty or has our header; only appended to, but for half a line
`

// leaves are the calls by which a process starts programs, or makes, changes or replaces files.
var leaves = strings.Fields(`exec.Command exec.CommandContext os.StartProcess syscall.Exec syscall.ForkExec syscall.StartProcess
	os.Create os.CreateTemp os.OpenFile os.WriteFile os.Mkdir os.MkdirAll os.MkdirTemp os.Rename os.Link os.Symlink os.Truncate os.Chmod os.Chown
	os.Lchown os.Chtimes os.CopyFS os.OpenRoot os.OpenInRoot`)

// TestOutside holds what leaves the process against the list.
func TestOutside(t *testing.T) {
	want := make(map[string]bool)
	for line := range strings.Lines(outside) {
		if words := strings.Fields(line); len(words) > 2 && words[0] != "#" {
			want[words[0]+" "+words[1]] = true
		}
	}
	got := make(map[string]bool)
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || d.Name() == "asm" || len(d.Name()) > 1 && d.Name()[0] == '.'):
			return fs.SkipDir
		case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok {
				if pkg, ok := sel.X.(*ast.Ident); ok && slices.Contains(leaves, pkg.Name+"."+sel.Sel.Name) {
					got[fmt.Sprintf("%s %s.%s", filepath.ToSlash(path), pkg.Name, sel.Sel.Name)] = true
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, place := range slices.Sorted(maps.Keys(got)) {
		if !want[place] {
			t.Errorf("%s: say in the list of outside_test.go what others have a say in, and what keeps it in bounds", place)
		}
	}
	for place := range want {
		if !got[place] {
			t.Errorf("%s: there is no such call any more", place)
		}
	}
}
