package emit

import (
	"fmt"
	"go/ast"
	"go/types"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"github.com/asyncgen/asyncgen/gen/internal/load"
	"github.com/asyncgen/asyncgen/gen/internal/plan"
)

// inline is the style of overlays: new text goes on the lines of the old, so
// that one line directive at the top makes every position the user's.
type inline struct {
	runtime string            // the name that package asyncrt gets if it is added
	imports map[string]string // path to name
	added   []added
	unused  []string // functions whose packages may have no other use left
}

// added is an import that the user's file does not have.
type added struct{ name, path string }

func (s *inline) qualified(p, name string) string {
	alias, ok := s.imports[p]
	if !ok {
		alias = "asyncgen_" + strconv.Itoa(len(s.added))
		if p == load.RuntimePath {
			alias = s.runtime
		}
		s.imports[p] = alias
		s.added = append(s.added, added{alias, p})
	}
	return alias + "." + name
}

func (s *inline) lines(statements ...string) string {
	var b strings.Builder
	for _, st := range statements {
		b.WriteString(st)
		if strings.HasSuffix(st, "{") || strings.HasSuffix(st, ":") { // a label is that of the statement behind it
			b.WriteString(" ")
		} else {
			b.WriteString("; ")
		}
	}
	return b.String()
}

func (s *inline) spread() bool { return false }

func (s *inline) window(d *plan.Deferral) string { return strconv.Itoa(d.Window) }

// Inline returns the text of file with the planned functions rewritten where
// they stand. Its lines are those of the file that the user wrote.
// The variants of lifts follow at its end.
func Inline(pkg *load.Package, file *ast.File, ds []*plan.Deferral, lifts []*plan.Lift) []byte {
	src := pkg.Source(file)
	s := &inline{runtime: runtimeName(pkg, file), imports: make(map[string]string)}
	local := declared(pkg, file)
	for _, l := range lifts {
		takeNames(local, l.Function.Pkg, l.Function.Decl)
	}
	for _, imp := range file.Imports {
		p, err := strconv.Unquote(imp.Path.Value)
		if name := importName(pkg, imp); err == nil && name != "_" && name != "." && !local[name] {
			s.imports[p] = name
		}
	}
	e := &editor{file: pkg.Fset.File(file.FileStart), src: src.Text}
	for _, d := range ds {
		if r := d.Function.Restated; r != nil {
			p := restated(r, d, s)
			p.function()
			e.replace(r.From.Pos(), r.From.End(), p.render(r.Decl.Pos(), r.Decl.End()))
			s.unused = append(s.unused, lostImports(pkg, r)...)
			continue
		}
		p := &printer{editor: e, style: s, fset: pkg.Fset, comments: file.Comments, d: d}
		p.function()
	}
	var variants strings.Builder
	for _, l := range lifts {
		at := pkg.Fset.PositionFor(l.Function.Decl.Pos(), false)
		fmt.Fprintf(&variants, "\n//line %s:%d\n%s\n", tensorapi.Visible(at.Filename), at.Line, variant(l, marked(l, s), s))
	}
	all := e.between(0, len(src.Text)) + variants.String()
	for _, imp := range s.added {
		if strings.Contains(all, imp.name+".") { // not in a call in the place of which another one stands now
			e.insert(file.Name.End(), fmt.Sprintf("; import %s %q", imp.name, imp.path))
		}
	}
	text := e.between(0, len(src.Text)) + variants.String()
	for _, imp := range file.Imports {
		if p, _ := strconv.Unquote(imp.Path.Value); path.Base(p) == "tensor" && usesFuncs(ds) {
			// What read with tensor.ItemOf may have been its only use.
			switch name := importName(pkg, imp); name {
			case "_":
			case ".":
				text += "\nvar _ *Tensor\n"
			default:
				text += fmt.Sprintf("\nvar _ *%s.Tensor\n", name)
			}
		}
	}
	for _, imp := range file.Imports {
		p, _ := strconv.Unquote(imp.Path.Value)
		name := importName(pkg, imp)
		if i := slices.IndexFunc(Lifts(ds), func(l *plan.Lift) bool { return l.Function.IsForeign() && l.Function.Pkg.PkgPath == p }); i < 0 || name == "_" {
			continue
		}
		name += "."
		if name == ".." {
			name = ""
		}
		text += fmt.Sprintf("\n"+plan.PlainUse(pkg.Imports[p].Types)+"\n", name)
	}
	slices.Sort(s.unused)
	for _, use := range slices.Compact(s.unused) {
		text += "\nvar _ = " + use + "\n"
	}
	return fmt.Appendf(nil, "//line %s:1\n%s", tensorapi.Visible(src.Path), strings.TrimPrefix(text, byteOrderMark))
}

// lostImports returns functions that the function of r was written with and is not restated with, one of each
// package, as expressions.
func lostImports(pkg *load.Package, r *load.Restatement) (lost []string) {
	calls := func(pkg *load.Package, decl *ast.FuncDecl) map[types.Object]string {
		m := make(map[types.Object]string)
		ast.Inspect(decl, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.SelectorExpr:
				if fn, ok := pkg.TypesInfo.Uses[n.Sel].(*types.Func); ok && fn.Signature().Recv() == nil && fn.Signature().TypeParams().Len() == 0 {
					m[fn] = types.ExprString(n)
				}
				return true
			case *ast.Ident:
				if fn, ok := pkg.TypesInfo.Uses[n].(*types.Func); ok && fn.Pkg() != pkg.Types && fn.Signature().Recv() == nil && fn.Signature().TypeParams().Len() == 0 && m[fn] == "" {
					m[fn] = n.Name
				}
			}
			return true
		})
		return m
	}
	now := calls(r.Pkg, r.Decl)
	byPackage := make(map[*types.Package]string)
	for fn, text := range calls(pkg, r.From) {
		if first := byPackage[fn.Pkg()]; now[fn] == "" && (first == "" || text < first) {
			byPackage[fn.Pkg()] = text
		}
	}
	return slices.Collect(maps.Values(byPackage))
}

const byteOrderMark = "\uFEFF" // allowed only at the very beginning of a file

// declared returns the names that functions in file declare: what is imported
// under one of them can't be reached everywhere.
func declared(pkg *load.Package, file *ast.File) map[string]bool {
	names := make(map[string]bool)
	ast.Inspect(file, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			if _, imported := pkg.TypesInfo.Defs[id].(*types.PkgName); !imported && pkg.TypesInfo.Defs[id] != nil {
				names[id.Name] = true
			}
		}
		return true
	})
	return names
}

func usesFuncs(ds []*plan.Deferral) bool {
	var all []*plan.Region
	for _, d := range ds {
		all = append(all, regions(d)...)
		for _, l := range LiteralsOf(d) {
			all = append(all, l.Region)
		}
	}
	for _, r := range all {
		for _, g := range r.Groups {
			for read := range g.Names {
				if read.Func != nil {
					return true
				}
			}
		}
	}
	return false
}

// importName is the name by which file refers to the package of an import.
func importName(pkg *load.Package, imp *ast.ImportSpec) string {
	if imp.Name == nil {
		p, _ := strconv.Unquote(imp.Path.Value)
		if dep := pkg.Imports[p]; dep != nil && dep.Name != "" {
			return dep.Name
		}
	}
	return load.ImportName(imp)
}
