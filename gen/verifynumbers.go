package gen

import (
	"go/ast"
	"go/token"
	"strings"

	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"golang.org/x/tools/go/ast/astutil"
)

// Round trips are undone by bringing both functions into one form, in which an
// operator, a function of package math and the method of a number are calls of the same
// name, and a value is the same whether it has been read or not: rs.Div(x.ItemF64()) and
// rs / x.Item() are both Div(rs, x). That the types fit, the compiler says.

// mentionsNumbers reports whether fn computes with numbers that may not be there yet.
func mentionsNumbers(fn *ast.FuncDecl) (found bool) {
	ast.Inspect(fn, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok && strings.HasSuffix(s.Sel.Name, "F64") {
			found = true
		}
		return !found
	})
	return found
}

// runtimeQualifier is how package asyncrt is called by [parse].
const runtimeQualifier = `"github.com/asyncgen/asyncgen/runtime"`

// hostForms are the names of operations with a float64, by those of their forms with a number.
var hostForms = func() map[string]string {
	m := make(map[string]string)
	for _, f := range tensorapi.Ours().Funcs {
		if f.F64 != "" && f.Kind == tensorapi.Op {
			m[f.F64] = f.Name[strings.LastIndexByte(f.Name, '.')+1:]
		}
	}
	return m
}()

// inNumbers brings fn into the form that is the same for host arithmetic and for numbers.
func inNumbers(fn *ast.FuncDecl) *ast.FuncDecl {
	return astutil.Apply(fn, nil, func(c *astutil.Cursor) bool {
		switch n := c.Node().(type) {
		case *ast.ParenExpr:
			c.Replace(n.X)
		case *ast.ForStmt:
			conditionFirst(n) // the tests are in another order now
		case *ast.BinaryExpr:
			if method, ok := tensorapi.NumberOperator(n.Op.String()); ok {
				c.Replace(called(method, n.X, n.Y))
			}
		case *ast.UnaryExpr:
			switch n.Op {
			case token.SUB:
				c.Replace(called("Neg", n.X))
			case token.ADD:
				c.Replace(n.X)
			}
		case *ast.AssignStmt:
			if n.Tok == token.ASSIGN || n.Tok == token.DEFINE {
				break
			}
			if method, ok := tensorapi.NumberOperator((n.Tok - (token.ADD_ASSIGN - token.ADD)).String()); ok {
				c.Replace(&ast.AssignStmt{Lhs: n.Lhs, Tok: token.ASSIGN, Rhs: []ast.Expr{called(method, n.Lhs[0], n.Rhs[0])}})
			}
		case *ast.SelectorExpr:
			if isName(n.X, runtimeQualifier) && n.Sel.Name == "F64" {
				c.Replace(ast.NewIdent("float64"))
			}
		case *ast.CallExpr:
			if e := inNumbersCall(n); e != nil {
				c.Replace(e)
			}
		}
		return true
	}).(*ast.FuncDecl)
}

func called(name string, args ...ast.Expr) *ast.CallExpr {
	return &ast.CallExpr{Fun: ast.NewIdent(name), Args: args}
}

// inNumbersCall returns what takes the place of a call, or nil.
func inNumbersCall(n *ast.CallExpr) ast.Expr {
	switch fun := n.Fun.(type) {
	case *ast.Ident:
		if fun.Name == "float64" && len(n.Args) == 1 {
			return n.Args[0]
		}
		if fun.Name == "float32" {
			return called("Float32", n.Args...)
		}
		if method, ok := tensorapi.NumberFunc(fun.Name); ok {
			return called(method, n.Args...)
		}
	case *ast.SelectorExpr:
		name := fun.Sel.Name
		switch {
		case isName(fun.X, runtimeQualifier) && name == "Const":
			return n.Args[0]
		case isName(fun.X, `"math"`):
			if method, ok := tensorapi.NumberFunc("math." + name); ok {
				return called(method, n.Args...)
			}
		case (isItemForm(name) || name == "Item") && len(n.Args) == 0:
			return fun.X
		case hostForms[name] != "":
			fun.Sel = ast.NewIdent(hostForms[name])
		case isNumberMethod(name) && !isPackage(fun.X):
			return called(name, append([]ast.Expr{fun.X}, n.Args...)...)
		}
	}
	return nil
}

// isPackage reports whether e is the name of a package, as [parse] has it.
func isPackage(e ast.Expr) bool {
	id, ok := e.(*ast.Ident)
	return ok && strings.HasPrefix(id.Name, `"`)
}

// isItemForm reports whether a method of this name makes a number of a tensor.
func isItemForm(name string) bool { return name == "F64" || name == "ItemF64" }

func isNumberMethod(name string) bool {
	_, ok := tensorapi.Ours().Funcs["("+tensorapi.Number+")."+name]
	return ok
}
