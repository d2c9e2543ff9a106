// Package fuse finds elementwise operations of a function that can be computed together, in one pass over memory.
package fuse

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"github.com/asyncgen/asyncgen/gen/internal/load"
	"github.com/asyncgen/asyncgen/gen/internal/plan"
	"golang.org/x/tools/go/types/typeutil"
)

// Rewrite is fuse: operations on the same elements become one command, if only the last result is needed.
//
//	y := x.Sub(mean).Div(std).Mul(gamma)     to     y := x.Lazy().Sub(mean).Div(std).Mul(gamma).Eager()
//
//	d := x.Sub(y)                            to     d := x.Lazy().Sub(y)
//	loss := d.Mul(d).Mul(w).Sum()                   loss := d.Mul(d).Mul(w).Sum()
//
// It only says where a chain begins and where it ends: Lazy and Eager change no value, so that there is nothing to
// prove. What is computed together is decided when the program runs.
var Rewrite = &plan.Rewrite{
	Name: "fuse",
	Code: plan.Fused,
	Does: "is computed in one pass",
}

// least is how many operations are worth it. Two have little to gain, and are everywhere.
const least = 3

// A chain is an expression of elementwise operations that is no operand of another one.
type chain struct {
	root  *ast.CallExpr
	heads []ast.Expr     // what has to be made lazy
	uses  []types.Object // variables that are operands
	ops   int
	list  []ast.Stmt   // that the statement with the root is in
	at    int          // its place there
	into  *chain       // the only chain that has the result as an operand, by way of a variable; else nil
	def   types.Object // the variable that the result is assigned to, and nothing else is
	ends  bool         // the result goes to a sum, which ends the chain by itself
}

// A finder looks for chains.
type finder struct {
	f      *plan.Function
	chains []*chain
	list   []ast.Stmt // what is looked at, see chain
	at     int
}

// Form returns f with its chains marked, and remarks on them. The function is nil if there are none.
func Form(f *plan.Function) (*plan.Function, []plan.Remark) {
	w := &finder{f: f}
	w.block(f.Decl.Body.List)
	w.connect()
	var edits []load.Edit
	var made []plan.Remark
	for _, c := range w.chains {
		if c.whole() < least {
			continue
		}
		for _, e := range c.heads {
			edits = append(edits, load.Edit{Pos: e.End(), End: e.End(), Text: ".Lazy()"})
		}
		if c.into == nil {
			made = append(made, Rewrite.Made(f, c.root.Pos(), w.said(c.root)))
			if !c.ends {
				edits = append(edits, load.Edit{Pos: c.root.End(), End: c.root.End(), Text: ".Eager()"})
			}
		}
	}
	if len(edits) == 0 {
		return nil, nil
	}
	g, err := f.Restate(edits)
	if err != nil { // f is a method of a generic type
		return nil, nil
	}
	return g, made
}

// said is the text of call for a remark, as the user knows it.
func (w *finder) said(call *ast.CallExpr) string {
	text, rest, _ := strings.Cut(w.f.Text(call.Pos(), call.End()), "\n")
	if rest != "" {
		text += "..."
	}
	return strings.ReplaceAll(text, load.RestatedRuntime, "asyncrt")
}

// whole returns how many operations the chain has that c is a part of, by way of variables.
func (c *chain) whole() int {
	for c.into != nil {
		c = c.into
	}
	return c.ops
}

// block looks for chains in list and in the blocks in it.
func (w *finder) block(list []ast.Stmt) {
	outer, at := w.list, w.at
	for i, s := range list {
		w.list, w.at = list, i
		w.in(s)
	}
	w.list, w.at = outer, at
}

// in looks for chains in n.
func (w *finder) in(n ast.Node) {
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.DeferStmt, *ast.GoStmt, *ast.FuncLit: // when these run, or how often, others decide
			return false
		case *ast.BlockStmt:
			w.block(n.List)
			return false
		case *ast.CaseClause:
			for _, e := range n.List {
				w.in(e)
			}
			w.block(n.Body)
			return false
		case *ast.CommClause:
			if n.Comm != nil {
				w.in(n.Comm)
			}
			w.block(n.Body)
			return false
		case *ast.CallExpr:
			if w.isOperation(n) {
				w.chain(n)
				return false
			}
			if s, ok := n.Fun.(*ast.SelectorExpr); ok && w.isSum(n) {
				if call, ok := ast.Unparen(s.X).(*ast.CallExpr); ok && w.isOperation(call) {
					w.chain(call).ends = true
					for _, e := range n.Args {
						w.in(e)
					}
					return false
				}
			}
		}
		return true
	})
}

