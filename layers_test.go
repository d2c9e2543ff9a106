package asyncgen_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/asyncgen/asyncgen"

// policy says, for each package, what its files outside tests may import
// besides the standard library: folders of this module by their path in it,
// other modules by their import path, "/..." with all below. Changing it is a
// decision: put the reason beside the line.
const policy = `
.:

# Tests that make packages have them compiled once.
internal/sametemp:
# Of long tests a third runs.
internal/turns:

# All that is shared between goroutines may be used in bubbles of testing/synctest.
internal/bubble:

# The runtime and the command show the same graphs.
internal/opgraph:
# The engine writes traces, and the command reads them.
internal/trace: internal/opgraph
# Names and lines of programs are shown as messages of the command show them.
internal/trace/page: internal/trace analysis/tensorapi

# Devices, lowest first. They know nothing of tensors.
device:            internal/bubble
device/report:
device/pool:       internal/bubble
device/kernel:     device
device/kernel/clc: device device/kernel
# The primitives' Go functions say what the loops compute.
device/cpu/internal/vec: device device/kernel golang.org/x/sys/cpu golang.org/x/sys/unix
device/cpu:        device device/kernel device/pool device/cpu/internal/vec
# purego sets a process up for C without cgo. It makes programs dynamic, so only what opens drivers may reach it, which users import on purpose.
device/internal/dl:  github.com/ebitengine/purego golang.org/x/sys/windows
device/internal/ffi: github.com/ebitengine/purego
device/internal/cl:  device device/internal/dl device/internal/ffi
# Messages between machines: bytes, by a library that is opened. Users import it for jobs of several processes.
device/mpi:          device/internal/dl device/internal/ffi device/wire
device/sim:        device device/kernel device/cpu
# Each backend of a GPU is imported by users, and by the program that says what there is.
device/opencl:     device device/kernel/clc device/internal/cl device/internal/dl device/internal/ffi
device/opencl/clfault: device/internal/cl device/internal/ffi
device/doctor:     device device/cpu device/sim device/opencl
device/fault:      device
device/wire:       device
device/wire/wiretest: device/wire
device/devicetest: device device/kernel

# The runtime. The engine knows no tensors; op knows no engine.
runtime/internal/engine: device internal/bubble internal/trace device/report device/pool
runtime/op:              device device/kernel gonum.org/v1/gonum/mat gonum.org/v1/gonum/dsp/fourier
runtime/op/opgen:        device device/kernel runtime/op
runtime/internal/tape:   device device/kernel runtime/op
# Importing tensors must be enough to compute: the devices that need nothing
# but Go register themselves.
runtime/tensor:          device device/kernel device/cpu device/sim device/wire runtime/internal/engine runtime/internal/tape runtime/op gonum.org/v1/gonum/mat
# A loader makes tensors of host memory. Where that fails, the error names the line of the loop, not one of a worker.
# A loader makes tensors of host memory. Those that its workers make carry the line of the loop.
runtime/data:            device runtime/internal/engine runtime/tensor
# Losses are expressions, added up as they are computed. Steps of optimisers are expressions too.
runtime/nn:              device device/kernel device/wire runtime/tensor
# What the host counts goes on in a step that the engine has captured.
runtime/optim:           device device/kernel runtime/internal/engine runtime/tensor runtime/nn
# What shows and records numbers that a device may still be computing. It uses tensors as users do.
runtime/internal/known:  device runtime/tensor
# pb draws the bar, and knows terminals. Plots are big, so only those who draw curves import them.
runtime/progress:        runtime/internal/known runtime/tensor github.com/cheggaaa/pb/v3 github.com/cheggaaa/pb/v3/termutil
runtime/scalars:         runtime/internal/known runtime/tensor
runtime/curves:          runtime/scalars runtime/tensor gonum.org/v1/plot/...
# Models as users write them: only what users import.
runtime/internal/ports:  runtime/tensor runtime/nn runtime/optim
# A read of generated code gives what one of a tensor gives, a gonum matrix too.
runtime:                 device device/wire internal/opgraph runtime/internal/engine runtime/op runtime/tensor gonum.org/v1/gonum/mat
# What it writes it waits for, and an error of a tensor is one of the call.
runtime/files:           device runtime runtime/nn runtime/tensor
# What errors of two programs differ in.
runtime/asynctest:       device device/report runtime runtime/tensor

# The tools know the library as data (tensorapi) and import none of it.
analysis/internal/jsonfile:
analysis/internal/syntax: golang.org/x/tools/...
analysis/tensorapi: analysis/internal/jsonfile
analysis/blocking: analysis/tensorapi analysis/internal/syntax golang.org/x/tools/...
analysis/lint:     analysis/blocking analysis/tensorapi analysis/internal/jsonfile golang.org/x/tools/...
analysis/sites:    analysis/internal/syntax analysis/lint analysis/blocking analysis/tensorapi golang.org/x/tools/...
analysis/RULE:     analysis/internal/jsonfile analysis/internal/syntax analysis/lint analysis/sites analysis/blocking analysis/tensorapi golang.org/x/tools/...
analysis:          analysis/lint analysis/blocking analysis/tensorapi analysis/RULE device/report golang.org/x/tools/...
gen/internal/facts:
gen/internal/syntax:
gen/internal/load: golang.org/x/tools/... analysis/tensorapi
gen/internal/plan: gen/internal/facts gen/internal/syntax gen/internal/load golang.org/x/tools/... analysis/blocking analysis/tensorapi gonum.org/v1/gonum/graph/...
gen/internal/emit: gen/internal/load gen/internal/plan golang.org/x/tools/... analysis/tensorapi github.com/dave/jennifer/jen
# Stages of their own are below the planner, which calls them. They look at functions only.
gen/rewrite/plain:   gen/internal/load gen/internal/plan gen/internal/syntax
gen/rewrite/rows:    gen/internal/load gen/internal/plan golang.org/x/tools/... analysis/tensorapi
gen/rewrite/fuse:    gen/internal/load gen/internal/plan golang.org/x/tools/... analysis/tensorapi
gen/rewrite/naming:  gen/internal/load gen/internal/plan gen/internal/syntax analysis/tensorapi
gen/rewrite/numbers: gen/internal/load gen/internal/plan gen/internal/syntax golang.org/x/tools/... analysis/tensorapi
gen/rewrite/past:    gen/internal/plan gen/internal/syntax analysis/tensorapi
gen/rewrite:       gen/internal/load gen/internal/plan gen/internal/syntax gen/rewrite/plain gen/rewrite/numbers gen/rewrite/rows gen/rewrite/past gen/rewrite/fuse gen/rewrite/naming golang.org/x/tools/... analysis/tensorapi
gen/internal/verify: gen/internal/facts gen/internal/load golang.org/x/tools/... analysis/tensorapi
gen:               gen/internal/load gen/internal/plan gen/internal/emit gen/internal/verify gen/rewrite analysis/blocking analysis/tensorapi golang.org/x/tools/...
# What tests of the generator share, with the tests of its golden files.
gen/internal/gentest: gen gen/rewrite gen/internal/load gen/internal/plan internal/sametemp golang.org/x/tools/...
# The interpreter among the judges has nothing to do with the library that it judges.
gen/internal/fuzz: gen gen/rewrite internal/sametemp
gen/overlay:       gen
# Its page shows traces of the programs.
gen/compare:       gen gen/overlay device/report analysis/tensorapi internal/trace internal/trace/page
# The generated pages of the docs are written by a program of their own.
internal/docpages: analysis gen
cmd/asyncgen:      gen gen/compare gen/overlay analysis analysis/lint analysis/blocking analysis/tensorapi device device/report internal/opgraph internal/trace internal/trace/page
cmd/e2e:
`

