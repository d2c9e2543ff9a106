package load

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"go/types"
	"os"
	"runtime"

	"golang.org/x/tools/go/gcexportdata"
	"golang.org/x/tools/go/packages"
)

// A checker gives packages their syntax and types. go/packages does that, too, but as soon as one
// file is replaced by another text, it takes every package from its source, down to the standard library. Here
// those that don't need a replaced file have the types that the compiler has written beside their objects.
type checker struct {
	ctx     context.Context
	fset    *token.FileSet
	overlay map[string][]byte
	want    map[string]bool // import paths of those that get syntax and types of what is in functions
	found   map[*packages.Package]*checked
	order   []*checked // what a package imports is before it
	cpus    chan struct{}
}

// A checked is what a checker knows about a package.
type checked struct {
	*packages.Package
	fromSource bool
	done       chan struct{} // closed when the types are there
}

// check gives the packages that want names, which are among roots or what these import, their
// syntax and types, and all others their types. What is wrong with a package is added to its errors.
func check(c *packages.Config, roots []*packages.Package, want map[string]bool) error {
	k := &checker{
		ctx: c.Context, fset: c.Fset, overlay: c.Overlay, want: want,
		found: make(map[*packages.Package]*checked), cpus: make(chan struct{}, runtime.GOMAXPROCS(0)),
	}
	packages.Visit(roots, nil, k.add)
	if err := k.readExported(); err != nil {
		// Written by a newer compiler, perhaps.
		for _, p := range k.order {
			p.fromSource = true
		}
	}
	for _, p := range k.order {
		if p.fromSource && p.PkgPath != "unsafe" {
			p.Types = types.NewPackage(p.PkgPath, p.Name)
			go k.load(p)
		}
	}
	for _, p := range k.order {
		if p.fromSource && p.PkgPath != "unsafe" {
			<-p.done
		}
	}
	return k.ctx.Err()
}

// add is called for what p imports before it is called for p.
func (k *checker) add(p *packages.Package) {
	c := &checked{Package: p, fromSource: k.want[p.PkgPath] || p.ExportFile == "", done: make(chan struct{})}
	for _, imp := range p.Imports {
		// What the compiler has written about p names types of imp, which there must be only once.
		if i := k.found[imp]; i.fromSource && imp.PkgPath != "unsafe" {
			c.fromSource = true
		}
	}
	p.Fset = k.fset
	if p.PkgPath == "unsafe" {
		p.Types = types.Unsafe
	}
	k.found[p] = c
	k.order = append(k.order, c)
}

// readExported reads the types of the packages that are not checked, all of them, as generated code may import what
// nothing else does.
func (k *checker) readExported() error {
	read := make(map[string]*types.Package)
	for _, p := range k.order {
		if p.fromSource || p.Types != nil {
			continue
		}
		if err := k.readExportedOf(p, read); err != nil {
			return err
		}
	}
	return nil
}

// readExportedOf reads the types of p into its own package and those of read, which are there
// already or are not complete.
func (k *checker) readExportedOf(p *checked, read map[string]*types.Package) error {
	file, err := os.Open(p.ExportFile)
	if err != nil {
		return err
	}
	defer file.Close()
	r, err := gcexportdata.NewReader(file)
	if err != nil {
		return err
	}
	p.Types, err = gcexportdata.Read(r, k.fset, read, p.PkgPath)
	return err
}

// load parses and checks a package when what it imports is there.
func (k *checker) load(p *checked) {
	defer close(p.done)
	for _, imp := range p.Imports {
		if i := k.found[imp]; i.fromSource && imp.PkgPath != "unsafe" {
			<-i.done
		}
	}
	k.cpus <- struct{}{}
	defer func() { <-k.cpus }()
	if k.ctx.Err() != nil {
		return
	}
	p.Syntax = k.parse(p)
	p.TypesInfo = &types.Info{
		Types:        make(map[ast.Expr]types.TypeAndValue),
		Defs:         make(map[*ast.Ident]types.Object),
		Uses:         make(map[*ast.Ident]types.Object),
		Implicits:    make(map[ast.Node]types.Object),
		Instances:    make(map[*ast.Ident]types.Instance),
		Scopes:       make(map[ast.Node]*types.Scope),
		Selections:   make(map[*ast.SelectorExpr]*types.Selection),
		FileVersions: make(map[*ast.File]string),
	}
	conf := &types.Config{
		Importer:         importer(p.imported),
		IgnoreFuncBodies: !k.want[p.PkgPath],
		Error:            p.failed,
		Sizes:            p.TypesSizes,
	}
	if p.Module != nil && p.Module.GoVersion != "" {
		conf.GoVersion = "go" + p.Module.GoVersion
	}
	if err := types.NewChecker(conf, k.fset, p.Types, p.TypesInfo).Files(p.Syntax); err != nil && len(p.Errors) == 0 {
		p.failed(err)
	}
	p.IllTyped = len(p.Errors) > 0
	for _, imp := range p.Imports {
		p.IllTyped = p.IllTyped || imp.IllTyped
	}
}

// parse returns the files of p, as far as they can be understood.
func (k *checker) parse(p *checked) (files []*ast.File) {
	for _, path := range p.CompiledGoFiles {
		text, ok := k.overlay[path]
		if !ok {
			var err error
			if text, err = os.ReadFile(path); err != nil {
				p.failed(err)
				continue
			}
		}
		file, err := parser.ParseFile(k.fset, path, text, parser.AllErrors|parser.ParseComments)
		if err != nil {
			p.failed(err)
		}
		if file != nil {
			files = append(files, file)
		}
	}
	return files
}

// failed adds an error to those of p, in the form that go/packages gives it.
func (p *checked) failed(err error) {
	var syntax scanner.ErrorList
	var path *os.PathError
	var typ types.Error
	switch {
	case errors.As(err, &syntax):
		for _, e := range syntax {
			p.Errors = append(p.Errors, packages.Error{Pos: e.Pos.String(), Msg: e.Msg, Kind: packages.ParseError})
		}
	case errors.As(err, &path):
		p.Errors = append(p.Errors, packages.Error{Pos: path.Path + ":1", Msg: path.Err.Error(), Kind: packages.ParseError})
	case errors.As(err, &typ):
		p.TypeErrors = append(p.TypeErrors, typ)
		p.Errors = append(p.Errors, packages.Error{Pos: typ.Fset.Position(typ.Pos).String(), Msg: typ.Msg, Kind: packages.TypeError})
	default:
		p.Errors = append(p.Errors, packages.Error{Pos: "-", Msg: err.Error(), Kind: packages.UnknownError})
	}
}

type importer func(path string) (*types.Package, error)

func (f importer) Import(path string) (*types.Package, error) { return f(path) }

// imported is the package that p imports as path.
func (p *checked) imported(path string) (*types.Package, error) {
	if path == "unsafe" {
		return types.Unsafe, nil
	}
	imp := p.Imports[path]
	if imp == nil {
		return nil, fmt.Errorf("no metadata for %s", path)
	}
	return imp.Types, nil
}
