package sites

import (
	"go/ast"
	"go/types"
	"slices"
	"strings"

	"github.com/asyncgen/asyncgen/analysis/blocking"
	"github.com/asyncgen/asyncgen/analysis/internal/syntax"
	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"golang.org/x/tools/go/ast/inspector"
)

// Values that somebody reads at once, as text.

// isTable reports whether l goes over sizes and makes its tensors by them, or over a map of networks, and prints one
// line for each: a table of few lines, in which the size or the name stands beside the values.
//
//	for _, n := range sizes {
//		fmt.Println(n, condition(tensor.Randn(n, n)).Item())
//	}
func isTable(pkg *blocking.Package, places []Place, l *blocking.Loop) bool {
	s, ok := l.Stmt.(*ast.RangeStmt)
	if !ok || s.Value == nil || len(places) == 0 || pkg.Any(l, (*blocking.Call).Mutates) {
		return false
	}
	label := pkg.Variable(s.Value)
	if elem := syntax.ElementType(typeOf(pkg, s.X)); syntax.IsMap(typeOf(pkg, s.X)) && elem != nil && syntax.HasMethod(pkg.Pass.Pkg, elem, []string{"Forward"}) {
		label = pkg.Variable(s.Key)
	} else if !isWhole(typeOf(pkg, s.X)) || label == nil || !pkg.Any(l, func(d *blocking.Call) bool {
		makes := d.API.Kind == tensorapi.Host || d.API.Kind == tensorapi.Draw || d.API.Kind == tensorapi.Unknown && d.Target != nil && d.Enqueues()
		return makes && !d.TakesTensor() && slices.ContainsFunc(d.Expr.Args, func(e ast.Expr) bool { return pkg.Mentions(e, label) })
	}) {
		return false
	}
	for v, defs := range pkg.Defs {
		if pkg.HoldsTensors(v.Type()) && !l.Declares(v) && slices.ContainsFunc(defs, func(d blocking.Def) bool { return pkg.Contains(l, d.In, d.Pos) }) {
			return false // one goes on from the other
		}
	}
	return label != nil && !slices.ContainsFunc(places, func(p Place) bool {
		call := syntax.AsCall(nodeOf(p.Cur.Parent()))
		return p.Use != Printed || call == nil || !slices.ContainsFunc(call.Args, func(e ast.Expr) bool { return e != p.Cur.Node() && pkg.Mentions(e, label) })
	})
}

// isSpoken reports whether the value at p becomes a word that a reader at a terminal sees at once, and l computes its
// next tensor from e, of which it is the value: a text that is written word by word.
//
//	fmt.Print(words[token.ItemInt()], " ")
//	x = model.Forward(token)
func isSpoken(pkg *blocking.Package, p Place, e ast.Expr, l *blocking.Loop) bool {
	if !isFed(pkg, e, l) {
		return false
	}
	text, ok := becomesText(pkg, p)
	if !ok {
		c := pkg.Calls[syntax.AsCall(nodeOf(p.Cur.Parent()))]
		return c != nil && showsAtOnce(c) && slices.ContainsFunc(c.Expr.Args, func(e ast.Expr) bool {
			v := pkg.Info.Types[e].Value
			return v != nil && strings.Contains(v.String(), "%c")
		})
	}
	switch n := text.Parent().Node().(type) {
	case *ast.SendStmt:
		return true
	case *ast.CallExpr:
		if fn := pkg.Variable(n.Fun); fn != nil && syntax.IsFunc(fn.Type()) && (pkg.Params[fn].Of != nil || fn.IsField()) {
			return true
		}
	}
	return pkg.Any(l, showsAtOnce)
}

// becomesText reports whether the value at p chooses a string, or a function makes one of it that doesn't format
// numbers, as by an alphabet. It returns where the string is.
func becomesText(pkg *blocking.Package, p Place) (text inspector.Cursor, ok bool) {
	for cur := range p.Cur.Enclosing() {
		switch n := cur.Node().(type) {
		case *ast.CallExpr:
			if c := pkg.Calls[n]; c != nil && cur != p.Cur {
				if _, prints := c.Printer(); prints || c.API.Kind != tensorapi.Unknown && c.API.Kind != tensorapi.Pure {
					return cur, false
				}
			}
		case *ast.IndexExpr, *ast.Ident, *ast.ParenExpr, *ast.SelectorExpr, *ast.CompositeLit:
		default:
			return cur, false
		}
		if basic, ok := typeOf(pkg, nodeOf(cur)).Underlying().(*types.Basic); ok && basic.Info()&types.IsString != 0 {
			return cur, true
		}
	}
	return p.Cur, false
}

// showsAtOnce recognises calls that bring what is written to a reader: prints on the terminal, and Flush of a buffer.
func showsAtOnce(c *blocking.Call) bool {
	fn := c.Callee
	if fn == nil || fn.Pkg() == nil {
		return false
	}
	switch fn.Pkg().Path() {
	case "bufio":
		return fn.Name() == "Flush"
	case "fmt":
		return strings.HasPrefix(fn.Name(), "Print") || strings.HasPrefix(fn.Name(), "Fprint") && isTerminal(c.Expr.Args[0])
	case "os", "io":
		return fn.Name() == "WriteString" && slices.ContainsFunc(c.AllOperands(), isTerminal)
	}
	return false
}

// isTerminal recognises os.Stdout and os.Stderr.
func isTerminal(e ast.Expr) bool {
	name := types.ExprString(e)
	return name == "os.Stdout" || name == "os.Stderr"
}

// isText reports whether the value at p becomes a part of a text.
func isText(pkg *blocking.Package, p Place) bool {
	c := pkg.Calls[syntax.AsCall(nodeOf(p.Cur.Parent()))]
	return p.Use == Printed && c != nil && c.Callee != nil && strings.HasPrefix(c.Callee.Name(), "Sprint")
}
