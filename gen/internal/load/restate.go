package load

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

// An Edit replaces the text from Pos to End, in one file. No text contains a line end, so
// that everything stays on its line.
type Edit struct {
	Pos, End token.Pos
	Text     string
}

// A Restatement is a function in other words: its text with edits, checked as a part of the
// package of the original.
type Restatement struct {
	Pkg  *Package  // has File alone, and its types
	File *ast.File // with all functions, of which only Decl has types
	Decl *ast.FuncDecl
	From *ast.FuncDecl // the original

	original *token.File
	edits    []Edit // sorted
	lines    bool   // line ends in what is replaced stay
}

// RestatedRuntime is the name of package asyncrt in edits.
const RestatedRuntime = "asyncgen_asyncrt"

// Restate returns the function decl of pkg with edits, which do not overlap, on the lines that it is on if
// lines says so. Methods of generic types can't be restated.
func (prog *Program) Restate(pkg *Package, decl *ast.FuncDecl, edits []Edit, lines bool) (*Restatement, error) {
	var file *ast.File
	for _, f := range pkg.Syntax {
		if f.FileStart <= decl.Pos() && decl.Pos() < f.FileEnd {
			file = f
		}
	}
	if isGenericMethod(pkg, decl) {
		return nil, fmt.Errorf("restate %s: it is a method of a generic type", decl.Name.Name)
	}
	src := pkg.Source(file)
	r := &Restatement{From: decl, original: pkg.Fset.File(file.FileStart), edits: slices.Clone(edits), lines: lines}
	slices.SortStableFunc(r.edits, func(a, b Edit) int { return int(a.Pos - b.Pos) })
	if !slices.ContainsFunc(file.Imports, func(i *ast.ImportSpec) bool { return i.Name != nil && i.Name.Name == RestatedRuntime }) {
		r.edits = slices.Insert(r.edits, 0, Edit{file.Name.End(), file.Name.End(), fmt.Sprintf("; import %s %q", RestatedRuntime, RuntimePath)})
	}
	text, err := r.text(src.Text)
	if err != nil {
		return nil, err
	}
	if r.File, err = parser.ParseFile(pkg.Fset, src.Path, text, parser.ParseComments|parser.SkipObjectResolution); err != nil {
		return nil, fmt.Errorf("restate %s: %w", decl.Name.Name, err)
	}
	at := r.position(decl.Pos())
	for _, d := range r.File.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Pos() == at {
			r.Decl = fn
		}
	}
	if r.Decl == nil {
		return nil, fmt.Errorf("restate %s: it is not there", decl.Name.Name)
	}
	info, err := r.check(prog, pkg)
	if err != nil {
		return nil, fmt.Errorf("restate %s: %w", decl.Name.Name, err)
	}
	p := *pkg.Package
	p.Syntax, p.TypesInfo = []*ast.File{r.File}, info
	copied := *pkg
	copied.Package = &p
	copied.sources = map[*ast.File]*Source{r.File: {Path: src.Path, Text: text}}
	r.Pkg = &copied
	return r, nil
}

// isGenericMethod reports whether decl is a method of a generic type.
func isGenericMethod(pkg *Package, decl *ast.FuncDecl) bool {
	fn, ok := pkg.TypesInfo.Defs[decl.Name].(*types.Func)
	return ok && fn.Signature().RecvTypeParams().Len() > 0
}

// text returns src with the edits.
func (r *Restatement) text(src []byte) ([]byte, error) {
	var out strings.Builder
	last := 0
	for _, e := range r.edits {
		from, to := r.original.Offset(e.Pos), r.original.Offset(e.End)
		if from < last || strings.Contains(e.Text, "\n") {
			return nil, errors.New("restate: the edits overlap, or have lines")
		}
		out.Write(src[last:from])
		out.WriteString(e.Text)
		out.WriteString(strings.Repeat("\n", r.linesIn(e)))
		last = to
	}
	out.Write(src[last:])
	return []byte(out.String()), nil
}

