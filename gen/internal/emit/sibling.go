package emit

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/types"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/asyncgen/asyncgen/gen/internal/load"
	"github.com/asyncgen/asyncgen/gen/internal/plan"
	"github.com/dave/jennifer/jen"
)

// A Kernel is a function to be written next to the original.
type Kernel struct {
	Decl     *ast.FuncDecl
	Name     string         // of the new function
	Deferral *plan.Deferral // nil if nothing is rewritten
}

// pretty is the style of files that people read.
type pretty struct{ constant string }

// qualified marks the name, so that jennifer can put the package in.
func (pretty) qualified(path, name string) string { return "\x00" + path + "\x01" + name + "\x02" }

func (pretty) lines(statements ...string) string {
	var b strings.Builder
	for _, s := range statements {
		b.WriteString(s + "\n")
	}
	return b.String()
}

func (pretty) spread() bool { return true }

func (s pretty) window(*plan.Deferral) string { return s.constant }

// Sibling returns the file with the rewritten versions of kernels, which all
// stand in file.
// lifts are the functions whose variants go into the file, too.
func Sibling(pkg *load.Package, file *ast.File, kernels []Kernel, lifts []*plan.Lift) ([]byte, error) {
	out := jen.NewFilePathName(pkg.PkgPath, pkg.Name)
	out.HeaderComment(load.Header)
	if c := constraint(file); c != "" {
		out.HeaderComment(c)
	}
	imports(out, pkg, file, kernels, lifts)
	out.ImportAlias(load.RuntimePath, runtimeName(pkg, file))
	s := &sibling{pkg: pkg, file: file, src: pkg.Source(file), names: make(map[string]bool)}
	if slices.ContainsFunc(kernels, func(k Kernel) bool { return k.Deferral != nil }) {
		out.Add(tokens(version()))
		out.Line()
	}
	for _, k := range kernels {
		out.Add(tokens(s.doc(k)))
		if k.Deferral == nil {
			out.Add(tokens(s.forwarder(k)))
			continue
		}
		window := ""
		if len(k.Deferral.Laters) > 0 {
			window = s.windowName(k)
		}
		out.Add(tokens(s.function(k, window)))
		if window != "" {
			out.Line()
			out.Add(tokens(fmt.Sprintf("const %s = %d // reads in flight before %s waits", window, k.Deferral.Window, k.Name)))
		}
		if guard := s.guard(k); guard != "" {
			out.Line()
			out.Add(tokens(guard))
		}
	}
	for _, l := range lifts {
		out.Add(tokens(fmt.Sprintf("// %s is [%s] in two parts: what it returns looks at the values.", l.Name, liftLink(l))))
		out.Add(tokens(variant(l, marked(l, pretty{}), pretty{})))
		out.Line()
	}
	var b bytes.Buffer
	if err := out.Render(&b); err != nil {
		return nil, fmt.Errorf("emit %s: %w", s.src.Path, err)
	}
	return groupImports(b.Bytes()), nil
}

// imports tells out by which names the functions that are written call other packages: by one name
// each, that of file, or else of the first file of a lift that has the package, and not by a dot if
// the file has a name, too. A name that means something else in pkg or in one of these functions
// gets a number.
func imports(out *jen.File, pkg *load.Package, file *ast.File, kernels []Kernel, lifts []*plan.Lift) {
	known, taken := make(map[string]bool), make(map[string]bool)
	for _, k := range kernels {
		takeNames(taken, pkg, k.Decl)
	}
	for _, l := range lifts {
		takeNames(taken, l.Function.Pkg, l.Function.Decl)
	}
	name := func(path, wanted string, alias bool) {
		if path == load.RuntimePath || wanted == "_" || known[path] {
			return
		}
		known[path] = true
		got := wanted
		for i := 2; got != "." && (taken[got] || pkg.Types.Scope().Lookup(got) != nil); i++ {
			got = wanted + strconv.Itoa(i)
		}
		taken[got] = true
		if alias || got != wanted {
			out.ImportAlias(path, got)
		} else {
			out.ImportName(path, got)
		}
	}
	of := func(from *load.Package, file *ast.File) {
		specs := slices.Clone(file.Imports)
		slices.SortStableFunc(specs, func(a, b *ast.ImportSpec) int { return cmp.Compare(dots(a), dots(b)) })
		for _, imp := range specs {
			path, err := strconv.Unquote(imp.Path.Value)
			if err != nil {
				continue
			}
			wanted := importName(from, imp)
			if wanted == "." && from != pkg {
				name(path, from.Imports[path].Name, false) // there, other names are free
				continue
			}
			name(path, wanted, imp.Name != nil)
		}
	}
	of(pkg, file)
	for _, l := range lifts {
		of(l.Function.Pkg, FileOf(l))
		name(l.Function.Pkg.PkgPath, l.Function.Pkg.Name, false)
	}
}