// never lists what must not be reachable through any chain of imports, however
// policy is changed.
const never = `
device/...              -> runtime/... analysis/... gen/...
runtime/...             -> analysis/... gen/... golang.org/x/tools/... github.com/dave/jennifer/...
runtime/internal/engine -> runtime/tensor runtime/op
runtime/op              -> runtime/internal/engine
analysis/...            -> runtime/... device device/kernel device/cpu device/sim
gen/...                 -> runtime/... device device/kernel device/cpu device/sim
runtime/...             -> github.com/ebitengine/purego
runtime/nn              -> gonum.org/v1/plot/... github.com/cheggaaa/pb/...
runtime/scalars         -> gonum.org/v1/plot/... github.com/cheggaaa/pb/...
runtime/progress        -> gonum.org/v1/plot/...
cmd/...                 -> github.com/ebitengine/purego
`

// TestLayers holds the imports of every package against policy and never.
func TestLayers(t *testing.T) {
	imports := moduleImports(t)
	allowed := parsePolicy(t)
	unused := maps.Clone(allowed)
	for _, pkg := range slices.Sorted(maps.Keys(imports)) {
		line := policyLine(allowed, pkg)
		rule, ok := allowed[line]
		delete(unused, line)
		if !ok {
			t.Errorf("%s: no line in the policy of layers_test.go", pkg)
			continue
		}
		for _, imp := range imports[pkg] {
			if !slices.ContainsFunc(rule, func(p string) bool { return matches(p, imp) || p == "analysis/RULE" && isRule(imp) }) {
				t.Errorf("%s imports %s: layers_test.go allows it %v", pkg, imp, rule)
			}
		}
	}

	for line := range unused {
		t.Errorf("%s: the policy of layers_test.go has a line for it, but there is no such package", line)
	}

	reached := map[string]map[string]bool{}
	for pkg := range imports {
		reached[pkg] = reach(imports, pkg)
	}
	for line := range strings.Lines(never) {
		from, targets, ok := strings.Cut(strings.TrimSpace(line), "->")
		if !ok {
			continue
		}
		for pkg, seen := range reached {
			if !matches(strings.TrimSpace(from), pkg) {
				continue
			}
			for _, target := range strings.Fields(targets) {
				for imp := range seen {
					if matches(target, imp) {
						t.Errorf("%s reaches %s, which must never be", pkg, imp)
					}
				}
			}
		}
	}
}

