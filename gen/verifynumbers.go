package gen

import (
	"go/ast"
	"go/token"
	"slices"
	"strconv"
	"strings"

	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"golang.org/x/tools/go/ast/astutil"
)

// Round trips are undone by bringing both functions into one form, in which an
// operator, a function of package math and the method of a number are calls of the same
// name, and a value is the same whether it has been read or not: rs.Div(x.ItemF64()) and
// rs / x.Item() are both Div(rs, x). That the types fit, the compiler says. What an index
// selects is checked: x.RowI64(i) is x.Row(i) if the latter stands there as well, as a statement.

// mentionsNumbers reports whether fn computes with numbers that may not be there yet.
func mentionsNumbers(fn *ast.FuncDecl) (found bool) {
	ast.Inspect(fn, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok && (strings.HasSuffix(s.Sel.Name, "F64") || strings.HasSuffix(s.Sel.Name, "I64")) {
			found = true
		}
		return !found
	})
	return found
}

// runtimeQualifier is how package asyncrt is called by [parse].
const runtimeQualifier = `"github.com/asyncgen/asyncgen/runtime"`

// hostForms are the names of operations with a float64, or an index, by those of their forms with a number.
var hostForms = func() map[string]string {
	m := make(map[string]string)
	for _, f := range tensorapi.Ours().Funcs {
		if f.F64 != "" && f.Kind == tensorapi.Op {
			m[f.F64] = f.Name[strings.LastIndexByte(f.Name, '.')+1:]
		}
		if f.Index != "" && f.Kind == tensorapi.View {
			m[f.Index] = f.Name[strings.LastIndexByte(f.Name, '.')+1:]
		}
	}
	return m
}()