// takeNames adds the names in decl, other than those of packages, to taken.
func takeNames(taken map[string]bool, pkg *load.Package, decl ast.Node) {
	ast.Inspect(decl, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			takeNames(taken, pkg, n.X) // what is selected hides nothing
			return false
		case *ast.Ident:
			if _, isPackage := pkg.TypesInfo.ObjectOf(n).(*types.PkgName); !isPackage {
				taken[n.Name] = true
			}
		}
		return true
	})
}

// dots is 1 for an import with a dot, and 0 for others.
func dots(imp *ast.ImportSpec) int {
	if imp.Name != nil && imp.Name.Name == "." {
		return 1
	}
	return 0
}

var importBlock = regexp.MustCompile(`(?s)\nimport \(\n(.*?)\n\)\n`)

// groupImports puts the standard library first, as people do.
func groupImports(text []byte) []byte {
	at := importBlock.FindSubmatchIndex(text)
	if at == nil {
		return text
	}
	var std, other []string
	for line := range strings.SplitSeq(string(text[at[2]:at[3]]), "\n") {
		path := line[strings.IndexByte(line, '"')+1:]
		if first, _, _ := strings.Cut(path, "/"); strings.Contains(first, ".") {
			other = append(other, line)
		} else {
			std = append(std, line)
		}
	}
	if len(std) == 0 || len(other) == 0 {
		return text
	}
	block := strings.Join(std, "\n") + "\n\n" + strings.Join(other, "\n")
	return slices.Concat(text[:at[2]], []byte(block), text[at[3]:])
}

// constraint returns the build constraint of file, or "".
func constraint(file *ast.File) string {
	for _, g := range file.Comments {
		if g.Pos() > file.Package {
			break
		}
		for _, c := range g.List {
			if strings.HasPrefix(c.Text, "//go:build ") {
				return c.Text
			}
		}
	}
	return ""
}

// tokens turns text with marked names into what jennifer prints.
func tokens(text string) jen.Code {
	var parts []jen.Code
	for {
		before, rest, ok := strings.Cut(text, "\x00")
		if before != "" {
			parts = append(parts, jen.Op(before))
		}
		if !ok {
			return jen.Custom(jen.Options{}, parts...)
		}
		var path, name string
		path, rest, _ = strings.Cut(rest, "\x01")
		name, text, _ = strings.Cut(rest, "\x02")
		parts = append(parts, jen.Qual(path, name))
	}
}

// sibling makes the pieces of one file.
type sibling struct {
	pkg   *load.Package
	file  *ast.File
	src   *load.Source
	names map[string]bool // declared in this file so far
}

// doc is the comment of a new function.
func (s *sibling) doc(k Kernel) string {
	link := link(k.Decl)
	if k.Deferral == nil {
		return fmt.Sprintf("// %s is [%s]: nothing in it can run later.", k.Name, link)
	}
	if len(k.Deferral.Laters) == 0 && len(k.Deferral.Keeps) == 0 {
		return fmt.Sprintf("// %s is [%s] with operations on the same elements computed in one\n// pass over them: the same results.", k.Name, link)
	}
	if len(k.Deferral.Laters) == 0 {
		return fmt.Sprintf("// %s is [%s] with what is computed of one row after the other computed\n// for all at once: the same results.", k.Name, link)
	}
	rest := "without a wait in a loop"
	if k.Deferral.WaitsLeft() {
		rest = "with fewer waits"
	}
	return fmt.Sprintf("// %s is [%s] with what looks at values run later: the same\n// results and output, in the same order, %s.", k.Name, link, rest)
}

