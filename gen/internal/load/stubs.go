package load

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/tools/go/packages"
)

// addStubs overlays the generated files of a package, those that exist and
// those that are still to be written, with stubs: functions of the right
// signature and without a body worth the name. Files that do not parse are
// left to the type checker, which reports them. What can't be written, because
// the package has functions of those names, is in wrong, and has no stub.
func addStubs(overlay map[string][]byte, p *packages.Package) (wrong []error, err error) {
	files := slices.Concat(p.GoFiles, p.OtherFiles)
	if len(p.GoFiles) == 0 {
		return nil, nil
	}
	dir := filepath.Dir(p.GoFiles[0])
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("load %s: %w", p.PkgPath, err)
	}
	for _, e := range entries {
		name := e.Name()
		if strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") {
			files = append(files, filepath.Join(dir, name))
		}
	}
	slices.Sort(files)
	names := &names{declared: make(map[string]token.Position)}
	for _, file := range slices.Compact(files) {
		text, err := os.ReadFile(file)
		if err != nil || !strings.HasSuffix(file, ".go") {
			continue
		}
		if IsGenerated(text) {
			if _, ok := overlay[file]; !ok {
				overlay[file] = []byte(constraints(text) + "package " + p.Name + "\n")
			}
			continue
		}
		if slices.Contains(p.GoFiles, file) {
			out := OutputPath(file)
			if old, err := os.ReadFile(out); err == nil && !IsGenerated(old) {
				continue // not ours: Commit refuses to write it
			}
			if stub := stubFor(file, text, names); stub != nil {
				overlay[out] = stub
			}
		}
	}
	first := make(map[string]token.Position)
	for _, w := range names.wanted {
		if at, ok := first[w.key]; ok {
			delete(overlay, OutputPath(w.pos.Filename))
			wrong = append(wrong, fmt.Errorf("%s: the generated function would be called %s, as the one for %s: choose another with //asyncgen:kernel name=",
				relative(w.pos.String()), w.name, relative(at.String())))
		} else {
			first[w.key] = w.pos
		}
		if at, ok := names.declared[w.key]; ok {
			delete(overlay, OutputPath(w.pos.Filename))
			wrong = append(wrong, fmt.Errorf("%s: the generated function would be called %s, as the one at %s: choose another with //asyncgen:kernel name=",
				relative(w.pos.String()), w.name, relative(at.String())))
		}
	}
	return wrong, nil
}

// A TestKernel is a function that is marked in a test file, where nothing is generated.
type TestKernel struct {
	Pos    token.Position
	Name   string
	Strict bool
}

// InTests is an error that says that nothing but functions in test files is marked, or nil.
func InTests(kernels []TestKernel) error {
	var errs []error
	for _, k := range kernels {
		errs = append(errs, fmt.Errorf("%s: functions in test files can't be rewritten: move %s to another file", relative(k.Pos.String()), k.Name))
	}
	return errors.Join(errs...)
}

// testKernels returns the functions that are marked in the test files of a folder, built or not.
// What can't be read has none.
func testKernels(dir string) (found []TestKernel) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if !strings.HasSuffix(path, "_test.go") {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(text, []byte("//asyncgen:kernel")) {
			continue
		}
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, path, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			continue // nobody asks for its functions
		}
		d := newDirectives(nil)
		d.scan(file)
		for _, decl := range file.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && d.kernels[fn] != nil {
				found = append(found, TestKernel{fset.Position(fn.Name.Pos()), fn.Name.Name, d.kernels[fn].Strict})
			}
		}
	}
	return found
}

// names are the functions that the files of a package declare, and those that
// are to be generated for them.
type names struct {
	declared map[string]token.Position // by receiver and name
	wanted   []wanted
}

type wanted struct {
	key, name string
	pos       token.Position // of the original
}

// constraints returns the build constraint of a file, if it has one.
func constraints(text []byte) string {
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "//go:build ") {
			return line + "\n"
		}
		if strings.HasPrefix(line, "package ") {
			break
		}
	}
	return ""
}

// Written returns the names of the functions and methods in the generated files of the folder of pkg, which are not
// among its sources.
func (pkg *Package) Written() (names []string) {
	entries, err := os.ReadDir(pkg.Dir)
	if err != nil {
		return nil
	}
	for _, entry := range entries {
		path := filepath.Join(pkg.Dir, entry.Name())
		if !strings.HasSuffix(path, ".go") {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil || !IsGenerated(text) {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, text, parser.SkipObjectResolution)
		if err != nil {
			continue // it does not compile in any case
		}
		for _, decl := range file.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok {
				names = append(names, fn.Name.Name)
			}
		}
	}
	return names
}

