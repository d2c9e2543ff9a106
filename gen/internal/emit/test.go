package emit

import (
	"bytes"
	"fmt"
	"go/ast"
	"path/filepath"
	"strings"

	"github.com/asyncgen/asyncgen/gen/internal/load"
	"github.com/asyncgen/asyncgen/gen/internal/plan"
	"github.com/dave/jennifer/jen"
)

const asynctestPath = load.RuntimePath + "/asynctest"

// Test returns the test of the functions that were generated from file: of those for which the package
// has a function that makes arguments, and, of generic ones, those whose directives say for which types. It is
// nil if there are none.
func Test(pkg *load.Package, file *ast.File, name string, kernels []Kernel) ([]byte, error) {
	out := jen.NewFilePathName(pkg.PkgPath, pkg.Name)
	out.HeaderComment(load.Header)
	if c := constraint(file); c != "" {
		out.HeaderComment(c)
	}
	out.ImportName(asynctestPath, "asynctest")
	wanted := false
	for _, k := range kernels {
		args := load.ArgsName(k.Decl)
		instance := testedTypes(pkg, k)
		if k.Deferral == nil || instance == "" && (!pkg.Args[args] || isGeneric(k.Decl)) {
			continue
		}
		wanted = true
		recv := load.Receiver(k.Decl)
		original, generated, function := jen.Id(k.Decl.Name.Name+instance), jen.Id(k.Name+instance), k.Decl.Name.Name
		if recv != "" {
			t := jen.Id(recv + instance)
			if _, ok := k.Decl.Recv.List[0].Type.(*ast.StarExpr); ok {
				t = jen.Parens(jen.Op("*").Id(recv + instance))
			}
			original, generated, function = t.Clone().Dot(k.Decl.Name.Name), t.Clone().Dot(k.Name), recv+"."+function
		}
		made := jen.Nil() // by their types
		if pkg.Args[args] {
			made = jen.Id(args)
		}
		out.Commentf("Test%s compares the generated function with the one that it was made from.", upper(recv)+upper(k.Name))
		fresh := func(name, function string, text []byte) jen.Code {
			return jen.Qual(asynctestPath, "Fresh").Call(jen.Id("t"), jen.Lit(name), jen.Lit(function), jen.Lit(load.Sum(text)))
		}
		body := []jen.Code{fresh(name, function, declText(pkg, file, k.Decl))}
		for _, l := range Lifts([]*plan.Deferral{k.Deferral}) {
			source := l.Function.Pkg.Source(FileOf(l)).Path
			if rel, err := filepath.Rel(pkg.Dir, source); err == nil { // else on another volume
				body = append(body, fresh(filepath.ToSlash(rel), link(l.Function.Decl), declText(l.Function.Pkg, FileOf(l), l.Function.Decl)))
			}
		}
		body = append(body, jen.Qual(asynctestPath, "Same").Call(jen.Id("t"), original, generated, made))
		out.Func().Id("Test" + upper(recv) + upper(k.Name)).Params(jen.Id("t").Op("*").Qual("testing", "T")).Block(body...)
	}
	if !wanted {
		return nil, nil
	}
	var b bytes.Buffer
	if err := out.Render(&b); err != nil {
		return nil, fmt.Errorf("emit test of %s: %w", name, err)
	}
	return groupImports(b.Bytes()), nil
}

// isGeneric reports whether fn has type parameters, or is a method of a type that has.
func isGeneric(fn *ast.FuncDecl) bool {
	if fn.Type.TypeParams != nil || fn.Recv == nil {
		return fn.Type.TypeParams != nil
	}
	switch ast.Unparen(deref(fn.Recv.List[0].Type)).(type) {
	case *ast.IndexExpr, *ast.IndexListExpr:
		return true
	}
	return false
}

// testedTypes are the type arguments with which k is tested, in brackets, or "".
func testedTypes(pkg *load.Package, k Kernel) string {
	kernel := pkg.Kernels[k.Decl]
	if kernel == nil || !isGeneric(k.Decl) {
		return ""
	}
	if i := strings.IndexByte(kernel.Test, '['); i >= 0 {
		return kernel.Test[i:]
	}
	return ""
}

// declText is a declaration with its comment, as written.
func declText(pkg *load.Package, file *ast.File, decl *ast.FuncDecl) []byte {
	from := decl.Pos()
	if decl.Doc != nil {
		from = decl.Doc.Pos()
	}
	f := pkg.Fset.File(file.FileStart)
	return pkg.Source(file).Text[f.Offset(from):f.Offset(decl.End())]
}

func upper(name string) string {
	if name == "" {
		return ""
	}
	return string(bytes.ToUpper([]byte(name[:1]))) + name[1:]
}