// link is how comments refer to a function.
func link(decl *ast.FuncDecl) string {
	if recv := load.Receiver(decl); recv != "" {
		return recv + "." + decl.Name.Name
	}
	return decl.Name.Name
}

// liftLink is how comments refer to the function of l.
func liftLink(l *plan.Lift) string {
	if l.Function.IsForeign() {
		return l.Function.Pkg.Name + "." + link(l.Function.Decl)
	}
	return link(l.Function.Decl)
}

// windowName is the name of the constant for the window of k.
func (s *sibling) windowName(k Kernel) string {
	name := load.Unexport(load.Receiver(k.Decl) + k.Decl.Name.Name)
	if load.Receiver(k.Decl) != "" {
		name = load.Unexport(load.Receiver(k.Decl)) + strings.ToUpper(k.Decl.Name.Name[:1]) + k.Decl.Name.Name[1:]
	}
	for i := 1; ; i++ {
		got := name + "Window"
		if i > 1 {
			got += strconv.Itoa(i)
		}
		if !s.names[got] && s.pkg.Types.Scope().Lookup(got) == nil && !mentions(k.Decl, got) {
			s.names[got] = true
			return got
		}
	}
}

func mentions(n ast.Node, name string) (found bool) {
	ast.Inspect(n, func(m ast.Node) bool {
		if id, ok := m.(*ast.Ident); ok && id.Name == name {
			found = true
		}
		return !found
	})
	return found
}

// editor returns an editor for decl with the names of other packages marked.
func (s *sibling) editor(decl *ast.FuncDecl) *editor {
	e := &editor{file: s.pkg.Fset.File(s.file.FileStart), src: s.src.Text}
	e.qualify(s.pkg, s.pkg, decl, pretty{})
	return e
}

// qualify replaces the names of other packages than home in decl, of pkg, by those that st gives them.
func (e *editor) qualify(pkg, home *load.Package, decl *ast.FuncDecl, st style) {
	ast.Inspect(decl, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if id, ok := n.X.(*ast.Ident); ok {
				if name, ok := pkg.TypesInfo.Uses[id].(*types.PkgName); ok {
					e.replace(n.Pos(), n.End(), st.qualified(name.Imported().Path(), n.Sel.Name))
					return false
				}
			}
		case *ast.Ident:
			if obj := pkg.TypesInfo.Uses[n]; obj != nil && obj.Pkg() != nil && obj.Pkg() != home.Types && obj.Parent() == obj.Pkg().Scope() {
				e.replace(n.Pos(), n.End(), st.qualified(obj.Pkg().Path(), n.Name)) // of pkg, or imported with a dot
			}
		}
		return true
	})
}

// function is the rewritten function without its comment.
func (s *sibling) function(k Kernel, window string) string {
	decl := k.Deferral.Function.Decl
	p := s.printer(k.Deferral, pretty{window})
	p.function()
	for loop, code := range k.Deferral.Refusals {
		p.insert(loop.Pos(), fmt.Sprintf("// This loop waits in every iteration: asyncgen explain %s.\n", code))
	}
	return p.render(decl.Type.Func, decl.Name.Pos()) + k.Name + trim(p.render(decl.Name.End(), decl.End()))
}

// printer returns the printer for d, in the text that its function has been restated in, or else of s.
func (s *sibling) printer(d *plan.Deferral, st style) *printer {
	if r := d.Function.Restated; r != nil {
		return restated(r, d, st)
	}
	return &printer{editor: s.editor(d.Function.Decl), style: st, fset: s.pkg.Fset, comments: s.file.Comments, d: d}
}

// restated returns a printer of d in the text of r, its function.
func restated(r *load.Restatement, d *plan.Deferral, st style) *printer {
	e := &editor{file: r.Pkg.Fset.File(r.File.FileStart), src: r.Pkg.Source(r.File).Text}
	e.qualify(r.Pkg, r.Pkg, r.Decl, st)
	return &printer{editor: e, style: st, fset: r.Pkg.Fset, comments: r.File.Comments, d: d}
}

