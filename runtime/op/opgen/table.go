package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/asyncgen/asyncgen/device/kernel"
	"github.com/asyncgen/asyncgen/runtime/op"
)

// The packages whose functions users call, and the import path of the module.
var userPackages = []string{
	"runtime", "runtime/curves", "runtime/data", "runtime/files", "runtime/nn", "runtime/optim",
	"runtime/progress", "runtime/scalars", "runtime/tensor",
}

const module = "github.com/asyncgen/asyncgen"

// directive begins the line of a doc comment that says what the function does.
const directive = "//asyncgen:api "

// kinds has, for each KIND of a directive, the constant of package analysis/tensorapi. toReceiver says
// what the operand of a method is if the directive doesn't name one: the receiver, or none.
var kinds = map[string]struct {
	constant   string
	toReceiver bool
}{
	"pure":    {"Pure", false},
	"meta":    {"Meta", true},
	"poll":    {"Poll", true},
	"control": {"Control", false},
	"output":  {"Output", false},
	"host":    {"Host", false},
	"view":    {"View", true},
	"op":      {"Op", false},
	"draw":    {"Draw", true},
	"value":   {"Value", true},
	"mutate":  {"Mutate", true},
	"read":    {"Read", true},
	"save":    {"Save", true},
	"print":   {"Print", true},
	"wait":    {"Wait", true},
	"waitall": {"WaitAll", false},
	"call":    {"Call", false},
}

var calls = map[string]string{"once": "Once", "loop": "Loop", "later": "Later"}

// table returns the text of zapi.go. ops is zops.go, which may not be on disk yet.
func table(root string, ops file) (string, error) {
	var rows []string
	var missing []string
	for _, pkg := range userPackages {
		files, err := sources(root, pkg, ops)
		if err != nil {
			return "", err
		}
		fset := token.NewFileSet()
		for _, f := range files {
			parsed, err := parser.ParseFile(fset, f.path, f.text, parser.ParseComments)
			if err != nil {
				return "", err
			}
			for _, fn := range exported(parsed, pkg) {
				row, err := fn.row()
				if err != nil {
					missing = append(missing, fmt.Sprintf("%s: %v", fset.Position(fn.pos), err))
					continue
				}
				rows = append(rows, row)
			}
		}
	}
	if len(missing) > 0 {
		return "", fmt.Errorf("functions without a kind:\n%s", strings.Join(missing, "\n"))
	}
	slices.Sort(rows)
	var functions strings.Builder
	for _, f := range kernel.MathFuncs() {
		fmt.Fprintf(&functions, "\t\"math.%v\": %q,\n", f, f)
	}
	var each strings.Builder
	for _, d := range op.List() {
		if d.Expr == nil || d.Unlisted {
			continue
		}
		prefix := "(*" + module + "/runtime/tensor.Tensor)."
		if d.Cond {
			prefix = module + "/runtime/tensor."
		}
		fmt.Fprintf(&each, "\t%q: true,\n", prefix+d.Name)
		if later := f64Name(d); later != "" {
			fmt.Fprintf(&each, "\t%q: true,\n", prefix+later)
		}
	}
	fmt.Fprintf(&each, "\t%q: true,\n", "(*"+module+"/runtime/tensor.Tensor).As")
	return "package tensorapi\n\n// api is the interface of our runtime, sorted by name.\nvar api = []Func{\n" +
		strings.Join(rows, "") + "}\n\n// mathFuncs are functions that a Number has a method for, which the host computes.\nvar mathFuncs = map[string]string{\n" +
		functions.String() + "}\n\n// elementwise are the functions that Func.IsElementwise speaks of.\nvar elementwise = map[string]bool{\n" + each.String() + "}\n", nil
}

