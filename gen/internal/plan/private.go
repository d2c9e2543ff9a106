package plan

import (
	"go/ast"
	"go/token"
	"go/types"

	"github.com/asyncgen/asyncgen/gen/internal/facts"
	"golang.org/x/tools/go/types/typeutil"
)

// privateTypes are types of the standard library whose values keep a state in
// memory that nothing else leads to, as long as they are only used by their methods.
var privateTypes = map[string]bool{
	"bytes.Buffer": true, "strings.Builder": true, "math/rand.Rand": true, "math/rand/v2.Rand": true,
}

// findPrivate finds the local variables with such a value: a text that the
// function builds, a random generator of its own. What happens to them is no
// business of others, and needs no order among the outputs of the function.
func (f *Function) findPrivate() {
	private, defined := make(map[*types.Var]bool), make(map[*types.Var]bool)
	ast.Inspect(f.Decl.Body, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		if !ok {
			return true
		}
		v := f.variable(id)
		if v == nil || v.Pos() < f.Decl.Body.Pos() || v.Pos() >= f.Decl.Body.End() {
			return true
		}
		named, ok := derefNamed(v.Type())
		if !ok || named.Obj().Pkg() == nil || !privateTypes[named.Obj().Pkg().Path()+"."+named.Obj().Name()] {
			return true
		}
		defined[v] = defined[v] || f.Info.Defs[id] != nil
		keeps, seen := private[v]
		private[v] = (keeps || !seen) && f.keepsPrivate(id, v)
		return true
	})
	for v, ok := range private {
		if ok && defined[v] { // by a statement of its own, unlike the variable of a clause of a type switch
			f.fact(v).own, f.fact(v).private = true, true
		}
	}
}

// keepsPrivate reports whether one use of v neither copies it nor hands it out.
func (f *Function) keepsPrivate(id *ast.Ident, v *types.Var) bool {
	if lit := f.literalAround(id); lit != nil && (v.Pos() < lit.Pos() || v.Pos() >= lit.End()) {
		return false
	}
	switch p := f.parents[id].(type) {
	case *ast.SelectorExpr:
		call, ok := f.parents[p].(*ast.CallExpr)
		if !ok || call.Fun != p || f.startsElsewhere(call) {
			return false
		}
		fn := typeutil.StaticCallee(f.Info, call)
		if fn == nil {
			return false
		}
		fact := facts.Of(fn)
		if fact == nil {
			return false
		}
		recv, _ := fact.Slots(fn.Signature())
		return fact.Has(facts.Stream|facts.Source) && !fact.Has(facts.Blocks) && !recv.Has(facts.Keeps|facts.Returns)
	case *ast.UnaryExpr:
		call, ok := f.parents[p].(*ast.CallExpr)
		return ok && p.Op == token.AND && f.isWrittenTo(call, p)
	case *ast.CallExpr:
		return isPointer(v.Type()) && f.isWrittenTo(p, id)
	case *ast.ValueSpec:
		for i, name := range p.Names {
			if name == id {
				return len(p.Values) == 0 || len(p.Values) == len(p.Names) && f.makesPrivate(p.Values[i])
			}
		}
	case *ast.AssignStmt:
		for i, lhs := range p.Lhs {
			if lhs == id {
				return len(p.Lhs) == len(p.Rhs) && f.makesPrivate(p.Rhs[i])
			}
		}
	}
	return false
}

// literalAround returns the innermost function literal that n is in, or nil.
func (f *Function) literalAround(n ast.Node) *ast.FuncLit {
	for ; n != nil; n = f.parents[n] {
		if lit, ok := n.(*ast.FuncLit); ok {
			return lit
		}
	}
	return nil
}

// isWrittenTo reports whether call prints to its argument e.
func (f *Function) isWrittenTo(call *ast.CallExpr, e ast.Expr) bool {
	fn := typeutil.StaticCallee(f.Info, call)
	if fn == nil || facts.Of(fn) == nil || !facts.Of(fn).Has(facts.Prints) || len(call.Args) == 0 || call.Args[0] != e || f.startsElsewhere(call) {
		return false
	}
	params := fn.Signature().Params()
	return params.Len() > 0 && isWriter(params.At(0).Type())
}

// makesPrivate reports whether e is a new value that nothing else leads to.
func (f *Function) makesPrivate(e ast.Expr) bool {
	switch e := ast.Unparen(e).(type) {
	case *ast.CompositeLit:
		return len(e.Elts) == 0
	case *ast.UnaryExpr:
		return e.Op == token.AND && f.makesPrivate(e.X)
	case *ast.CallExpr:
		if f.builtin(e) == "new" {
			return true
		}
		fn := typeutil.StaticCallee(f.Info, e)
		if fn == nil {
			return false
		}
		switch fn.FullName() {
		case "bytes.NewBufferString", "math/rand.NewSource", "math/rand/v2.NewPCG", "math/rand/v2.NewChaCha8":
			return true
		case "bytes.NewBuffer":
			return f.Info.Types[e.Args[0]].IsNil()
		case "math/rand.New", "math/rand/v2.New":
			arg, ok := ast.Unparen(e.Args[0]).(*ast.CallExpr)
			return ok && f.makesPrivate(arg)
		}
	}
	return false
}

// private returns the variable that e is, or whose address it is, if that is private.
func (w *walker) private(e ast.Expr) (*types.Var, bool) {
	if e == nil {
		return nil, false
	}
	e = ast.Unparen(e)
	if u, ok := e.(*ast.UnaryExpr); ok && u.Op == token.AND {
		e = ast.Unparen(u.X)
	}
	id, ok := e.(*ast.Ident)
	if !ok {
		return nil, false
	}
	v := w.f.variable(id)
	return v, v != nil && w.f.facts[v] != nil && w.f.facts[v].private
}

// receiver returns the expression whose method a call calls, or nil.
func (f *Function) receiver(call *ast.CallExpr) ast.Expr {
	if sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr); ok && f.Info.Selections[sel] != nil {
		return sel.X
	}
	return nil
}
