package gen

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"slices"

	"github.com/asyncgen/asyncgen/gen/internal/load"
	"github.com/asyncgen/asyncgen/gen/internal/verify"
)

// same compares generated functions with the originals by executing both on terms, see package verify, and returns
// those that differ. pairs has the originals by the keys of the generated functions. Functions that can't be executed
// are not compared; unknown says why.
func same(prog *load.Program, pkg *load.Package, generated map[string][]byte, pairs map[string]*ast.FuncDecl, packages map[string]*types.Package) (found []mismatch, unknown []string) {
	s, err := newSource(pkg, generated, packages)
	if err != nil {
		return []mismatch{{"", err.Error()}}, nil
	}
	p := verify.NewProgram(func(fn *types.Func) *verify.Func {
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
	for _, name := range slices.Sorted(maps.Keys(pairs)) {
		original, f := pairs[name], s.decls[name]
		if f == nil {
			found = append(found, mismatch{name, "it is missing"})
			continue
		}
		s.pairParameters(pkg, original, f.Decl)
		err := p.Same(&verify.Func{Decl: original, Info: pkg.TypesInfo, Fset: pkg.Fset}, f)
		switch {
		case errors.Is(err, verify.Unknown):
			unknown = append(unknown, fmt.Sprintf("%s.%s: %v", pkg.PkgPath, name, err))
		case err != nil:
			found = append(found, mismatch{name, err.Error()})
		}
	}
	slices.Sort(unknown)
	return found, unknown
}

// A source is a package with its generated files, and its types.
type source struct {
	info      *types.Info
	decls     map[string]*verify.Func // by key
	bodies    map[*types.Func]*verify.Func
	originals map[types.Object]types.Object // what they are in the package without generated files
}

func newSource(pkg *load.Package, generated map[string][]byte, packages map[string]*types.Package) (*source, error) {
	texts := make(map[string][]byte)
	for _, file := range pkg.Syntax {
		src := pkg.Source(file)
		texts[src.Path] = src.Text
	}
	for path, text := range generated {
		texts[path] = stripLine(text)
	}
	fset := token.NewFileSet()
	var files []*ast.File
	for path, text := range texts {
		file, err := parser.ParseFile(fset, path, text, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		files = append(files, file)
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
	conf := types.Config{Importer: importer(packages), Sizes: pkg.TypesSizes, FakeImportC: true, Error: func(error) {}}
	checked, _ := conf.Check(pkg.PkgPath, fset, files, s.info) // recheck has found the errors
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
	return s, nil
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