// check finds the types of r.Decl. A function that has been checked can't be
// declared again, nor a method: for this time it has a name that no program has,
// and its receiver is a parameter.
func (r *Restatement) check(prog *Program, pkg *Package) (*types.Info, error) {
	info := &types.Info{
		Types: make(map[ast.Expr]types.TypeAndValue), Instances: make(map[*ast.Ident]types.Instance),
		Defs: make(map[*ast.Ident]types.Object), Uses: make(map[*ast.Ident]types.Object), Implicits: make(map[ast.Node]types.Object),
		Selections: make(map[*ast.SelectorExpr]*types.Selection), Scopes: make(map[ast.Node]*types.Scope), FileVersions: make(map[*ast.File]string),
	}
	var errs []error
	conf := types.Config{
		Importer: importsOf{prog, pkg.Package},
		Sizes:    pkg.TypesSizes,
		Error: func(err error) {
			if e, ok := err.(types.Error); !ok || !e.Soft {
				errs = append(errs, err)
			}
		},
	}
	if pkg.Module != nil && pkg.Module.GoVersion != "" {
		conf.GoVersion = "go" + pkg.Module.GoVersion
	}
	decls, name, recv, params := r.File.Decls, r.Decl.Name.Name, r.Decl.Recv, r.Decl.Type.Params.List
	r.File.Decls = slices.DeleteFunc(slices.Clone(decls), func(d ast.Decl) bool {
		g, ok := d.(*ast.GenDecl)
		return d != r.Decl && (!ok || g.Tok != token.IMPORT)
	})
	r.Decl.Name.Name = fmt.Sprintf("%s·%d", name, r.File.FileStart)
	if recv != nil {
		r.Decl.Recv, r.Decl.Type.Params.List = nil, append(slices.Clip(recv.List), params...)
	}
	err := types.NewChecker(&conf, pkg.Fset, pkg.Types, info).Files([]*ast.File{r.File})
	r.File.Decls, r.Decl.Name.Name, r.Decl.Recv, r.Decl.Type.Params.List = decls, name, recv, params
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	if te, ok := err.(types.Error); ok && te.Soft {
		err = nil
	}
	return info, err
}

// importsOf finds the packages that a package imports, and the runtime.
type importsOf struct {
	prog *Program
	pkg  *packages.Package
}

func (i importsOf) Import(path string) (*types.Package, error) {
	switch dep := i.pkg.Imports[path]; {
	case path == "unsafe":
		return types.Unsafe, nil
	case path == RuntimePath:
		return i.prog.Runtime, nil
	case dep != nil && dep.Types != nil:
		return dep.Types, nil
	}
	for _, p := range i.pkg.Types.Imports() {
		if p.Path() == path {
			return p, nil
		}
	}
	return nil, fmt.Errorf("no package %s", path)
}

// position returns where pos, of the original, is in r.
func (r *Restatement) position(pos token.Pos) token.Pos {
	offset := r.original.Offset(pos)
	moved := offset
	for _, e := range r.edits {
		if end := r.original.Offset(e.End); end <= offset {
			moved += r.grows(e)
		}
	}
	return r.File.FileStart + token.Pos(moved)
}

// Original returns where pos, of r, is in the original: at the beginning of
// what has been replaced, if it is in that.
func (r *Restatement) Original(pos token.Pos) token.Pos {
	offset, moved := int(pos-r.File.FileStart), 0
	for _, e := range r.edits {
		from := r.original.Offset(e.Pos)
		if offset < from+moved {
			break
		}
		if offset < from+moved+len(e.Text) {
			return e.Pos
		}
		moved += r.grows(e)
	}
	return r.original.Pos(offset - moved)
}

// linesIn is how many line ends of what e replaces stay behind its text.
func (r *Restatement) linesIn(e Edit) int {
	if !r.lines {
		return 0
	}
	return r.original.Line(e.End) - r.original.Line(e.Pos)
}

// grows is by how much e makes the text longer.
func (r *Restatement) grows(e Edit) int { return len(e.Text) + r.linesIn(e) - int(e.End-e.Pos) }