// sources returns the files of a package without its tests, with ops instead of what is on disk.
func sources(root, pkg string, ops file) ([]file, error) {
	names, err := filepath.Glob(filepath.Join(root, pkg, "*.go"))
	if err != nil {
		return nil, err
	}
	var files []file
	for _, name := range names {
		path := pkg + "/" + filepath.Base(name)
		if strings.HasSuffix(path, "_test.go") || path == ops.path {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		files = append(files, file{path, text})
	}
	if filepath.Dir(ops.path) == pkg {
		files = append(files, ops)
	}
	return files, nil
}

// A function is an exported function or method that users can call.
type function struct {
	name   string // as types.Func.FullName has it
	method bool
	doc    *ast.CommentGroup
	pos    token.Pos
}

// exported lists the exported functions of f, and the methods of its exported types.
func exported(f *ast.File, pkg string) []function {
	path := module + "/" + pkg
	var fns []function
	for _, decl := range f.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if !d.Name.IsExported() {
				continue
			}
			fn := function{name: path + "." + d.Name.Name, doc: d.Doc, pos: d.Pos()}
			if d.Recv != nil {
				recv, ok := receiver(d.Recv.List[0].Type, path)
				if !ok {
					continue
				}
				fn.name, fn.method = "("+recv+")."+d.Name.Name, true
			}
			fns = append(fns, fn)
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				ts, ok := spec.(*ast.TypeSpec)
				if !ok || !ts.Name.IsExported() {
					continue
				}
				iface, ok := ts.Type.(*ast.InterfaceType)
				if !ok {
					continue
				}
				params := typeParams(ts)
				for _, m := range iface.Methods.List {
					for _, name := range m.Names {
						fns = append(fns, function{fmt.Sprintf("(%s.%s%s).%s", path, ts.Name.Name, params, name.Name), true, m.Doc, m.Pos()})
					}
				}
			}
		}
	}
	return fns
}

// typeParams lists the type parameters of a type as FullName has them.
func typeParams(ts *ast.TypeSpec) string {
	if ts.TypeParams == nil {
		return ""
	}
	var list []string
	for _, field := range ts.TypeParams.List {
		for _, name := range field.Names {
			list = append(list, name.Name)
		}
	}
	return "[" + strings.Join(list, ", ") + "]"
}

// receiver returns the type of a receiver as FullName has it. It returns false if the type is not exported.
func receiver(e ast.Expr, path string) (string, bool) {
	star := ""
	if p, ok := e.(*ast.StarExpr); ok {
		star, e = "*", p.X
	}
	params := ""
	switch g := e.(type) {
	case *ast.IndexExpr:
		params, e = "["+g.Index.(*ast.Ident).Name+"]", g.X
	case *ast.IndexListExpr:
		var list []string
		for _, p := range g.Indices {
			list = append(list, p.(*ast.Ident).Name)
		}
		params, e = "["+strings.Join(list, ", ")+"]", g.X
	}
	name := e.(*ast.Ident)
	return star + path + "." + name.Name + params, name.IsExported()
}

// row returns the function's line of the table, from its directive.
func (fn function) row() (string, error) {
	words, err := fn.directive()
	if err != nil {
		return "", err
	}
	kind, ok := kinds[words[0]]
	if !ok {
		return "", fmt.Errorf("%s: no kind %q", fn.name, words[0])
	}
	operand, when, batch, later := "None", "Never", "Alone", ""
	index := ""
	if kind.toReceiver && fn.method {
		operand = "Recv"
	}
	for _, word := range words[1:] {
		_, notNumber := strconv.Atoi(word)
		switch {
		case word == "batch":
			batch = "Batched"
		case word == "fails" && batch != "Alone":
			batch = "BatchedFails"
		case strings.HasPrefix(word, "f64="):
			later = word[len("f64="):]
		case strings.HasPrefix(word, "index="):
			index = word[len("index="):]
		case word == "recv":
			operand = "Recv"
		case word == "none":
			operand = "None"
		case calls[word] != "":
			when = calls[word]
		case notNumber == nil:
			operand = word
		default:
			return "", fmt.Errorf("%s: %q is no operand and no time", fn.name, word)
		}
	}
	if (words[0] == "call") != (when != "Never") {
		return "", fmt.Errorf("%s: a function that calls another says when, and no other does", fn.name)
	}
	return fmt.Sprintf("\t{%q, %s, %s, %s, %s, %q, %q},\n", fn.name, kind.constant, operand, when, batch, later, index), nil
}

// directive returns the words of the function's directive.
func (fn function) directive() ([]string, error) {
	if fn.doc != nil {
		for _, c := range fn.doc.List {
			if words, ok := strings.CutPrefix(c.Text, directive); ok && len(strings.Fields(words)) > 0 {
				return strings.Fields(words), nil
			}
		}
	}
	return nil, fmt.Errorf("%s has no %sKIND in its doc comment", fn.name, directive)
}
