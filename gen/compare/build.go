package compare

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/asyncgen/asyncgen/gen"
	"github.com/asyncgen/asyncgen/gen/overlay"
)

// programs are the two forms of a package, built.
type programs struct {
	original, rewritten string   // paths of the executables
	testDir             string   // of the package, if they are its test binaries
	applied, refused    []string // what the generator has done and has not, a line each
	notes               []string // what is the same in both forms
	remarks             []gen.Remark
}

// build builds both forms of cfg.Package into the folder temp, with the backends of all devices,
// whether its module has what these import or not.
func build(ctx context.Context, cfg Config, temp string) (*programs, error) {
	cfg.Progress("building " + cfg.Package)
	command := []string{"build", "-buildvcs=false"}
	name, dir, tests, err := packageOf(ctx, cfg)
	if err != nil {
		return nil, err
	}
	p := &programs{original: filepath.Join(temp, "original"+exe()), rewritten: filepath.Join(temp, "rewritten"+exe())}
	if cfg.Bench != "" {
		p.testDir = dir
		command = []string{"test", "-buildvcs=false", "-vet=off", "-c"}
	}
	files := imports(cfg, name, dir)
	err = buildWith(ctx, cfg, files, command, p.original)
	if err != nil && len(files) > 0 {
		if flags, ok := overlay.ModuleFlags(ctx, cfg.Dir, temp); ok {
			command = append(command, flags...)
			err = buildWith(ctx, cfg, files, command, p.original)
		}
	}
	if err != nil {
		return nil, err
	}

	cfg.Progress("rewriting " + cfg.Package)
	result, err := gen.Generate(ctx, gen.Config{Dir: cfg.Dir, Patterns: []string{cfg.Package}, All: true})
	if err != nil {
		return nil, err
	}
	if p.notes, err = generatedForms(cfg, dir, tests, result); err != nil {
		return nil, err
	}
	p.remarks = result.Remarks
	for _, m := range result.Remarks {
		switch m.Verdict {
		case gen.Applied:
			p.applied = append(p.applied, m.Format(cfg.Dir))
		case gen.Refused:
			p.refused = append(p.refused, m.Format(cfg.Dir))
		}
	}
	for _, f := range result.Files {
		files[f.Path] = f.Text
	}
	cfg.Progress("building " + cfg.Package + ", rewritten")
	return p, buildWith(ctx, cfg, files, command, p.rewritten)
}

// generatedForms returns notes on generated functions that the program calls itself, or its tests
// do, of the given names, if benchmarks are to be run. It is an error if one is called, and what it
// was generated from is not: then both forms of the program would be one.
func generatedForms(cfg Config, dir string, tests []string, result *gen.Result) (notes []string, err error) {
	named := make(map[string]token.Position)
	if cfg.Bench != "" {
		named = namesIn(dir, tests)
	}
	for _, s := range result.Siblings {
		at := s.Used
		if at.Line == 0 {
			at = named[s.Name]
		}
		_, both := named[s.Original]
		switch {
		case at.Line == 0:
		case s.Both || both:
			notes = append(notes, fmt.Sprintf("%s is generated, and called at %s: there, both programs do the same", s.Name, place(cfg.Dir, at)))
		case s.Original == "":
			return nil, fmt.Errorf("%s calls %s at %s, which is generated: both forms of the program would do the same there", cfg.Package, s.Name, place(cfg.Dir, at))
		default:
			return nil, fmt.Errorf("%s calls %s at %s, which is generated: both forms of the program would do the same there; call %s, and compare rewrites it",
				cfg.Package, s.Name, place(cfg.Dir, at), s.Original)
		}
	}
	return notes, nil
}

// place is pos as a user would write it.
func place(dir string, pos token.Position) string {
	if rel, err := filepath.Rel(dir, pos.Filename); err == nil && filepath.IsLocal(rel) {
		pos.Filename = rel
	}
	return fmt.Sprintf("%s:%d", pos.Filename, pos.Line)
}