// of brings fn into the form.
func (f *numberForm) of(fn *ast.FuncDecl) *ast.FuncDecl {
	return astutil.Apply(fn, nil, func(c *astutil.Cursor) bool {
		switch n := c.Node().(type) {
		case *ast.ParenExpr:
			c.Replace(n.X)
		case *ast.ForStmt:
			conditionFirst(n) // the tests are in another order now
		case *ast.ExprStmt:
			if c.Index() >= 0 && isSelection(n) {
				f.checked[sourceOf(n.X)] = true
				c.Delete()
			}
		case *ast.IfStmt: // in an else or behind it
			if e, ok := n.Else.(*ast.BlockStmt); ok {
				if next, ok := only(e).(*ast.IfStmt); ok && next.Init == nil {
					n.Else = next
				}
			}
		case *ast.SwitchStmt:
			if s := cases(n); s != nil && c.Index() >= 0 {
				c.Replace(s)
			}
		case *ast.BinaryExpr:
			if method, ok := tensorapi.NumberOperator(n.Op.String()); ok {
				c.Replace(called(method, n.X, n.Y))
			} else if method, ok := tensorapi.ConditionOperator(n.Op.String()); ok {
				c.Replace(called(method, n.X, n.Y))
			}
		case *ast.UnaryExpr:
			switch n.Op {
			case token.SUB:
				c.Replace(called("Neg", n.X))
			case token.ADD:
				c.Replace(n.X)
			case token.NOT:
				c.Replace(called("Not", n.X))
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
			if isName(n.X, runtimeQualifier) && n.Sel.Name == "I64" {
				c.Replace(ast.NewIdent("int64"))
			}
		case *ast.CallExpr:
			if e := f.call(n); e != nil {
				c.Replace(e)
			}
		}
		return true
	}).(*ast.FuncDecl)
}

func called(name string, args ...ast.Expr) *ast.CallExpr {
	return &ast.CallExpr{Fun: ast.NewIdent(name), Args: args}
}

// call returns what takes the place of a call, or nil.
func (f *numberForm) call(n *ast.CallExpr) ast.Expr {
	switch fun := n.Fun.(type) {
	case *ast.Ident:
		switch {
		case len(n.Args) == 1 && (fun.Name == "float64" || fun.Name == "int64" || fun.Name == "int"):
			return n.Args[0]
		case fun.Name == "From" && isOneIndex(n):
			return called(fun.Name, append(slices.Clone(n.Args[0].(*ast.CompositeLit).Elts), n.Args[1:]...)...)
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
		case isName(fun.X, runtimeQualifier) && (name == "Const" || name == "ConstInt"):
			return n.Args[0]
		case name == "From" && isName(fun.X, tensorQualifier) && isOneIndex(n):
			return called(name, append(slices.Clone(n.Args[0].(*ast.CompositeLit).Elts), n.Args[1:]...)...)
		case name == "Tensor" && !isPackage(fun.X):
			return called("From", append([]ast.Expr{fun.X}, n.Args...)...)
		case isName(fun.X, `"math"`):
			if method, ok := tensorapi.NumberFunc("math." + name); ok {
				return called(method, n.Args...)
			}
			if name == "IsNaN" || name == "IsInf" {
				return asked(name, n.Args)
			}
		case len(n.Args) == 0 && (isItemForm(name) || name == "Item" || name == "ItemInt"):
			return fun.X
		case hostForms[name] != "":
			if name == "SliceI64" {
				n.Args[2] = plus(n.Args[1], n.Args[2])
			}
			fun.Sel = ast.NewIdent(hostForms[name])
			if strings.HasSuffix(name, "I64") {
				f.selected = append(f.selected, sourceOf(n))
			}
		case isNumberMethod(name) && !isPackage(fun.X):
			return called(name, append([]ast.Expr{fun.X}, n.Args...)...)
		}
	}
	return nil
}

// asked is what numbers have for a call of math.IsNaN or math.IsInf.
func asked(name string, args []ast.Expr) ast.Expr {
	if name == "IsNaN" {
		return called("Ne", args[0], args[0])
	}
	x := args[0]
	var sign ast.Expr = &ast.BasicLit{Kind: token.INT, Value: "1"}
	switch text := sourceOf(args[1]); {
	case text == "0":
		x = called("Abs", x)
	case strings.HasPrefix(text, "Neg("):
		sign = called("Neg", sign)
	}
	inf := &ast.SelectorExpr{X: ast.NewIdent(`"math"`), Sel: ast.NewIdent("Inf")}
	return called("Eq", x, &ast.CallExpr{Fun: inf, Args: []ast.Expr{sign}})
}

// isPackage reports whether e is the name of a package, as [parse] has it.
func isPackage(e ast.Expr) bool {
	id, ok := e.(*ast.Ident)
	return ok && strings.HasPrefix(id.Name, `"`)
}

// isItemForm reports whether a method of this name makes a number of a tensor.
func isItemForm(name string) bool { return name == "F64" || name == "ItemF64" || name == "I64" }

func isNumberMethod(name string) bool {
	funcs := tensorapi.Ours().Funcs
	_, ok := funcs["("+tensorapi.Number+")."+name]
	_, integer := funcs["("+tensorapi.Integer+")."+name]
	_, condition := funcs["("+tensorapi.Condition+")."+name]
	return ok || integer || condition
}

// tensorQualifier is how package tensor is called by [declarations].
const tensorQualifier = `"github.com/asyncgen/asyncgen/runtime/tensor"`

// isOneIndex reports whether a call of From is given one integer.
func isOneIndex(call *ast.CallExpr) bool {
	if len(call.Args) == 0 {
		return false
	}
	lit, ok := call.Args[0].(*ast.CompositeLit)
	return ok && len(lit.Elts) == 1 && sourceOf(lit.Type) == "[]int64"
}

// plus is from + n, where from may be a sum with a constant, too.
func plus(from, n ast.Expr) ast.Expr {
	if sum, ok := from.(*ast.CallExpr); ok && isName(sum.Fun, "Add") && len(sum.Args) == 2 {
		x, errX := strconv.Atoi(sourceOf(sum.Args[1]))
		y, errY := strconv.Atoi(sourceOf(n))
		if errX == nil && errY == nil {
			return called("Add", sum.Args[0], ast.NewIdent(strconv.Itoa(x+y)))
		}
	}
	return called("Add", from, n)
}

// isSelection reports whether s only selects a part of a tensor, and drops it.
func isSelection(s *ast.ExprStmt) bool {
	call, ok := s.X.(*ast.CallExpr)
	if !ok {
		return false
	}
	sel, ok := call.Fun.(*ast.SelectorExpr)
	return ok && (sel.Sel.Name == "Row" || sel.Sel.Name == "Slice")
}

// A numberForm is the form that is the same for host arithmetic and for numbers.
type numberForm struct {
	selected []string        // what is selected by an index that may not have been computed yet
	checked  map[string]bool // what is selected for nothing but to panic if it is not there
}

func newNumberForm() *numberForm { return &numberForm{checked: make(map[string]bool)} }

// unchecked returns what is selected though nothing panics if it is not there, or "".
func (f *numberForm) unchecked() string {
	for _, text := range f.selected {
		if !f.checked[text] {
			return "nothing panics if there is no " + text
		}
	}
	return ""
}
