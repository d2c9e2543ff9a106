package gen

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/asyncgen/asyncgen/gen/internal/load"
	"github.com/asyncgen/asyncgen/gen/internal/verify"
)

// A mismatch says what is wrong with a generated function.
type mismatch struct {
	function string // by key; "" if it is none in particular
	text     string
	unknown  bool // the function can't be checked
}

// executes is false in tests that ask what is written and not whether it is right.
var executes = true

// check compiles a package with its generated files, in memory, and compares generated functions with the originals by
// executing both on terms, see package verify. It trusts nothing that the planning found. pairs has the originals by
// the keys of the generated functions.
func check(prog *load.Program, pkg *load.Package, generated map[string][]byte, pairs map[string]*ast.FuncDecl, packages map[string]*types.Package) []mismatch {
	s, found := newSource(pkg, generated, packages)
	if len(found) > 0 || !executes {
		return found
	}
	for name, original := range pairs {
		if f := s.decls[name]; f != nil {
			s.pairParameters(pkg, original, f.Decl)
		}
	}
	names := slices.Sorted(maps.Keys(pairs))
	found = make([]mismatch, len(names))
	var done sync.WaitGroup
	room := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i, name := range names {
		room <- struct{}{}
		done.Go(func() {
			defer func() { <-room }()
			original, f := pairs[name], s.decls[name]
			if f == nil {
				found[i] = mismatch{name, "it is missing", false}
				return
			}
			err := s.program(prog).Same(&verify.Func{Decl: original, Info: pkg.TypesInfo, Fset: pkg.Fset}, f)
			if err != nil {
				found[i] = mismatch{name, err.Error(), errors.Is(err, verify.Unknown)}
			}
		})
	}
	done.Wait()
	return slices.DeleteFunc(found, func(m mismatch) bool { return m.text == "" })
}

// program returns what functions of a package call.
func (s *source) program(prog *load.Program) *verify.Program {
	return verify.NewProgram(func(fn *types.Func) *verify.Func {
		if f := s.bodies[fn]; f != nil {
			return f
		}
		if b, ok := prog.Body(fn); ok && !b.Stub {
			return &verify.Func{Decl: b.Decl, Info: b.Pkg.TypesInfo, Fset: prog.Fset}
		}
		return nil
	}, func(obj types.Object) (load.Effects, bool) {
		if original := s.originals[obj]; original != nil {
			obj = original
		}
		return prog.Effects(obj)
	})
}

// A source is a package with its generated files, and its types.
type source struct {
	info      *types.Info
	decls     map[string]*verify.Func // by key
	bodies    map[*types.Func]*verify.Func
	originals map[types.Object]types.Object // what they are in the package without generated files
}

// newSource returns a package with generated files, or what does not compile in them.
func newSource(pkg *load.Package, generated map[string][]byte, packages map[string]*types.Package) (*source, []mismatch) {
	texts := maps.Clone(generated)
	for _, file := range pkg.Syntax {
		src := pkg.Source(file)
		if _, replaced := generated[src.Path]; !replaced {
			texts[src.Path] = src.Text
		}
	}
	fset := token.NewFileSet()
	var files []*ast.File
	own := make(map[*ast.File]bool)
	for _, path := range slices.Sorted(maps.Keys(texts)) {
		file, err := parser.ParseFile(fset, path, stripLine(texts[path]), parser.SkipObjectResolution)
		if err != nil {
			return nil, []mismatch{{"", err.Error(), false}}
		}
		files = append(files, file)
		if _, ok := generated[path]; ok {
			own[file] = true
		}
	}
	s := &source{
		info: &types.Info{
			Types: make(map[ast.Expr]types.TypeAndValue), Instances: make(map[*ast.Ident]types.Instance), Defs: make(map[*ast.Ident]types.Object),
			Uses: make(map[*ast.Ident]types.Object), Implicits: make(map[ast.Node]types.Object), Selections: make(map[*ast.SelectorExpr]*types.Selection),
		},
		decls:     make(map[string]*verify.Func),
		bodies:    make(map[*types.Func]*verify.Func),
		originals: make(map[types.Object]types.Object),
	}
	var found []mismatch
	conf := types.Config{Importer: importer(packages), Sizes: pkg.TypesSizes, FakeImportC: true, Error: func(err error) {
		e, ok := err.(types.Error)
		if !ok || e.Soft && strings.Contains(e.Msg, "imported and not used") && !inOwn(own, e.Pos) {
			return
		}
		found = append(found, mismatch{functionAt(own, e.Pos), "it does not compile: " + err.Error(), false})
	}}
	if pkg.Module != nil && pkg.Module.GoVersion != "" {
		conf.GoVersion = "go" + pkg.Module.GoVersion
	}
	checked, _ := conf.Check(pkg.PkgPath, fset, files, s.info) // errors come through conf.Error
	if len(found) > 0 {
		return nil, found
	}
	for _, file := range files {
		for _, d := range file.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Body == nil {
				continue
			}
			f := &verify.Func{Decl: fn, Info: s.info, Fset: fset}
			s.decls[key(fn)] = f
			if obj, ok := s.info.Defs[fn.Name].(*types.Func); ok {
				s.bodies[obj] = f
			}
		}
	}
	s.pairScopes(pkg.Types.Scope(), checked.Scope())
	for decl := range pkg.Kernels {
		if f := s.decls[key(decl)]; f != nil {
			s.pairParameters(pkg, decl, f.Decl)
		}
	}
	return s, nil
}

