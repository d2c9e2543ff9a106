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

// isTable reports whether l prints the values at places as lines of a table, each with its label.
//
//	for _, n := range sizes {
//		fmt.Println(n, condition(tensor.Randn(n, n)).Item())
//	}
func isTable(pkg *blocking.Package, places []Place, l *blocking.Loop) bool {
	label := labelIn(pkg, l)
	return label != nil && len(places) > 0 && !slices.ContainsFunc(places, func(p Place) bool {
		call := syntax.AsCall(nodeOf(p.Cur.Parent()))
		return p.Use != Printed || call == nil || !slices.ContainsFunc(call.Args, func(e ast.Expr) bool { return e != p.Cur.Node() && pkg.Mentions(e, label) })
	})
}

// isTableLine reports whether c prints a line of a table, as isTable, with a tensor in it.
func isTableLine(pkg *blocking.Package, c *blocking.Call, l *blocking.Loop) bool {
	label := labelIn(pkg, l)
	return label != nil && slices.ContainsFunc(c.Expr.Args, func(e ast.Expr) bool { return pkg.Local(e) == label })
}

// labelIn returns the variable of l that says what a line of a table is about, or nil. There are few lines: l goes over
// sizes and makes its tensors by them, or over the names in a map of networks, or of lists of tensors, which are
// histories by name.
func labelIn(pkg *blocking.Package, l *blocking.Loop) *types.Var {
	s, ok := l.Stmt.(*ast.RangeStmt)
	if !ok || pkg.Any(l, (*blocking.Call).Mutates) {
		return nil
	}
	label := historyName(pkg, s)
	if label == nil {
		label = sizeOrNetwork(pkg, s, l)
	}
	if label == nil {
		return nil
	}
	for v, defs := range pkg.Defs {
		if pkg.HoldsTensors(v.Type()) && !l.Declares(v) && slices.ContainsFunc(defs, func(d blocking.Def) bool { return pkg.Contains(l, d.In, d.Pos) }) {
			return nil // one goes on from the other
		}
	}
	return label
}

// sizeOrNetwork returns the variable of the range statement s of loop l if it is a size of the tensors that l makes, or
// the name of a network in a map. Else it returns nil.
func sizeOrNetwork(pkg *blocking.Package, s *ast.RangeStmt, l *blocking.Loop) *types.Var {
	if elem := syntax.ElementType(typeOf(pkg, s.X)); syntax.IsMap(typeOf(pkg, s.X)) && elem != nil && syntax.HasMethod(pkg.Pass.Pkg, elem, []string{"Forward"}) {
		return pkg.Variable(syntax.OrNil(s.Key))
	}
	size := pkg.Variable(syntax.OrNil(s.Value))
	if size == nil || !isWhole(typeOf(pkg, s.X)) || !pkg.Any(l, func(d *blocking.Call) bool {
		makes := d.API.Kind == tensorapi.Host || d.API.Kind == tensorapi.Draw || d.API.Kind == tensorapi.Unknown && d.Target != nil && d.Enqueues()
		return makes && !d.TakesTensor() && slices.ContainsFunc(d.Expr.Args, func(e ast.Expr) bool { return pkg.Mentions(e, size) })
	}) {
		return nil
	}
	return size
}

// historyName returns the variable of s, the statement of a loop, that is a name in a map of lists of tensors, or nil.
// s may go over sorted names.
//
//	for _, name := range slices.Sorted(maps.Keys(curves)) {
//		fmt.Println(name, tensor.Stack(0, curves[name]...).Mean())
//	}
func historyName(pkg *blocking.Package, s *ast.RangeStmt) *types.Var {
	isHistories := func(e ast.Expr) bool {
		m, ok := typeOf(pkg, e).Underlying().(*types.Map)
		return ok && isString(m.Key()) && syntax.ElementType(m.Elem()) != nil && blocking.IsTensors(m.Elem())
	}
	if isHistories(s.X) {
		return pkg.Variable(syntax.OrNil(s.Key))
	}
	name := pkg.Variable(syntax.OrNil(s.Value))
	if name == nil || !isString(name.Type()) {
		return nil
	}
	found := false
	ast.Inspect(s.Body, func(n ast.Node) bool {
		x, ok := n.(*ast.IndexExpr)
		found = found || ok && isHistories(x.X) && pkg.Local(x.Index) == name
		return !found
	})
	if !found {
		return nil
	}
	return name
}

// isSpoken reports whether loop l writes a text word by word: a reader at a terminal sees the value at p at once, and l
// computes its next tensor from e. The value at p is that of e.
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
		if isString(typeOf(pkg, nodeOf(cur))) {
			return cur, true
		}
	}
	return p.Cur, false
}

// showsAtOnce reports whether c shows text to a reader: it prints on the terminal, prints to a writer that the caller
// has given, or flushes a buffer.
func showsAtOnce(c *blocking.Call) bool {
	fn := c.Callee
	if fn == nil || fn.Pkg() == nil {
		return false
	}
	switch fn.Pkg().Path() {
	case "bufio":
		return fn.Name() == "Flush"
	case "fmt":
		return strings.HasPrefix(fn.Name(), "Print") || strings.HasPrefix(fn.Name(), "Fprint") && (isTerminal(c.Expr.Args[0]) || isGivenWriter(c.In.Package, c.Expr.Args[0]))
	case "os", "io":
		return strings.HasPrefix(fn.Name(), "Write") && slices.ContainsFunc(c.AllOperands(), func(e ast.Expr) bool { return isTerminal(e) || isGivenWriter(c.In.Package, e) })
	}
	return false
}

// isGivenWriter reports whether e is a parameter or a field of the type io.Writer. Who gives it may show at once what
// is written there.
func isGivenWriter(pkg *blocking.Package, e ast.Expr) bool {
	v := pkg.Variable(e)
	if v == nil || pkg.Params[v].Of == nil && !v.IsField() {
		return false
	}
	named, ok := types.Unalias(v.Type()).(*types.Named)
	return ok && named.Obj().Pkg() != nil && named.Obj().Pkg().Path() == "io" && named.Obj().Name() == "Writer"
}

// isTerminal recognises os.Stdout and os.Stderr.
func isTerminal(e ast.Expr) bool {
	name := types.ExprString(e)
	return name == "os.Stdout" || name == "os.Stderr"
}

// isString reports whether t is a string type.
func isString(t types.Type) bool {
	basic, ok := t.Underlying().(*types.Basic)
	return ok && basic.Info()&types.IsString != 0
}

// isText reports whether the value at p becomes a part of a text.
func isText(pkg *blocking.Package, p Place) bool {
	c := pkg.Calls[syntax.AsCall(nodeOf(p.Cur.Parent()))]
	return p.Use == Printed && c != nil && c.Callee != nil && strings.HasPrefix(c.Callee.Name(), "Sprint")
}

// isOfHistories reports whether l goes over the names in a map of lists of tensors, and computes with each list by
// itself. There are few names, and one read for each is little beside one for each tensor.
//
//	for name, losses := range m.histories {
//		out[name] = tensor.Stack(0, losses...).Float32s()
//	}
func isOfHistories(pkg *blocking.Package, l *blocking.Loop) bool {
	s, ok := l.Stmt.(*ast.RangeStmt)
	if !ok {
		return false
	}
	name := historyName(pkg, s)
	return name != nil && name.Name() != "_" && labelIn(pkg, l) != nil
}
