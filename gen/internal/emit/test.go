package emit

import (
	"bytes"
	"fmt"
	"go/ast"

	"github.com/asyncgen/asyncgen/gen/internal/load"
	"github.com/dave/jennifer/jen"
)

const asynctestPath = load.RuntimePath + "/asynctest"

// Test returns the test of the functions that were generated from file, or nil
// if the package has no functions that make arguments for them.
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
		if k.Deferral == nil || !pkg.Args[args] || k.Decl.Type.TypeParams != nil {
			continue
		}
		wanted = true
		recv := load.Receiver(k.Decl)
		original, generated, function := jen.Id(k.Decl.Name.Name), jen.Id(k.Name), k.Decl.Name.Name
		if recv != "" {
			t := jen.Id(recv)
			if _, ok := k.Decl.Recv.List[0].Type.(*ast.StarExpr); ok {
				t = jen.Parens(jen.Op("*").Id(recv))
			}
			original, generated, function = t.Clone().Dot(k.Decl.Name.Name), t.Clone().Dot(k.Name), recv+"."+function
		}
		out.Commentf("Test%s compares the generated function with the one that it was made from.", upper(recv)+upper(k.Name))
		out.Func().Id("Test"+upper(recv)+upper(k.Name)).Params(jen.Id("t").Op("*").Qual("testing", "T")).Block(
			jen.Qual(asynctestPath, "Fresh").Call(jen.Id("t"), jen.Lit(name), jen.Lit(function), jen.Lit(load.Sum(declText(pkg, file, k.Decl)))),
			jen.Qual(asynctestPath, "Same").Call(jen.Id("t"), original, generated, jen.Id(args)),
		)
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