// chain notes the chain that ends with call.
func (w *finder) chain(call *ast.CallExpr) *chain {
	c := &chain{root: call, list: w.list, at: w.at}
	w.gather(c, call)
	if s, ok := w.list[w.at].(*ast.AssignStmt); ok && s.Tok == token.DEFINE && len(s.Lhs) == 1 && ast.Unparen(s.Rhs[0]) == call {
		c.def = w.f.Info.Defs[s.Lhs[0].(*ast.Ident)]
	}
	w.chains = append(w.chains, c)
	return c
}

// gather adds call, and the operations that make its operands, to c.
func (w *finder) gather(c *chain, call *ast.CallExpr) {
	c.ops++
	var operands []ast.Expr
	isMethod := false
	if s, ok := call.Fun.(*ast.SelectorExpr); ok && w.f.Info.Selections[s] != nil {
		operands, isMethod = []ast.Expr{s.X}, true
	}
	leads := isMethod
	for _, e := range append(operands, call.Args...) {
		if !w.f.Analysis.API.IsTensor(w.f.Info.TypeOf(e)) {
			w.in(e)
			continue
		}
		switch n := ast.Unparen(e).(type) {
		case *ast.CallExpr:
			if w.isOperation(n) {
				w.gather(c, n)
				leads = false
				continue
			}
		case *ast.Ident:
			c.uses = append(c.uses, w.f.Info.Uses[n])
		}
		w.in(e)
	}
	if leads {
		c.heads = append(c.heads, operands[0])
	}
}

// isOperation reports whether call is an elementwise operation, of a tensor itself and not of what embeds one. Method
// expressions have no operand on the left that could be made lazy.
func (w *finder) isOperation(call *ast.CallExpr) bool {
	api, ok := w.called(call)
	if s, is := call.Fun.(*ast.SelectorExpr); is {
		if sel := w.f.Info.Selections[s]; sel != nil {
			ok = ok && sel.Kind() == types.MethodVal && w.f.Analysis.API.IsTensor(sel.Recv())
		}
	}
	return ok && api.IsElementwise()
}

// isSum reports whether call adds up elements of its receiver.
func (w *finder) isSum(call *ast.CallExpr) bool {
	api, ok := w.called(call)
	return ok && slices.Contains(sums, strings.TrimPrefix(api.Name, "(*"+load.RuntimePath+"/tensor.Tensor)."))
}

var sums = []string{"Sum", "SumKeep", "Mean", "MeanKeep"}

func (w *finder) called(call *ast.CallExpr) (tensorapi.Func, bool) {
	fn, ok := typeutil.Callee(w.f.Info, call).(*types.Func)
	if !ok {
		return tensorapi.Func{}, false
	}
	return w.f.Analysis.API.Lookup(fn)
}

// connect finds the chains whose result is kept in a variable for one later chain of the same block, and for nothing
// else. The two are one.
func (w *finder) connect() {
	uses := make(map[types.Object]int)
	for _, obj := range w.f.Info.Uses {
		uses[obj]++
	}
	for _, c := range w.chains { // in the order of the source: what c is a part of comes later
		if c.def == nil {
			continue
		}
		for _, d := range w.chains {
			n := 0
			for _, obj := range d.uses {
				if obj == c.def {
					n++
				}
			}
			if n == 0 || n != uses[c.def] || &d.list[0] != &c.list[0] || d.at <= c.at {
				continue
			}
			c.into = d
			d.ops += c.ops
			d.heads = slices.DeleteFunc(d.heads, func(e ast.Expr) bool {
				id, ok := ast.Unparen(e).(*ast.Ident)
				return ok && w.f.Info.Uses[id] == c.def
			})
		}
	}
}