// forwarder is a function that calls the original.
func (s *sibling) forwarder(k Kernel) string {
	e := s.editor(k.Decl)
	n := 0
	name := func() string { n++; return fmt.Sprintf("p%d", n) }
	var args []string
	for _, field := range k.Decl.Type.Params.List {
		variadic := ""
		if _, ok := field.Type.(*ast.Ellipsis); ok {
			variadic = "..."
		}
		if len(field.Names) == 0 {
			arg := name()
			e.insert(field.Type.Pos(), arg+" ")
			args = append(args, arg+variadic)
		}
		for _, id := range field.Names {
			arg := id.Name
			if arg == "_" || arg == k.Decl.Name.Name || s.isPackage(arg) {
				arg = name()
				e.replace(id.Pos(), id.End(), arg)
			}
			args = append(args, arg+variadic)
		}
	}
	callee := k.Decl.Name.Name
	if k.Decl.Recv != nil {
		recv := "r"
		field := k.Decl.Recv.List[0]
		switch {
		case len(field.Names) == 0:
			e.insert(field.Type.Pos(), recv+" ")
		case field.Names[0].Name == "_":
			e.replace(field.Names[0].Pos(), field.Names[0].End(), recv)
		default:
			recv = field.Names[0].Name
		}
		callee = recv + "." + callee
	} else if tps := k.Decl.Type.TypeParams; tps != nil {
		var names []string
		for _, field := range tps.List {
			for _, id := range field.Names {
				names = append(names, id.Name)
			}
		}
		callee += "[" + strings.Join(names, ", ") + "]"
	}
	ret := ""
	if k.Decl.Type.Results != nil {
		ret = "return "
	}
	return e.render(k.Decl.Type.Func, k.Decl.Name.Pos()) + k.Name + e.render(k.Decl.Name.End(), k.Decl.Type.End()) +
		fmt.Sprintf(" {\n%s%s(%s)\n}", ret, callee, strings.Join(args, ", "))
}

func (s *sibling) isPackage(name string) bool {
	for _, imp := range s.file.Imports {
		if importName(s.pkg, imp) == name {
			return true
		}
	}
	return false
}

// version makes the compiler say so when the file and the runtime are not of
// the same time. It stands first, so that its message does, too.
func version() string {
	name := func(n string) string { return pretty{}.qualified(load.RuntimePath, n) }
	check := name("RunGoGenerate")
	return fmt.Sprintf("// If this line does not compile, the file is older or newer than the runtime: run go generate.\nconst _ = %s(%d-%s) + %s(%s-%d)",
		check, load.Output, name("OldestOutput"), check, name("NewestOutput"), load.Output)
}

// guard makes the compiler say so when the signature of the original has
// changed since.
func (s *sibling) guard(k Kernel) string {
	if k.Decl.Type.TypeParams != nil {
		return ""
	}
	e := s.editor(k.Decl)
	params := k.Decl.Type.Params
	inner := e.render(params.Opening+1, params.Closing)
	result := ""
	if k.Decl.Type.Results != nil {
		result = e.render(params.Closing+1, k.Decl.Type.End())
	}
	ref := k.Decl.Name.Name
	if k.Decl.Recv != nil {
		recv := k.Decl.Recv.List[0].Type
		if _, ok := ast.Unparen(deref(recv)).(*ast.Ident); !ok {
			return "" // of a generic type
		}
		t := e.render(recv.Pos(), recv.End())
		ref = "(" + t + ")." + ref
		if len(params.List) > 0 && len(params.List[0].Names) > 0 {
			t = "_ " + t
		}
		if strings.TrimSpace(inner) != "" {
			t += ", "
		}
		inner = t + inner
	}
	return fmt.Sprintf("// If this line does not compile, %s has changed: run go generate.\nvar _ func(%s)%s = %s", k.Decl.Name.Name, inner, result, ref)
}

func deref(t ast.Expr) ast.Expr {
	if star, ok := t.(*ast.StarExpr); ok {
		return star.X
	}
	return t
}

var blankBeforeBrace = regexp.MustCompile(`\n[ \t]*(\n[ \t]*)+\}$`)

// trim removes empty lines at the end of a body.
func trim(s string) string { return blankBeforeBrace.ReplaceAllString(s, "\n}") }