// namesIn returns where the names in files that are not generated stand first.
func namesIn(dir string, files []string) map[string]token.Position {
	fset, named := token.NewFileSet(), make(map[string]token.Position)
	for _, name := range files {
		file, err := parser.ParseFile(fset, filepath.Join(dir, name), nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil || ast.IsGenerated(file) {
			continue
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok && named[id.Name].Line == 0 {
				named[id.Name] = fset.Position(id.Pos())
			}
			return true
		})
	}
	return named
}

// buildWith builds cfg.Package to the file named to, with the given files in place of those on disk.
func buildWith(ctx context.Context, cfg Config, files map[string][]byte, command []string, to string) error {
	o, err := overlay.New(files)
	if err != nil {
		return err
	}
	defer o.Close()
	_, err = goCommand(ctx, cfg, slices.Concat(command, []string{o.Flag(), "-o", to, cfg.Package})...)
	return err
}

// imports returns a file for the package with the given name and folder. It imports the backends of
// cfg.Devices that programs have to import; there is no file if there are none.
func imports(cfg Config, name, dir string) map[string][]byte {
	var lines strings.Builder
	for _, pkg := range backendPackages(cfg.Devices) {
		fmt.Fprintf(&lines, "import _ %q\n", pkg)
	}
	files := map[string][]byte{}
	switch {
	case lines.Len() == 0:
	case cfg.Bench != "":
		// Tests in a package of their own may import what imports the package.
		files[filepath.Join(dir, "asyncgen_backends_test.go")] = []byte("package " + name + "_test\n\n" + lines.String())
	default:
		files[filepath.Join(dir, "asyncgen_backends.go")] = []byte("package " + name + "\n\n" + lines.String())
	}
	return files
}

// backendPackages are the packages that a program has to import to have the devices.
func backendPackages(devices []string) (pkgs []string) {
	for _, d := range devices {
		if pkg := backends[backendOf(d)].pkg; pkg != "" && !slices.Contains(pkgs, pkg) {
			pkgs = append(pkgs, pkg)
		}
	}
	return pkgs
}

// packageOf returns the name, the folder and the test files of cfg.Package, or an error if that is
// not one main package or, with cfg.Bench, one package with tests.
func packageOf(ctx context.Context, cfg Config) (name, dir string, tests []string, err error) {
	out, err := goCommand(ctx, cfg, "list", "-f", `{{.Name}}	{{.Dir}}	{{.ImportPath}}	{{join .TestGoFiles "/"}}/{{join .XTestGoFiles "/"}}`, cfg.Package)
	if err != nil {
		return "", "", nil, err
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if len(lines) != 1 {
		return "", "", nil, fmt.Errorf("%s is %d packages, not one", cfg.Package, len(lines))
	}
	words := strings.Split(lines[0], "\t")
	name, dir = words[0], words[1]
	tests = strings.FieldsFunc(words[3], func(r rune) bool { return r == '/' })
	if cfg.Bench != "" && len(tests) == 0 {
		return "", "", nil, fmt.Errorf("%s has no tests, and so no benchmarks", cfg.Package)
	}
	if cfg.Bench == "" && name != "main" {
		return "", "", nil, fmt.Errorf("%s is no program: its package is called %s, not main", words[2], name)
	}
	return name, dir, tests, nil
}

// goCommand runs the go command and returns its standard output. The error
// is what it prints to standard error.
func goCommand(ctx context.Context, cfg Config, args ...string) (string, error) {
	cmd := overlay.Command(ctx, args...)
	cmd.WaitDelay = 5 * time.Second // for a linker that is not done yet
	cmd.Dir = cfg.Dir
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	if text := strings.TrimSpace(stderr.String()); err != nil && text != "" {
		return "", fmt.Errorf("go %s: %s", args[0], text)
	}
	return string(out), err
}

// exe is how the names of executables end.
func exe() string {
	if runtime.GOOS == "windows" {
		return ".exe"
	}
	return ""
}