// TestMap holds the list of packages in doc.go against the packages that
// exist, and its order against their imports.
func TestMap(t *testing.T) {
	imports := moduleImports(t)
	text, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	at := map[string]int{}
	for line := range strings.Lines(string(text)) {
		entry, ok := strings.CutPrefix(line, "//\t")
		if !ok {
			continue
		}
		if name, _, ok := strings.Cut(strings.TrimSpace(entry), "  "); ok {
			at[name] = len(at) + 1
		}
	}
	for _, pkg := range slices.Sorted(maps.Keys(imports)) {
		if pkg == "." {
			continue
		}
		if at[pkg] == 0 {
			t.Errorf("doc.go's map has no line for %s", pkg)
			continue
		}
		for _, imp := range imports[pkg] {
			if at[imp] > at[pkg] {
				t.Errorf("doc.go's map has %s before %s, which it imports: lowest first", pkg, imp)
			}
		}
	}
	for name := range at {
		if _, ok := imports[name]; !ok {
			t.Errorf("doc.go's map has a line for %s, which is no package", name)
		}
	}
}

// parsePolicy returns the lines of policy: package to patterns.
func parsePolicy(t *testing.T) map[string][]string {
	t.Helper()
	rules := map[string][]string{}
	for line := range strings.Lines(policy) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		pkg, list, ok := strings.Cut(line, ":")
		if _, twice := rules[pkg]; !ok || twice {
			t.Fatalf("layers_test.go: bad or repeated line %q", line)
		}
		rules[pkg] = strings.Fields(list)
	}
	return rules
}

// policyLine is the line of policy that pkg falls under.
func policyLine(rules map[string][]string, pkg string) string {
	if _, ok := rules[pkg]; !ok && isRule(pkg) {
		return "analysis/RULE"
	}
	return pkg
}

// isRule reports whether pkg is a folder directly under analysis that is not
// one of its shared packages: a rule, or a close family of rules.
func isRule(pkg string) bool {
	return path.Dir(pkg) == "analysis" && !slices.Contains([]string{"analysis/tensorapi", "analysis/blocking", "analysis/lint", "analysis/sites"}, pkg)
}

// matches reports whether pkg is what pattern, with or without "/...", names.
func matches(pattern, pkg string) bool {
	if prefix, ok := strings.CutSuffix(pattern, "/..."); ok {
		return pkg == prefix || strings.HasPrefix(pkg, prefix+"/")
	}
	return pkg == pattern
}

// reach is what pkg imports, directly or through packages of the module.
func reach(imports map[string][]string, pkg string) map[string]bool {
	seen := map[string]bool{}
	var visit func(string)
	visit = func(p string) {
		for _, imp := range imports[p] {
			if !seen[imp] {
				seen[imp] = true
				visit(imp)
			}
		}
	}
	visit(pkg)
	return seen
}

// moduleImports returns the packages of this module, by their folder, with what
// their files outside tests import besides the standard library, for every
// platform. Test data and nested modules are left out.
func moduleImports(t *testing.T) map[string][]string {
	t.Helper()
	imports := map[string][]string{}
	err := walkModule(func(file string) error {
		if !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		dir := path.Dir(filepath.ToSlash(file))
		list := imports[dir]
		for _, spec := range f.Imports {
			imp, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			if own, ok := strings.CutPrefix(imp, module+"/"); ok {
				imp = own
			} else if imp == module {
				imp = "."
			} else if first, _, _ := strings.Cut(imp, "/"); !strings.Contains(first, ".") && imp != "C" {
				continue // standard library
			}
			if !slices.Contains(list, imp) {
				list = append(list, imp)
			}
		}
		imports[dir] = list
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return imports
}

// walkModule calls f with every file that the go command's ./... would look at,
// and the files beside them. Paths are relative to the root.
func walkModule(f func(file string) error) error {
	return filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if !d.IsDir() {
			return f(file)
		}
		if file == "." {
			return nil
		}
		name := d.Name()
		if name == "testdata" || name[0] == '.' || name[0] == '_' {
			return filepath.SkipDir
		}
		if _, err := os.Stat(filepath.Join(file, "go.mod")); err == nil {
			return filepath.SkipDir
		}
		return nil
	})
}