// stubFor returns what the generated file of a source file declares, or nil
// if nothing in it is marked. It adds to names.
func stubFor(name string, text []byte, names *names) []byte {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil
	}
	d := newDirectives(nil)
	d.scan(file)
	var decls strings.Builder
	used := make(map[string]bool)
	for _, decl := range file.Decls {
		fn, ok := decl.(*ast.FuncDecl)
		if !ok {
			continue
		}
		names.declared[Receiver(fn)+"."+fn.Name.Name] = fset.Position(fn.Name.Pos())
		if d.kernels[fn] == nil || fn.Body == nil {
			continue
		}
		sibling := SiblingName(fn.Name.Name, d.kernels[fn])
		names.wanted = append(names.wanted, wanted{Receiver(fn) + "." + sibling, sibling, fset.Position(fn.Name.Pos())})
		at := func(p token.Pos) int { return fset.Position(p).Offset }
		fmt.Fprintf(&decls, "\n%s%s%s { panic(0) }\n", text[at(fn.Type.Func):at(fn.Name.Pos())],
			sibling, text[at(fn.Name.End()):at(fn.Type.End())])
		for _, part := range []ast.Node{fn.Recv, fn.Type} {
			collectPackages(part, used)
		}
	}
	if decls.Len() == 0 {
		return nil
	}
	var b strings.Builder
	b.WriteString(constraints(text))
	fmt.Fprintf(&b, "package %s\n", file.Name.Name)
	var uses strings.Builder
	for _, imp := range file.Imports {
		if used[ImportName(imp)] {
			fmt.Fprintf(&b, "import %s %s\n", ImportName(imp), imp.Path.Value)
		} else if p, err := strconv.Unquote(imp.Path.Value); err == nil && ImportName(imp) == "." && dotted[p] != "" {
			fmt.Fprintf(&b, "import . %s\n", imp.Path.Value)
			fmt.Fprintf(&uses, "var _ %s\n", dotted[p])
		}
	}
	b.WriteString(uses.String())
	b.WriteString(decls.String())
	return []byte(b.String())
}

// dotted is a type of each package of ours that programs import with a dot, so that the import counts as used.
var dotted = map[string]string{RuntimePath + "/tensor": "Tensor", RuntimePath + "/nn": "Module", RuntimePath + "/optim": "Optimizer",
	RuntimePath + "/data": "Batch"}

func collectPackages(n ast.Node, used map[string]bool) {
	if fl, ok := n.(*ast.FieldList); ok && fl == nil {
		return
	}
	ast.Inspect(n, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if id, ok := sel.X.(*ast.Ident); ok {
				used[id.Name] = true
			}
		}
		return true
	})
}

var version = regexp.MustCompile(`^v[0-9]+$`)

// ImportName is the name by which a file refers to an import, guessed from
// the path where the import does not say it.
func ImportName(imp *ast.ImportSpec) string {
	if imp.Name != nil {
		return imp.Name.Name
	}
	p, err := strconv.Unquote(imp.Path.Value)
	if err != nil {
		return ""
	}
	if p == RuntimePath {
		return "asyncrt"
	}
	base := path.Base(p)
	if version.MatchString(base) && path.Dir(p) != "." {
		base = path.Base(path.Dir(p))
	}
	if i := strings.LastIndex(base, ".v"); i > 0 {
		base = base[:i]
	}
	if i := strings.LastIndexByte(base, '-'); i >= 0 {
		base = base[i+1:]
	}
	return base
}

// SiblingName is the name of the rewritten version of the function name.
func SiblingName(name string, k *Kernel) string {
	if k != nil && k.Name != "" {
		return k.Name
	}
	return name + "Async"
}

// constrained are the suffixes by which a file name restricts when the file
// is built: operating systems and architectures.
var constrained = map[string]bool{}

func init() {
	const names = `aix android darwin dragonfly freebsd hurd illumos ios js linux nacl netbsd openbsd plan9 solaris wasip1 windows zos unix
		386 amd64 arm arm64 loong64 mips mips64 mips64le mipsle ppc64 ppc64le riscv64 s390x sparc64 wasm`
	for _, n := range strings.Fields(names) {
		constrained[n] = true
	}
}

// OutputPath is the generated file of a source file: train.go becomes
// train_async.go, and train_windows.go becomes train_async_windows.go.
func OutputPath(file string) string {
	dir, base := filepath.Split(file)
	parts, at := systems(base)
	parts = slices.Insert(parts, at, "async")
	return dir + strings.Join(parts, "_") + ".go"
}

// systems returns the parts of the name of a file: those from at on restrict when it is built.
func systems(base string) (parts []string, at int) {
	parts = strings.Split(strings.TrimSuffix(base, ".go"), "_")
	at = len(parts)
	for at > 1 && len(parts)-at < 2 && constrained[parts[at-1]] {
		at--
	}
	return parts, at
}

// Constraint is what restricts when s is built, in its name and in its text: "" if it always is.
func (s *Source) Constraint() string {
	parts, at := systems(filepath.Base(s.Path))
	return strings.TrimSpace(strings.Join(parts[at:], "_") + " " + strings.TrimSpace(constraints(s.Text)))
}

// TestPath is the file for the test of what is in the generated file at path:
// train_async_windows.go is tested in train_async_windows_test.go.
func TestPath(path string) string { return strings.TrimSuffix(path, ".go") + "_test.go" }

// Unexport returns name with a lower-case first letter: "MSELoss" becomes
// "l2Loss".
func Unexport(name string) string {
	r, n := utf8.DecodeRuneInString(name)
	return string(unicode.ToLower(r)) + name[n:]
}
