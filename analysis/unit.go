package analysis

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/build"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	"github.com/asyncgen/asyncgen/analysis/blocking"
	"github.com/asyncgen/asyncgen/analysis/lint"
	"golang.org/x/tools/go/analysis/unitchecker"
)

// IsUnit reports whether a command line, without the program's name, is one
// with which go vet and go fix run their tool: it asks for the tool's version
// or flags, or names the description of one compilation unit.
func IsUnit(args []string) bool {
	if len(args) == 0 {
		return false
	}
	return args[0] == "-V=full" || args[0] == "-flags" || strings.HasSuffix(args[len(args)-1], ".cfg")
}

// Unit does what go vet or go fix asked for by the command line in os.Args,
// for which IsUnit holds, and exits. In fix mode the rules are FixSuite.
//
// Units that cannot reach a tensor are not even parsed, which makes the tool
// several times faster than go vet's own on programs that use few.
func Unit() {
	args := os.Args[1:]
	if args[0] == "-V=full" && printVersion(os.Stdout, ".") {
		os.Exit(0)
	}
	if name := args[len(args)-1]; strings.HasSuffix(name, ".cfg") {
		u, read := readUnit(name) // if it can't be read, unitchecker will say so
		if err := useProfiles(args[:len(args)-1], func() string { return cmp.Or(u.Dir, ".") }); err != nil {
			fmt.Fprintf(os.Stderr, "asyncgen: %v\n", err)
			os.Exit(1)
		}
		if !u.VetxOnly {
			if _, err := lint.SettingsAbove(cmp.Or(u.Dir, ".")); err != nil {
				fmt.Fprintf(os.Stderr, "asyncgen: %v\n", err)
				os.Exit(1)
			}
		}
		if read && u.skip() {
			os.Exit(0)
		}
		for _, arg := range args {
			if id := strings.TrimSuffix(strings.TrimLeft(arg, "-"), "=true"); lint.RuleOf(id) != nil {
				lint.Ask(id)
			}
		}
	}
	blocking.Analyzer.Flags.VisitAll(func(f *flag.Flag) { flag.Var(f.Value, f.Name, f.Usage) })
	suite := Suite
	if slices.Contains(args, "-fix") {
		suite = FixSuite
	}
	unitchecker.Main(suite...)
}

// A unit has the fields of [unitchecker.Config] that decide whether a package can be skipped.
type unit struct {
	ImportPath, Dir, Compiler, GoVersion string
	GoFiles                              []string
	ImportMap, PackageFile, PackageVetx  map[string]string
	VetxOnly                             bool // nobody asks for findings
	VetxOutput, Stdout, FixArchive       string
}

// readUnit reads the description of a unit in a file, and reports whether it could.
func readUnit(name string) (unit, bool) {
	var u unit
	data, err := os.ReadFile(name)
	ok := err == nil && json.Unmarshal(data, &u) == nil
	return u, ok
}

// skip finishes a unit that cannot reach a tensor: none of its imports is a
// tensor library, and none left a fact. It reports whether it did. A unit with a
// mistake is left to the real run, which says what is wrong with it.
//
// That no facts are written as an empty file, and that types are not taken
// from those files, holds for x/tools up to v0.49. This module asks for that
// version, but the module that builds the tool may ask for a later one.
func (u unit) skip() bool {
	if !upTo49(toolsVersion()) || u.FixArchive != "" || isLibrary(u.ImportPath) {
		return false
	}
	for _, path := range u.ImportMap {
		if isLibrary(path) {
			return false
		}
	}
	for _, facts := range u.PackageVetx {
		if info, err := os.Stat(facts); err != nil || info.Size() > 0 {
			return false
		}
	}
	if !u.VetxOnly && !u.compiles() {
		return false
	}
	for _, out := range []string{u.VetxOutput, u.Stdout} {
		if out != "" && os.WriteFile(out, nil, 0o666) != nil {
			return false // let the real run report it
		}
	}
	return true
}

// compiles reports whether the unit type-checks. It records no types of expressions, and so takes half the time of
// an empty analysis.
func (u unit) compiles() bool {
	debug.SetGCPercent(400) // it all lives as long as the process
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range u.GoFiles {
		f, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
		if err != nil {
			return false
		}
		files = append(files, f)
	}
	imports := importer.ForCompiler(fset, u.Compiler, func(path string) (io.ReadCloser, error) {
		return os.Open(u.PackageFile[path])
	})
	cfg := types.Config{
		GoVersion: u.GoVersion,
		Sizes:     types.SizesFor("gc", build.Default.GOARCH),
		Importer: importFunc(func(path string) (*types.Package, error) {
			return imports.Import(cmp.Or(u.ImportMap[path], path))
		}),
	}
	_, err := cfg.Check(u.ImportPath, fset, files, nil)
	return err == nil
}

// An importFunc is an importer.
type importFunc func(path string) (*types.Package, error)

func (f importFunc) Import(path string) (*types.Package, error) { return f(path) }

func isLibrary(path string) bool { return blocking.IsLibrary(path) }

// toolsVersion is the version of x/tools in this program, empty if that is not
// known. Tests pretend that it is another.
var toolsVersion = func() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, dep := range info.Deps {
		if dep.Path == "golang.org/x/tools" {
			if dep.Replace != nil {
				dep = dep.Replace
			}
			return dep.Version
		}
	}
	return ""
}

// upTo49 reports whether a version is v0.49 or earlier.
func upTo49(version string) bool {
	minor, ok := strings.CutPrefix(version, "v0.")
	if !ok {
		return false
	}
	minor, _, _ = strings.Cut(minor, ".")
	n, err := strconv.Atoi(minor)
	return err == nil && n <= 49
}