// stripLine drops the line directive at the top of an overlay, so that positions are those of the text.
func stripLine(text []byte) []byte {
	if strings.HasPrefix(string(text), "//line ") {
		return append([]byte("//     "), text[len("//line "):]...)
	}
	return text
}

func inOwn(own map[*ast.File]bool, pos token.Pos) bool {
	for f := range own {
		if f.FileStart <= pos && pos <= f.FileEnd {
			return true
		}
	}
	return false
}

func functionAt(own map[*ast.File]bool, pos token.Pos) string {
	for f := range own {
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Pos() <= pos && pos < fn.End() {
				return key(fn)
			}
		}
	}
	return ""
}

// key names a function within its package.
func key(fn *ast.FuncDecl) string {
	if fn.Recv == nil {
		return fn.Name.Name
	}
	return types.ExprString(fn.Recv.List[0].Type) + "." + fn.Name.Name
}

type importer map[string]*types.Package

func (m importer) Import(path string) (*types.Package, error) {
	if path == "unsafe" {
		return types.Unsafe, nil
	}
	if p, ok := m[path]; ok && p.Complete() {
		return p, nil
	}
	return nil, fmt.Errorf("no package %s", path)
}

// known returns all packages that the types of a program come from.
func known(prog *load.Program) map[string]*types.Package {
	m := make(map[string]*types.Package)
	var visit func(p *types.Package)
	visit = func(p *types.Package) {
		if p == nil || m[p.Path()] != nil && (m[p.Path()].Complete() || !p.Complete()) {
			return
		}
		m[p.Path()] = p
		for _, imp := range p.Imports() {
			visit(imp)
		}
	}
	for _, pkg := range prog.Roots {
		visit(pkg.Types)
	}
	visit(prog.Runtime)
	return m
}

// pairScopes notes what in the package without generated files is called like what is in the one with them: directives
// speak of functions, types, fields and methods of interfaces.
func (s *source) pairScopes(original, generated *types.Scope) {
	for _, name := range generated.Names() {
		from, to := original.Lookup(name), generated.Lookup(name)
		if from == nil {
			continue
		}
		s.originals[to] = from
		if _, ok := to.(*types.TypeName); !ok {
			continue
		}
		switch t := to.Type().Underlying().(type) {
		case *types.Struct:
			if u, ok := from.Type().Underlying().(*types.Struct); ok && u.NumFields() == t.NumFields() {
				for i := range t.NumFields() {
					s.originals[t.Field(i)] = u.Field(i)
				}
			}
		case *types.Interface:
			if u, ok := from.Type().Underlying().(*types.Interface); ok && u.NumMethods() == t.NumMethods() {
				for i := range t.NumMethods() {
					s.originals[t.Method(i)] = u.Method(i)
				}
			}
		}
		if n, ok := types.Unalias(to.Type()).(*types.Named); ok {
			if m, ok := types.Unalias(from.Type()).(*types.Named); ok && m.NumMethods() == n.NumMethods() {
				for i := range n.NumMethods() {
					s.originals[n.Method(i)] = m.Method(i)
				}
			}
		}
	}
}

// pairParameters notes which parameters of a generated function are those of the original: directives speak of these.
func (s *source) pairParameters(pkg *load.Package, original, generated *ast.FuncDecl) {
	names := func(fn *ast.FuncDecl) (ids []*ast.Ident) {
		for _, f := range fn.Type.Params.List {
			ids = append(ids, f.Names...)
		}
		return ids
	}
	from, to := names(original), names(generated)
	for i := range min(len(from), len(to)) {
		s.originals[s.info.Defs[to[i]]] = pkg.TypesInfo.Defs[from[i]]
	}
}
